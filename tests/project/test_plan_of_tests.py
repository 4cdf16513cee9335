"""The plan of slow tests names functions that exist, and takes no test from the planted faults."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.campaigns.planted import PLANTED
from tests.campaigns.planted.plant import path_of_test
from tests.plan import COVER, DEAREST, FIRST, NONE, PLAN, Divider, Group, turn
from tests.support.project.sources import tree_of

TESTS = Path(__file__).parents[1]
NAMED = {(path, name) for group in PLAN for path, names in group.tests.items() for name in names}


def file_of(path: str) -> Path:
    return (TESTS.parent if path.startswith(("labs/", "packages/")) else TESTS) / path


@pytest.mark.parametrize("path", sorted({path for path, _ in NAMED}))
def test_tests_that_wait_exist(path: str) -> None:
    functions = {node.name for node in tree_of(file_of(path)).body if isinstance(node, ast.FunctionDef)}
    assert {name for file, name in NAMED if file == path} <= functions


def test_the_dearest_files_exist_and_come_first(request: pytest.FixtureRequest) -> None:
    """Then programs, then all others; this file is one of the others."""
    assert [path for path in DEAREST if not file_of(path).is_file()] == []
    ids = [*(f"tests/{path}::test" for path in DEAREST), "tests/jobs/test_a.py::test", request.node.nodeid]
    places = [turn(name) for name in ids]
    assert places == sorted(set(places))


def test_no_test_waits_twice() -> None:
    assert len(NAMED) == sum(len(names) for group in PLAN for names in group.tests.values())


def test_planted_faults_keep_their_tests() -> None:
    """Those that are named; of a whole file some may wait: ``make mutants`` runs what stays."""
    for plant in PLANTED:
        for test in plant.tests:
            path, _, function = path_of_test(test).removeprefix("tests/").partition("::")
            assert not {name for file, name in NAMED if file == path and function == name}, plant.name


def test_cases_that_see_planted_faults_stay(request: pytest.FixtureRequest) -> None:
    """Where a fault names a case: of the files that are collected as a whole with this one."""
    if request.config.option.keyword or any("::" in name for name in request.config.args):
        pytest.skip("not all cases of the files are collected")
    collected = {item.nodeid for item in request.session.items}
    files = {case.partition("::")[0] for case in collected}
    named = {path_of_test(test) for plant in PLANTED for test in plant.tests if "[" in test}
    assert {case for case in named if case.partition("::")[0] in files} <= collected


def test_what_stays() -> None:
    def waiting(keep: str, *cases: str) -> list[str]:
        divider = Divider([Group("", keep, {"a.py": ("test",)})])
        return [case for case in cases if divider.waits(f"tests/a.py::test{case}")]

    grid = ("[x-1]", "[x-2]", "[y-1]", "[y-2]")
    assert waiting(NONE, *grid) == list(grid)
    assert waiting(FIRST, *grid) == list(grid[1:])
    assert waiting(COVER, *grid) == ["[y-2]"]
    assert waiting(FIRST, "") == []
    assert not Divider([]).waits("tests/a.py::test")
