"""Sentence for rows that are read like dictionaries. Such rows are tuples with names."""

from __future__ import annotations

from typing import Any, TypeVar

from uldp_transforms.ldp.errors import SpecError

_Row = TypeVar("_Row", bound=type)


def with_attributes(row: _Row) -> _Row:
    """Refuse texts as index of the rows of a class: a SpecError with the attribute to use instead."""
    row.__getitem__ = _item  # type: ignore[index]  # a NamedTuple has no other base
    return row


def _item(row: Any, at: Any) -> Any:
    if isinstance(at, str):
        name, fields = type(row).__name__, row._fields
        if at not in fields:
            raise SpecError(f"{name} has the fields {', '.join(fields)}, got [{at!r}]")
        raise SpecError(f"{name} has its fields as attributes, got [{at!r}]; use: row.{at}, or as_dict(row)[{at!r}]")
    return tuple.__getitem__(row, at)
