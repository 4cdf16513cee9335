"""The fields of the classes in ``rows/row_types.py``, from ``schemas/*.avsc``; ``tests.support.golden`` writes them."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from uldp_transforms.rows.avro_fields import Field, fields_of

CLASSES = "uldp_transforms/rows/row_types.py"
WINDOWS, VALUES = "schemas/windowed_estimate.avsc", "schemas/estimated_value.avsc"

CLASS_OF = {"Finding": "HealthFinding"}
"""Records whose classes have other names."""

_TYPES = {"string": "str", "time": "str", "int": "int", "long": "int", "double": "float", "boolean": "bool"}


def files(root: Path) -> dict[str, str]:
    """Path below the root -> text, of the files that follow from the other schemas."""
    values = _with_entries((root / VALUES).read_text("utf-8"), (root / WINDOWS).read_text("utf-8"))
    schemas = [
        values if path == root / VALUES else path.read_text("utf-8") for path in (root / "schemas").glob("*.avsc")
    ]
    records = dict(record for schema in schemas for record in _records(json.loads(schema)))
    return {VALUES: values, CLASSES: _with_fields((root / CLASSES).read_text("utf-8"), records)}


def _with_entries(values: str, windows: str) -> str:
    """The schema of values with the entries of the schema of windows as these are there; new ones come last."""
    (entries,) = (field["type"]["items"] for field in json.loads(windows)["fields"] if field["name"] == "estimates")
    fields = {field["name"]: field for field in (*json.loads(values)["fields"], *entries["fields"])}
    head, opening, _ = values.partition('"fields": [\n')
    lines = (f"    {json.dumps(field, ensure_ascii=False)}" for field in fields.values())
    return head + opening + ",\n".join(lines) + "\n  ]\n}\n"


def _records(schema: Any) -> Iterator[tuple[str, tuple[Field, ...]]]:
    """Name and fields of the record that a schema describes, and of those inside of it."""
    waiting = [Field("", "record", record=schema["name"], parts=fields_of(schema))]
    for field in waiting:
        waiting += field.parts
        if field.kind == "record":
            yield CLASS_OF.get(field.record, field.record), field.parts


def _with_fields(text: str, records: dict[str, tuple[Field, ...]]) -> str:
    """The module in which each class has the fields of its record, behind its docstring."""
    lines = text.splitlines()
    for node in reversed(ast.parse(text).body):
        if isinstance(node, ast.ClassDef):
            lines[node.body[0].end_lineno : node.end_lineno] = ["", *attributes(records[node.name])]
    return "\n".join(lines) + "\n"


def attributes(fields: tuple[Field, ...]) -> list[str]:
    """The lines of a class. Fields that came later, at its end, are empty if they are not given."""
    last = max((place for place, field in enumerate(fields) if not _empty(field)), default=-1)
    return [
        f"    {field.name}: {_annotation(field)}" + f" = {_empty(field)}" * (place > last)
        for place, field in enumerate(fields)
    ]


def _empty(field: Field) -> str:
    """The default of a field in Python; empty for a field that has none."""
    if not field.has_default:
        return ""
    if field.nullable:
        return "None"
    return {"array": "()", "map": "{}", "record": f"{field.record}()"}.get(field.kind, "")


def _annotation(field: Field) -> str:
    if field.nullable:
        return f"Optional[{_annotation(field._replace(nullable=False))}]"
    if field.kind == "record":
        return CLASS_OF.get(field.record, field.record)
    if field.kind == "array":
        return f"Sequence[{_annotation(field.parts[0])}]"
    return f"Mapping[str, {_annotation(field.parts[0])}]" if field.kind == "map" else _TYPES[field.kind]
