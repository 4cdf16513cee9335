"""Tables of refusals: rows of a call and its sentence, with the class of the error first unless it is ``SpecError``."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from uldp_transforms.ldp.errors import SpecError

Call = Callable[..., Any]
Refusal = tuple[Call, str] | tuple[type[Exception], Call, str]


def with_kinds(rows: Iterable[Refusal]) -> list[tuple[type[Exception], Call, str]]:
    """The rows, each with the class of its error: ``SpecError`` where it has none of its own."""
    return [row if len(row) == 3 else (SpecError, *row) for row in rows]


def rows_of(folder: ModuleType) -> Iterator[Refusal]:
    """The rows of all tables of a folder: each of its modules has one, ``REFUSED``."""
    for module in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
        yield from importlib.import_module(module.name).REFUSED


def rows_in(module: str, make: Callable[[str, dict[str, Any]], Any]) -> Iterator[Refusal]:
    """The rows of the YAML file beside a module: by name, the fields with which ``make`` refuses to make an object."""
    table = yaml.load(Path(module).with_suffix(".yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    for name, rows in table.items():
        for row in rows:
            yield functools.partial(make, name, row["with"]), row["says"]
