"""Estimates in notebooks: a data frame, a table and a chart."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import altair
    import pandas

SHOWN = 20
"""Number of values in a table or chart (default)."""

_DOT, _BAR = "#0a63b0", "#9cc3e6"


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
    def unexplained_status(self) -> str | None: ...
    @property
    def unexplained_mass(self) -> float | None: ...
    @property
    def unexplained_low(self) -> float: ...
    @property
    def unexplained_high(self) -> float: ...
    def largest(self, number: int) -> np.ndarray: ...
    def display_intervals(self, number: int) -> tuple[np.ndarray, np.ndarray]: ...


def columns(estimate: Displayed, number: int | None = None) -> dict[str, Any]:
    """Columns of the R values with the largest frequencies, in descending order of ``frequency``.

    Args:
        estimate: of S values.
        number: R, at most S are shown (default: all).

    Returns:
        arrays of length R by name, as in the rows of a job: ``value``, ``frequency``, ``display_low`` and
        ``display_high`` (95 % intervals adjusted for the selection of large values), ``ci_low`` and ``ci_high`` (95 %
        intervals of values chosen beforehand), ``raw_frequency`` (unbiased, unclipped) and ``standard_error``.
    """
    size = len(estimate.values)
    shown = estimate.largest(size if number is None else number)
    low, high = estimate.display_intervals(len(shown))
    order = np.argsort(-estimate.frequencies[shown], kind="stable")
    chosen = shown[order]
    return {
        "value": [estimate.values[at] for at in chosen],
        "frequency": estimate.frequencies[chosen],
        "display_low": low[order],
        "display_high": high[order],
        "ci_low": estimate.ci_low[chosen],
        "ci_high": estimate.ci_high[chosen],
        "raw_frequency": estimate.raw_frequencies[chosen],
        "standard_error": estimate.standard_errors[chosen],
    }


def facts(estimate: Displayed) -> dict[str, Any]:
    """Facts about all values together: reports, estimator, kind of interval, and the share of unlisted values."""
    found: dict[str, Any] = {
        "num_reports": estimate.num_reports,
        "estimator": estimate.estimator,
        "interval": estimate.interval,
    }
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
    """An HTML table of the largest values with their adjusted intervals and a caption; texts are escaped."""
    found = columns(estimate, SHOWN)
    rows = "".join(
        f'<tr><td style="text-align:left">{html.escape(value)}</td><td>{_percent(share)}</td>'
        f"<td>{_percent(low)} to {_percent(high)}</td></tr>"
        for value, share, low, high in zip(
            found["value"], found["frequency"], found["display_low"], found["display_high"]
        )
    )
    head = '<tr><th style="text-align:left">value</th><th>share</th><th>95 % interval</th></tr>'
    caption = "<br>".join(map(html.escape, sentences(estimate)))
    return (
        f'<table><caption style="text-align:left">{caption}</caption><thead>{head}</thead><tbody>{rows}</tbody></table>'
    )


def sentences(estimate: Displayed) -> list[str]:
    """Caption of a table: numbers of reports and values, meaning of the intervals, and share of unlisted values."""
    size = len(estimate.values)
    listed = f"the {SHOWN} largest of {size:,} values" if size > SHOWN else f"{size:,} value{'s' if size != 1 else ''}"
    looks = "valid at all looks together" if estimate.interval != "fixed" else "valid for one look"
    found = [
        f"{estimate.num_reports:,} reports, estimator {estimate.estimator}: {listed}.",
        f"Intervals are adjusted for the selection of the largest values and {looks}.",
    ]
    if estimate.unexplained_status is not None:
        span = f"{_percent(estimate.unexplained_low)} to {_percent(estimate.unexplained_high)}"
        share = estimate.unexplained_mass
        known = f"{_percent(share)} ({span})" if share is not None else f"too uncertain to estimate ({span})"
        found.append(f"Unlisted values: {known}.")
    return found


def chart(estimate: Displayed, number: int = SHOWN) -> altair.LayerChart:
    """Shares of the largest values as dots with their adjusted 95 % intervals; raises ImportError without Altair."""
    try:
        import altair as alt  # noqa: PLC0415  # optional, and slow to import
    except ImportError:
        raise ImportError("Estimate.plot needs altair; install the extra 'plot' of this package") from None
    found = columns(estimate, number)
    names = list(found)
    rows = [
        {name: cell if isinstance(cell, str) else float(cell) for name, cell in zip(names, row)}
        for row in zip(*found.values())
    ]
    percent = alt.Axis(format=".3~%")
    base = alt.Chart({"values": rows}).encode(
        y=alt.Y("value:N", sort=found["value"], title=None, axis=alt.Axis(labelLimit=240)),
        tooltip=[
            alt.Tooltip("value:N"),
            *(alt.Tooltip(f"{name}:Q", format=".3%") for name in ("frequency", "display_low", "display_high")),
        ],
    )
    share = alt.X("frequency:Q", title="share of people, with 95 % interval", axis=percent)
    interval = base.mark_rule(color=_BAR, strokeWidth=4).encode(x=alt.X("display_low:Q"), x2="display_high:Q")
    dots = base.mark_point(color=_DOT, filled=True, size=50, opacity=1).encode(x=share)
    title = alt.TitleParams("Estimated shares", subtitle=sentences(estimate), anchor="start")
    layers: altair.LayerChart = alt.layer(interval, dots).properties(title=title, width=420)
    return layers


def _percent(share: float) -> str:
    """``3.1 %``, with more digits for shares below 0.1 %."""
    size = abs(100 * share)
    digits = -math.floor(math.log10(size)) if 1e-6 < size < 0.1 else 1
    return f"{100 * share:.{digits}f} %"
