"""Programs of this package as processes that hear Ctrl-C."""

from __future__ import annotations

import sys


def command(program: str) -> tuple[str, ...]:
    """What runs a program; what a shell starts in the background ignores Ctrl-C, and so would all processes below it.

    Args:
        program: such as ``estimate``.
    """
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += f"from uldp_transforms.jobs.uldp import main; sys.exit(main([{program!r}, *sys.argv[1:]]))"
    return sys.executable, "-c", code
