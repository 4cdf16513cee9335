"""Figures of numbers over windows: the mean and the distribution function, as series that are smoothed like shares.

The series of a collection are its mean, as a share of the way from the centre of the first bin to that of the last, and
the share of people on one side of each edge between bins. All are unbiased with known variances. Each is measured from
the end that is nearer in the first window, because drifts and day effects are taken as relative to the size of what
varies. The smoothed quantiles of a window are where its smoothed distribution function reaches them. That function and
the ends of its intervals are sorted, which makes them monotone and no worse (Chernozhukov, Fernandez-Val and Galichon
2009, "Improving point and interval estimators of monotone functions by rearrangement").
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from uldp_transforms.ldp.confidence import confidence_or_default
from uldp_transforms.ldp.estimators.smooth_figures import crossing_of
from uldp_transforms.ldp.smoothing import Alarms, Change, Series, Shares, change_of
from uldp_transforms.ldp.solvers.intervals import cut
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_types import MeanFigure, NumberFigures, QuantileFigure, ShareFigure, WindowedEstimate
from uldp_transforms.rows.window_history import PEOPLE_VARIANCE, Neighbours

SIDES = ("above ", "below ")
"""How names of these series begin."""

_COLUMNS = ("raw_frequency", "standard_error", PEOPLE_VARIANCE, "common_variance")
_DISTINCT = 4  # number of shares below edges that say what all of them say together, about
_MEDIAN = 0.5
_NAMED = 2  # maximum number of edges in a sentence


class Side(NamedTuple):
    """One series: the mean (``edge`` is None) or the share below an edge, measured from above or from below."""

    edge: float | None
    from_above: bool

    @property
    def text(self) -> str:
        """The name of the series, from which ``side_of`` reads it."""
        return f"{'above' if self.from_above else 'below'} {'' if self.edge is None else repr(self.edge)}"


def side_of(text: str) -> Side:
    """The reverse of ``Side.text``."""
    direction, _, edge = text.partition(" ")
    return Side(float(edge) if edge else None, direction == "above")


def has_figures(row: WindowedEstimate) -> bool:
    """Whether a row has numbers that can be smoothed."""
    return bool(row.numbers.below)


def rows_of_figures(row: WindowedEstimate, names: Sequence[str] = ()) -> list[WindowedEstimate]:
    """The row with figures, as shares, in place of its entries: once with the mean, unless it has none, and once with
    the shares on one side of each edge.

    Args:
        row: with figures.
        names: names of all series, which say from which end each share is measured (default: from the nearer one).
    """
    sides = {side.edge: side.from_above for side in map(side_of, names)}
    found = []
    for edges, cells in _kinds(row):
        above = np.array([sides.get(edge, share > 1 / 2) for edge, share in zip(edges, cells[0].tolist())])
        cells[0] = np.where(above, 1 - cells[0], cells[0])
        texts = tuple(Side(edge, flipped).text for edge, flipped in zip(edges, above.tolist()))
        found.append(row._replace(estimates=EntryColumns(texts, _COLUMNS, cells)))
    return found


def series_of_figures(windows: Neighbours) -> Series:
    """The series of windows of figures. Shares below neighbouring edges say nearly the same."""
    return dataclasses.replace(windows.series(), copies=max(len(windows.values) / _DISTINCT, 1.0))


def _kinds(row: WindowedEstimate) -> Iterator[tuple[list[float | None], np.ndarray]]:
    """The edges (None: the mean) and the cells (4, S), one row for each of the columns: of the mean, then of shares."""
    numbers, mean = row.numbers, row.numbers.mean
    if mean.value is not None and mean.standard_error is not None:
        bottom, top = _ends(numbers)
        variances = [_or_nan(part) / (top - bottom) ** 2 for part in (mean.people_variance, mean.common_variance)]
        parts = [(mean.value - bottom) / (top - bottom), mean.standard_error / (top - bottom), *variances]
        yield [None], np.array(parts)[:, np.newaxis]
    cells = np.array(
        [[one.value, one.standard_error, np.nan, _or_nan(one.common_variance)] for one in numbers.below], dtype=float
    ).T
    if numbers.share is not None and numbers.share < 1:  # fewer people than reports
        people = max((row.num_reports or 1) * numbers.share, 1.0)
        cells[2] = (cells[0] * (1 - cells[0]) + cells[1] ** 2) / people
    yield [one.edge for one in numbers.below], cells


def _ends(numbers: NumberFigures) -> tuple[float, float]:
    """Numbers between which a mean of centres lies: those of the end bins, if all bins have one width."""
    half = numbers.mean.half_bin
    assert half is not None, "a mean has it"
    return numbers.below[0].edge - half, numbers.below[-1].edge + half


def _or_nan(number: float | None) -> float:
    return np.nan if number is None else number


# ------------------------------------------------------------------------------------------------- smoothed figures


def in_order(shares: Shares, names: Sequence[str]) -> Shares:
    """The series with these names measured from below, all of them."""
    above = np.array([side_of(name).from_above for name in names])
    return Shares(
        means=np.where(above, 1 - shares.means, shares.means),
        low=np.where(above, 1 - shares.high, shares.low),
        high=np.where(above, 1 - shares.low, shares.high),
    )


def shown_figures(
    rows: Sequence[tuple[int, WindowedEstimate]], windows: Neighbours, shares: Shares
) -> Iterator[WindowedEstimate]:
    """Rows with smoothed figures of one kind. The rows come with their positions in ``shares``."""
    ordered = in_order(shares, windows.values)
    yield from (with_smoothed(row, windows.values, ordered, t) for t, row in rows)


def with_smoothed(row: WindowedEstimate, names: Sequence[str], shares: Shares, t: int) -> WindowedEstimate:
    """The row with smoothed figures: the mean, or what follows from the distribution function.

    Args:
        row: with figures.
        names: of the series of one kind.
        shares: of the series ``in_order``.
        t: position of the row's window in them.
    """
    numbers = row.numbers
    place = {side_of(name).edge: at for at, name in enumerate(names)}
    means = shares.means[t]
    found = np.array([np.clip(means, 0, 1), *cut(shares.low[t], shares.high[t], means)])
    if None in place:
        return row._replace(numbers=numbers._replace(mean=_smoothed_mean(numbers, found[:, 0])))
    edges = np.array([one.edge for one in numbers.below])
    below = np.sort(found[:, [place[edge] for edge in edges.tolist()]], axis=1)
    return row._replace(
        numbers=numbers._replace(
            quantiles=tuple(_smoothed_quantile(one, edges, below) for one in numbers.quantiles),
            shares_above=tuple(_smoothed_share(one, edges, below) for one in numbers.shares_above),
        )
    )


def _smoothed_mean(numbers: NumberFigures, ends: np.ndarray) -> MeanFigure:
    bottom, top = _ends(numbers)
    value, low, high = (bottom + (top - bottom) * ends).tolist()
    return numbers.mean._replace(smoothed_value=value, smoothed_low=low, smoothed_high=high)


def _smoothed_quantile(one: QuantileFigure, edges: np.ndarray, below: np.ndarray) -> QuantileFigure:
    """Open where it lies in an end bin."""
    outer = np.concatenate([[edges[0] - 1], edges, [edges[-1] + 1]])
    values, low, high = (np.concatenate([[0.0], part, [1.0]]) for part in below)
    value, least, most = crossing_of(one.q, outer, values, low, high)
    is_inside = value is not None and edges[0] <= value <= edges[-1]
    return one._replace(smoothed_value=value if is_inside else None, smoothed_low=least, smoothed_high=most)


def _smoothed_share(one: ShareFigure, edges: np.ndarray, below: np.ndarray) -> ShareFigure:
    """If the limit is no edge, its interval spans from the next edge to the one before."""
    before = int(np.searchsorted(edges, one.limit, side="right")) - 1
    after = int(np.searchsorted(edges, one.limit, side="left"))
    return one._replace(
        smoothed_value=1 - float(np.interp(one.limit, edges, below[0])),
        smoothed_low=1 - float(below[2, after]),
        smoothed_high=1 - float(below[1, before]),
    )


# --------------------------------------------------------------------------------------------------------- alarms


def sentence_of_change(row: WindowedEstimate, windows: Neighbours, series: Series, alarms: Alarms, t: int) -> str:
    """What moved: the mean; or quantiles, and the shares below the edges that moved most.

    Intervals hold simultaneously for all series of the kind. A quantile is named if it is now on the other
    side of an edge whose share moved.

    Args:
        row: of the window at position t, in which something moved.
        windows: of one kind of figures.
        series, alarms: of all windows.
    """
    sides, moved = list(map(side_of, windows.values)), np.flatnonzero(alarms.moved[t])
    change = change_of(series, alarms, t, moved)
    half = -special.ndtri((1 - confidence_or_default(row.confidence)) / 2 / len(sides) / change.looks) * change.error
    size = np.where([sides[at].from_above for at in moved.tolist()], -1, 1) * change.size
    order = np.argsort(-np.abs(size), kind="stable").tolist()
    spans = np.stack([size, size - half, size + half], axis=1)[order]
    since = [f" over {change.windows[place]} windows" if change.windows[place] > 1 else "" for place in order]
    if sides[0].edge is None:
        bottom, top = _ends(row.numbers)
        return f"The mean moved by {_in_units((top - bottom) * spans[0])}{since[0]}."
    edges = [sides[moved[place]].edge for place in order]
    told = [
        f"below {edge:.15g} {_signed(100 * span)}{after}"
        for edge, span, after in zip(edges[:_NAMED], spans, since)
        if edge is not None
    ]
    more = [f"and {len(moved) - _NAMED} more"] if len(moved) > _NAMED else []
    quantiles = list(_moved_quantiles(row, sides, alarms.expected[t], change, moved))
    return " ".join(
        [
            *([f"Quantiles moved: {', '.join(quantiles)}."] if quantiles else []),
            f"Shares of numbers moved, in percentage points: {', '.join([*told, *more])}.",
        ]
    )


def _signed(span: np.ndarray) -> str:
    size, low, high = span.tolist()
    return f"{size:+.2f} ({low:+.2f} to {high:+.2f})"


def _in_units(span: np.ndarray) -> str:
    """With four digits, for numbers of any size."""
    size, low, high = span.tolist()
    return f"{size:+.4g} ({low:+.4g} to {high:+.4g})"


def _moved_quantiles(
    row: WindowedEstimate, sides: Sequence[Side], expected: np.ndarray, change: Change, moved: np.ndarray
) -> Iterator[str]:
    """The quantiles that an edge that moved separates from where they were expected."""
    now = expected.copy()
    now[moved] += change.size
    places = [place for place, side in enumerate(sides) if side.edge is not None]
    edges = np.array([side.edge for side in sides if side.edge is not None])
    above = np.array([sides[place].from_above for place in places])
    before, after = (np.where(above, 1 - part[places], part[places]) for part in (expected, now))
    shifted = np.isin(places, moved)
    for one in row.numbers.quantiles:
        if (shifted & ((before - one.q) * (after - one.q) < 0)).any():
            name = "median" if one.q == _MEDIAN else f"p{100 * one.q:g}"
            yield f"{name} from {_crossing(one.q, edges, before)} to {_crossing(one.q, edges, after)}"


def _crossing(q: float, edges: np.ndarray, below: np.ndarray) -> str:
    shares = np.sort(below)
    if not shares[0] < q < shares[-1]:
        return f"below {edges[0]:.15g}" if q <= shares[0] else f"above {edges[-1]:.15g}"
    number, after = float(np.interp(q, shares, edges)), int(np.searchsorted(shares, q))
    return f"{number:.{_digits(number, float(edges[after] - edges[after - 1]))}g}"


def _digits(number: float, width: float) -> int:
    """Significant digits that tell the hundredth part of a bin of this width; at least 4."""
    return max(4, 3 + math.floor(math.log10(max(abs(number) / width, 1))))
