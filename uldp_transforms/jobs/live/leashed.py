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
from typing import NoReturn


def _wait_for_the_end() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> NoReturn:
    """Run a program of ``uldp_transforms.jobs``, and end with its exit code.

    The process ends at once: threads of Beam's local engine look for work every five seconds, and Python would wait for
    them. A program has closed its files when it returns.
    """
    name, *argv = sys.argv[1:]
    sys.argv = [f"uldp {name}", *argv]
    threading.Thread(target=_wait_for_the_end, daemon=True).start()
    program = importlib.import_module(f"uldp_transforms.jobs.{name}")
    code = int(program.main(argv))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
