"""Reads files of rows in any of their forms, with the entries of estimates or without.

A row can have 100,000 entries and a directory 400,000 rows. So the entries are skipped where possible, and a chosen row
is read on its own: lines of JSON at their position, Parquet from its row group, Avro from the beginning of its file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import fastavro
import orjson

from uldp_transforms.files import stores
from uldp_transforms.jobs.records.run_records import files_of
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.json_and_avro import from_avro
from uldp_transforms.rows.renamed_fields import former_names, with_new_names
from uldp_transforms.schemas import load

Row = Mapping[str, Any]

_FORMS = ("jsonl", "parquet", "avro")
"""Forms of files, the one first in which a row is found fastest."""

ENTRIES = "estimates"
"""The field of a row of estimates with its entries."""

_SCHEMAS = {
    "estimates": "windowed_estimate.avsc",
    "health": "health.avsc",
    "discovered": "discovered_value.avsc",
    "ledger": "ledger.avsc",
    "rejected": "rejected_report.avsc",
    "comparisons": "compared_value.avsc",
}
"""Schemas of the rows in a file, by the beginning of its name."""


def _former_names(path: str) -> dict[str, str]:
    """The former names of fields in a file of rows."""
    kind = path.rpartition("/")[2].partition(".")[0].partition("-")[0]
    return former_names(load(_SCHEMAS[kind]))


def _parsed(line: bytes) -> Any:
    """A line of JSON; numbers that are none, and texts that are no Unicode, are read as ``json`` does."""
    try:
        return orjson.loads(line)
    except ValueError:
        return json.loads(line)


Placed = tuple[int, int, Row]
"""Number of a row in its file, position of its first byte (only in JSON lines), and the row."""


def row_files(directory: str, kind: str) -> list[str]:
    """The files with rows of a kind, each run's in the form in which rows are found fastest.

    Files of a job over files have no run in their name; all files of a run have the rows in the same forms.
    """
    of_run: dict[str, dict[str, list[str]]] = {}
    for form in _FORMS:
        for path in files_of(directory, f"{kind}.{form}") + files_of(directory, f"{kind}-*.{form}"):
            of_run.setdefault(stores.name_of(path).rpartition("-")[0], {}).setdefault(form, []).append(path)
    return [path for forms in of_run.values() for path in next(iter(forms.values()))]


def read_rows(path: str, places: Mapping[int, int] | None = None, *, entries: bool = True) -> Iterator[Placed]:
    """The selected rows of a file (None: all); as few others as possible are parsed.

    Args:
        path: of the file.
        places: number -> position of rows, in ascending order.
        entries: whether rows of estimates have their entries; without, the field is a range of as many numbers.

    Raises:
        SpecError: if the file contains something else.
    """
    former = _former_names(path)
    form = path.rpartition(".")[2]
    with stores.opened(path) as file:
        try:
            rows = _READERS[form](file, places, entries)
            yield from ((number, begin, with_new_names(row, former)) for number, begin, row in rows)
        except (ValueError, TypeError, KeyError, EOFError):
            raise SpecError(f"{path} must contain rows of uldp estimate (the content is not shown)") from None


def _lines(file: Any, places: Mapping[int, int] | None, entries: bool) -> Iterator[Placed]:
    parse = _parsed if entries else _without_entries
    return _json_lines(file, parse) if places is None else _lines_at(file, places, parse)


def _json_lines(file: Any, parse: Callable[[bytes], Any]) -> Iterator[Placed]:
    begin = 0
    for number, text in enumerate(file):
        yield number, begin, {**parse(text)}
        begin += len(text)


def _lines_at(file: Any, places: Mapping[int, int], parse: Callable[[bytes], Any]) -> Iterator[Placed]:
    end = 0
    for number, begin in places.items():
        if begin != end:
            file.seek(begin)
        text = file.readline()
        end = begin + len(text)
        yield number, begin, {**parse(text)}


_FIRST_ENTRY, _LAST_ENTRY, _ENTRY = b'"estimates": [{"', b'}], "', b'{"value": '


def _without_entries(line: bytes) -> Any:
    """A row of estimates as ``to_json`` writes it, with a range of as many numbers instead of the entries.

    A quotation mark inside a text has a backslash before it, so the marks of entries are not in texts. A text that ends
    with that of the last entry leaves no JSON behind, and the line is parsed whole; so are lines of other programs.
    """
    first = line.find(_FIRST_ENTRY)
    last = line.find(_LAST_ENTRY, first)
    if 0 <= first < last:
        begin = first + len(_FIRST_ENTRY) - 2
        try:
            row = orjson.loads(line[:begin] + line[last + 1 :])
        except ValueError:
            return _parsed(line)
        return row | {ENTRIES: range(line.count(_ENTRY, begin, last))}
    return _parsed(line)


def _avro(file: Any, places: Mapping[int, int] | None, entries: bool) -> Iterator[Placed]:
    for number, record in enumerate(fastavro.reader(file)):
        if places is None or number in places:
            row = from_avro(record)  # type: ignore[arg-type]  # records of these schemas are mappings
            yield number, 0, row if entries or ENTRIES not in row else row | {ENTRIES: range(len(row[ENTRIES]))}


def _parquet(file: Any, places: Mapping[int, int] | None, entries: bool) -> Iterator[Placed]:
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  # most directories have no such files

    from uldp_transforms.rows.arrow_form import rows_of_table, without_entries  # noqa: PLC0415  # as above

    with ParquetFile(file) as table:
        first = 0
        paths = [table.schema.column(place).path for place in range(len(table.schema))]
        columns = None if entries else without_entries(paths)
        for group in range(table.num_row_groups):
            after = first + table.metadata.row_group(group).num_rows
            chosen = [number - first for number in places if first <= number < after] if places is not None else None
            if chosen or places is None:
                part = table.read_row_group(group, columns=columns)
                rows = rows_of_table(part if chosen is None else part.take(chosen))
                found = range(first, after) if chosen is None else (first + place for place in chosen)
                yield from ((number, 0, row) for number, row in zip(found, rows))
            first = after


_READERS = {"jsonl": _lines, "parquet": _parquet, "avro": _avro}
"""Form -> its reader."""
