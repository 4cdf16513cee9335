"""Names of a package that are imported on first use, so that importing the package costs next to nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The function ``__getattr__`` of a package.

    Args:
        package: name of the package, for example ``uldp_transforms.ldp``.
        homes: each public name, and the module that defines it, relative to the package.

    Returns:
        A function from a name to what it stands for. It raises AttributeError for a name that is not in ``homes``, and
        ImportError if the module does not have the name.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has the names {', '.join(sorted(homes))}, got {name!r}")
        try:
            return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        except AttributeError as error:  # "from ... import" would report a missing name instead
            raise ImportError(f"{package}.{name} cannot be imported: {error}") from error

    return attribute
