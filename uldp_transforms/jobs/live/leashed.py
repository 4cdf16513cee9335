"""Runs a program of this package that always ends together with its parent process.

The parent holds the other end of standard input: when it is closed, explicitly or because the parent has ended, this
process gets SIGTERM. ``python -m uldp_transforms.jobs.live.leashed gateway --port 0 ...``
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading


def _wait_for_the_end() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """Run a program of ``uldp_transforms.jobs``; returns its exit code."""
    name, *argv = sys.argv[1:]
    sys.argv = [f"uldp {name}", *argv]
    threading.Thread(target=_wait_for_the_end, daemon=True).start()
    program = importlib.import_module(f"uldp_transforms.jobs.{name}")
    return int(program.main(argv))


if __name__ == "__main__":
    sys.exit(main())
