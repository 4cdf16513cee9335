"""No list of ids by hand: who adds a mechanism, an alphabet or an estimator looks for no table to extend.

The package asks the registries; ``make golden`` writes what pages and the client in JavaScript list.
Tests may name some as examples; one table with all of them is where a new one gets its small instances.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from requirements.companions import companions
from tests.project.documents import ROOT
from tests.support.project.sources import tree_of
from uldp_transforms.jobs.sinks import SINKS
from uldp_transforms.jobs.sources import SOURCES
from uldp_transforms.ldp.alphabets import ALPHABETS
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.mechanisms import MECHANISMS

KINDS = {
    "mechanisms": frozenset(MECHANISMS),
    "alphabets": frozenset(ALPHABETS),
    "estimators": frozenset(ESTIMATORS),
    "sources": frozenset(source.option for source in SOURCES),
    "sinks": frozenset(option for sink in SINKS for option in sink.options),
}

CASES = "tests/support/cases.py"
"""Where a new mechanism, alphabet or estimator gets its small instances."""

ALLOWED = {
    CASES: {"mechanisms", "alphabets", "estimators"},
    "tests/clients/independent.py": {"alphabets"},  # their default fields, as docs/client.md says them
}
"""Test file -> kinds that it may list completely."""


@functools.cache
def literals(tree: ast.Module) -> list[tuple[int, frozenset[str]]]:
    """Line and texts of each literal list, tuple, set or dictionary that has texts."""
    found: list[tuple[int, frozenset[str]]] = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
            parts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
            texts = frozenset(part for part in parts if isinstance(part, str))
            found += [(node.lineno, texts)] if texts else []
    return found


def listed(tree: ast.Module, ids: Iterable[str]) -> Iterator[tuple[int, set[str]]]:
    """Line and ids of each literal list, tuple, set or dictionary that names some of them."""
    for line, texts in literals(tree):
        if found := texts & set(ids):
            yield line, set(found)


def sources(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


@pytest.mark.parametrize("kind", ["mechanisms", "alphabets", "estimators"])
def test_the_package_lists_no_ids(kind: str) -> None:
    """Not even two: what some of a kind have in common is a property of their classes."""
    for path in sources(ROOT / "uldp_transforms", *(each.sources for each in companions(ROOT))):
        assert not [(path, line, found) for line, found in listed(tree_of(path), KINDS[kind]) if len(found) > 1]


@pytest.mark.parametrize("kind", KINDS)
def test_one_file_of_the_tests_lists_all(kind: str) -> None:
    for path in sources(ROOT / "tests", *(each.tests for each in companions(ROOT))):
        text = path.read_text(encoding="utf-8")
        if all(one in text for one in KINDS[kind]):  # few files need a closer look
            complete = [line for line, found in listed(tree_of(path), KINDS[kind]) if found == KINDS[kind]]
            assert not complete or kind in ALLOWED.get(str(path.relative_to(ROOT)), ()), (path, complete)


def test_the_rule_finds_lists() -> None:
    tree = tree_of(ROOT / CASES)
    assert all(any(found == KINDS[kind] for _, found in listed(tree, KINDS[kind])) for kind in ALLOWED[CASES])
    assert list(listed(ast.parse("x = {'krr': 1, 'b': ['urr']}"), KINDS["mechanisms"])) == [
        (1, {"krr", "urr"}),
        (1, {"urr"}),
    ]


def test_the_client_in_javascript_names_mechanisms_in_the_lines_that_are_written() -> None:
    for path in (ROOT / "clients/javascript/src").rglob("*.js"):
        before, _, rest = path.read_text(encoding="utf-8").partition("const MECHANISMS = {\n")
        by_hand = before + rest.partition("};\n")[2]
        keys = set(re.findall(r"^\s*(\w+):", by_hand, flags=re.MULTILINE)) | set(re.findall(r'"(\w+)"', by_hand))
        assert not keys & KINDS["mechanisms"], path
