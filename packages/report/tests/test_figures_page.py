"""The page of named figures: their texts, flags, pictures and columns."""

from __future__ import annotations

import html
from typing import Any

from tests.support.html_tree import tree_of
from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms_report.figures_page import NamedFigures, page_of
from uldp_transforms_report.tables.columns import LABEL, NAME, NUMBER, WORD, Column

HOSTILE = "<i>&\u202e"


def figure(value: float | None, low: float | None, high: float | None, is_share: bool) -> Figure:
    return Figure(name="x", is_share=is_share, value=value, low=low, high=high)


def part(figures: list[Figure], **more: Any) -> NamedFigures:
    names = [(f"{HOSTILE}{at}", "") for at in range(len(figures))]
    words: dict[str, Any] = {"title": f"T{HOSTILE}", "caption": f"C{HOSTILE}", "heads": ("a", "b"), "estimate": "e"}
    return NamedFigures(**words, names=names, figures=figures, **more)


def column(of: NamedFigures, title: str) -> Column:
    return next(one for one in of.table.columns if one.title == title)


def test_shares_begin_at_0_and_an_unknown_one_has_no_picture() -> None:
    shares = [figure(0.2, 0.1, 0.4, True), figure(-0.01, 0.0, 0.02, True), figure(None, None, None, True)]
    one = part(shares, people=[1000, 2, 3])
    table = one.table
    assert [(each.title, each.kind) for each in table.columns][:2] == [("a", NAME), ("b", WORD)]
    assert [each.title for each in table.shown] == ["a", "picture", "e", "95 % interval", "people"]
    assert (table.flags, table.told, table.sorts) == (["told", "", ""], "told", False)
    picture = column(one, "picture")
    assert picture.axis is not None and (picture.axis.low, picture.axis.high) == (0, 0.4)
    assert [[(mark.kind, mark.value) for mark in cell.marks] for cell in picture.cells] == [
        [("told", 50.0)],
        [("untold", 0.0)],
        [],
    ]
    assert [cell.text for cell in column(one, "e").cells] == ["20.0 %", "-1.0 %", "\u2013"]
    assert next((cell.text, cell.exact) for cell in column(one, "people").cells) == ("1,000", "1000")


def test_coefficients_are_around_0_each_scale_on_its_axis() -> None:
    numbers = [figure(0.02, 0.01, 0.03, False), figure(-1.0, -3.0, 1.0, False), figure(2.0, 1.0, 2.5, False)]
    one = part(numbers, is_signed=True, scales=["x", "y", "y"])
    axes = [cell.axis for cell in column(one, "picture").cells]
    assert [axis and (axis.low, axis.high, axis.is_signed) for axis in axes] == [(-0.03, 0.03, True)] + [
        (-3, 3, True)
    ] * 2
    assert [mark.kind for cell in column(one, "picture").cells for mark in cell.marks] == ["told", "untold", "told"]
    value = column(one, "e")
    assert (value.kind, value.fields, [cell.text for cell in value.cells]) == (NUMBER, "e", ["+0.020", "-1.0", "+2.00"])
    together = column(part(numbers, is_signed=True), "picture")
    assert together.axis is not None and together.axis.high == 3
    assert not any(each.kind == LABEL or each.title == "people" for each in one.table.columns)


def test_every_text_of_the_page_is_escaped() -> None:
    parts = [part([figure(0.2, 0.1, 0.4, True)], notes=[f"N{HOSTILE}"])]
    page = page_of(f"P{HOSTILE}", f"S{HOSTILE}", f"F{HOSTILE}", parts, [f"A{HOSTILE}"])
    assert "<i>" not in page and "\u202e" not in page
    text = tree_of(page).text
    for letter in "PSTCNA":
        assert f"{letter}<i>&\ufffd" in text
    assert html.escape("Source: F<i>&\ufffd") in page
    assert "default-src 'none'" in html.unescape(page)
