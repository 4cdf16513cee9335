"""Windows that are given as objects of an engine, such as Beam's ``FixedWindows``."""

from __future__ import annotations

import importlib
from typing import Any

from uldp_transforms.windows import Windows

EngineWindows = Any
"""An object that an engine has for windows; no engine is imported for its type."""

_ENGINES = {("apache_beam", "WindowFn"): ("uldp_transforms.beam.runtime.beam_windows", "windows_of_beam")}
"""Package and class of such objects -> module and function that convert them, imported when one is given."""


def is_of_engine(given: object) -> bool:
    """Whether an object is the windows of an engine."""
    return _converter(given) is not None


def windows_of_engine(given: object) -> Windows | None:
    """Windows of this package; None for a single window for all time.

    Raises:
        SpecError: for windows in which reports cannot be counted, such as sessions.
    """
    module, function = _converter(given) or ("", "")
    windows: Windows | None = getattr(importlib.import_module(module), function)(given)
    return windows


def _converter(given: object) -> tuple[str, str] | None:
    classes = ((base.__module__.partition(".")[0], base.__name__) for base in type(given).__mro__)
    return next((_ENGINES[name] for name in classes if name in _ENGINES), None)
