"""The windows that smoothing keeps, number by number: from rows by hand, over restarts, and with what is forgotten."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from tests.support.rows.history_rows import DAY, HOUR, entry, row_of
from uldp_transforms.ldp.smoothing import Past
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.window_history import PEOPLE_VARIANCE, Neighbours

NAN = np.nan


ROWS = [
    row_of(5 * HOUR, [entry("b", 0.2, 0.1, 0.004), entry("c", 0.3, 0.2)], num_reports=7),
    row_of(HOUR, [entry("a", 0.5, 0.3, 0.002), entry("b", 0.4, 0.4, -0.001)], num_reports=50),
]
"""Two windows in wrong order, with three missing between them, of which one has a value and the other another one."""


def test_windows_of_rows_by_hand() -> None:
    found = Neighbours.of(ROWS, 2.5, memos=True)
    assert (found.values, found.jump, found.memos, len(found)) == (("a", "b", "c"), 2.5, True, 2)
    assert found.spans.tolist() == [[HOUR, 2 * HOUR], [5 * HOUR, 6 * HOUR]]
    assert found.num_reports.tolist() == [50, 7]
    np.testing.assert_array_equal(found.raw, [[0.5, 0.4, NAN], [NAN, 0.2, 0.3]])
    np.testing.assert_allclose(found.variances, [[0.09, 0.16, NAN], [NAN, 0.01, 0.04]])
    np.testing.assert_array_equal(found.common, [[0.002, -0.001, NAN], [NAN, 0.004, 0]])
    assert np.isnan(found.people).all() and found.people.shape == (2, 3)
    assert (found.gone, found.past.tolist(), found.figures) == (None, [[0, 0, 0], [1, 1, 1]], ())
    with_people = EntryColumns(("a",), ("raw_frequency", "standard_error", PEOPLE_VARIANCE), np.array([[1], [2], [3]]))
    assert Neighbours.of([row_of(0, with_people)]).people.tolist() == [[3]]


@pytest.mark.parametrize(
    ("starts", "gone", "steps"),
    [
        ([0, 1], None, [1, 1]),
        ([3], 3, [1]),
        ([3], 2.4, [2]),
        ([3], 2.6, [1]),
        ([3, 5.6], 1, [3, 3]),
        ([0, 0.5], None, [1, 1]),  # windows that slide
        ([], 3, []),
    ],
)
def test_steps_are_windows_that_could_have_been_between(starts: list[float], gone: float | None, steps: list[int]):
    windows = Neighbours.of([row_of(round(at * HOUR), [entry("a", 0.5, 0.1)]) for at in starts])
    windows = dataclasses.replace(windows, gone=None if gone is None else round(gone * HOUR))
    assert windows.series().steps.tolist() == steps


def test_calendar_days_may_miss_or_have_an_hour() -> None:
    def phases(*lengths: int) -> list[int] | None:
        starts = np.append(0, np.cumsum(lengths))[:-1].tolist()
        rows = [row_of(start, [entry("a", 0.5, 0.1)], length) for start, length in zip(starts, lengths)]
        found = Neighbours.of(rows).series().phases
        return None if found is None else found.tolist()

    assert phases(DAY - HOUR, DAY, DAY + HOUR) == [0, 1, 2]
    assert phases(*[DAY] * 9) == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    assert phases(DAY, DAY - HOUR - 1) is phases(DAY, DAY + HOUR + 1) is None


# ------------------------------------------------------------------------------------------------- streams


def stream() -> Neighbours:
    """Two windows of two values, with something in every field."""
    return dataclasses.replace(
        Neighbours.of([row_of(at * HOUR, [entry("a", 0.1 * at, 0.2), entry("b", 0.3, 0.1, 0.001)]) for at in (2, 4)]),
        gone=HOUR,
        past=np.array([[0.1, 0.2], [0.3, 0.4]]),
        alarm=dataclasses.replace(Past.empty(2), evidence=np.arange(208, dtype=np.float32).reshape(4, 26, 2)),
        jump=1.5,
    )


@pytest.mark.parametrize(
    ("start", "place", "starts"),
    [(1, 0, [1, 2, 4]), (2, 0, [2, 4]), (3, 1, [2, 3, 4]), (4, 1, [2, 4]), (5, 2, [2, 4, 5])],
)
def test_a_window_is_added_in_order_or_replaced(start: int, place: int, starts: list[int]) -> None:
    """With its numbers for every value, and those of all other windows as they were."""
    before = stream()
    later, found = before.with_window(
        row_of(start * HOUR, [entry("b", 0.7, 0.5, 0.02), entry("a", 0.6, 0.4)], num_reports=9)
    )
    assert found == place
    assert (later.spans[:, 0] // HOUR).tolist() == starts
    assert (later.spans[:, 1] - later.spans[:, 0]).tolist() == [HOUR] * len(starts)
    assert later.values == ("a", "b")
    assert (later.num_reports[place], later.raw[place].tolist()) == (9, [0.6, 0.7])
    np.testing.assert_allclose(later.variances[place], [0.16, 0.25])
    assert later.common[place].tolist() == [0, 0.02]
    for old, at in enumerate((2, 4)):
        if at != start:
            [now] = np.flatnonzero(later.spans[:, 0] == at * HOUR)
            assert (later.raw[now].tolist(), later.num_reports[now]) == (before.raw[old].tolist(), 100)
    assert (later.past is before.past, later.gone, later.jump) == (True, HOUR, 1.5)


def test_a_window_from_before_what_is_gone_is_not_taken_again() -> None:
    before = stream()
    assert before.with_window(row_of(HOUR - 1, [entry("a", 0.6, 0.4)])) == (before, None)
    assert before.with_window(row_of(HOUR, [entry("a", 0.6, 0.4)]))[1] == 0


def test_a_new_value_has_no_past_and_others_keep_theirs() -> None:
    before = stream()
    later, place = before.with_window(row_of(5 * HOUR, [entry("c", 0.6, 0.4), entry("b", 0.7, 0.5)]))
    assert (later.values, place) == (("a", "b", "c"), 2)
    np.testing.assert_array_equal(later.raw, [[0.2, 0.3, NAN], [0.4, 0.3, NAN], [NAN, 0.7, 0.6]])
    np.testing.assert_array_equal(later.common[:2], [[0, 0.001, NAN], [0, 0.001, NAN]])
    assert later.past.tolist() == [[0.1, 0.2, 0], [0.3, 0.4, 1]]
    np.testing.assert_array_equal(later.alarm.evidence[..., :2], before.alarm.evidence)
    assert not later.alarm.evidence[..., 2].any()


@pytest.mark.parametrize("memos", [False, True])
@pytest.mark.parametrize("people", [NAN, 0.25])
@pytest.mark.parametrize("gone", [None, HOUR])
def test_all_that_a_stream_keeps_survives_a_restart(memos: bool, people: float, gone: int | None) -> None:
    one = dataclasses.replace(stream(), memos=memos, people=np.array([[NAN, people], [NAN, NAN]]), gone=gone)
    other = dataclasses.replace(stream(), values=("x", "y"), jump=7.0, gone=3)
    windows = dataclasses.replace(one, figures=(other, one))
    again = Neighbours.from_bytes(windows.to_bytes())
    assert [len(kind.figures) for kind in (again, *again.figures)] == [2, 0, 0]
    for left, right in zip((again, *again.figures), (windows, other, one)):
        for name in ("values", "gone", "jump", "memos"):
            assert getattr(left, name) == getattr(right, name), name
        for name in ("spans", "num_reports", "raw", "variances", "common", "people", "past"):
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name), err_msg=name)
        np.testing.assert_array_equal(left.alarm.evidence, right.alarm.evidence)
    assert again.to_bytes() == windows.to_bytes()


def test_bytes_of_a_stream_say_only_what_is_not_usual() -> None:
    """Older workers read what they know; version 5, the description, integers, numbers, and the alarm."""
    windows = stream()
    told = {"values": ["a", "b"], "windows": 2, "gone": HOUR, "jump": 1.5}
    head = json.dumps(told).encode()
    encoded = windows.to_bytes()
    assert encoded[:5] == b"\5" + len(head).to_bytes(4, "little")
    assert encoded[5 : 5 + len(head)] == head
    whole = np.frombuffer(encoded, "<i8", 6, 5 + len(head))
    assert whole.tolist() == [2 * HOUR, 3 * HOUR, 4 * HOUR, 5 * HOUR, 100, 100]
    cells = np.frombuffer(encoded, "<f8", 16, 5 + len(head) + 48)
    parts = (windows.past, windows.raw, windows.variances, windows.common)
    assert cells.tolist() == np.concatenate(parts).ravel().tolist()
    assert encoded[5 + len(head) + 48 + 128 :] == windows.alarm.to_bytes()
    for version in (1, 6):
        with pytest.raises(ValueError, match=rf"^Neighbours reads versions 2 to 5, got version {version}$"):
            Neighbours.from_bytes(bytes([version]) + encoded[1:])
