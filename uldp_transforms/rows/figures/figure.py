"""Figures: numbers with what is known of them, made from rows. Shares, means, quantiles, sums and their differences."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

MEDIAN = "median"
SUM = "sum"

_ENDS = ("low", "high", "sure_low", "sure_high", "smoothed_low", "smoothed_high")
COLUMNS = ("value", "smoothed", "truth", *_ENDS)
"""The numbers of a figure, which are also the columns of a trend."""


def is_without_zero(low: float | None, high: float | None) -> bool:
    """Whether an interval, whose ends may be open, does not contain 0."""
    return (low is not None and low > 0) or (high is not None and high < 0)


def halves_of(value: float | None, low: float | None, high: float | None) -> list[float]:
    """Half the length of an interval; of one with an open end the distance of the other one; empty if unknown.

    Args:
        value: the number in the interval.
        low, high: ends of the interval; None where it is open.
    """
    if low is not None and high is not None:
        return [(high - low) / 2]
    return [] if value is None else [abs(end - value) for end in (low, high) if end is not None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figure:
    """A share, a mean, a quantile, a sum, or the difference of two of them.

    Attributes:
        name: the value that people hold, or such as ``mean`` or ``p90``.
        is_share: whether it is a share of people; otherwise it is a number with a unit.
        value: the estimate; None if unknown. Of figures of numbers other than the mean it is the smooth one, if the row
            has one. Means, sums and shares, with their intervals, are cut to what they can be.
        low, high: its interval; None where an end is open. That of a share may be adjusted for the selection of the
            largest values.
        unit: unit of a number; may be empty.
        sure_low, sure_high: the interval that does not depend on smoothness.
        smoothed, smoothed_low, smoothed_high: over neighbouring windows; None if the job did not smooth, or open.
        truth: true share among the reporting people; None if unknown.
        sensitive: whether the value is sensitive; None if unknown.
    """

    name: str
    is_share: bool
    value: float | None
    low: float | None
    high: float | None
    unit: str = ""
    sure_low: float | None = None
    sure_high: float | None = None
    smoothed: float | None = None
    smoothed_low: float | None = None
    smoothed_high: float | None = None
    truth: float | None = None
    sensitive: bool | None = None

    @property
    def told_apart(self) -> bool:
        """Whether the interval excludes 0."""
        return is_without_zero(self.low, self.high)

    @property
    def covered(self) -> bool | None:
        """Whether the interval holds the truth; None if one of them is unknown."""
        if self.truth is None or self.low is None or self.high is None:
            return None
        return self.low <= self.truth <= self.high

    @property
    def halves(self) -> list[float]:
        """Half the lengths of its intervals without open ends; if there are none, the distance of the known end."""
        own, sure = ([low, high] for low, high in ((self.low, self.high), (self.sure_low, self.sure_high)))
        closed = [ends for ends in (own, sure) if None not in ends]
        return [half for ends in closed or [own] for half in halves_of(self.value, *ends)]

    @property
    def numbers(self) -> list[float]:
        """The numbers ``COLUMNS``, with NaN for what is missing or open."""
        return [math.nan if (number := getattr(self, name)) is None else number for name in COLUMNS]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trend:
    """One figure over W windows; arrays are (W,), with NaN for what is missing or open.

    Attributes:
        figure: the figure in the latest window with numbers.
        value, smoothed, truth, low, high, sure_low, sure_high, smoothed_low, smoothed_high: as for ``Figure``.
        moved: bool, whether a change was detected.
    """

    figure: Figure
    value: np.ndarray
    smoothed: np.ndarray
    truth: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sure_low: np.ndarray
    sure_high: np.ndarray
    smoothed_low: np.ndarray
    smoothed_high: np.ndarray
    moved: np.ndarray

    @property
    def is_smoothed(self) -> bool:
        """Whether any window has a smoothed number."""
        return bool(np.isfinite(self.smoothed).any())

    @property
    def contradicted(self) -> np.ndarray:
        """(W,) bool, whether the window's own interval and the smoothed one have no number in common."""
        found: np.ndarray = (self.smoothed_low > self.sure_high) | (self.smoothed_high < self.sure_low)
        return found


def trend_of(figure: Figure, table: np.ndarray, moved: np.ndarray | None = None) -> Trend:
    """A trend from the ``numbers`` of its windows.

    Args:
        figure: the figure in the latest window.
        table: (W, 9) ``Figure.numbers`` of each window; NaN in windows without the figure.
        moved: (W,) bool, whether a change was detected; None: nowhere.
    """
    columns = dict(zip(COLUMNS, table.T))
    return Trend(figure=figure, moved=np.zeros(len(table), dtype=bool) if moved is None else moved, **columns)


def table_of(figures: Sequence[Figure | None]) -> np.ndarray:
    """(W, 9) the ``numbers`` of figures; NaN for None."""
    return np.array([[math.nan] * len(COLUMNS) if one is None else one.numbers for one in figures], dtype=float)


# ---------------------------------------------------------------------------------------------------------- from rows


def share_of(
    entry: Mapping[str, Any], *, single: bool = False, truth: float | None = None, sensitive: bool | None = None
) -> Figure:
    """The share of an entry, with its interval adjusted for the selection of the largest values.

    Entries of older jobs may have only one kind of intervals, and a share outside them.

    Args:
        entry: entry of a row of estimates.
        single: whether the interval is the one for this value alone.
        truth: the true share.
        sensitive: whether the value is sensitive.
    """
    kind = "ci" if entry.get("display_low") is None else "display"
    if single:
        kind = "ci"
    value, low, high = _with_ends(entry, "frequency", f"{kind}_low", f"{kind}_high")
    smoothed, smoothed_low, smoothed_high = _with_ends(entry, "smoothed_frequency", "smoothed_low", "smoothed_high")
    return Figure(
        name=entry["value"],
        is_share=True,
        value=value,
        low=low,
        high=high,
        sure_low=low,
        sure_high=high,
        smoothed=smoothed,
        smoothed_low=smoothed_low,
        smoothed_high=smoothed_high,
        truth=truth,
        sensitive=sensitive,
    )


def _with_ends(entry: Mapping[str, Any], *names: str) -> list[Any]:
    """A share and its interval, which contains it; all None if one of them is missing."""
    own = [entry.get(name) for name in names]
    told = [number for number in own if number is not None]
    return [own[0], min(told), max(told)] if len(told) == len(own) else [None] * len(own)


def shares_in_blocks(row: Mapping[str, Any]) -> dict[str, tuple[str, Figure]]:
    """The public block of each value and its share there, with the interval of a value among the largest; empty without
    blocks."""
    found = {}
    for one in row.get("in_blocks") or ():
        value, low, high = _with_ends(one, "share", "display_low", "display_high")
        figure = Figure(name=one["value"], is_share=True, value=value, low=low, high=high, sure_low=low, sure_high=high)
        found[one["value"]] = (one["block"], figure)
    return found


def unlisted_share(row: Mapping[str, Any], truth: float | None) -> Figure:
    """The share of people with an unlisted value, of which a row may know only the interval, or nothing.

    Args:
        row: row of estimates.
        truth: the true share; None if unknown.
    """
    value, low, high = (row.get(f"unexplained_{name}") for name in ("mass", "low", "high"))
    return Figure(name="unlisted values", is_share=True, value=value, low=low, high=high, truth=truth)


def figures_of(row: Mapping[str, Any], unit: str) -> list[Figure]:
    """The figures of numbers of a row; empty if it has none.

    Args:
        row: row of estimates.
        unit: unit of the numbers.
    """
    return list(_figures(row.get("numbers") or {}, unit)) if row["status"] == "ok" else []


def sum_figures_of(row: Mapping[str, Any]) -> list[Figure]:
    """The sums over chosen values of a row of estimates, in the job's order; empty if it has none."""
    sums = row.get("sums") or () if row["status"] == "ok" else ()
    figures = [_figure(one["name"], one, "", is_share=one["is_share"]) for one in sums]
    return [dataclasses.replace(one, sure_low=one.low, sure_high=one.high) for one in figures]


def _figures(numbers: Mapping[str, Any], unit: str) -> Iterator[Figure]:
    mean = numbers.get("mean") or {}
    if mean.get("value") is not None:
        unbiased = {name: number for name, number in mean.items() if not name.startswith("display_")}
        yield _cut(_figure("mean", unbiased, unit), *_range_of_mean(numbers))
    for one in numbers.get("quantiles") or ():
        yield _figure(name_of_quantile(one["q"]), one, unit)
    for one in numbers.get("shares_above") or ():
        yield _cut(_figure(name_of_share(one["limit"], unit), one, "", is_share=True), 0, 1)

    total = numbers.get("sum") or {}
    if total.get("value") is not None:
        yield _cut(_figure(SUM, total, unit), *_range_of_sum(numbers))


def _range_of_mean(numbers: Mapping[str, Any]) -> tuple[float, float]:
    """Centres of the end bins if all bins have one width; otherwise numbers around them."""
    half, edges = numbers["mean"].get("half_bin"), [one["edge"] for one in numbers.get("below") or ()]
    return (edges[0] - half, edges[-1] + half) if edges and half is not None else (-math.inf, math.inf)


def _range_of_sum(numbers: Mapping[str, Any]) -> tuple[float, float]:
    """That of the mean times the number of reports, and 0 if people may have no number."""
    half, halves = numbers["mean"].get("half_bin"), numbers["sum"].get("half_bins")
    if not half or halves is None:
        return -math.inf, math.inf
    ends = [end * halves / half for end in _range_of_mean(numbers)] + [0.0] * (numbers.get("share") != 1)
    return min(ends), max(ends)


def _cut(figure: Figure, least: float, most: float) -> Figure:
    """Cut to the range that the figure can have: unbiased values, and their intervals, exceed it by chance."""
    numbers = {name: getattr(figure, name) for name in COLUMNS}
    inside = {name: min(max(number, least), most) for name, number in numbers.items() if number is not None}
    return dataclasses.replace(figure, **inside)


def _figure(name: str, told: Mapping[str, Any], unit: str, is_share: bool = False) -> Figure:
    kind = "" if told.get("display_value") is None else "display_"
    value, low, high = (told.get(f"{kind}{part}") for part in ("value", "low", "high"))
    return Figure(
        name=name,
        is_share=is_share,
        unit=unit,
        value=value,
        low=low,
        high=high,
        sure_low=told.get("low"),
        sure_high=told.get("high"),
        smoothed=told.get("smoothed_value"),
        smoothed_low=told.get("smoothed_low"),
        smoothed_high=told.get("smoothed_high"),
    )


def name_of_quantile(q: float) -> str:
    """``median``, or such as ``p90``."""
    return MEDIAN if q == 0.5 else f"p{100 * q:.6g}"


def name_of_share(limit: float, unit: str) -> str:
    """Such as ``share from 30 min``."""
    return f"share from {limit:g}{f' {unit}' if unit else ''}"
