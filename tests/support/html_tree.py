"""A page as a tree, read by Python's own parser, and chromium, which reads it as people's browsers do."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

VOID = {"meta", "link", "img", "br", "hr", "input", "wbr"}


@dataclasses.dataclass
class Node:
    """An element: its name, attributes, children and texts."""

    name: str
    attributes: dict[str, str]
    children: list[Node | str] = dataclasses.field(default_factory=list)

    def all(self, *names: str) -> Iterator[Node]:
        """Elements of these names in it, in their order; without names all of them."""
        for child in self.children:
            if isinstance(child, Node):
                if not names or child.name in names:
                    yield child
                yield from child.all(*names)

    @property
    def text(self) -> str:
        """Without what a style, script or picture says, white space as one blank."""
        parts = [child if isinstance(child, str) else child.text for child in self.children]
        return "" if self.name in ("style", "script", "svg") else re.sub(r"\s+", " ", " ".join(parts)).strip()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].name == tag, f"</{tag}> ends {self.open[-1].name}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def tree_of(page: str) -> Node:
    """The tree of a page, whose elements all end where they should."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    assert len(reader.open) == 1, f"{reader.open[-1].name} does not end"
    return reader.open[0]


def table(page: Node, caption: str) -> list[list[str]]:
    """The texts of the table with this caption, row by row."""
    (found,) = (node for node in page.all("table") if next(node.all("caption")).text == caption)
    return texts_of(found)


def texts_of(table: Node) -> list[list[str]]:
    """The texts of a table row by row, without the cells that are pictures."""
    rows = (
        [cell for cell in row.all("th", "td") if cell.attributes.get("class") != "drawn"] for row in table.all("tr")
    )
    return [[cell.text for cell in row] for row in rows]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium or google-chrome on the path")


def chromium(page: Path | str, profile: Path, milliseconds: int = 5000) -> str:
    """The page as chromium has it after so much (virtual) time; an address of this machine is one too."""
    assert CHROMIUM is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--dump-dom"]
    options += ["--window-size=1700,1000", f"--user-data-dir={profile}", f"--virtual-time-budget={milliseconds}"]
    address = page if isinstance(page, str) else page.as_uri()
    done = subprocess.run([CHROMIUM, *options, address], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout
