"""Small pages with tables and data, for the script of a page's tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import uldp_transforms_report as report

SCRIPT = Path(report.__file__).with_name("page.js")

Cell = str | tuple[str, str]
"""A text, or a text and exact numbers."""


def cell(of: Cell, name: str = "td", more: str = "") -> str:
    if isinstance(of, str):
        return f"<{name}{more}>{escape(of)}</{name}>"
    return f'<{name}{more} data-n="{of[1]}">{escape(of[0])}</{name}>'


def table(
    id: str, heads: Sequence[str], rows: Sequence[tuple[Cell, ...]], flags: Sequence[str] = (), more: str = ""
) -> str:
    """Heads are their attributes; the first cell of a row is its name."""
    head = "".join(f'<th {one}>{at}<button class="sort"></button></th>' for at, one in enumerate(heads))
    lines = [
        f'<tr data-at="{at}"{f""" data-flags="{flags[at]}" """ if flags else ""}>'
        + cell(row[0], "th")
        + "".join(map(cell, row[1:]))
        + "</tr>"
        for at, row in enumerate(rows)
    ]
    caption = "<caption>c</caption>"
    return f'<table id="{id}"{more}>{caption}<thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def island(id: str, content: Any) -> str:
    return f'<script type="application/json" id="{id}">{json.dumps(content)}</script>'


def page(*parts: str) -> str:
    return f"<html><body>{''.join(parts)}</body></html>"
