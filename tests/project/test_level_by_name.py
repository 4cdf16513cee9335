"""A level of confidence has one name: no text and no number of the package writes it by hand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from requirements.companions import companions
from tests.support.project.sources import tree_of

FOLDERS = (Path(__file__).parents[2] / "uldp_transforms", *(each.sources for each in companions()))
HOME = "ldp/confidence.py"
"""Where the default is."""

EXAMPLES = {HOME, "levels.py"}
"""Files whose docstrings show what a level looks like as text."""

TEXT = re.compile(r"\b9(5|7\.5)(\s|&nbsp;)?%|\b(one|once) in twenty\b|\b0?\.95 confidence")
NUMBERS = {0.95, 0.975, 1.96, 1.959964}
TEMPLATES = ("*.jinja", "*.html", "*.js", "*.mjs")


def levels_in(tree: ast.Module) -> Iterator[str]:
    """Levels that a program writes by hand, as texts or numbers; of an f-string its fixed parts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and (found := TEXT.search(node.value)):
                yield f"line {node.lineno}: {found[0]}"
            if isinstance(node.value, float) and node.value in NUMBERS:
                yield f"line {node.lineno}: {node.value}"


def test_no_program_writes_a_level() -> None:
    files = {str(path.relative_to(folder)): path for folder in FOLDERS for path in folder.rglob("*.py")}
    assert set(files) >= EXAMPLES
    found = {name: list(levels_in(tree_of(path))) for name, path in files.items()}
    assert [name for name, told in found.items() if told and name not in EXAMPLES] == [], found
    assert sum("0.95" in told for told in found[HOME]) == 1, "the default has one place"


def test_no_page_writes_a_level() -> None:
    places = [(folder, kind) for folder in FOLDERS for kind in TEMPLATES]
    files = [path for folder, kind in places for path in folder.rglob(kind) if ".min." not in path.name]
    assert len(files) > 5
    assert [str(path) for path in files if TEXT.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "source",
    ['f"a 95 % interval of {x}"', '"all with 95&nbsp;% confidence"', '"at most one in twenty"', "z = 1.96", "a = 0.95"],
)
def test_a_level_by_hand_is_found(source: str) -> None:
    assert len(list(levels_in(ast.parse(source)))) == 1


@pytest.mark.parametrize("source", ['"195 %"', '"95 reports"', '"twenty"', "a = 0.9", "b = 95"])
def test_other_numbers_are_none(source: str) -> None:
    assert not list(levels_in(ast.parse(source)))
