"""Reads the rows of a directory: the valid row of each window, and its entries on demand.

A row can have 100,000 entries and a directory 1,000 windows. So rows are first read without entries to find the valid
ones, and the entries of the displayed windows are then read row by row.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from uldp_transforms.files import stores
from uldp_transforms.jobs.check import latest_of_groups, state_of
from uldp_transforms.jobs.records.lean_rows import LeanRows
from uldp_transforms.jobs.records.row_reading import ENTRIES, Row, read_rows, row_files
from uldp_transforms.jobs.records.run_records import RunRecord, files_of, read_records
from uldp_transforms.jobs.records.whole_period import FILE as TOTALS
from uldp_transforms.jobs.records.whole_period import written_totals
from uldp_transforms.ldp.errors import SpecError

COMPARISONS = "comparisons.jsonl"
"""The file of ``uldp compare`` in a directory."""

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
        for path in row_files(self.path, "estimates"):
            for line, begin, row in read_rows(path, entries=False):
                missing = [name for name in (*_PLACE, ENTRIES) if name not in row]
                if missing:
                    raise SpecError(f"{path} must contain rows of estimates, got a row without {missing[0]}")
                header = {name: value for name, value in row.items() if name != ENTRIES}
                place = {"num_shown": len(row[ENTRIES]), "file": path, "line": line, "begin": begin}
                yield rows.lean(header | place)

    def entries(self, windows: Iterable[Row]) -> Iterator[tuple[Row, Sequence[Row]]]:
        """The given rows with their entries, file by file."""
        wanted: dict[str, dict[int, Row]] = defaultdict(dict)
        for row in windows:
            wanted[row["file"]][row["line"]] = row
        for path, lines in wanted.items():
            for line, _, row in read_rows(path, {line: lines[line]["begin"] for line in sorted(lines)}):
                yield lines[line], row[ENTRIES]

    def health(self) -> list[Row]:
        """The valid health row of each window, and of each group that is smoothed, in order of time."""
        lean = LeanRows().lean
        rows = latest_of_groups(lean(row) for path in row_files(self.path, "health") for row in _rows_of(path))
        return sorted(rows, key=lambda row: (row["window_start"] or "", row.get("group") or ""))

    def discovered(self, windows: Iterable[Row]) -> list[Row]:
        """The discovered values in the valid rows."""
        panes = {_pane(row) for row in windows}
        rows = (row for path in row_files(self.path, "discovered") for row in _rows_of(path))
        return [row for row in rows if _pane(row) in panes]

    def ledger(self, runs: Iterable[str]) -> list[Row]:
        """The ledger rows of some runs."""
        wanted = set(runs)
        rows = (row for path in row_files(self.path, "ledger") for row in _rows_of(path))
        return [row for row in rows if row.get("run") in wanted]

    def rejected(self, runs: Iterable[str]) -> list[Row]:
        """The rows of reports that some runs rejected."""
        wanted = set(runs)
        rows = (row for path in row_files(self.path, "rejected") for row in _rows_of(path))
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
        paths = [path for name in _KINDS for path in row_files(self.path, name)] + files_of(self.path, TOTALS)
        state = state_of(records[-1], self.path) if records else None
        return tuple(map(stores.stamp_of, paths)), records, state


def _rows_of(path: str) -> Iterator[Row]:
    return (row for _, _, row in read_rows(path))


def _in_order(row: Row) -> tuple[Any, ...]:
    return row["collection_id"], row["collection_version"], row["fingerprint"], row["window_start"] or ""


_PANE = ("fingerprint", "window_start", "window_end", "run", "num_reports", "pane_index")


def _pane(row: Row) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in _PANE)
