"""Programs of this package as processes that hear Ctrl-C."""

from __future__ import annotations

import sys


def command(module: str) -> tuple[str, ...]:
    """What runs a module; what a shell starts in the background ignores Ctrl-C, and so would all processes below it.

    Args:
        module: below ``uldp_transforms.jobs``.
    """
    code = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += f"runpy.run_module('uldp_transforms.jobs.{module}', run_name='__main__', alter_sys=True)"
    return sys.executable, "-c", code
