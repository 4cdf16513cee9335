"""Rows with smoothed shares in their entries, smoothed figures of numbers, and the finding about what changed."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import special

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.confidence import confidence_or_default
from uldp_transforms.ldp.sentinels import NOTHING_UNUSUAL, Finding
from uldp_transforms.ldp.smoothing import Alarms, Change, Series, Shares, change_of, filtered, follow, judge, smoothed
from uldp_transforms.ldp.solvers.intervals import cut, reaching
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.figure_history import (
    has_figures,
    in_order,
    rows_of_figures,
    sentence_of_change,
    series_of_figures,
    with_smoothed,
)
from uldp_transforms.rows.row_types import NumberFigures, WindowedEstimate
from uldp_transforms.rows.window_history import Neighbours, bounds_of, has_numbers, places_of

HORIZON = 64
"""Maximum number of windows that a stream keeps per collection; a corrected window corrects all later ones."""

MOST_CELLS = 1 << 19
"""Maximum number of windows times values that a stream keeps: 12 MiB, if there are at most 131,072 values."""

_FEWEST = 4  # minimum number of windows, for any number of values

CHANGE = "change"
"""Name of the finding about values that changed."""

_KINDS = 3  # of series in rows of numbers that share the false alarms: entries, mean, distribution function
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
    with_figures = [place for place, row in enumerate(rows) if has_numbers(row) and has_figures(row)]
    every = _KINDS * alarm_every if with_figures else alarm_every
    results = list(_smooth_entries(rows, jump, every, memos))
    if with_figures:
        told = _smooth_figures([rows[place] for place in with_figures], jump, every, memos)
        for place, (numbers, changes) in zip(with_figures, told):
            row, change = results[place]
            results[place] = row._replace(numbers=numbers), _joined([*changes, change])
    yield from results


def _smooth_entries(
    rows: Sequence[WindowedEstimate], jump: float, alarm_every: float, memos: bool
) -> Iterator[tuple[WindowedEstimate, Finding | None]]:
    """The rows with smoothed entries, and findings about these."""
    windows = Neighbours.of(rows, jump, memos)
    if not len(windows):
        yield from ((row._replace(estimates=list(row.estimates)), None) for row in rows)
        return
    series = windows.series()
    alarms = judge(series, alarm_every)
    shares = smoothed(series, _level_of(rows))
    starts = {int(start): t for t, start in enumerate(windows.spans[:, 0])}
    places = [starts[bounds_of(row)[0]] if has_numbers(row) else None for row in rows]
    shown = _shown([(t, row) for t, row in zip(places, rows) if t is not None], windows, shares)
    for t, row in zip(places, rows):
        if t is None:
            yield row._replace(estimates=list(row.estimates)), None
        else:
            yield next(shown), _change(row, windows, series, alarms, t)


def _smooth_figures(
    rows: Sequence[WindowedEstimate], jump: float, alarm_every: float, memos: bool
) -> Iterator[tuple[NumberFigures, list[Finding]]]:
    """The smoothed numbers of rows that all have some, and findings about each kind of figures."""
    first = rows_of_figures(min(rows, key=bounds_of))
    names = [name for one in first for name in EntryColumns.of(one.estimates).values]
    kinds = []
    for of_kind in zip(*(rows_of_figures(row, names) for row in rows)):
        windows = Neighbours.of(of_kind, jump, memos)
        series = series_of_figures(windows)
        shares = in_order(smoothed(series, _level_of(rows)), windows.values)
        kinds.append((windows, series, judge(series, alarm_every), shares))
    for row in rows:
        shown, changes = row, []
        for windows, series, alarms, shares in kinds:
            t = int(np.searchsorted(windows.spans[:, 0], bounds_of(row)[0]))
            shown = with_smoothed(shown, windows.values, shares, t)
            changes.append(_change_of_figures(row, windows, series, alarms, t))
        yield shown.numbers, changes


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
    later, t = windows.with_window(row)
    if t is None:
        return windows, row, None
    every = _KINDS * alarm_every if has_figures(row) else alarm_every
    most = horizon_of(len(later.values)) if horizon is None else horizon
    series = later.series()
    kept, alarms = _judged(later, series, every, most)
    [shown] = _shown([(0, row)], later, filtered(series, t, confidence_or_default(row.confidence)))
    change = _change(row, later, series, alarms, t)
    if not has_figures(row):
        return kept, shown, change
    figures, numbers, changes = _filter_figures(windows, row, every, most)
    return dataclasses.replace(kept, figures=figures), shown._replace(numbers=numbers), _joined([*changes, change])


def _judged(windows: Neighbours, series: Series, alarm_every: float, horizon: int) -> tuple[Neighbours, Alarms]:
    """The windows to keep, and the alarms of all of them."""
    alarms = judge(series, alarm_every, windows.alarm)
    _, _, course = follow(series, alarms.moved)
    return windows.forget(course, alarm_every, horizon), alarms


def _filter_figures(
    windows: Neighbours, row: WindowedEstimate, alarm_every: float, horizon: int
) -> tuple[tuple[Neighbours, ...], NumberFigures, list[Finding]]:
    """The next windows of each kind of figures, the smoothed numbers of the row, and what changed."""
    told = rows_of_figures(row, [name for kind in windows.figures for name in kind.values])
    nothing = Neighbours.of([], windows.jump, windows.memos)
    kinds, shown, changes = [], row, []
    for kind, one in zip(windows.figures or [nothing] * len(told), told):
        later, t = kind.with_window(one)
        if t is None:
            kinds.append(kind)
            continue
        series = series_of_figures(later)
        kept, alarms = _judged(later, series, alarm_every, horizon)
        kinds.append(kept)
        shares = filtered(series, t, confidence_or_default(row.confidence))
        shown = with_smoothed(shown, later.values, in_order(shares, later.values), 0)
        changes.append(_change_of_figures(row, later, series, alarms, t))
    return tuple(kinds), shown.numbers, changes


def _level_of(rows: Sequence[WindowedEstimate]) -> float:
    """The confidence of the intervals of rows, which one specification asked for."""
    return confidence_or_default(next((row.confidence for row in rows), None))


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
    numbers = np.stack([nearest, *reaching(*cut(low, high, means), nearest)], axis=1)
    places: dict[tuple[str, ...], Any] = {}
    for own, (_, row) in zip(numbers, rows):
        columns = EntryColumns.of(row.estimates)
        if columns.values not in places:
            places[columns.values] = places_of(columns.values, windows.values)
        smooth = columns.with_columns(_SMOOTHED, own[:, places[columns.values]])
        yield row._replace(estimates=list(smooth))


def _change(row: WindowedEstimate, windows: Neighbours, series: Series, alarms: Alarms, t: int) -> Finding:
    """Values that changed in the window of a row; the intervals hold simultaneously for all values."""
    moved, level = np.flatnonzero(alarms.moved[t]), confidence_or_default(row.confidence)
    sentence = _sentence(windows, change_of(series, alarms, t, moved), moved, level) if len(moved) else NOTHING_UNUSUAL
    return _finding(alarms, t, sentence)


def _finding(alarms: Alarms, t: int, sentence: str) -> Finding:
    p_value = float(alarms.p_value[t])
    return Finding(
        name=CHANGE,
        statistic=0.0 if p_value == 1 else float(np.max(np.abs(alarms.change[t]) / alarms.change_error[t], initial=0)),
        p_value=p_value,
        fired=bool(alarms.moved[t].any()),
        sentence=sentence,
    )


def _change_of_figures(row: WindowedEstimate, windows: Neighbours, series: Series, alarms: Alarms, t: int) -> Finding:
    """Figures of one kind that changed in the window of a row."""
    fired = alarms.moved[t].any()
    return _finding(alarms, t, sentence_of_change(row, windows, series, alarms, t) if fired else NOTHING_UNUSUAL)


def _joined(findings: Sequence[Finding | None]) -> Finding | None:
    """One finding about several kinds of series, each of which was judged for a part of the false alarms."""
    told = [one for one in findings if one is not None]
    if len(told) < 2:
        return told[0] if told else None
    least = min(told, key=operator.attrgetter("p_value"))
    sentences = [one.sentence for one in told if one.fired]
    return Finding(
        name=CHANGE,
        statistic=least.statistic,
        p_value=min(len(told) * least.p_value, 1.0),
        fired=bool(sentences),
        sentence=" ".join(sentences) or NOTHING_UNUSUAL,
    )


def _sentence(windows: Neighbours, change: Change, moved: np.ndarray, confidence: float) -> str:
    half = -special.ndtri((1 - confidence) / 2 / len(windows.values) / change.looks) * change.error
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
