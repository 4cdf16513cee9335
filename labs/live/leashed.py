"""Runs a program of ``uldp`` that always ends together with its parent process.

The parent holds the other end of standard input: when it is closed, explicitly or because the parent has ended, this
process gets SIGTERM. ``python -m labs.live.leashed gateway --port 0 ...``
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import NoReturn

from uldp_transforms.jobs import uldp


def _wait_for_the_end() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> NoReturn:
    """Run a program, and end with its exit code.

    The process ends at once: threads of Beam's local engine look for work every five seconds, and Python would wait for
    them. A program has closed its files when it returns.
    """
    name, *argv = sys.argv[1:]
    sys.argv = [f"uldp {name}", *argv]
    threading.Thread(target=_wait_for_the_end, daemon=True).start()
    code = uldp.main([name, *argv])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
