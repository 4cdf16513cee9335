"""The reference pages list every public name once, and each has an example that runs."""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest

from tests.project.documents import DOCS, Block, blocks, run

PAGES = {"reference.md": "uldp_transforms", "reference-ldp.md": "uldp_transforms.ldp"}
REFERENCE = re.compile(r"^<!-- reference: ([\w.]+)\.(\w+) -->$", flags=re.MULTILINE)
ON_THE_PAGE = {"JobSpec", "Estimate"}
"""Classes whose example is the Python block of their page."""

WITH_EXAMPLES = (*PAGES.values(), "uldp_transforms_compare.comparisons")
NAMES = [(module, name) for module in WITH_EXAMPLES for name in importlib.import_module(module).__all__]
BLOCKS = [block for page in PAGES for block in blocks(DOCS / page)]


def examples(module: str, name: str) -> list[doctest.DocTest]:
    """The examples of a class and its methods; a row's class may be re-exported elsewhere."""
    value = getattr(importlib.import_module(module), name)
    home = inspect.getmodule(value)
    found = doctest.DocTestFinder().find(value, name, home, globs={"__name__": "__main__"})
    return [test for test in found if test.examples]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_lists_every_public_name_once(page: str) -> None:
    module = PAGES[page]
    listed = [name for home, name in REFERENCE.findall((DOCS / page).read_text(encoding="utf-8")) if home == module]
    own = [name for name in listed if callable(getattr(importlib.import_module(module), name, None))]
    assert sorted(own) == sorted(importlib.import_module(module).__all__)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[name for _, name in NAMES])
def test_every_public_class_has_an_example(
    module: str, name: str, quickstart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in ON_THE_PAGE:
        assert any(name in block.code or "estimate =" in block.code for block in BLOCKS)
        return
    tests = examples(module, name)
    assert tests, f"{module}.{name} needs an example in its docstring"
    monkeypatch.setattr(beam, "Pipeline", functools.partial(beam.Pipeline, runner="FnApiRunner"))
    run_examples(tests)


def run_examples(tests: list[doctest.DocTest]) -> None:
    """Run examples; a failure shows what was expected and what came."""
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False)
    for test in tests:
        runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)


def test_a_wrong_example_fails() -> None:
    wrong: Any = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    with pytest.raises(AssertionError, match=r"Expected:\n +3\n *Got:\n +2"):
        run_examples([wrong])


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.page.stem)
def test_blocks_of_the_pages_run(block: Block, quickstart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(block, monkeypatch)


@pytest.mark.parametrize("module", ["uldp_transforms.ldp"])
def test_examples_of_packages_run(module: str, quickstart: Path) -> None:
    text = importlib.import_module(module).__doc__
    assert text is not None
    run_examples([doctest.DocTestParser().get_doctest(text, {}, module, None, 0)])


def accidental_links(text: str) -> list[str]:
    """Brackets of a docstring that Markdown takes for a link, as of an index: the site then cannot be built."""
    prose = re.sub(r"``.*?``|^\s*(>>>|\.\.\.).*$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\[[^][]*\]\[[^][]*\]", prose)


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[name for _, name in NAMES])
def test_docstrings_have_no_accidental_links(module: str, name: str) -> None:
    value = getattr(importlib.import_module(module), name)
    members = [value, *(member for key, member in vars(value).items() if not key.startswith("_"))]
    for member in members:
        assert not accidental_links(getattr(member, "__doc__", None) or "")


def test_accidental_links_are_found() -> None:
    assert accidental_links("The probability matrix[y][x] of y.") == ["[y][x]"]
    assert accidental_links("``matrix[y][x]``, [0, 1] and [1, 2]\n\n    >>> a[0][1]\n") == []
