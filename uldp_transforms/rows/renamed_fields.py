"""What classes of rows get beside their fields: former names, and a sentence for rows that are read like dictionaries.

A schema declares former names of fields, and everything that writes or reads rows follows. ``"replaces": "at"`` of a
field in ``schemas/*.avsc``: rows have the value under both names, for consumers of the former one; the former field
stays in the schema. One release later it is removed, and ``"aliases": ["at"]`` instead lets every Avro reader find the
value in older files. Readers of this package take both: a row without the new name has its value from the former one.

``aliases`` comes so late because an Avro reader renames the former field of a file to the new one, which would then be
there twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from uldp_transforms.ldp.errors import SpecError

_BOTH, _AFTERWARDS = "replaces", "aliases"


def replaced_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """Former name -> new name of the fields that rows with this schema have under both."""
    return {field[_BOTH]: field["name"] for field in schema["fields"] if _BOTH in field}


def former_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """Former name -> new name of all fields that were renamed."""
    removed = {alias: field["name"] for field in schema["fields"] for alias in field.get(_AFTERWARDS, ())}
    return removed | replaced_names(schema)


def with_new_names(row: Mapping[str, Any], former: Mapping[str, str]) -> Mapping[str, Any]:
    """A row that was read, with the values of former names also under the new ones.

    Args:
        row: fields by name; those of older releases lack the new names, or have nulls there.
        former: of ``former_names``.
    """
    older = {new: row[old] for old, new in former.items() if row.get(new) is None and row.get(old) is not None}
    return {**row, **older} if older else row


def fill_replaced(row: Any, schema: Mapping[str, Any]) -> None:
    """Make a class of rows give the value of each renamed field also under its former name.

    Args:
        row: class of rows, a ``NamedTuple``.
        schema: its Avro schema.
    """
    replaced = replaced_names(schema)
    if not replaced:
        return
    places = [(row._fields.index(old), row._fields.index(new)) for old, new in replaced.items()]
    make = row.__new__

    def new_row(cls: Any, *args: Any, **kwargs: Any) -> Any:
        values = list(make(cls, *args, **kwargs))
        for old, new in places:
            values[old] = values[new]
        return tuple.__new__(cls, values)

    def replaced_row(self: Any, **changes: Any) -> Any:
        return type(self)(**{**self._asdict(), **changes})

    row.__new__, row._replace = staticmethod(new_row), replaced_row


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
