"""The page of a program that has named figures instead of a directory of rows, such as the coefficients of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms_report.levels import USUAL
from uldp_transforms_report.tables import columns as of
from uldp_transforms_report.tables.axis import scales_of
from uldp_transforms_report.tables.drawings import drawn_differences, drawn_figures
from uldp_transforms_report.texts_for_readers import named, shown
from uldp_transforms_report.web_page import only_itself, rendered


@dataclasses.dataclass(frozen=True, kw_only=True)
class NamedFigures:
    """R figures, a row each; its texts may come from anybody.

    Attributes:
        title: its heading.
        caption: what the table has.
        heads: titles of the columns whose cells name a row.
        names: (R,) these cells.
        estimate: what the figures are, such as ``share of yes``.
        figures: (R,) all shares, or all numbers.
        people: (R,) the number of people of each; empty: it is not shown.
        scales: (R,) names of scales: figures of one scale are drawn on one axis; empty: all are.
        is_signed: whether they are drawn around 0, as differences are.
        notes: sentences below the table.
    """

    title: str
    caption: str
    heads: Sequence[str]
    names: Sequence[Sequence[str]]
    estimate: str
    figures: Sequence[Figure]
    people: Sequence[int] = ()
    scales: Sequence[str] = ()
    is_signed: bool = False
    notes: Sequence[str] = ()

    @property
    def table(self) -> of.Table:
        """Names, pictures, estimates with their intervals, and people."""
        first, *others = zip(self.heads, zip(*self.names))
        columns = [of.Column(title=first[0], fields=first[0], kind=of.NAME, cells=_cells(first[1]))]
        columns += [of.Column(title=head, fields=head, kind=of.WORD, cells=_cells(texts)) for head, texts in others]
        columns += [*self._drawn, of.counts("people", "people", self.people)] if self.people else self._drawn
        flags = ["told" if one.told_apart else "" for one in self.figures]
        return of.Table(caption=shown(self.caption), columns=columns, flags=flags, told="told", sorts=False)

    @property
    def _drawn(self) -> list[of.Column]:
        figures, scales = self.figures, self.scales or scales_of(self.figures)
        forms = of.forms_of(figures, alike=figures[0].is_share)
        if not self.is_signed:
            pictures = drawn_figures(figures, scales)
            cells = [cell if one.value is not None else of.Cell() for cell, one in zip(pictures.cells, figures)]
            pictures = dataclasses.replace(pictures, cells=cells)
            return [pictures, *of.figure_columns(self.estimate, USUAL, figures, forms)]
        value, span = of.difference_columns(f"{USUAL} interval", figures, forms)
        value = dataclasses.replace(value, title=self.estimate, fields=self.estimate)
        return [drawn_differences(figures, [one.told_apart for one in figures], scales), value, span]


def page_of(title: str, sentence: str, source: str, parts: Sequence[NamedFigures], accounts: Sequence[str]) -> str:
    """A self-contained HTML page.

    Args:
        title: its heading.
        sentence: what it is.
        source: where the figures come from, for what is saved.
        parts: the figures.
        accounts: sentences about what was counted.
    """
    content = {"title": title, "sentence": sentence, "source": source, "parts": parts, "accounts": accounts}
    return rendered("figures_page.html.jinja", **content, levels=USUAL, policy=only_itself())


def _cells(texts: Sequence[str]) -> list[of.Cell]:
    return [of.Cell(text=named(text) if text else "") for text in texts]
