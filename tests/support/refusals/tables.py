"""The tables of refusals in a folder: each of its modules has one, ``REFUSED``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def rows_of(folder: ModuleType) -> Iterator[tuple[Any, ...]]:
    """The rows of all tables of a folder: a call and its sentence, perhaps with the kind of error."""
    for module in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
        yield from importlib.import_module(module.name).REFUSED
