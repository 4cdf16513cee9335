"""Tables of shares of values: in the latest window, in the whole period, discovered, over time, and two compared."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from uldp_transforms.rows.figures.compared_figures import p_text
from uldp_transforms.rows.figures.figure import COLUMNS, Figure, Trend
from uldp_transforms.rows.figures.figure_words import format_of_trend
from uldp_transforms_report.differences import Panel
from uldp_transforms_report.facts import Found, Latest, WindowLine
from uldp_transforms_report.levels import Levels
from uldp_transforms_report.tables import columns as of
from uldp_transforms_report.tables.drawings import drawn_differences, drawn_shares
from uldp_transforms_report.tables.smoothed_columns import second_columns, sure_column
from uldp_transforms_report.texts_for_readers import named

_APART = ("told apart from 0", "told_apart_from_0")


def shares_table(caption: str, shares: Latest, changed: Mapping[str, str] | None = None) -> of.Table:
    """The shares of a window or of the whole period.

    Args:
        caption: what the table has.
        shares: the shares.
        changed: value -> the last window in which it changed; None if windows were not watched.
    """
    entries = shares.entries
    forms = of.forms_of(entries)
    columns = [
        of.names("value", entries),
        drawn_shares(entries),
        *of.figure_columns("share", shares.levels, entries, forms),
    ]
    columns.append(of.answers(*_APART, (one.told_apart for one in entries)))
    columns += _in_blocks(shares)
    if entries[0].sensitive is not None:
        columns.append(of.answers("protected", "protected", (one.sensitive for one in entries)))
    columns += second_columns(entries, forms)
    if changed is not None:
        columns.append(of.texts("last change", "last_change", (changed.get(one.name, "") for one in entries), of.WORD))
    if entries[0].truth is not None:
        columns.append(of.values("truth", "truth", (one.truth for one in entries), forms))
        columns.append(of.answers("in the interval", "in_the_interval", (one.covered for one in entries)))
    return of.Table(
        caption=caption,
        columns=columns,
        flags=[
            _flags(told=one.told_apart, protected=one.sensitive, changed=one.name in (changed or {})) for one in entries
        ],
        told="told",
        island=of.names_in(entries),
    )


def _in_blocks(shares: Latest) -> list[of.Column]:
    """The public block of each value, and its share there; none without blocks."""
    if not shares.in_blocks:
        return []
    figures = [figure for _, figure in shares.in_blocks]
    forms, ends = of.forms_of(figures), ((one.low, one.high, one.value) for one in figures)
    return [
        of.texts("block", "block", (named(block) for block, _ in shares.in_blocks), of.WORD),
        of.values("share in block", "in_block", (one.value for one in figures), forms),
        of.spans(f"{shares.levels} interval in block", "in_block_low in_block_high", ends, forms),
    ]


def found_table(caption: str, found: Sequence[Found]) -> of.Table:
    """Discovered values."""
    figures = [one.figure for one in found]
    forms = of.forms_of(figures)
    q_values = [of.Cell(text=p_text(one.q_value), exact=of.exact(one.q_value)) for one in found]
    columns = [of.names("value", figures), drawn_shares(figures), *of.figure_columns("share", "", figures, forms)]
    columns.append(of.Column(title="q-value", fields="q_value", kind=of.NUMBER, cells=q_values))
    return of.Table(caption=caption, columns=columns, island=of.names_in(figures))


def trend_table(
    title: str, trend: Trend, windows: Sequence[WindowLine], most: int, levels: Levels, has_sure: bool = False
) -> of.Table:
    """A figure in the latest windows.

    Args:
        title: head of the estimates.
        trend: the figure.
        windows: all windows.
        most: maximum number of windows.
        levels: confidences of the intervals.
        has_sure: whether there is a second interval.
    """
    first = max(0, len(windows) - most)
    figures = [_in_window(trend, at) for at in range(first, len(windows))]
    forms = [format_of_trend(trend, first)] * len(figures)
    columns = [of.texts("window", "window", (line.name for line in windows[first:]), of.LABEL)]
    columns += of.figure_columns(title, levels, figures, forms)
    if has_sure:
        columns.append(sure_column(figures, forms))
    columns += second_columns(figures, forms)
    caption = f"The latest {most} of {len(windows)} windows" if first else "All windows"
    return of.Table(caption=caption, columns=columns, sorts=False)


def _in_window(trend: Trend, at: int) -> Figure:
    """The figure of a trend in one window."""
    numbers = ((name, float(getattr(trend, name)[at])) for name in COLUMNS)
    known: dict[str, Any] = {name: None if math.isnan(number) else number for name, number in numbers}
    return dataclasses.replace(trend.figure, **known)


def differences_table(panel: Panel, first: int, second: int) -> of.Table:
    """The first minus the second side of a panel, which the page's script changes when others are chosen."""
    lines = panel.differences(first, second)
    forms = of.forms_of(lines, alike=not panel.is_of_figures)
    return of.Table(
        caption=f"Differences: {named(panel.sides[first])} minus {named(panel.sides[second])}",
        columns=[
            of.names("figure" if panel.is_of_figures else "value", lines),
            drawn_differences(lines, [one.told_apart for one in lines]),
            *of.difference_columns(f"{panel.levels} interval", lines, forms),
            of.texts(*_APART, ("yes" if one.told_apart else "no" for one in lines), of.WORD),
        ],
        flags=["differs" if one.told_apart else "" for one in lines],
        told="differs",
        island=panel.as_json(),
    )


def _flags(**flags: bool | None) -> str:
    """The words by which a row is filtered."""
    return " ".join(name for name, holds in flags.items() if holds)
