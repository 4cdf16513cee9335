"""The compiled module of the package in ``native/``, if it is installed. Imports nothing else."""

from __future__ import annotations

import functools
import importlib
from typing import Any

MODULE = "uldp_transforms_native"

INTERFACE = 2
"""Version of the arguments and results of its functions."""


@functools.cache
def native() -> Any | None:
    """The compiled module; None if it is not installed, or made for another version of this package."""
    try:
        module = importlib.import_module(MODULE)
    except ImportError:
        return None
    return module if getattr(module, "INTERFACE", None) == INTERFACE else None


def decoder_name() -> str:
    """What splits messages in this process, as ``uldp --version`` shows it."""
    return "numpy" if native() is None else "compiled"
