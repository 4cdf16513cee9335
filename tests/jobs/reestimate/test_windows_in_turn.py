"""Stored counts of one window after the other against all of them at once."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import pytest

from tests.jobs.reestimate.test_stored_counts import KNOWN, X, Y, counts, record, written
from tests.support.tolerance import generator
from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.jobs.reestimate import windows_in_turn as module
from uldp_transforms.jobs.reestimate.stored_counts import stored_counts
from uldp_transforms.jobs.reestimate.windows_in_turn import windows_in_turn
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.row_types import WindowCounts

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
    with mock.patch.object(module, "keep_last", wraps=module.keep_last) as read:
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
