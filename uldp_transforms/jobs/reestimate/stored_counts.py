"""Counts stored by jobs: the rows to add up for each window, and whether they are complete."""

from __future__ import annotations

import dataclasses
import functools
import io
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import IO, Any

import fastavro
import numpy as np

from uldp_transforms.files import stores
from uldp_transforms.jobs.records.run_records import STOPPED, RunRecord
from uldp_transforms.jobs.records.superseded_files import without_superseded
from uldp_transforms.jobs.reestimate.regroup import GROUP, Key, check_stored, regrouped
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.alphabets.dimensions import group_text
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.json_and_avro import from_avro
from uldp_transforms.rows.row_types import COUNTS_SCHEMA
from uldp_transforms.windows import Windows, moment_of

Row = dict[str, Any]
"""Counts of one window and pane: checked ``counts``, times in milliseconds."""

Panes = dict[Key, dict[str, Row]]
"""The last pane of each window and group, by run."""

_MOST = 1 << 53
"""Maximum of a stored sum: more than any number of reports, and small enough to prevent overflow."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredCounts:
    """Stored counts of all windows.

    Attributes:
        windows: rows to add up for each window and group.
        whole: keys of complete windows.
        strangers: number of rows of other collections.
    """

    windows: Mapping[Key, Sequence[Row]]
    whole: Set[Key]
    strangers: int


def files_of_counts(counts: str, option: str = "DIR") -> list[str]:
    """Files of a directory or pattern, local or in a store such as gs://, where a directory ends with a slash.

    Raises:
        SpecError: if there are none; names the option.
    """
    folder = counts.endswith("/") if stores.in_store(counts) else os.path.isdir(counts)
    pattern = stores.joined(counts, "counts*.avro") if folder else counts
    find = functools.partial(stores.matching, pattern)
    files = find() if stores.in_store(pattern) else without_superseded(stores.folder_of(pattern), find)
    if not files and folder:
        raise SpecError(
            f"{option} must have stored counts (counts*.avro), which uldp estimate --write_counts writes, got none in "
            f"{counts!r}"
        )
    if not files:
        raise SpecError(f"{option} must match at least one file, got {pattern!r}")
    return files


def stored_counts(
    jobs: Iterable[tuple[Sequence[str], Sequence[RunRecord]]],
    known: Mapping[str, Collection],
    longer: Windows | None,
    by: tuple[str, ...] | None = None,
) -> StoredCounts:
    """Read the counts of several jobs.

    Args:
        jobs: files of counts of each job, and the records of its runs.
        known: collections to select, by fingerprint in hexadecimal digits.
        longer: longer windows to build from the stored ones; None: keep the stored windows.
        by: dimensions of the groups to read besides the totals; stored groups by more dimensions are added up. A group
            is complete only if the groups of its window add up to the total.

    Raises:
        SpecError: if a file has other content, counts are impossible for their collection, ``longer`` cannot be
        built from the stored windows, no group is stored by all dimensions of ``by``, or a job is a copy of another.
        OSError: if a file cannot be read.
    """
    panes, strangers, seen_until = list[tuple[Panes, Sequence[RunRecord]]](), 0, list[int]()
    for files, records in jobs:
        latest: Panes = defaultdict(dict)
        for name, row in read_rows(files):
            if row["fingerprint"] in known:
                keep_last(latest, checked(name, row, known[row["fingerprint"]]))
            else:
                strangers += 1
        if longer is not None and latest:
            check_stored(latest, longer)
            if not all(record.bounded for record in records):
                seen_until.append(max(key[-1] for key in latest))
        panes.append((latest, records))
    windows, whole = rows_to_add(panes, by)
    if by:
        check_stored_by(any(key[GROUP] for key in windows), by)
    if longer is not None:
        windows, whole = regrouped(windows, whole, longer, min(seen_until, default=None))
    return StoredCounts(windows=windows, whole=whole, strangers=strangers)


def rows_to_add(
    panes: Iterable[tuple[Panes, Sequence[RunRecord]]], by: tuple[str, ...] | None
) -> tuple[dict[Key, list[Row]], set[Key]]:
    """The rows to add up for each window and group, and the keys of complete windows.

    Args:
        panes: last panes of each job, and the records of its runs.
        by: as for ``stored_counts``.

    Raises:
        SpecError: if a job is a copy of another.
    """
    windows: dict[Key, list[Row]] = defaultdict(list)
    whole: set[Key] = set()
    for latest, records in panes:
        resuming = [record for record in records if record.resumes]
        totals = {key: _of_runs(of_run, resuming) for key, of_run in latest.items() if not key[GROUP]}
        for key, counted in totals.items():
            _check_no_copies(windows[key], counted)
            windows[key] += counted.values()
            if any(row["complete"] and _is_whole(run, counted, resuming) for run, row in counted.items()):
                whole.add(key)
        for key, of_run in latest.items() if by else ():
            total, group = totals.get(total_of(key), {}), _rolled_up(next(iter(of_run.values())), by or ())
            if group is not None and not total.keys().isdisjoint(of_run):
                rolled_up = (*key[:GROUP], group_text(group), *key[GROUP + 1 :])
                windows[rolled_up] += [row | {"dimensions": group} for run, row in of_run.items() if run in total]
    if by:
        whole |= _groups_of_whole(windows, whole)
    return windows, whole


def _check_no_copies(earlier: Sequence[Row], counted: Mapping[str, Row]) -> None:
    """Refuse a window that two directories have from the same run: one of them is a copy; raises SpecError."""
    for row in earlier:
        again = counted.get(row["run"] or "")
        if row["run"] and again is not None and again["counts"] == row["counts"]:
            raise SpecError(
                f"DIR must name each count once, because its reports would count twice, got those of run "
                f"{row['run']} in two directories"
            )


def total_of(key: Key) -> Key:
    """The key of the total of a window, from that of one of its groups."""
    return (*key[:GROUP], "", *key[GROUP + 1 :])


def _rolled_up(row: Row, by: Sequence[str]) -> list[tuple[str, str]] | None:
    """(name, value) of the dimensions ``by`` of a stored group; None if it has not all of them."""
    stored = {one["name"]: one["value"] for one in row["dimensions"]}
    return [(name, stored[name]) for name in by] if set(by) <= set(stored) else None


def check_stored_by(has_groups: bool, by: Sequence[str]) -> None:
    """Refuse dimensions by which no group is stored; raises SpecError."""
    if not has_groups:
        raise SpecError(
            f"--by needs counts of groups, which uldp estimate --write_counts --by {','.join(by)} stores, got none by "
            "these dimensions"
        )


def _groups_of_whole(windows: Mapping[Key, Sequence[Row]], whole: Set[Key]) -> set[Key]:
    """The groups of complete windows in which the groups add up to the total."""
    reports: Counter[Key] = Counter()
    for key, rows in windows.items():
        sign = -1 if key[GROUP] else 1
        reports[total_of(key)] += sign * sum(row["counts"].total for row in rows)
    return {key for key in windows if key[GROUP] and total_of(key) in whole and not reports[total_of(key)]}


def checked(name: str, row: Row, collection: Collection) -> Row:
    """A row of a file with its ``counts``.

    Raises:
        SpecError: if they are impossible for its collection.
    """
    row["counts"] = _checked(name, collection, row.pop("num_reports"), row.pop("cells"))
    return row


def keep_last(latest: Panes, row: Row) -> None:
    """Keep a row unless a later pane of its window, group and run is there."""
    key, run = key_of(row), row["run"] or ""
    latest[key][run] = max(latest[key].get(run, row), row, key=_order)


def key_of(row: Row) -> Key:
    """The window and group of a row."""
    span = row["window_start"] or 0, row["window_end"] or 0
    return (row["collection_id"], row["collection_version"], row["group"] or "", *span)


def _order(row: Row) -> tuple[int, int]:
    """Sort key of panes: the last pane has the most reports; indexes can repeat after a restart, except on Dataflow."""
    return row["counts"].total, row["pane_index"]


def _checked(name: str, collection: Collection, reports: Sequence[int], numbers: Sequence[int]) -> CohortCounts:
    """The counts of a row; raises a SpecError that names the file if they are impossible for the collection."""
    num_reports, cells = (np.array(column, dtype=np.int64) for column in (reports, numbers))
    shape, what = (collection.num_cohorts, collection.num_cells), f"{name}: counts of collection {collection.id!r}"
    if (num_reports.size, cells.size) != (shape[0], shape[0] * shape[1]):
        raise SpecError(
            f"{what} must have {shape[0]} cohorts and {shape[0] * shape[1]} cells, got {num_reports.size} and "
            f"{cells.size}"
        )
    if any(column.min() < 0 or column.max() > _MOST for column in (num_reports, cells)):
        raise SpecError(f"{what} must be from 0 to {_MOST}, got a number outside this range")
    counts = CohortCounts(num_reports, cells.reshape(shape))
    try:
        collection.check_counts(counts)
    except SpecError as error:
        raise SpecError(f"{name}: {error}") from None
    return counts


def _of_runs(of_run: dict[str, Row], resuming: Sequence[RunRecord]) -> dict[str, Row]:
    """Rows whose counts are added for a window: all runs of a resuming source, otherwise only the latest run."""
    adding = {record.run for record in resuming}
    latest = max(of_run)
    return {run: row for run, row in of_run.items() if run == latest or (latest in adding and run in adding)}


def _is_whole(run: str, of_run: dict[str, Row], resuming: Sequence[RunRecord]) -> bool:
    """Whether the runs from the beginning of a window to this one, which saw its end, lost none of its reports."""
    names = [record.run for record in resuming]
    if run not in names:
        return True
    start = of_run[run]["window_start"] or 0
    for index in range(names.index(run), -1, -1):
        cut = resuming[index].specification["partial_before"]
        if cut is None or start >= moment_of(cut):
            return True
        before = resuming[index - 1] if index else None
        if before is None or not (before.end == STOPPED or (before.launched and before.run in of_run)):
            return False  # killed or cancelled; runs elsewhere, without an observed end, write their rows when drained
    return False


def read_rows(files: Sequence[str], schema: dict[str, Any] = COUNTS_SCHEMA) -> Iterator[tuple[str, Row]]:
    """The rows of files of counts, each with its file name; times in milliseconds.

    Args:
        files: names of the files.
        schema: of the rows, which may lack fields of the files.

    Raises:
        SpecError: if a file has other content.
        OSError: if a file cannot be read.
    """
    for name in files:
        with stores.opened(name) as file:
            rows = _rows_of(io.BytesIO(file.read()) if stores.in_store(name) else file, schema)
            while True:
                try:
                    row = next(rows, None)
                except Exception:  # any kind, because fastavro does not validate files
                    raise SpecError(
                        f"{name} must be a file that uldp estimate --write_counts wrote, got a different file"
                    ) from None
                if row is None:
                    break
                yield name, row


def _rows_of(file: IO[bytes], schema: dict[str, Any]) -> Iterator[Row]:
    rows = fastavro.reader(file)
    if fastavro.parse_schema(rows.writer_schema) != fastavro.parse_schema(schema):  # resolving is slow
        file.seek(0)
        rows = fastavro.reader(file, schema)
    for row in rows:
        yield _in_milliseconds(row)


def _in_milliseconds(record: Any) -> Row:
    row = from_avro(record)
    return row | {name: row[name] and moment_of(row[name]) for name in ("window_start", "window_end")}


def simulated_of(said: Sequence[bool | None]) -> bool | None:
    """True if one of several jobs is known to be simulated, False only if all are known not to be."""
    return True if any(said) else None if None in said else False


def counts_of(rows: Iterable[Row]) -> dict[bytes, CohortCounts]:
    """The sums of stored counts, by fingerprint."""
    sums: dict[bytes, CohortCounts] = {}
    for row in rows:
        fingerprint = bytes.fromhex(row["fingerprint"])
        sums[fingerprint] = sums[fingerprint] + row["counts"] if fingerprint in sums else row["counts"]
    return sums
