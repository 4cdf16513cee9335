"""Figures of numbers as plain data, from the field ``numbers`` of rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.jobs.report.differences import Panel
from uldp_transforms.jobs.report.levels import USUAL, Levels

ENOUGH_REPORTS = 10_000
"""Minimum number of reports for which the coverage of smooth intervals has been measured; see docs/numbers.md."""

FEW_REPORTS = (
    f"Fewer than {ENOUGH_REPORTS:,} reports cannot show whether neighbouring bins are alike, which smooth intervals "
    "take for granted: rely on the intervals without smoothness, and declare numbers that many people have as atoms."
)

MEDIAN = "median"
SUM = "sum"
_NAMES = ("value", "low", "high", "sure_low", "sure_high", "smoothed", "smoothed_low", "smoothed_high")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figure:
    """A mean, a quantile, or a share above a limit.

    Attributes:
        name: for readers, such as ``mean`` or ``p90``.
        is_share: whether it is a share of people; otherwise it is a number with the unit of the collection.
        value: the unbiased mean; of all other figures the smooth estimate, if the row has one; None if unknown. Means,
            sums and shares, with their intervals, are cut to what they can be.
        low, high: its interval; None where an end is open.
        sure_low, sure_high: the interval that does not depend on smoothness.
        smoothed, smoothed_low, smoothed_high: over neighbouring windows; None if the job did not smooth, or open.
    """

    name: str
    is_share: bool
    value: float | None
    low: float | None
    high: float | None
    sure_low: float | None
    sure_high: float | None
    smoothed: float | None = None
    smoothed_low: float | None = None
    smoothed_high: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """One bin of the curve: its name for readers, edges for drawing, share and band."""

    name: str
    low: float
    high: float
    share: float
    band_low: float
    band_high: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class FigureTrend:
    """One figure over W windows; arrays are (W,), with NaN for what is missing or open.

    Attributes:
        figure: the figure in the latest window.
        value, low, high, sure_low, sure_high, smoothed, smoothed_low, smoothed_high: as for ``Figure``.
    """

    figure: Figure
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    sure_low: np.ndarray
    sure_high: np.ndarray
    smoothed: np.ndarray
    smoothed_low: np.ndarray
    smoothed_high: np.ndarray

    @property
    def is_smoothed(self) -> bool:
        """Whether any window has a smoothed number."""
        return bool(np.isfinite(self.smoothed).any())

    @property
    def contradicted(self) -> np.ndarray:
        """(W,) bool, whether the window's own interval and the smoothed one have no number in common."""
        found: np.ndarray = (self.smoothed_low > self.sure_high) | (self.smoothed_high < self.sure_low)
        return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberPart:
    """What a page says about the numbers of a collection.

    Attributes:
        unit: unit of the numbers; may be empty.
        is_smooth: whether figures are smooth estimates.
        figures: those of the latest window with numbers.
        bars: its curve; empty if the row has none.
        trends: of the mean and the quantiles; empty if there is one window.
        num_reports: of the latest window with numbers; None if unknown.
        levels: confidences of the intervals of the figures; ``trend_levels`` of all windows.
    """

    unit: str
    is_smooth: bool
    figures: Sequence[Figure]
    bars: Sequence[Bar]
    trends: Sequence[FigureTrend]
    num_reports: int | None = None
    levels: Levels = USUAL
    trend_levels: Levels = USUAL

    @property
    def advice(self) -> str:
        """What to know about smooth intervals of few reports; empty if there are none."""
        few = self.num_reports is not None and self.num_reports < ENOUGH_REPORTS
        return FEW_REPORTS if self.is_smooth and few else ""


def numbers_of(rows: Sequence[Mapping[str, Any]], unit: str) -> NumberPart | None:
    """The part about W rows in order of time; None if the latest row with estimates has no figures of numbers."""
    told = [row for row in rows if row["status"] == "ok"]
    if not told:
        return None
    numbers = told[-1].get("numbers") or {}
    figures = list(_figures(numbers, unit))
    if not figures:
        return None
    by_window = [
        {figure.name: figure for figure in _figures(row.get("numbers") or {}, unit)} if row in told else {}
        for row in rows
    ]
    return NumberPart(
        unit=unit,
        is_smooth=bool(numbers.get("curve")),
        figures=figures,
        bars=_bars(numbers.get("curve") or ()),
        trends=[_trend(figure, by_window) for figure in figures if _has_trend(figure)] if len(rows) > 1 else [],
        num_reports=told[-1].get("num_reports"),
        levels=Levels.of(told[-1:]),
        trend_levels=Levels.of(told),
    )


def figure_panel(sides: Sequence[str], rows: Sequence[Mapping[str, Any]], unit: str) -> Panel | None:
    """The figures of windows or groups, for comparing two of them; None if fewer than two rows have some.

    Args:
        sides: names of the windows or groups.
        rows: their rows.
        unit: unit of the numbers.
    """
    found = {side: {one.name: one for one in figures_of(row, unit)} for side, row in zip(sides, rows)}
    told = {side: figures for side, figures in found.items() if figures}
    if len(told) < 2:
        return None
    last = [*told.values()][-1]
    tables = {
        name: np.array(
            [[_or_nan(getattr(own[of], name) if of in own else None) for of in last] for own in told.values()]
        )
        for name in ("value", "low", "high")
    }
    is_share = [one.is_share for one in last.values()]
    inner = np.full_like(tables["value"], np.nan)
    return Panel(
        values=[*last],
        is_share=is_share,
        sides=[*told],
        inner=inner,
        is_of_figures=True,
        levels=Levels.of(row for side, row in zip(sides, rows) if side in told),
        **tables,
    )


def figures_of(row: Mapping[str, Any], unit: str) -> list[Figure]:
    """The figures of a row; empty if it has none."""
    return list(_figures(row.get("numbers") or {}, unit)) if row["status"] == "ok" else []


def _figures(numbers: Mapping[str, Any], unit: str) -> Iterator[Figure]:
    mean = numbers.get("mean") or {}
    if mean.get("value") is not None:
        unbiased = {name: number for name, number in mean.items() if not name.startswith("display_")}
        yield _cut(_figure("mean", unbiased), *_range_of_mean(numbers))
    for one in numbers.get("quantiles") or ():
        yield _figure(name_of_quantile(one["q"]), one)
    for one in numbers.get("shares_above") or ():
        yield _cut(_figure(name_of_share(one["limit"], unit), one, is_share=True), 0, 1)

    total = numbers.get("sum") or {}
    if total.get("value") is not None:
        yield _cut(_figure(SUM, total), *_range_of_sum(numbers))


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
    numbers = {name: getattr(figure, name) for name in _NAMES}
    inside = {name: min(max(number, least), most) for name, number in numbers.items() if number is not None}
    return dataclasses.replace(figure, **inside)


def _has_trend(figure: Figure) -> bool:
    return not figure.is_share and figure.name != SUM


def name_of_quantile(q: float) -> str:
    """``median``, or such as ``p90``."""
    return MEDIAN if q == 0.5 else f"p{100 * q:.6g}"


def name_of_share(limit: float, unit: str) -> str:
    """Such as ``share from 30 min``."""
    return f"share from {limit:g}{f' {unit}' if unit else ''}"


def _figure(name: str, told: Mapping[str, Any], is_share: bool = False) -> Figure:
    kind = "" if told.get("display_value") is None else "display_"
    value, low, high = (told.get(f"{kind}{part}") for part in ("value", "low", "high"))
    return Figure(
        name=name,
        is_share=is_share,
        value=value,
        low=low,
        high=high,
        sure_low=told.get("low"),
        sure_high=told.get("high"),
        smoothed=told.get("smoothed_value"),
        smoothed_low=told.get("smoothed_low"),
        smoothed_high=told.get("smoothed_high"),
    )


def _bars(curve: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """The bins; the two open ones are drawn with the widths of their neighbours."""
    if len(curve) < 3:
        return []
    low, high = [one["low"] for one in curve], [one["high"] for one in curve]
    low[0] = 2 * high[0] - high[1]
    high[-1] = 2 * low[-1] - low[-2]
    names = [f"{one['low']:g} to {one['high']:g}" for one in curve[1:-1]]
    return [
        Bar(
            name=name,
            low=begin,
            high=end,
            share=one["share"],
            band_low=one["display_low"],
            band_high=one["display_high"],
        )
        for name, begin, end, one in zip(
            [f"below {curve[0]['high']:g}", *names, f"from {curve[-1]['low']:g}"], low, high, curve
        )
    ]


def _trend(figure: Figure, by_window: Sequence[Mapping[str, Figure]]) -> FigureTrend:
    columns = {
        name: np.array(
            [
                math.nan if (one := found.get(figure.name)) is None else _or_nan(getattr(one, name))
                for found in by_window
            ]
        )
        for name in _NAMES
    }
    return FigureTrend(figure=figure, **columns)


def _or_nan(number: float | None) -> float:
    return math.nan if number is None else number


# ------------------------------------------------------------------------------------------------------------- words


def said_of(figure: Figure) -> str:
    """``the mean is``, or such as ``10 % are below``: how a sentence begins that ends with the figure."""
    if figure.name.startswith("p"):
        return f"{figure.name[1:]} % are below"
    return f"the {figure.name} is"


def digits_of_figure(figure: Figure) -> int:
    """Number of decimals, 0 to 6, with which half the length of the figure's interval shows two digits."""
    ends = (figure.low, figure.high), (figure.sure_low, figure.sure_high)
    lengths = [high - low for low, high in ends if low is not None and high is not None]
    if not lengths and figure.value is not None:  # twice the distance of an end, if the other one is open
        lengths = [2 * abs(end - figure.value) for end in ends[0] if end is not None]
    return digits_of_length(lengths)


def digits_of_length(lengths: Sequence[float]) -> int:
    """Number of decimals, 0 to 6, with which half of the shortest interval above 0 shows two digits."""
    known = [length / 2 for length in lengths if length > 0]
    return min(max(1 - math.floor(math.log10(min(known))), 0), 6) if known else 3


def number_text(number: float | None, digits: int) -> str:
    """The number with thousands separators; a dash if unknown."""
    if number is None or math.isnan(number):
        return "\N{EN DASH}"
    return f"{number:,.{digits}f}"


def number_span(low: float | None, high: float | None, digits: int) -> str:
    """``2.9 to 5.8``; ``below 5.8`` or ``from 2.9`` if an end is open."""
    ends = [None if end is None or math.isnan(end) else number_text(end, digits) for end in (low, high)]
    if ends[0] is None:
        return f"below {ends[1]}" if ends[1] is not None else "\N{EN DASH}"
    return f"{ends[0]} to {ends[1]}" if ends[1] is not None else f"from {ends[0]}"
