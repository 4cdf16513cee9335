"""Rows as JSON lines and as Avro records.

A row that was sent between workers may belong to a class that Beam generated from its schema. So these functions accept
any row with the fields of the schema, whatever its class is.
"""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.avro_fields import time_fields
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.entry_forms import entries_to_json
from uldp_transforms.rows.row_types import ValueEstimate
from uldp_transforms.windows import rfc3339

_SCALARS = frozenset({str, int, float, bool, type(None)})


def as_dict(row: NamedTuple) -> dict[str, Any]:
    """Convert a row to a dictionary that ``json.dumps`` writes as the documented JSON.

    Inner rows become dictionaries too, and sequences lists; ``row._asdict()`` would leave them as tuples, which JSON
    has as lists without names.

    Examples:
        >>> from uldp_transforms import as_dict
        >>> from uldp_transforms.rows.row_types import DimensionValue
        >>> as_dict(DimensionValue("arm", "new"))
        {'name': 'arm', 'value': 'new'}

    Args:
        row: a row of any output of ``EstimateReports``.

    Raises:
        SpecError: if it is no row.
    """
    try:
        fields = row._fields
    except AttributeError:
        raise SpecError(f"as_dict, to_json and to_avro need a row, got {type(row).__name__}") from None
    return {name: value if type(value) in _SCALARS else _plain(value) for name, value in zip(fields, row)}


def _plain(value: Any) -> Any:
    if isinstance(value, EntryColumns):
        return [dict(zip(ValueEstimate._fields, entry)) for entry in value]
    if hasattr(value, "_asdict"):
        return as_dict(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def to_json(row: NamedTuple) -> str:
    """Encode a row as one line of JSON, as the files and topics of ``uldp estimate`` have it.

    Examples:
        >>> from uldp_transforms import to_json
        >>> from uldp_transforms.rows.row_types import DimensionValue
        >>> to_json(DimensionValue("arm", "new"))
        '{"name": "arm", "value": "new"}'

    Args:
        row: a row of any output of ``EstimateReports``.

    Raises:
        ValueError: if a number is not finite.
    """
    entries = getattr(row, "estimates", None)
    encoded = entries_to_json(entries) if isinstance(entries, EntryColumns) else None
    if encoded is None:
        return _to_json(as_dict(row))
    fields = as_dict(row._replace(estimates=()))
    at = row._fields.index("estimates")
    before, after = (dict(itertools.islice(fields.items(), *part)) for part in ((at,), (at + 1, None)))
    return f'{_to_json(before)[:-1]}, "estimates": {encoded}, {_to_json(after)[1:]}'


_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def to_avro(row: NamedTuple, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row to a record for an Avro writer; times become datetime, UTC.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import EstimateReports, ReadReportFiles, to_avro
        >>> from uldp_transforms.schemas import load
        >>> schema = load("windowed_estimate.avsc")
        >>> with beam.Pipeline() as pipeline:
        ...     files = pipeline | ReadReportFiles("reports*.avro")
        ...     estimated = files | EstimateReports(collections=["C.json"], window="1d")
        ...     records = estimated.estimates | beam.Map(to_avro, schema)
        ...     _ = records | beam.Map(lambda record: print(record["window_start"].date()))
        2001-09-09

    Args:
        row: a row of any output of ``EstimateReports``.
        schema: the Avro schema of these rows, of ``uldp_transforms.schemas.load``.
    """
    record = as_dict(row)
    for name in time_fields(schema):
        if record[name] is not None:
            record[name] = datetime.datetime.fromisoformat(record[name].removesuffix("Z") + "+00:00")
    return record


def from_avro(record: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a record of an Avro reader to the fields of a row by name; times become texts."""
    return {name: _text(value) if type(value) is datetime.datetime else value for name, value in record.items()}


def _text(time: datetime.datetime) -> str:
    return rfc3339(round(time.timestamp() * 1000))
