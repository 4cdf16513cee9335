"""A table as data: columns of cells, each with the exact numbers that the page's script sorts and saves."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of
from uldp_transforms_report.differences import as_json
from uldp_transforms_report.tables.axis import Axis
from uldp_transforms_report.texts_for_readers import group_words, named

if TYPE_CHECKING:
    from markupsafe import Markup

NAME, LABEL, NUMBER, ANSWER = "name", "label", "number", "answer"
WORD, TEXT, SIDE, DRAWN = "word", "text", "side", "drawn"
"""Kinds of columns: names of rows, which the page may cut, and others; numbers, yes or no, words, sentences, groups,
and pictures."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mark:
    """An interval with its estimate, or a tick, in percent of an axis.

    Attributes:
        kind: its look in the style sheet, one of the kinds of ``drawings`` and ``smoothed_columns``.
        value, low, high: places; None if unknown, and at the ends of the axis where an interval is open.
        at: height in percent of the row, from its top.
        colour, shape: of a group: a colour, and a path around its middle.
        said: what a pointer on it shows.
    """

    kind: str
    value: float | None
    low: float | None = None
    high: float | None = None
    at: float = 50
    colour: str = ""
    shape: str = ""
    said: str = ""


def mark_of(axis: Axis, kind: str, value: float | None, low: float | None, high: float | None, at: float = 50) -> Mark:
    """An estimate with its interval, whose ends may be open; without places if nothing is known."""
    is_known = value is not None or low is not None or high is not None
    ends = (axis.low if low is None else low, axis.high if high is None else high) if is_known else (None, None)
    return Mark(kind=kind, value=axis.place(value), low=axis.place(ends[0]), high=axis.place(ends[1]), at=at)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """What a row has in a column.

    Attributes:
        text: for readers.
        full: a text that is searched and saved instead; empty: the same.
        exact: its numbers, separated by blanks, with ``open`` for an open end; None: it is a text.
        marks: what is drawn.
        axis: of its picture, whose ends are then written below it; None: that of the column.
    """

    text: str | Markup = ""
    full: str = ""
    exact: str | None = None
    marks: Sequence[Mark] = ()
    axis: Axis | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """One column of R rows.

    Attributes:
        title: its head.
        fields: names of its numbers in a saved table, separated by blanks; ``-``: it is not saved.
        kind: one of the kinds above.
        cells: (R,) its cells.
        axis: of pictures; None if each has its own.
    """

    title: str
    fields: str
    kind: str
    cells: Sequence[Cell]
    axis: Axis | None = None

    @property
    def has_content(self) -> bool:
        """Whether it tells rows apart: not if it is empty, or has the same answer in all of them."""
        if self.kind == DRAWN:
            return any(cell.marks for cell in self.cells)
        texts = {str(cell.text) for cell in self.cells}
        return len(texts) > 1 if self.kind == ANSWER else texts != {""}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Table:
    """R rows of columns.

    Attributes:
        caption: what the table has.
        columns: all columns; those without content are not shown.
        flags: (R,) words by which rows can be filtered; empty without filters.
        told: the flag of rows that are told apart from 0; others are grey.
        island: JSON for the page's script; empty without.
        sorts: whether a reader can sort it.
    """

    caption: str
    columns: Sequence[Column]
    flags: Sequence[str] = ()
    told: str = ""
    island: str = ""
    sorts: bool = True

    @property
    def shown(self) -> list[Column]:
        """The columns with content."""
        return [column for column in self.columns if column.has_content]

    @property
    def same(self) -> list[Column]:
        """The columns that have the same answer in all rows."""
        return [column for column in self.columns if not column.has_content and column.kind == ANSWER and column.cells]

    @property
    def same_fields(self) -> str:
        """What a saved table has in columns that are not shown, as JSON; empty if there are none."""
        left = [column for column in self.columns if not column.has_content and column.kind != DRAWN and column.cells]
        return as_json({column.fields: str(column.cells[0].text) for column in left}) if left else ""

    @property
    def rows(self) -> list[tuple[Cell, ...]]:
        """(R,) the cells of each row in the shown columns."""
        return list(zip(*(column.cells for column in self.shown)))

    @property
    def drawn(self) -> set[str]:
        """Kinds of the marks in its pictures."""
        return {mark.kind for column in self.columns for cell in column.cells for mark in cell.marks}


def names_in(figures: Iterable[Figure], **more: Any) -> str:
    """The names of rows as they are in the rows of a job, for the page's script."""
    return as_json({"values": [one.name for one in figures]} | more)


def exact(number: float | None) -> str:
    """Six digits; empty if unknown."""
    return "" if number is None or math.isnan(number) else f"{number:.6g}"


def span(low: float | None, high: float | None, is_open: bool) -> str:
    """The ends of an interval; ``open`` for unknown ones if ends of intervals can be open."""
    return " ".join(exact(end) or ("open" if is_open else "") for end in (low, high))


def names(title: str, figures: Iterable[Figure], field: str = "value") -> Column:
    cells = [Cell(text=named(one.name)) for one in figures]
    return Column(title=title, fields=field, kind=NAME, cells=cells)


def texts(title: str, field: str, told: Iterable[str | Markup], kind: str = TEXT) -> Column:
    return Column(title=title, fields=field, kind=kind, cells=[Cell(text=text) for text in told])


def sides(title: str, field: str, groups: Iterable[str], labels: Mapping[str, str]) -> Column:
    """Labels of groups, which may be broken into lines between their dimensions."""
    cells = [Cell(text=group_words(named(labels[group], 80)), full=named(group, 80)) for group in groups]
    return Column(title=title, fields=field, kind=SIDE, cells=cells)


def answers(title: str, field: str, told: Iterable[bool | None]) -> Column:
    return texts(title, field, ("yes" if one else "no" for one in told), ANSWER)


def counts(title: str, field: str, told: Iterable[int]) -> Column:
    cells = [Cell(text=f"{number:,}", exact=str(number)) for number in told]
    return Column(title=title, fields=field, kind=NUMBER, cells=cells)


def values(title: str, field: str, told: Iterable[float | None], forms: Iterable[NumberFormat]) -> Column:
    cells = [Cell(text=form.text(number), exact=exact(number)) for number, form in zip(told, forms)]
    return Column(title=title, fields=field, kind=NUMBER, cells=cells)


_Ends = Sequence[float | None]


def spans(title: str, fields: str, told: Iterable[_Ends], forms: Iterable[NumberFormat]) -> Column:
    """Intervals.

    Args:
        title, fields: as of a column.
        told: (R, 3) lower and upper ends, and the estimate; None where nothing is said of a share of 0 or 1.
        forms: (R,) how they are written.
    """
    cells = [
        Cell(text=form.span(low, high, value), exact=span(low, high, not form.is_share))
        for (low, high, value), form in zip(told, forms)
    ]
    return Column(title=title, fields=fields, kind=NUMBER, cells=cells)


def forms_of(figures: Sequence[Figure], alike: bool = True) -> list[NumberFormat]:
    """(R,) how figures are written: with the decimals that all of them need, or each one with its own."""
    return [format_of(*figures)] * len(figures) if alike else [format_of(one) for one in figures]


def figure_columns(
    title: str, levels: object, figures: Sequence[Figure], forms: Sequence[NumberFormat]
) -> list[Column]:
    """An estimate and its interval."""
    return [
        values(title, title, (one.value for one in figures), forms),
        spans(f"{levels} interval".strip(), "low high", ((one.low, one.high, one.value) for one in figures), forms),
    ]


def difference_columns(title: str, figures: Sequence[Figure], forms: Sequence[NumberFormat]) -> list[Column]:
    """Differences with their intervals, whose ends may be open."""
    values = [Cell(text=form.signed(one.value), exact=exact(one.value)) for one, form in zip(figures, forms)]
    return [
        Column(title="difference", fields="difference", kind=NUMBER, cells=values),
        signed_spans(title, "low high", figures, forms),
    ]


def signed_spans(title: str, fields: str, figures: Sequence[Figure], forms: Sequence[NumberFormat]) -> Column:
    """Intervals of differences."""
    cells = [
        Cell(text=form.signed_span(one.low, one.high), exact=span(one.low, one.high, is_open=True))
        for one, form in zip(figures, forms)
    ]
    return Column(title=title, fields=fields, kind=NUMBER, cells=cells)
