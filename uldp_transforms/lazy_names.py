"""Names of a package that are imported on first use, so that the package costs next to nothing."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str], moved: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """The function ``__getattr__`` of a package.

    Args:
        package: name of the package, for example ``uldp_transforms.ldp``.
        homes: each public name, and the module that defines it, relative to the package.
        moved: names that have moved into a companion, and the module there; they are found for one release.

    Returns:
        A function from a name to what it stands for. It raises AttributeError for a name that is in neither, and
        ImportError if the module does not have the name, or the companion is not installed.
    """
    of_companions = moved or {}

    def attribute(name: str) -> Any:
        if name in of_companions:
            return moved_name(f"{package}.{name}", of_companions[name], name)
        if name not in homes:
            raise AttributeError(f"module {package!r} has the names {', '.join(sorted(homes))}, got {name!r}")
        try:
            return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        except AttributeError as error:  # "from ... import" would report a missing name instead
            raise ImportError(f"{package}.{name} cannot be imported: {error}") from error

    return attribute


def moved_name(former: str, today: str, name: str) -> Any:
    """A name of the module that has it today, with a DeprecationWarning at the line that asked for it.

    Raises:
        ImportError: if the companion that has it is not installed.
    """
    companion = today.partition(".")[0]
    moved = f"{former} is now {today} of the package {companion.replace('_', '-')}"
    try:
        module = importlib.import_module(today)
    except ModuleNotFoundError as error:
        if error.name != companion:
            raise
        raise ImportError(f"{moved}, which is not installed") from error
    warnings.warn(moved, DeprecationWarning, stacklevel=3)
    return getattr(module, name)
