"""Rows with smoothed shares in their entries, and the finding about values that changed."""

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
"""Maximum number of windows that a stream keeps per collection; a corrected window corrects all later ones."""

MOST_CELLS = 1 << 19
"""Maximum number of windows times values that a stream keeps: 12 MiB, if there are at most 131,072 values."""

_FEWEST = 4  # minimum number of windows, for any number of values

CHANGE = "change"
"""Name of the finding about values that changed."""

_NAMED = 5  # maximum number of values in a sentence
_NOT_THERE = -1e9  # so far below all shares that the projection onto distributions is 0 there
_SMOOTHED = ("smoothed_frequency", "smoothed_low", "smoothed_high")


def smooth_rows(
    rows: Sequence[WindowedEstimate], jump: float, alarm_every: float, memos: bool = False
) -> Iterator[tuple[WindowedEstimate, Finding | None]]:
    """The rows of all windows of one collection, smoothed in both directions, and their findings about changes.

    Args:
        rows: one row per window, in any order, which is kept. Rows without numbers pass unchanged.
        jump: n times the contribution of one more counted report to an estimate.
        alarm_every: mean number of windows between two false alarms.
        memos: whether clients keep memos, so that windows of the same people have noise in common.
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
    """Smooth the next row of a stream with the windows before it; returns these windows including the new one.

    A row of a known window replaces it, and so corrects all later windows.

    Args:
        windows: the stored windows.
        row: of another window or pane.
        alarm_every: mean number of windows between two false alarms.
        horizon: number of windows to keep; None: ``horizon_of`` the number of values.
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
    """Number of windows that a stream keeps: fewer for long lists."""
    return min(HORIZON, max(_FEWEST, MOST_CELLS // max(num_values, 1)))


def _shown(
    rows: Sequence[tuple[int, WindowedEstimate]], windows: Neighbours, shares: Shares
) -> Iterator[WindowedEstimate]:
    """Rows with smoothed entries: the distribution nearest to the smoothed means, and intervals around the means that
    are extended to contain it. The rows come with their positions in ``shares``.

    Rows are made one at a time, because a year of objects would keep the garbage collector busy.
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
