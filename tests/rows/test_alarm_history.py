"""What a quiet finding about changes says of windows in which not everything could be judged."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.rows.history_rows import entry, row_of
from uldp_transforms.ldp.sentinels import NOTHING_UNUSUAL, Finding
from uldp_transforms.ldp.smoothing import LEAST_HISTORY
from uldp_transforms.rows.figures.alarm_history import RULE, Account, with_judged
from uldp_transforms.rows.row_types import WindowedEstimate
from uldp_transforms.rows.smoothed_rows import filter_row, smooth_rows
from uldp_transforms.rows.window_history import Neighbours

DAY, WINDOWS, LATER = 86_400_000, 12, 3


def quiet(fired: bool = False) -> Finding:
    return Finding(
        name="change", statistic=0.0, p_value=1.0, fired=fired, sentence="moved" if fired else NOTHING_UNUSUAL
    )


def windows() -> list[WindowedEstimate]:
    """Twelve days of the value a; b is asked from the fourth day on, and c never again after the first."""
    return [
        row_of(
            day * DAY,
            [
                entry("a", 0.5, 0.01),
                *([entry("b", 0.3, 0.01)] if day >= LATER else [entry("c", 0.1, 0.01)] * (not day)),
            ],
        )
        for day in range(WINDOWS)
    ]


EXPECTED = [
    (0, "Changes are not judged yet: values are judged after 8 windows with numbers; so far 1."),
    (0, "Changes are not judged yet: values are judged after 8 windows with numbers; so far 8."),
    (1, "Nothing unusual in what was judged (1 of 2): values are judged after 8 windows with numbers."),
    (2, NOTHING_UNUSUAL),
]
"""Of days 0, 7, 8 and 11."""


def test_a_quiet_window_says_what_was_not_judged() -> None:
    """Over files, and in a stream, which forgets windows on its way."""
    assert LEAST_HISTORY == 8
    found = [change for _, change in smooth_rows(windows(), 0.0, 1000.0)]
    held, later = Neighbours.of([], 0.0, False), []
    for row in windows():
        held, _, change = filter_row(held, row, 1000.0, horizon=4)
        later.append(change)
    for changes in (found, later):
        told = [(one.judged, one.sentence) for one in changes if one is not None and not one.fired]
        assert len(told) == WINDOWS
        assert [told[day] for day in (0, 7, 8, 11)] == EXPECTED


def test_of_several_kinds_all_count() -> None:
    """A window that fired keeps its sentence, whatever else could not be judged; no window has no finding."""
    some, more = np.array([7, 8]), np.array([9])
    found = with_judged(quiet(), [some, more])
    assert found is not None and found.judged == 2
    fired = with_judged(quiet(fired=True), [some, more])
    assert fired is not None and (fired.judged, fired.sentence) == (2, "moved")
    assert with_judged(None, []) is None
    nothing = with_judged(quiet(), [np.array([])])
    assert nothing is not None and nothing.sentence.endswith("so far 0.")


@pytest.mark.parametrize(
    ("judged", "fired", "sentence"),
    [
        ([0, 0], [], f"changes in 0 of 0 windows that were judged; 2 were not, because {RULE}"),
        ([0, 3, 2], [2], f"changes in 1 of 2 windows that were judged; 1 were not, because {RULE}"),
        ([4, 3], [], "changes in 0 of 2 windows that were judged"),
    ],
)
def test_the_account_says_how_many_windows_were_judged(judged: list[int], fired: list[int], sentence: str) -> None:
    found = [
        Finding(name="change", statistic=0.0, p_value=1.0, fired=at in fired, sentence="s", judged=number)
        for at, number in enumerate(judged)
    ]
    account = Account()
    assert not account.add(None) and not account
    assert [account.add(one) for one in [*found, None]] == [*(one.fired for one in found), False]
    assert account
    assert str(account) == sentence
