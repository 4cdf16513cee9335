"""Reads the rows of a directory: the valid row of each window, and its entries on demand.

A row can have 100,000 entries and a directory 1,000 windows. So rows are first read without entries to find the valid
ones, and the entries of the displayed windows are then read row by row.
"""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import fastavro
import orjson

from uldp_transforms.files import stores
from uldp_transforms.jobs.check import latest_of_groups, state_of
from uldp_transforms.jobs.records.run_records import RunRecord, files_of, read_records
from uldp_transforms.jobs.records.whole_period import FILE as TOTALS
from uldp_transforms.jobs.records.whole_period import written_totals
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.json_and_avro import from_avro
from uldp_transforms.rows.renamed_fields import former_names, with_new_names
from uldp_transforms.schemas import load

_LONGEST = 1_000  # bytes of a nested value that is shared


class LeanRow(Mapping[str, Any]):
    """A row: fields by name, as a dictionary that cannot be changed.

    Args:
        places: name -> its place among the values, the same object for all rows with these fields.
        values: the values.
    """

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: tuple[Any, ...]):
        self._places, self._values = places, values

    def __getitem__(self, name: str) -> Any:
        return self._values[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._values)


class LeanRows:
    """Makes the rows of one source lean: 36,000 rows of a month of hours in 50 groups take 20 MB instead of 300."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, ...], Mapping[str, int]] = {}
        self._known: dict[str | bytes, Any] = {}

    def lean(self, row: Mapping[str, Any]) -> LeanRow:
        """The row with shared names, texts and short nested values."""
        names = tuple(row)
        places = self._places.get(names)
        if places is None:
            places = self._places[names] = {name: place for place, name in enumerate(names)}
        return LeanRow(places, tuple(map(self._shared, row.values())))

    def _shared(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._known.setdefault(value, value)
        if isinstance(value, (dict, list)):
            key = orjson.dumps(value)
            return self._known.setdefault(key, value) if len(key) <= _LONGEST else value
        return value


Row = Mapping[str, Any]

COMPARISONS = "comparisons.jsonl"
"""The file of ``uldp compare`` in a directory."""

_ENTRIES = "estimates"
_KINDS = ("estimates", "health", "discovered", "ledger")
_PLACE = (
    "collection_id",
    "collection_version",
    "fingerprint",
    "window_start",
    "window_end",
    "status",
    "run",
    "pane_index",
)
"""Fields that every row of a window must have; rows of older jobs lack some of the others."""


class RowDirectory:
    """The rows in an output directory of ``uldp estimate`` or ``uldp reestimate``, local or in a store such as gs://.

    Args:
        path: path of the directory.
    """

    def __init__(self, path: str):
        self.path = path

    def records(self) -> list[RunRecord]:
        """Run records in order; raises SpecError if a file has the name but not the content of a record."""
        return read_records(self.path)

    def windows(self) -> list[Row]:
        """The valid row of estimates of each window, without its entries, in order of time.

        ``num_shown`` is its number of entries; ``file`` and ``line`` are its position, and ``begin`` that of its first
        byte in a file of JSON lines.

        Raises:
            SpecError: if a file contains other rows.
        """
        return sorted((row for row in self._valid if not row.get("group")), key=_in_order)

    def groups(self) -> list[Row]:
        """The valid row of each window and group as ``windows`` has those of everybody, in order of group and time."""
        rows = [row for row in self._valid if row.get("group")]
        return sorted(rows, key=lambda row: (row["group"], *_in_order(row)))

    @functools.cached_property
    def _valid(self) -> list[Row]:
        """The valid row of each window, of everybody and of each group; they are read once."""
        return latest_of_groups(self._headers())

    def _headers(self) -> Iterator[Row]:
        rows = LeanRows()
        for path in self._files("estimates"):
            for line, begin, row in _read(path, parse=_without_entries):
                missing = [name for name in (*_PLACE, _ENTRIES) if name not in row]
                if missing:
                    raise SpecError(f"{path} must contain rows of estimates, got a row without {missing[0]}")
                header = {name: value for name, value in row.items() if name != _ENTRIES}
                place = {"num_shown": len(row[_ENTRIES]), "file": path, "line": line, "begin": begin}
                yield rows.lean(header | place)

    def entries(self, windows: Iterable[Row]) -> Iterator[tuple[Row, Sequence[Row]]]:
        """The given rows with their entries, file by file."""
        wanted: dict[str, dict[int, Row]] = defaultdict(dict)
        for row in windows:
            wanted[row["file"]][row["line"]] = row
        for path, lines in wanted.items():
            for line, _, row in _read(path, {line: lines[line]["begin"] for line in sorted(lines)}):
                yield lines[line], row[_ENTRIES]

    def health(self) -> list[Row]:
        """The valid health row of each window, and of each group that is smoothed, in order of time."""
        lean = LeanRows().lean
        rows = latest_of_groups(lean(row) for path in self._files("health") for row in _rows_of(path))
        return sorted(rows, key=lambda row: (row["window_start"] or "", row.get("group") or ""))

    def discovered(self, windows: Iterable[Row]) -> list[Row]:
        """The discovered values in the valid rows."""
        panes = {_pane(row) for row in windows}
        rows = (row for path in self._files("discovered") for row in _rows_of(path))
        return [row for row in rows if _pane(row) in panes]

    def ledger(self, runs: Iterable[str]) -> list[Row]:
        """The ledger rows of some runs."""
        wanted = set(runs)
        rows = (row for path in self._files("ledger") for row in _rows_of(path))
        return [row for row in rows if row.get("run") in wanted]

    def rejected(self, runs: Iterable[str]) -> list[Row]:
        """The rows of reports that some runs rejected."""
        wanted = set(runs)
        rows = (row for path in self._files("rejected") for row in _rows_of(path))
        return [row for row in rows if row.get("run") in wanted]

    def totals(self) -> list[Row]:
        """The rows of the whole period that ``uldp reestimate --window all`` wrote, with their entries."""
        return written_totals(self.path)

    def comparisons(self) -> list[Row]:
        """The rows that ``uldp compare`` wrote."""
        return [row for path in files_of(self.path, COMPARISONS) for row in _rows_of(path)]

    def stamp(self) -> tuple[Any, ...]:
        """A value that changes whenever the rows, the run records or the state of the latest run change."""
        records = self.records()
        paths = [path for name in _KINDS for path in self._files(name)] + files_of(self.path, TOTALS)
        state = state_of(records[-1], self.path) if records else None
        return tuple(map(stores.stamp_of, paths)), records, state

    def _files(self, name: str) -> list[str]:
        """JSON lines files, or Avro files if there are none."""
        for form in ("jsonl", "avro"):
            found = files_of(self.path, f"{name}.{form}") + files_of(self.path, f"{name}-*.{form}")
            if found:
                return found
        return []


def _in_order(row: Row) -> tuple[Any, ...]:
    return row["collection_id"], row["collection_version"], row["fingerprint"], row["window_start"] or ""


_PANE = ("fingerprint", "window_start", "window_end", "run", "num_reports", "pane_index")


def _pane(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in _PANE)


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


def _rows_of(path: str) -> Iterator[Row]:
    return (row for _, _, row in _read(path))


def _parsed(line: bytes) -> Any:
    """A line of JSON; numbers that are none, and texts that are no Unicode, are read as ``json`` does."""
    try:
        return orjson.loads(line)
    except ValueError:
        return json.loads(line)


_Placed = tuple[int, int, Row]
"""Number of a row in its file, position of its first byte, and the row; Avro files have no such positions."""


def _read(
    path: str, lines: Mapping[int, int] | None = None, parse: Callable[[bytes], Any] = _parsed
) -> Iterator[_Placed]:
    """The selected rows of a file (None: all); other rows are not parsed, and of JSON lines not read.

    Args:
        path: of the file.
        lines: number -> position of rows, in ascending order.
        parse: function that reads a line of JSON.
    """
    former = _former_names(path)
    with stores.opened(path) as file:
        if path.endswith(".avro"):
            rows = _avro(file, lines)
        else:
            rows = _json_lines(file, parse) if lines is None else _lines_at(file, lines, parse)
        try:
            yield from ((number, begin, with_new_names(row, former)) for number, begin, row in rows)
        except (ValueError, TypeError, KeyError, EOFError):
            raise SpecError(f"{path} must contain rows of uldp estimate (the content is not shown)") from None


def _json_lines(file: Any, parse: Callable[[bytes], Any]) -> Iterator[_Placed]:
    begin = 0
    for number, text in enumerate(file):
        yield number, begin, {**parse(text)}
        begin += len(text)


def _lines_at(file: Any, lines: Mapping[int, int], parse: Callable[[bytes], Any]) -> Iterator[_Placed]:
    end = 0
    for number, begin in lines.items():
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
        return row | {_ENTRIES: range(line.count(_ENTRY, begin, last))}
    return _parsed(line)


def _avro(file: Any, lines: Mapping[int, int] | None) -> Iterator[_Placed]:
    for number, row in enumerate(fastavro.reader(file)):
        if lines is None or number in lines:
            yield number, 0, from_avro(row)  # type: ignore[arg-type]  # records of these schemas are mappings
