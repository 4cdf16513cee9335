"""The groups of the latest window, value by value, from the rows of ``uldp estimate --by``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from uldp_transforms.jobs.report.numbers.number_facts import Figure, numbers_of

VALUES = 10
"""Maximum number of values of which groups are shown: those at the top of the page's table."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupLine:
    """A value in a group.

    Attributes:
        group: such as ``country=DE, arm=new``.
        figure: the share of the value, or a figure of numbers.
        num_reports: of the group.
    """

    group: str
    figure: Figure
    num_reports: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupPart:
    """What a page says about the groups of a collection.

    Attributes:
        window: the latest window that has groups with numbers, as its name for readers.
        lines: by value, then by group.
        left_out: number of lines that are not shown.
        number: number of groups with numbers.
        without: names of groups without numbers.
    """

    window: str
    lines: Sequence[GroupLine]
    left_out: int
    number: int
    without: Sequence[str]


Row = Mapping[str, Any]


def groups_of(
    rows: Sequence[Row],
    entries: Callable[[Iterable[Row]], Iterable[tuple[Row, Sequence[Row]]]],
    values: Sequence[str],
    name: Callable[[Row], str],
    most: int,
) -> GroupPart | None:
    """The part about one collection; None if no group has numbers.

    Args:
        rows: the valid row of each window and group, without entries.
        entries: reads the entries of rows.
        values: values of the table of everybody, the largest first.
        name: gives a window its name.
        most: maximum number of lines.
    """
    told = [row for row in rows if row["status"] == "ok"]
    if not told:
        return None
    window = max(row["window_start"] or "" for row in told)
    latest = [row for row in rows if (row["window_start"] or "") == window]
    shown = [row for row in latest if row["status"] == "ok"]
    lines = sorted(_lines(shown, entries, values[:VALUES]), key=lambda found: found[0])
    return GroupPart(
        window=name(shown[0]),
        lines=[line for _, line in lines[:most]],
        left_out=max(0, len(lines) - most),
        number=len(shown),
        without=sorted(row["group"] for row in latest if row["status"] != "ok"),
    )


def _lines(
    rows: Sequence[Row],
    entries: Callable[[Iterable[Row]], Iterable[tuple[Row, Sequence[Row]]]],
    values: Sequence[str],
) -> Iterator[tuple[tuple[int, str], GroupLine]]:
    """Lines with their places: figures of numbers where rows have some, otherwise shares."""
    places = {value: at for at, value in enumerate(values)}
    for row, given in entries(rows):
        numbers = numbers_of([row], "")
        figures = [] if numbers is None else [*enumerate(numbers.figures)]
        if numbers is None:
            figures = [(places[one["value"]], _share(one)) for one in given if one["value"] in places]
        for at, figure in figures:
            line = GroupLine(group=row["group"], figure=figure, num_reports=row["num_reports"])
            yield (at, row["group"]), line


def _share(entry: Row) -> Figure:
    """The share of an entry, with its interval for this value alone."""
    low, high = entry["ci_low"], entry["ci_high"]
    return Figure(
        name=entry["value"],
        is_share=True,
        value=entry["frequency"],
        low=low,
        high=high,
        sure_low=low,
        sure_high=high,
    )
