"""Stored counts: which rows are added up, and which windows are whole; rows by hand."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import fastavro
import pytest

from tests.support.tolerance import generator
from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.jobs.reestimate import stored_counts as module
from uldp_transforms.jobs.reestimate import windows_in_turn as windows_in_turn_module
from uldp_transforms.jobs.reestimate.regroup import regrouped
from uldp_transforms.jobs.reestimate.stored_counts import StoredCounts, stored_counts, total_of
from uldp_transforms.jobs.reestimate.windows_in_turn import windows_in_turn
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.json_and_avro import to_avro
from uldp_transforms.rows.row_identity import name_of
from uldp_transforms.rows.row_types import COUNTS_SCHEMA, DimensionValue, WindowCounts
from uldp_transforms.windows import Windows, rfc3339

MINUTE = 60_000
GIVEN = {"id": "c", "version": 1, "alphabet": {"id": "closed", "values": ["a", "b"]}}
OF = Collection.from_json(GIVEN | {"mechanism": {"id": "krr", "epsilon": 1.0}})
KNOWN = {OF.fingerprint.hex(): OF}


def counts(
    number: int, start: int | None = 0, end: int = 10, group: Sequence[tuple[str, str]] = (), **more: Any
) -> WindowCounts:
    """Of the window from one minute to another; all reports are in the first cell."""
    times = (None, None) if start is None else (rfc3339(start * MINUTE), rfc3339(end * MINUTE))
    text = ",".join(f"{name}={value}" for name, value in group)
    given: dict[str, Any] = {
        "pane_index": 0,
        "pane_timing": "ON_TIME",
        "complete": True,
        "run": "a",
        "group": text or None,
    }
    given |= {"window_start": times[0], "window_end": times[1], "num_reports": [number], "cells": [number, 0]}
    return WindowCounts(**name_of(OF) | given | {"dimensions": [DimensionValue(*one) for one in group]} | more)


def record(run: str, *, resumes: bool = True, bounded: bool = False, cut: int | None = None, **more: Any) -> RunRecord:
    source = {"option": "--x", "name": "x", "bounded": bounded, "resumes": resumes}
    specification = {"partial_before": None if cut is None else rfc3339(cut * MINUTE)}
    return RunRecord(run=run, started=rfc3339(0), source=source, specification=specification, **more)


def written(folder: Path, *rows: WindowCounts, name: str = "counts") -> str:
    content, schema = io.BytesIO(), fastavro.parse_schema(COUNTS_SCHEMA)
    fastavro.writer(content, schema, [to_avro(row, COUNTS_SCHEMA) for row in rows])
    path = folder / f"{name}.avro"
    path.write_bytes(content.getvalue())
    return str(path)


def read(
    folder: Path, *rows: WindowCounts, records: Sequence[RunRecord] = (), longer: Windows | None = None, by: Any = None
) -> StoredCounts:
    return stored_counts([([written(folder, *rows)], records)], KNOWN, longer, by)


def numbers(stored: StoredCounts) -> dict[Any, list[int]]:
    return {key[2:]: [row["counts"].total for row in rows] for key, rows in stored.windows.items()}


FIRST, SECOND = ("", 0, 10 * MINUTE), ("", 10 * MINUTE, 20 * MINUTE)


def test_of_each_window_the_pane_with_the_most_reports_counts(tmp_path: Path) -> None:
    """Of as many the last one; rows of other collections are left out and counted."""
    stranger = counts(9)._replace(fingerprint="00" * 32)
    rows = [counts(5, pane_index=0), counts(7, pane_index=1), counts(6, pane_index=9), counts(1, 10, 20), stranger]
    found = read(tmp_path, *rows, stranger)
    assert numbers(found) == {FIRST: [7], SECOND: [1]} and found.strangers == 2
    assert {key[:2] for key in found.windows} == {("c", 1)} and found.whole == set(found.windows)
    same = read(tmp_path, counts(5, pane_index=0), counts(5, pane_index=2), counts(5, pane_index=1))
    assert [row["pane_index"] for rows in same.windows.values() for row in rows] == [2]
    assert numbers(read(tmp_path, counts(3, None, run=None))) == {("", 0, 0): [3]}


def test_runs_are_added_if_the_last_one_went_on_where_they_stopped(tmp_path: Path) -> None:
    rows = [counts(1, run="a"), counts(20, run="b"), counts(300, run="c")]
    resuming = [record(run, end="stopped") for run in "abc"]

    def total(*records: RunRecord) -> int:
        [of_runs] = numbers(read(tmp_path, *rows, records=records)).values()
        return sum(of_runs)

    assert total(*resuming) == 321
    assert total(*resuming[:2], record("c", resumes=False)) == 300
    assert total(record("a", resumes=False), *resuming[1:]) == 320
    assert total() == 300


def test_several_jobs_are_added_and_copies_are_refused(tmp_path: Path) -> None:
    first, second = written(tmp_path, counts(1), name="x"), written(tmp_path, counts(20, run="b"), name="y")
    found = stored_counts([([first], []), ([second], [])], KNOWN, None)
    assert numbers(found) == {FIRST: [1, 20]}
    others = {"none": counts(1, run=None), "other": counts(2)}
    for name, row in others.items():
        found = stored_counts([([first], []), ([written(tmp_path, row, name=name)], [])], KNOWN, None)
        assert len(numbers(found)[FIRST]) == 2
    twice = written(tmp_path, counts(1, run=None), name="z")
    assert numbers(stored_counts([([twice], []), ([twice], [])], KNOWN, None)) == {FIRST: [1, 1]}
    with pytest.raises(SpecError) as caught:
        stored_counts([([first], []), ([written(tmp_path, counts(1), name="copy")], [])], KNOWN, None)
    assert str(caught.value) == (
        "DIR must name each count once, because its reports would count twice, got those of run a in two directories"
    )


WHOLE: list[tuple[list[RunRecord], str, bool]] = [
    ([], "a", True),
    ([record("b")], "a", True),
    ([record("a")], "a", True),
    ([record("a", cut=5)], "a", True),
    ([record("a", cut=6)], "a", False),
    ([record("a", end="stopped"), record("b", cut=6)], "b", True),
    ([record("a", end="failed"), record("b", cut=6)], "b", False),
    ([record("a", end="cancelled"), record("b", cut=6)], "b", False),
    ([record("a", end="complete"), record("b", cut=6)], "b", False),
    ([record("a"), record("b", cut=6)], "b", False),
    ([record("a", launched=True), record("b", cut=6)], "b", True),
    ([record("x", launched=True), record("b", cut=6)], "b", False),
    ([record("a", end="failed"), record("b", cut=5)], "b", True),
    ([record("z"), record("a", end="stopped", cut=6), record("b", cut=6)], "b", False),
    ([record("z", end="stopped"), record("a", end="stopped", cut=6), record("b", cut=6)], "b", True),
    ([record("z"), record("a", end="stopped", cut=5), record("b", cut=6)], "b", True),
    ([record("a", end="stopped"), record("b", cut=6, end="stopped"), record("c", cut=9)], "b", True),
]


@pytest.mark.parametrize(("records", "run", "is_whole"), WHOLE)
def test_a_window_is_whole_if_no_run_before_lost_a_part(records: list[RunRecord], run: str, is_whole: bool) -> None:
    """It begins at minute 5; runs saw its reports from there on, or from their cut."""
    of_run = {name: {"window_start": 5 * MINUTE} for name in "ab"}
    assert bool(module._is_whole(run, of_run, records)) is is_whole


def test_a_window_of_everything_begins_at_no_time() -> None:
    assert module._is_whole("a", {"a": {"window_start": None}}, [record("a", cut=0)])
    assert not module._is_whole("a", {"a": {"window_start": None}}, [record("a", cut=1)])


def test_a_window_that_no_run_saw_the_end_of_is_partial(tmp_path: Path) -> None:
    found = read(tmp_path, counts(1, complete=False), counts(2, 10, 20))
    assert {key[2:] for key in found.whole} == {SECOND}
    both = [counts(1, run="a", complete=False), counts(2, run="b")]
    records = [record("a", end="stopped"), record("b", cut=99)]
    assert len(read(tmp_path, *both, records=records).whole) == 1
    assert len(read(tmp_path, *both, records=[record("a"), record("b", cut=99)]).whole) == 0


# -------------------------------------------------------------------------------------------------------------- groups

X, Y, BOTH = [("g", "x")], [("g", "y")], [("g", "x"), ("h", "z")]


def test_groups_are_whole_if_they_add_up_to_the_total(tmp_path: Path) -> None:
    """And their window is."""
    rows = [counts(30), counts(10, group=X), counts(20, group=Y), counts(5, 10, 20), counts(4, 10, 20, group=X)]
    rows += [counts(5, 20, 30, complete=False), counts(5, 20, 30, group=X)]
    found = read(tmp_path, *rows, by=("g",))
    whole = {key[2:4] for key in found.whole}
    assert whole == {("", 0), ("g=x", 0), ("g=y", 0), ("", 10 * MINUTE)}
    assert numbers(found)["g=x", 0, 10 * MINUTE] == [10] and len(found.windows) == 7
    assert [key for key in read(tmp_path, *rows).windows if key[2]] == []


def test_stored_groups_by_more_dimensions_are_added_up(tmp_path: Path) -> None:
    """Those by fewer are left out, and so are runs that the total leaves out."""
    more = [("g", "x"), ("h", "w")]
    rows = [counts(30), counts(10, group=BOTH), counts(20, group=more), counts(9, group=[("h", "z")])]
    found = read(tmp_path, *rows, by=("g",))
    assert numbers(found) == {FIRST: [30], ("g=x", 0, 10 * MINUTE): [10, 20]}
    assert {row["dimensions"] == [("g", "x")] for key, of in found.windows.items() if key[2] for row in of} == {True}
    both = [counts(1, run="a"), counts(2, run="b"), counts(1, run="a", group=X), counts(2, run="b", group=X)]
    assert numbers(read(tmp_path, *both, by=("g",)))["g=x", 0, 10 * MINUTE] == [2]
    with pytest.raises(SpecError) as caught:
        read(tmp_path, counts(1), counts(1, group=X), by=("h", "g"))
    assert str(caught.value) == (
        "--by needs counts of groups, which uldp estimate --write_counts --by h,g stores, got none by these dimensions"
    )
    old = [counts(1, run="a", group=X), counts(2, run="b")]
    with pytest.raises(SpecError, match="got none by these dimensions"):
        read(tmp_path, *old, by=("g",))
    assert total_of(("c", 1, "g=x", 5, 6)) == ("c", 1, "", 5, 6)


# ------------------------------------------------------------------------------------------------------ longer windows

HOUR = Windows(size=60 * MINUTE)


def test_longer_windows_are_whole_if_all_their_parts_are(tmp_path: Path) -> None:
    """And if a stream has seen their end; of several streams the slowest decides."""
    rows = [counts(1, at, at + 10) for at in range(0, 60, 10)] + [counts(2, 60, 70)]
    found = read(tmp_path, *rows, longer=HOUR, records=[record("a")])
    assert numbers(found) == {("", 0, 60 * MINUTE): [1] * 6, ("", 60 * MINUTE, 120 * MINUTE): [2]}
    assert {key[3] for key in found.whole} == {0}
    for records in ([], [record("a", bounded=True)]):
        assert len(read(tmp_path, *rows, longer=HOUR, records=records).whole) == 2
    torn = [*rows[:3], rows[3]._replace(complete=False), *rows[4:]]
    assert len(read(tmp_path, *torn, longer=HOUR).whole) == 1
    [window] = [of for key, of in found.windows.items() if key[3] == 0]
    assert {(row["window_start"], row["window_end"]) for row in window} == {(0, 60 * MINUTE)}
    first, second = written(tmp_path, *rows, name="x"), written(tmp_path, counts(9, 0, 10, run="b"), name="y")
    two = stored_counts([([first], [record("a")]), ([second], [record("b")])], KNOWN, HOUR)
    assert two.whole == set()
    nothing = stored_counts([([written(tmp_path, name="z")], [record("b")]), ([first], [record("a")])], KNOWN, HOUR)
    assert {key[3] for key in nothing.whole} == {0}


def key(start: int, end: int, id: str = "c") -> tuple[Any, ...]:
    return (id, 1, "", start * MINUTE, end * MINUTE)


def test_a_longer_window_that_ends_with_what_was_seen_is_whole() -> None:
    stored = {key(0, 60): [{"x": 1}], key(60, 120): [{"x": 2}]}
    for until, number in ((120, 2), (119, 1), (60, 1), (59, 0)):
        _, whole = regrouped(stored, set(stored), HOUR, until * MINUTE)
        assert len(whole) == number
    assert len(regrouped(stored, set(stored), HOUR, None)[1]) == 2
    assert regrouped(stored, {key(60, 120)}, HOUR, None)[1] == {key(60, 120)}
    sliding = Windows(size=120 * MINUTE, slide=60 * MINUTE)
    longer, whole = regrouped(stored, set(stored), sliding, None)
    assert {found[3:]: [row["x"] for row in rows] for found, rows in longer.items()} == {
        (-60 * MINUTE, 60 * MINUTE): [1],
        (0, 120 * MINUTE): [1, 2],
        (60 * MINUTE, 180 * MINUTE): [2],
    }
    assert whole == set(longer)


# ------------------------------------------------------------------------------------------------------ what is refused


def test_files_may_lack_the_fields_of_later_versions(tmp_path: Path) -> None:
    fields = [field for field in COUNTS_SCHEMA["fields"] if "default" not in field]
    assert {"run", "group"}.isdisjoint(field["name"] for field in fields)
    content, row = io.BytesIO(), to_avro(counts(5), COUNTS_SCHEMA)
    fastavro.writer(content, fastavro.parse_schema(COUNTS_SCHEMA | {"fields": fields}), [row])
    (tmp_path / "counts.avro").write_bytes(content.getvalue())
    found = stored_counts([([str(tmp_path / "counts.avro")], [])], KNOWN, None)
    assert numbers(found) == {FIRST: [5]}
    assert [(row["run"], row["dimensions"]) for rows in found.windows.values() for row in rows] == [(None, [])]


def test_other_files_are_refused(tmp_path: Path) -> None:
    for content in (b"", b"x" * 100, Path(written(tmp_path, counts(1))).read_bytes()[:-20]):
        (tmp_path / "counts.avro").write_bytes(content)
        with pytest.raises(SpecError) as caught:
            stored_counts([([str(tmp_path / "counts.avro")], [])], KNOWN, None)
        said = (
            f"{tmp_path / 'counts.avro'} must be a file that uldp estimate --write_counts wrote, got a different file"
        )
        assert str(caught.value) == said


# ------------------------------------------------------------------------------------------- one window after the other

STRANGER = counts(9, 0, 90)._replace(fingerprint="00" * 32)
MANY = 500
ROWS = [
    row
    for start in range(0, 50, 10)
    for row in (
        *(counts(start + 6, start, start + 10, run=run, complete=start != 20) for run in "ab"),
        *(counts(3, start, start + 10, run=run, group=group) for run in "ab" for group in (X, Y)),
        counts(start + 6, start, start + 10, run="b", pane_index=1, complete=start != 20),
        STRANGER,
    )
]


def jobs(folder: Path, rows: Sequence[WindowCounts]) -> list[tuple[list[str], list[RunRecord]]]:
    """Two jobs, of which the second has two files, and some windows of the first."""
    parts = rows[:25], rows[25:32], [row._replace(run=f"{row.run}2") for row in rows[20:]]
    files = [written(folder, *part, name=f"counts-{at}") for at, part in enumerate(parts)]
    return [(files[:1], [record("a", end="stopped"), record("b")]), (files[1:], [])]


@pytest.mark.parametrize("by", [None, ("g",)])
def test_all_windows_are_those_of_all_rows_in_any_order(by: tuple[str, ...] | None, tmp_path: Path) -> None:
    rng = generator("windows in turn")
    for rows in (ROWS, [ROWS[at] for at in rng.permutation(len(ROWS))]):
        given = jobs(tmp_path, rows)
        every, found = stored_counts(given, KNOWN, None, by), list(windows_in_turn(iter(given), KNOWN, by))
        assert [len({key[-2:] for key in one.windows}) for one in found] == [1] * 5
        assert {key: of for one in found for key, of in one.windows.items()} == every.windows
        assert {key for one in found for key in one.whole} == every.whole
        assert every.strangers > 0
        assert 0 < len(every.whole) < len(every.windows)


def test_a_window_is_there_once_its_last_row_is_read(tmp_path: Path) -> None:
    rows = [counts(1), counts(2, 10, 20), counts(2, 0, 10, pane_index=1), counts(3, 10, 20), counts(4, 20, 30)]
    with mock.patch.object(windows_in_turn_module, "keep_last", wraps=module.keep_last) as read:
        seen = [(read.call_count, *one.windows) for one in windows_in_turn([([written(tmp_path, *rows)], [])], KNOWN)]
    assert [(number, key[3] // 600_000) for number, key in seen] == [(3, 0), (4, 1), (5, 2)]


def test_what_is_refused_of_all_is_refused_in_turn(tmp_path: Path) -> None:
    first = written(tmp_path, counts(1), name="first")
    with pytest.raises(SpecError, match="got none by these dimensions"):
        list(windows_in_turn([([first], [])], KNOWN, ("g",)))
    with pytest.raises(SpecError, match="those of run a in two directories"):
        list(windows_in_turn([([first], []), ([written(tmp_path, counts(1), name="copy")], [])], KNOWN))
    (tmp_path / "counts.avro").write_bytes(Path(first).read_bytes()[:-20])
    with pytest.raises(SpecError, match="got a different file"):
        list(windows_in_turn([([str(tmp_path / "counts.avro")], [])], KNOWN))
    with pytest.raises(SpecError, match="must have 1 cohorts and 2 cells, got 1 and 3"):
        wrong = written(tmp_path, counts(1)._replace(cells=[1, 0, 0]), name="wrong")
        list(windows_in_turn([([wrong], [])], KNOWN))


def test_memory_does_not_grow_with_windows(tmp_path: Path) -> None:
    """Of each window only its place is kept, in less than 1 kB; its 20 rows take 10 times as much."""

    def most(number: int) -> int:
        group = [[("g", f"{at}")] for at in range(20)]
        rows = [counts(1, at, at + 1, group=one) for at in range(number) for one in ([], *group)]
        file = written(tmp_path, *rows, name=f"{number}")
        tracemalloc.start()
        assert sum(len(one.windows) for one in windows_in_turn([([file], [])], KNOWN, ("g",))) == 21 * number
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    few = most(10)
    assert most(10 + MANY) - few < 1_000 * MANY
