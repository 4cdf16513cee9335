"""Rows with what their neighbours know: smoothed shares in their entries, and a finding that says what moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import special

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.sentinels import NOTHING_UNUSUAL, Finding
from uldp_transforms.ldp.smoothing import Alarms, Change, Series, Shares, change_of, filtered, follow, judge, smoothed
from uldp_transforms.ldp.solvers.intervals import reaching
from uldp_transforms.ldp.solvers.linear import CONFIDENCE
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_types import WindowedEstimate
from uldp_transforms.rows.window_history import Neighbours, bounds_of, has_numbers, places_of

HORIZON = 64
"""Windows of a collection that a stream keeps: a correction of one of them corrects those that come after it."""

MOST_CELLS = 1 << 19
"""Windows times values that it keeps, so that these take 12 MiB at most, if there are at most 131,072 values."""

_FEWEST = 4  # windows, however many values there are

CHANGE = "change"
"""Name of the finding that values moved."""

_NAMED = 5  # values in a sentence
_NOT_THERE = -1e9  # so far below all shares that the nearest distribution has 0 there
_SMOOTHED = ("smoothed_frequency", "smoothed_low", "smoothed_high")


def smooth_rows(
    rows: Sequence[WindowedEstimate], jump: float, alarm_every: float, memos: bool = False
) -> Iterator[tuple[WindowedEstimate, Finding | None]]:
    """The rows of all windows of one collection, one a window, smoothed in both directions; and what moved.

    Args:
        rows: in any order, which is kept. Rows without numbers are handed through.
        jump: n times what one more counted report adds to an estimate.
        alarm_every: windows between two false alarms, in the mean.
        memos: whether clients keep memos, whose noise windows of the same people have in common.
    """
    windows = Neighbours.of(rows, jump, memos)
    if not len(windows):
        yield from ((row._replace(estimates=list(row.estimates)), None) for row in rows)
        return
    series = windows.series()
    alarms = judge(series, alarm_every)
    shares = smoothed(series)
    starts = {int(start): t for t, start in enumerate(windows.spans[:, 0])}
    places = [starts[bounds_of(row)[0]] if has_numbers(row) else None for row in rows]
    shown = _shown([(t, row) for t, row in zip(places, rows) if t is not None], windows, shares)
    for t, row in zip(places, rows):
        if t is None:
            yield row._replace(estimates=list(row.estimates)), None
        else:
            yield next(shown), _change(windows, series, alarms, t)


def filter_row(
    windows: Neighbours, row: WindowedEstimate, alarm_every: float, horizon: int | None = None
) -> tuple[Neighbours, WindowedEstimate, Finding | None]:
    """The next row of a stream, smoothed with the windows before it; and these windows with it.

    A row of a window that is there already takes its place: all that comes after is corrected by it.

    Args:
        windows: those that were kept.
        row: of another window or pane.
        alarm_every: windows between two false alarms, in the mean.
        horizon: windows to keep; None: ``horizon_of`` so many values.
    """
    if not has_numbers(row):
        return windows, row, None
    windows, t = windows.with_window(row)
    if t is None:
        return windows, row, None
    series = windows.series()
    alarms = judge(series, alarm_every, windows.alarm)
    _, _, course = follow(series, alarms.moved)
    [shown] = _shown([(0, row)], windows, filtered(series, t))
    most = horizon_of(len(windows.values)) if horizon is None else horizon
    return windows.forget(course, alarm_every, most), shown, _change(windows, series, alarms, t)


def horizon_of(num_values: int) -> int:
    """How many windows a stream keeps: fewer of long lists."""
    return min(HORIZON, max(_FEWEST, MOST_CELLS // max(num_values, 1)))


def _shown(
    rows: Sequence[tuple[int, WindowedEstimate]], windows: Neighbours, shares: Shares
) -> Iterator[WindowedEstimate]:
    """Rows, with their places in ``shares``, with smoothed entries: the nearest distribution, and intervals around the
    smoothed means themselves, made to reach it.

    One row after the other: a year of objects would keep the garbage collector busy.
    """
    chosen = np.array([t for t, _ in rows], dtype=np.int64)
    means, low, high = (part[chosen] for part in (shares.means, shares.low, shares.high))
    is_open = [bool(row.unexplained_standard_error) for _, row in rows]
    rest = np.where(is_open, np.maximum(1 - np.nansum(means, axis=1), 0), np.nan)
    whole = np.concatenate([means, rest[:, np.newaxis]], axis=1)
    nearest = project_onto_simplex(np.where(np.isnan(whole), _NOT_THERE, whole))
    nearest = nearest[:, :-1]
    numbers = np.stack([nearest, *reaching(np.clip(low, 0, 1), np.clip(high, 0, 1), nearest)], axis=1)
    places: dict[tuple[str, ...], Any] = {}
    for own, (_, row) in zip(numbers, rows):
        columns = EntryColumns.of(row.estimates)
        if columns.values not in places:
            places[columns.values] = places_of(columns.values, windows.values)
        smooth = columns.with_columns(_SMOOTHED, own[:, places[columns.values]])
        yield row._replace(estimates=list(smooth))


def _change(windows: Neighbours, series: Series, alarms: Alarms, t: int) -> Finding:
    """Values that changed in a window; the intervals hold simultaneously for all values, at 95 %."""
    p_value, moved = float(alarms.p_value[t]), np.flatnonzero(alarms.moved[t])
    return Finding(
        name=CHANGE,
        statistic=0.0 if p_value == 1 else float(np.max(np.abs(alarms.change[t]) / alarms.change_error[t], initial=0)),
        p_value=p_value,
        fired=bool(len(moved)),
        sentence=_sentence(windows, change_of(series, alarms, t, moved), moved) if len(moved) else NOTHING_UNUSUAL,
    )


def _sentence(windows: Neighbours, change: Change, moved: np.ndarray) -> str:
    half = -special.ndtri((1 - CONFIDENCE) / 2 / len(windows.values) / change.looks) * change.error
    order = np.argsort(-np.abs(change.size), kind="stable")[:_NAMED]
    told = [
        f"{describe(windows.values[moved[i]])} {_points(change.size[i])} ({_points(change.size[i] - half[i])} to "
        f"{_points(change.size[i] + half[i])}){_since(int(change.windows[i]))}"
        for i in order.tolist()
    ]
    more = [f"and {len(moved) - _NAMED} more"] if len(moved) > _NAMED else []
    return f"Shares moved, in percentage points: {', '.join([*told, *more])}."


def _since(windows: int) -> str:
    return f" over {windows} windows" if windows > 1 else ""


def _points(share: float) -> str:
    return f"{100 * share:+.2f}"
