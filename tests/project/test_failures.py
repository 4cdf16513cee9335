"""``docs/failures.md`` names a test for every failure, and the tests exist."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from requirements.companions import companions

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "failures.md"
FILES = {
    path.name: path for folder in (TESTS, *(each.tests for each in companions())) for path in folder.rglob("test_*.py")
}

FAMILIES = {"B": "bytes", "M": "meaning", "T": "time", "C": "configuration", "X": "the running job", "P": "privacy"}


class Failure(NamedTuple):
    """A row of the page."""

    id: str
    failure: str
    behaviour: str
    tests: str


def failures() -> list[Failure]:
    found = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [A-Z][0-9]", line)
    ]
    assert all(len(row) == len(Failure._fields) for row in found), "each row has all columns"
    return [Failure(*row) for row in found]


@functools.cache
def functions(file: str) -> set[str]:
    """Names of the tests of a file."""
    tree = ast.parse(FILES[file].read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def named(tests: str) -> list[tuple[str, str]]:
    """File and function of each test in a cell."""
    return re.findall(r"`(test_\w+\.py)::(test_\w+)`", tests)


def unknown(tests: str) -> list[str]:
    """What a cell names, and is no test, or no transcript."""
    missing = [
        f"{file}::{function}" for file, function in named(tests) if file not in FILES or function not in functions(file)
    ]
    transcripts = ", ".join(re.findall(r"::test_transcript` \(([^)]*)\)", tests))
    return missing + [
        name for name in transcripts.split(", ") if name and not (TESTS / f"transcripts/{name}.yaml").is_file()
    ]


@pytest.mark.parametrize("failure", failures(), ids=lambda failure: failure.id)
def test_every_failure_has_a_test_or_says_that_it_has_none(failure: Failure) -> None:
    assert all(failure)
    assert bool(named(failure.tests)) != ("not covered" in failure.tests)
    assert not unknown(failure.tests)


def test_ids_are_numbered_without_gaps_and_stand_once() -> None:
    by_family = Counter(failure.id[0] for failure in failures())
    assert set(by_family) == set(FAMILIES)
    expected = [f"{family}{number}" for family in FAMILIES for number in range(1, by_family[family] + 1)]
    assert [failure.id for failure in failures()] == expected


def test_the_page_names_each_test_of_its_own_files() -> None:
    """Tests that were written for the page stand on it."""
    text = PAGE.read_text(encoding="utf-8")
    for path in TESTS.rglob("test_failures_*.py"):
        tests = {name for name in functions(path.name) if not re.search("would_(find|not)", name)}
        assert not [name for name in tests if f"`{path.name}::{name}`" not in text]


def test_a_test_that_is_gone_is_noticed() -> None:
    assert unknown("`test_failures.py::test_nothing`, `test_nothing.py::test_nothing`, `test_wire.py::test_b`")
    assert unknown("`test_transcripts.py::test_transcript` (late, nothing)") == ["nothing"]
    assert not unknown("`test_failures.py::test_a_test_that_is_gone_is_noticed`")


def test_the_links_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / target).exists(), target
