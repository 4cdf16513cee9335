"""Rows with smoothed shares in their entries, smoothed figures, and the finding about what changed."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

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
    SIDES,
    has_figures,
    rows_of_figures,
    sentence_of_change,
    series_of_figures,
    shown_figures,
)
from uldp_transforms.rows.figures.alarm_history import seen_before, with_judged
from uldp_transforms.rows.figures.sum_history import SUM, has_sums, rows_of_sums, sentence_of_moved_sums, shown_sums
from uldp_transforms.rows.row_types import CHANGE, WindowedEstimate
from uldp_transforms.rows.window_history import Neighbours, bounds_of, has_numbers, places_of

HORIZON = 64
"""Maximum number of windows that a stream keeps per collection; a corrected window corrects all later ones."""

MOST_CELLS = 1 << 19
"""Maximum number of windows times values that a stream keeps: 12 MiB, if there are at most 131,072 values."""

_FEWEST = 4  # minimum number of windows, for any number of values

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
    places = [place for place, row in enumerate(rows) if has_numbers(row)]
    figures = [(kind, [place for place in places if kind.is_in(rows[place])]) for kind in _KINDS]
    every = (1 + sum(kind.number for kind, own in figures if own)) * alarm_every
    parts = [
        (kind, own, part) for kind, own in figures for part in _parts_of_rows(kind, [rows[place] for place in own])
    ]
    parts += [(_ENTRIES, places, tuple(rows[place] for place in places))] if places else []
    shown = list(rows)
    changes: list[list[Finding]] = [[] for _ in rows]
    seen: list[list[np.ndarray]] = [[] for _ in rows]
    for kind, own, part in parts:
        windows = Neighbours.of(part, jump, memos)
        series = kind.series(windows)
        alarms = judge(series, every)
        shares = smoothed(series, _level_of(rows))
        at = np.searchsorted(windows.spans[:, 0], [bounds_of(row)[0] for row in part]).tolist()
        smooth = kind.shown([(t, shown[place]) for t, place in zip(at, own)], windows, shares)
        for t, place, row in zip(at, own, smooth):
            shown[place] = row
            changes[place].append(_change(kind, rows[place], windows, series, alarms, t))
            seen[place].append(seen_before(series, alarms, t))
    yield from ((row, with_judged(_joined(told), before)) for row, told, before in zip(shown, changes, seen))


def _parts_of_rows(kind: _Kind, rows: Sequence[WindowedEstimate]) -> Iterator[tuple[WindowedEstimate, ...]]:
    """The rows with each part of such figures in place of entries; each is measured from one end in all rows."""
    first = kind.parts(min(rows, key=bounds_of), ()) if rows else []
    names = [name for one in first for name in EntryColumns.of(one.estimates).values]
    yield from zip(*(kind.parts(row, names) for row in rows))


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
    every = (1 + sum(kind.number for kind in _KINDS if kind.is_in(row))) * alarm_every
    most = horizon_of(len(later.values)) if horizon is None else horizon
    steps = [(kind, *_before(windows, part).with_window(part)) for kind, part in _parts(row, windows)]
    kept, shown, changes, seen = [], row, [], []
    for kind, own, at in [*steps, (_ENTRIES, later, t)]:
        if at is None:
            kept.append(own)
            continue
        series = kind.series(own)
        alarms = judge(series, every, own.alarm)
        _, _, course = follow(series, alarms.moved)
        kept.append(own.forget(course, every, most))
        [shown] = kind.shown([(0, shown)], own, filtered(series, at, confidence_or_default(row.confidence)))
        changes.append(_change(kind, row, own, series, alarms, at))
        seen.append(seen_before(series, alarms, at))
    *figures, entries = kept
    change = with_judged(_joined(changes), seen)
    return dataclasses.replace(entries, figures=tuple(figures) or entries.figures), shown, change


def _parts(row: WindowedEstimate, windows: Neighbours) -> Iterator[tuple[_Kind, WindowedEstimate]]:
    """The row with each part of its figures in place of entries."""
    names = [name for one in windows.figures for name in one.values]
    for kind in _KINDS:
        if kind.is_in(row):
            yield from (
                (kind, part) for part in kind.parts(row, [name for name in names if name.startswith(kind.begins)])
            )


def _before(windows: Neighbours, part: WindowedEstimate) -> Neighbours:
    """The stored windows of one kind of figures: those with any of its series, or none."""
    own = set(EntryColumns.of(part.estimates).values)
    nothing = Neighbours.of([], windows.jump, windows.memos)
    return next((one for one in windows.figures if not own.isdisjoint(one.values)), nothing)


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
        yield row._replace(estimates=columns.with_columns(_SMOOTHED, own[:, places[columns.values]]))


def _change(kind: _Kind, row: WindowedEstimate, windows: Neighbours, series: Series, alarms: Alarms, t: int) -> Finding:
    """What changed in the window of a row; the intervals hold simultaneously for all series of the kind."""
    fired = alarms.moved[t].any()
    return _finding(alarms, t, kind.sentence(row, windows, series, alarms, t) if fired else NOTHING_UNUSUAL)


def _finding(alarms: Alarms, t: int, sentence: str) -> Finding:
    p_value = float(alarms.p_value[t])
    return Finding(
        name=CHANGE,
        statistic=0.0 if p_value == 1 else float(np.max(np.abs(alarms.change[t]) / alarms.change_error[t], initial=0)),
        p_value=p_value,
        fired=bool(alarms.moved[t].any()),
        sentence=sentence,
    )


def _joined(told: Sequence[Finding]) -> Finding | None:
    """One finding about several kinds of series, each of which was judged for a part of the false alarms."""
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


def _sentence_of_entries(row: WindowedEstimate, windows: Neighbours, series: Series, alarms: Alarms, t: int) -> str:
    moved = np.flatnonzero(alarms.moved[t])
    return _sentence(windows, change_of(series, alarms, t, moved), moved, confidence_or_default(row.confidence))


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


class _Kind(NamedTuple):
    """How series stand in rows."""

    series: Callable[[Neighbours], Series]
    shown: Callable[[Sequence[tuple[int, WindowedEstimate]], Neighbours, Shares], Iterator[WindowedEstimate]]
    """Rows with the smoothed series; each comes with its position in ``Shares``."""

    sentence: Callable[[WindowedEstimate, Neighbours, Series, Alarms, int], str]
    """What moved in the window of a row."""

    is_in: Callable[[WindowedEstimate], bool] = lambda _: False
    """Whether a row has such figures beside its entries."""

    parts: Callable[[WindowedEstimate, Sequence[str]], Sequence[WindowedEstimate]] = lambda _, names: ()
    """A row with each part of its figures in place of entries; the names of known series say how they are measured."""

    number: int = 0
    """Number of parts, each of which has as many false alarms as the entries."""

    begins: tuple[str, ...] = ()
    """How names of such series begin."""


_ENTRIES = _Kind(Neighbours.series, _shown, _sentence_of_entries)
_KINDS = (
    _Kind(series_of_figures, shown_figures, sentence_of_change, has_figures, rows_of_figures, 2, SIDES),
    _Kind(Neighbours.series, shown_sums, sentence_of_moved_sums, has_sums, rows_of_sums, 1, (SUM,)),
)
"""Of figures in rows: those of numbers (the mean, and the distribution function), and sums."""
