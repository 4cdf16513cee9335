"""``tests/failures.yaml`` names a test for every failure of ``docs/failures.md``, and the tests exist."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from pathlib import Path

import pytest

from requirements.companions import companions
from tests.support.failures import FAMILIES, SOURCE, Failure, failures
from tests.support.project.sources import tree_of

TESTS = Path(__file__).parents[1]
FILES = {
    path.name: path
    for folder in (TESTS, TESTS.parent / "labs" / "tests", *(each.tests for each in companions()))
    for path in folder.rglob("test_*.py")
}


@functools.cache
def functions(file: str) -> set[str]:
    """Names of the tests of a file."""
    return {
        node.name
        for node in ast.walk(tree_of(FILES[file]))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def exists(test: str) -> bool:
    """Whether an entry names a test, and transcripts that it plays."""
    named = re.fullmatch(r"(test_\w+\.py)::(test_\w+)(?: \(([\w, ]+)\))?", test)
    if named is None:
        return False
    file, function, transcripts = named.groups()
    played = [TESTS / f"transcripts/{name}.yaml" for name in transcripts.split(", ")] if transcripts else []
    return file in FILES and function in functions(file) and all(path.is_file() for path in played)


UNTESTED = {"C10"}
"""Failures without a test."""


@pytest.mark.parametrize("failure", failures(), ids=lambda failure: failure.id)
def test_every_failure_has_tests_that_exist(failure: Failure) -> None:
    assert failure.failure and failure.behaviour and "|" not in failure.failure + failure.behaviour
    assert bool(failure.tests) != (failure.id in UNTESTED)
    assert [test for test in failure.tests if not exists(test)] == []


def test_ids_are_numbered_without_gaps_and_stand_once() -> None:
    by_family = Counter(failure.id[0] for failure in failures())
    assert set(by_family) == set(FAMILIES)
    expected = [f"{family}{number}" for family in FAMILIES for number in range(1, by_family[family] + 1)]
    assert [failure.id for failure in failures()] == expected


def test_each_test_of_files_about_failures_is_named() -> None:
    """Tests that were written for the page stand in its source."""
    text = SOURCE.read_text(encoding="utf-8")
    for path in TESTS.rglob("test_failures_*.py"):
        tests = {name for name in functions(path.name) if not re.search("would_(find|not)", name)}
        assert not [name for name in tests if f"{path.name}::{name}\n" not in text]


@pytest.mark.parametrize(
    "test",
    [
        "test_failures.py::test_nothing",
        "test_nothing.py::test_nothing",
        "test_wire.py",
        "test_transcripts.py::test_transcript (late, nothing)",
    ],
)
def test_a_test_that_is_gone_is_noticed(test: str) -> None:
    assert not exists(test)


def test_tests_that_exist_are_found() -> None:
    assert exists("test_failures.py::test_a_test_that_is_gone_is_noticed")
    assert exists("test_transcripts.py::test_transcript (late, final)")
