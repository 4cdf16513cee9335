"""The rows of one pair of sides as columns, which are written together; the rows are made on access."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.rows.json_and_avro import number_tokens
from uldp_transforms.rows.renamed_fields import replaced_names
from uldp_transforms.rows.row_types import COMPARED_SCHEMA, ComparedValue
from uldp_transforms_compare.comparisons.difference_columns import known

_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_make_row = functools.partial(tuple.__new__, ComparedValue)


@dataclasses.dataclass(frozen=True, eq=False)
class RowColumns:
    """The D rows of a pair; a field in none of the columns is None.

    Attributes:
        shared: fields that are the same in all rows.
        texts: (D,) for each other field that is no number.
        measures: (D,) for each other field that is one; nan or infinite where a row has None.
    """

    shared: Mapping[str, Any]
    texts: Mapping[str, Sequence[str | None]]
    measures: Mapping[str, np.ndarray]

    def __iter__(self) -> Iterator[ComparedValue]:
        columns: dict[str, Iterable[Any]] = {name: itertools.repeat(value) for name, value in self.shared.items()}
        columns |= {name: known(column) for name, column in self.measures.items()} | dict(self.texts)
        nothing = itertools.repeat(None)
        return map(_make_row, zip(*(columns.get(name, nothing) for name in _SOURCES)))

    def json_lines(self) -> bytes:
        """The rows as lines of JSON, each as ``to_json`` writes it."""
        columns = {name: [_encoded(value) for value in column] for name, column in self.texts.items()}
        columns |= {name: number_tokens(np.asarray(column)) for name, column in self.measures.items()}
        parts = [
            f'"{name}": {"%s" if source in columns else _encoded(self.shared.get(source)).replace("%", "%%")}'
            for name, source in zip(ComparedValue._fields, _SOURCES)
        ]
        line = f"{{{', '.join(parts)}}}\n"
        of_rows = zip(*(columns[source] for source in _SOURCES if source in columns))
        return "".join(map(line.__mod__, of_rows)).encode()


_REPLACED = replaced_names(COMPARED_SCHEMA)
_SOURCES = tuple(_REPLACED.get(name, name) for name in ComparedValue._fields)
"""For each field of a row the one whose value it has: another one if that replaces it."""
