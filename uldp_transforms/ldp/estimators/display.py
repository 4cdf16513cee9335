"""Estimates in notebooks: a line, a data frame, a table and a chart; of numbers with their figures before the bins."""

from __future__ import annotations

import hashlib
import html
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from uldp_transforms.ldp.alphabets.noun import PERSON, REPORT, Noun
from uldp_transforms.ldp.confidence import percent
from uldp_transforms.ldp.estimators.number_estimates import Numbers

if TYPE_CHECKING:
    import altair
    import pandas

SHOWN = 20
"""Number of values in a table or chart (default)."""

_IN_FRAMES = {
    "block": "block",
    "num_reports": "block_reports",
    "share": "in_block",
    **{name: f"in_block_{name}" for name in ("low", "high", "display_low", "display_high")},
}
"""Columns of a frame for those of shares within public blocks."""

_DOT, _BAR = "#0a63b0", "#9cc3e6"
_ROUNDING = 1e-8  # distance from 0 or 1 of shares that a rounding error separates


class Displayed(Protocol):
    """The attributes of an ``Estimate`` that are displayed."""

    @property
    def values(self) -> tuple[str, ...]: ...
    @property
    def frequencies(self) -> np.ndarray: ...
    @property
    def raw_frequencies(self) -> np.ndarray: ...
    @property
    def standard_errors(self) -> np.ndarray: ...
    @property
    def ci_low(self) -> np.ndarray: ...
    @property
    def ci_high(self) -> np.ndarray: ...
    @property
    def num_reports(self) -> int: ...
    @property
    def estimator(self) -> str: ...
    @property
    def interval(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    @property
    def unexplained_status(self) -> str | None: ...
    @property
    def unexplained_mass(self) -> float | None: ...
    @property
    def unexplained_low(self) -> float: ...
    @property
    def unexplained_high(self) -> float: ...
    @property
    def numbers(self) -> Numbers | None: ...
    @property
    def group(self) -> Mapping[str, str]: ...
    @property
    def noun(self) -> Noun: ...
    @property
    def num_groups(self) -> int: ...
    def columns_in_blocks(self, number: int) -> dict[str, np.ndarray]: ...
    def largest(self, number: int) -> np.ndarray: ...
    def display_intervals(self, number: int) -> tuple[np.ndarray, np.ndarray]: ...


def columns(estimate: Displayed, number: int | None = None) -> dict[str, Any]:
    """Columns of the R values with the largest frequencies, in descending order of ``frequency``.

    Args:
        estimate: of S values.
        number: R, at most S are shown (default: all).

    Returns:
        arrays of length R by name, as in the rows of a job: ``value``, ``frequency``, ``display_low`` and
        ``display_high`` (intervals adjusted for the selection of large values), ``ci_low`` and ``ci_high`` (intervals
        of values chosen beforehand), ``raw_frequency`` (unbiased, unclipped) and ``standard_error``; with public blocks
        also ``block``, ``block_reports``, and ``in_block``, the share within it, with both kinds of intervals.
    """
    size = len(estimate.values)
    shown = estimate.largest(size if number is None else number)
    low, high = estimate.display_intervals(len(shown))
    order = np.argsort(-estimate.frequencies[shown], kind="stable")
    chosen = shown[order]
    blocks = {_IN_FRAMES[name]: column[order] for name, column in estimate.columns_in_blocks(len(shown)).items()}
    return {
        "value": [estimate.values[at] for at in chosen],
        "frequency": estimate.frequencies[chosen],
        "display_low": low[order],
        "display_high": high[order],
        "ci_low": estimate.ci_low[chosen],
        "ci_high": estimate.ci_high[chosen],
        "raw_frequency": estimate.raw_frequencies[chosen],
        "standard_error": estimate.standard_errors[chosen],
        **blocks,
    }


def facts(estimate: Displayed) -> dict[str, Any]:
    """Facts about all values together: reports, estimator, kind of interval, and the share of unlisted values."""
    found: dict[str, Any] = {
        "num_reports": estimate.num_reports,
        "estimator": estimate.estimator,
        "interval": estimate.interval,
    }
    if estimate.group:
        found["group"] = dict(estimate.group)
    if estimate.unexplained_status is not None:
        found["unexplained_mass"] = estimate.unexplained_mass
        found["unexplained_low"], found["unexplained_high"] = estimate.unexplained_low, estimate.unexplained_high
    return found


def to_frame(estimate: Displayed) -> pandas.DataFrame:
    """A pandas frame of ``columns``, with ``facts`` in its ``attrs``; raises ImportError without pandas."""
    try:
        import pandas as pd  # noqa: PLC0415  # optional, and slow to import
    except ImportError:
        raise ImportError(
            "Estimate.to_frame needs pandas; install it, or the extra 'notebook' of this package"
        ) from None
    frame = pd.DataFrame(columns(estimate))
    frame.attrs = facts(estimate)
    return frame


def to_html(estimate: Displayed) -> str:
    """An HTML table of the largest values with their adjusted intervals and a caption; texts are escaped.

    Of numbers, a table of figures precedes it.
    """
    found, interval = columns(estimate, SHOWN), f"{percent(estimate.confidence)} interval"
    left, cells = ' style="text-align:left"', list(_share_cells(found, "frequency", "display"))
    head = f"<tr><th{left}>value</th><th>share</th><th>{interval}</th>"
    cells = [f"<td{left}>{html.escape(value)}</td>{cell}" for value, cell in zip(found["value"], cells)]
    if "block" in found:
        head += f"<th{left}>block</th><th>share in block</th><th>{interval}</th>"
        inside = zip(cells, found["block"], _share_cells(found, "in_block", "in_block_display"))
        cells = [f"{cell}<td{left}>{html.escape(block)}</td>{share}" for cell, block, share in inside]
    head, rows = f"{head}</tr>", "".join(f"<tr>{cell}</tr>" for cell in cells)
    caption = "<br>".join(map(html.escape, sentences(estimate)))
    shares = (
        f'<table><caption style="text-align:left">{caption}</caption><thead>{head}</thead><tbody>{rows}</tbody></table>'
    )
    return shares if estimate.numbers is None else _figures_html(estimate, estimate.numbers) + shares


def _share_cells(found: Mapping[str, Any], share: str, interval: str) -> Iterator[str]:
    """Cells of a share and of its interval in each row; a dash where the share is not known."""
    for value, low, high in zip(found[share], found[f"{interval}_low"], found[f"{interval}_high"]):
        texts = ("\N{EN DASH}",) * 2 if math.isnan(value) else (_percent(value), _between(value, low, high))
        yield "".join(f"<td>{text}</td>" for text in texts)


def in_a_line(estimate: Displayed) -> str:
    """Sizes of an estimate in one line, with its group, and with mean and median of numbers."""
    sizes = f"{len(estimate.values):,} values, {_reports(estimate)}"
    of = f" of {_group(estimate.group)}" if estimate.group else ""
    told = "to_frame(), plot() and the attributes have the numbers"
    if estimate.numbers is not None:
        found = figure_rows(estimate.numbers, estimate.confidence, smooth=False)
        rows = {name: (value, interval) for name, value, interval, *_ in found}
        named = [f"{name} {' '.join(rows[name])}" for name in ("mean", "median") if name in rows]
        sizes, told = ", ".join([*named, sizes]), "figures() has more"
    return f"<Estimate by {estimate.estimator!r}{of}: {sizes}; {told}>"


def figure_rows(numbers: Numbers, confidence: float, smooth: bool = True) -> Iterator[tuple[str, str, str, str, str]]:
    """Name, unbiased estimate with its interval, and smooth estimate with its interval, of each figure."""
    found, unit = numbers.figures(numbers.limits, confidence=confidence, smooth=smooth), _unit(numbers)
    if found.mean is not None:
        yield "mean", *_cells(found.mean)
    for one in found.quantiles:
        yield "median" if one.q == 0.5 else f"quantile {one.q:g}", *_cells(one)
    for above in found.shares_above:
        yield f"share from {above.limit:g}{unit} on", *_cells(above, 100, " %")


def _cells(figure: Any, factor: float = 1.0, unit: str = "") -> tuple[str, str, str, str]:
    own = _shown([figure.value, figure.low, figure.high], factor, unit)
    return *own, *_shown([figure.display_value, figure.display_low, figure.display_high], factor, unit)


def _shown(numbers: list[float | None], factor: float, unit: str) -> tuple[str, str]:
    """An estimate and its interval, with two digits of half the interval."""
    value, low, high = (None if one is None else factor * one for one in numbers)
    if value is None:
        return "unknown", ""
    size = (high - low) / 2 if low is not None and high is not None and high > low else abs(value) or 1.0
    digits = max(0, 1 - math.floor(math.log10(size)))
    ends = ["open" if end is None else f"{end:.{digits}f}{unit}" for end in (low, high)]
    return f"{value:.{digits}f}{unit}", f"({ends[0]} to {ends[1]})"


def _figures_html(estimate: Displayed, numbers: Numbers) -> str:
    interval, group = f"{percent(estimate.confidence)} interval", estimate.group
    unit = f" (in {_unit(numbers).strip()})" if _unit(numbers) else ""
    whose = f"{_group(group)}: figures" if group else "Figures"
    caption = html.escape(
        f"{whose} of numbers{unit}, with {interval}s for one look. Smooth: shorter, and valid if neighbouring "
        "bins are alike. An open end is somewhere in an end bin, which has all numbers beyond it."
    )
    names = ("figure", "unbiased", interval, "smooth", "its interval")
    head = "".join(f'<th style="text-align:left">{name}</th>' for name in names)
    rows = "".join(
        "<tr>" + "".join(f'<td style="text-align:left">{html.escape(cell)}</td>' for cell in row) + "</tr>"
        for row in figure_rows(numbers, estimate.confidence)
    )
    return (
        f'<table><caption style="text-align:left">{caption}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )


def _unit(numbers: Numbers) -> str:
    unit = getattr(numbers.model.alphabet, "unit", "")
    return f" {unit}" if unit else ""


def _group(group: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in group.items())


def _reports(estimate: Displayed) -> str:
    """How much was counted."""
    return estimate.noun.or_else(REPORT).counted(estimate.num_reports)


def sentences(estimate: Displayed, number: int = SHOWN) -> list[str]:
    """Caption of a table: numbers of reports and values, meaning of the intervals, and share of unlisted values."""
    size = len(estimate.values)
    listed = (
        f"the {number} largest of {size:,} values" if size > number else f"{size:,} value{'s' if size != 1 else ''}"
    )
    looks = "valid at all looks together" if estimate.interval != "fixed" else "valid for one look"
    of = f"{_group(estimate.group)}: " if estimate.group else ""
    among = f" of all {estimate.num_groups:,} groups" if estimate.num_groups > 1 else ""
    found = [
        f"{of}{_reports(estimate)}, estimator {estimate.estimator}: {listed}.",
        f"Intervals are adjusted for the selection of the largest values{among} and {looks}.",
    ]
    if estimate.unexplained_status is not None:
        share = estimate.unexplained_mass
        span = _between(share, estimate.unexplained_low, estimate.unexplained_high)
        known = f"{_percent(share)} ({span})" if share is not None else f"too uncertain to estimate ({span})"
        found.append(f"Unlisted values: {known}.")
    return found


def chart(estimate: Displayed, number: int = SHOWN) -> altair.LayerChart:
    """Shares of the largest values as dots with their adjusted intervals; raises ImportError without Altair.

    Of numbers, bars of all bins in their order.
    """
    try:
        import altair as alt  # noqa: PLC0415  # optional, and slow to import
    except ImportError:
        raise ImportError("Estimate.plot needs altair; install the extra 'plot' of this package") from None
    if estimate.numbers is not None:
        return _chart_of_bins(alt, estimate, estimate.numbers)
    found = columns(estimate, number)
    data, label = rows_with_labels([{"place": place} | row for place, row in enumerate(_rows(found))])
    with_percent = alt.Axis(format=".3~%")
    base = alt.Chart(data).encode(
        y=alt.Y("place:O", title=None, axis=alt.Axis(labelExpr=label, labelLimit=240)), tooltip=_tooltips(alt)
    )
    share = alt.X("frequency:Q", title=_axis_title(estimate), axis=with_percent)
    interval = base.mark_rule(color=_BAR, strokeWidth=4).encode(x=alt.X("display_low:Q"), x2="display_high:Q")
    dots = base.mark_point(color=_DOT, filled=True, size=50, opacity=1).encode(x=share)
    title = alt.TitleParams("Estimated shares", subtitle=sentences(estimate), anchor="start")
    layers: altair.LayerChart = alt.layer(interval, dots).properties(title=title, width=420)
    return layers


def _axis_title(estimate: Displayed) -> str:
    return f"share of {estimate.noun.or_else(PERSON).many}, with {percent(estimate.confidence)} interval"


def _chart_of_bins(alt: Any, estimate: Displayed, numbers: Numbers) -> altair.LayerChart:
    """Shares of all bins as bars with their adjusted intervals, and the median."""
    edges, alphabet = numbers.edges.tolist(), numbers.model.alphabet
    bins = dict(zip(alphabet.known_values or (), itertools.pairwise(edges)))  # texts follow the bins
    is_log = getattr(alphabet, "scale", None) == "log"
    rows = [
        row
        | {"begin": begin, "end": end, "middle": math.sqrt(begin * end) if is_log else (begin + end) / 2, "zero": 0.0}
        for row in _rows(columns(estimate))
        if row["value"] in bins
        for begin, end in [bins[row["value"]]]
    ]
    scale = alt.Scale(type="log" if is_log else "linear", domain=[edges[0], edges[-1]])
    base = alt.Chart({"values": rows}).encode(tooltip=_tooltips(alt))
    across = alt.X("begin:Q", title=as_title(_unit(numbers).strip() or "number"), scale=scale)
    up = alt.Y("zero:Q", title=_axis_title(estimate), axis=alt.Axis(format=".3~%"))
    layers = [
        base.mark_rect(color=_BAR, stroke="white").encode(x=across, x2="end:Q", y=up, y2="frequency:Q"),
        base.mark_rule(color=_DOT).encode(x="middle:Q", y="display_low:Q", y2="display_high:Q"),
    ]
    subtitle = sentences(estimate, len(estimate.values))
    [median] = numbers.figures(quantiles=[0.5], confidence=estimate.confidence, smooth=False).quantiles
    if median.value is not None:
        line = alt.Chart({"values": [{"median": median.value}]}).mark_rule(strokeDash=[4, 3])
        layers.append(line.encode(x="median:Q"))
        subtitle.append(f"Dashed: median {' '.join(_cells(median)[:2])}{_unit(numbers)}.")
    title = alt.TitleParams("Estimated shares of bins", subtitle=subtitle, anchor="start")
    found: altair.LayerChart = alt.layer(*layers).properties(title=title, width=420)
    return found


def rows_with_labels(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], str]:
    """The data of a chart whose rows have the fields ``place`` (0, 1, ...) and ``value``, and the expression of a label
    of the axis of ``place``, which is the value.

    So values are cells of data only. Vega looks up each text of an expression as a name, and ends at ``constructor``.
    """
    name = f"rows-{hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]}"  # of its own in charts of several
    return {"name": name, "values": rows}, f"data('{name}')[datum.value].value"


def as_title(text: str) -> str:
    """A text for a title, which Vega looks up as a name: with a blank at its end, no object of JavaScript has it."""
    return f"{text} " if text else ""


def _rows(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Columns as rows of plain values."""
    return [
        {name: cell if isinstance(cell, str) else None if math.isnan(cell) else float(cell) for name, cell in row}
        for row in (zip(found, cells) for cells in zip(*found.values()))
    ]


def _tooltips(alt: Any) -> list[Any]:
    shares = ("frequency", "display_low", "display_high")
    return [alt.Tooltip("value:N"), *(alt.Tooltip(f"{name}:Q", format=".3%") for name in shares)]


def one_sided(share: float | None, low: float, high: float) -> tuple[str, float] | None:
    """How an interval is written beside a share of 0 or 1: ``below`` its upper end, or ``above`` its lower end.

    Returns:
        the word and the end; None beside other shares, and for all of [0, 1]: these are written with both ends.
    """
    if share is None:
        return None
    if share <= _ROUNDING and low <= 0 < high < 1:
        return "below", high
    return ("above", low) if share >= 1 - _ROUNDING and 0 < low < 1 <= high else None


def interval_text(share: float | None, low: float, high: float, decimals: int = 4) -> str:
    """Format the interval of a share as ``0.0290 to 0.0580``; as ``below 0.0180`` or ``above 0.9820`` beside 0 or 1.

    The single end has more decimals where it would otherwise be printed as 0 or 1.
    """
    bound = one_sided(share, low, high)
    if bound is None:
        return f"{low:.{decimals}f} to {high:.{decimals}f}"
    word, end = bound
    needed = math.ceil(-math.log10(min(end, 1 - end)))
    return f"{word} {end:.{max(decimals, needed)}f}"


def _between(share: float | None, low: float, high: float) -> str:
    """``2.9 % to 5.8 %``, or ``below 1.8 %``."""
    bound = one_sided(share, low, high)
    return f"{_percent(low)} to {_percent(high)}" if bound is None else f"{bound[0]} {_percent(bound[1])}"


def _percent(share: float) -> str:
    """``3.1 %``, with more digits for shares below 0.1 %."""
    size = abs(100 * share)
    digits = max(1, -math.floor(math.log10(size))) if size > 1e-6 else 1
    return f"{100 * share:.{digits}f} %"
