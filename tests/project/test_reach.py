"""What decides which tests wait: of dear ones those stay that add branches, by what they cost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests.campaigns.planted import PLANTED
from tests.campaigns.planted.plant import path_of_test
from tests.campaigns.reach import A_FILE, DEAR, RATE, STAY, branches, choose, groups_of, must_stay, staying
from tests.plan import FIRST, NONE

CHEAP = "tests/a.py::test_cheap"


def chosen(costs: dict[str, float], reached: dict[str, set[int]], *needed: str) -> dict[str, str]:
    """What waits of dear tests beside a cheap one, of the same file, that reaches branch 0."""
    return choose({CHEAP: DEAR / 2, **costs}, {CHEAP: {0}, **reached}, needed.__contains__)


def test_who_reaches_nothing_alone_waits() -> None:
    one, two = "tests/a.py::test_one", "tests/a.py::test_two"
    assert chosen({one: 1.0}, {one: {0}}) == {one: NONE}
    assert chosen({one: 1.0}, {one: {0}}, one) == {}
    few, many = set(range(1, 1 + int(RATE))), set(range(1, 1 + 4 * int(RATE)))
    assert chosen({one: 1.0, two: 0.5}, {one: few, two: few}) == {one: NONE}
    assert chosen({one: 1.0, two: 0.5}, {one: many, two: {1}}) == {two: NONE}


def test_branches_are_worth_as_many_seconds_as_stated() -> None:
    one = "tests/a.py::test_one"
    assert chosen({one: 1.0}, {one: set(range(1, 1 + int(RATE)))}) == {}
    assert chosen({one: 1.0}, {one: set(range(1, int(RATE)))}) == {one: NONE}


def test_the_first_case_may_be_enough() -> None:
    cases = {f"tests/a.py::test_grid[{number}]": 0.5 for number in range(3)}
    first, second, _ = cases
    few, many = set(range(1, 1 + int(RATE))), set(range(100 * int(RATE)))
    assert chosen(cases, dict.fromkeys(cases, few)) == {"tests/a.py::test_grid": FIRST}
    assert chosen(cases, {first: few, second: many}) == {}


def test_what_stays_are_first_cases_and_tests_that_do_not_wait() -> None:
    costs = dict.fromkeys(("a::grid[1]", "a::grid[2]", "a::dear", "a::cheap[1]", "a::cheap[2]"), 1.0)
    left = staying(costs, {"a::grid": FIRST, "a::dear": NONE})
    assert list(left) == ["a::grid[1]", "a::cheap[1]", "a::cheap[2]"]


def test_each_file_keeps_a_test() -> None:
    grid, alone, dear = "tests/b.py::test_grid", "tests/b.py::test_alone", "tests/c.py::test_alone"
    costs = {f"{grid}[1]": A_FILE / 3, f"{grid}[2]": A_FILE / 3, alone: A_FILE, dear: 2 * A_FILE}
    assert chosen(costs, {}) == {grid: FIRST, alone: NONE, dear: NONE}
    assert chosen({alone: 0.5}, {}) == {}


def test_laws_methods_and_what_planted_faults_name_stay() -> None:
    named = path_of_test(PLANTED[0].tests[0])
    assert all(map(must_stay, (*STAY, "tests/a.py::TestAny::runTest", named)))
    assert not must_stay("tests/a.py::test_x")


def test_branches_of_cases_are_read(tmp_path: Path) -> None:
    rows = {
        "context (id, context)": [(1, "a.py::one|setup"), (2, "a.py::one|run"), (3, "")],
        "file (id, path)": [(1, "/x/ldp/a.py"), (2, "/x/ldp/b.py"), (3, "/x/packages/survey/tests/test_c.py")],
        "arc (file_id, context_id, fromno, tono)": [
            (1, 1, 1, 2),
            (1, 2, 1, 3),
            (2, 2, 1, 2),
            (1, 3, 1, 2),
            (3, 3, 1, 2),
        ],
    }
    with closing(sqlite3.connect(tmp_path / "coverage")) as data, data:
        for table, own in rows.items():
            data.execute(f"CREATE TABLE {table}")
            data.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' for _ in own[0])})", own)
    assert branches(tmp_path / "coverage") == {"a.py::one": {0, 1, 2}, "": {0}}


def test_groups_have_the_form_of_the_plan() -> None:
    none, first = groups_of({"tests/a.py::b": NONE, "labs/tests/c.py::d": FIRST, "labs/tests/c.py::a": FIRST})
    assert (none["keep"], none["tests"]) == (NONE, {"a.py": ["b"]})
    assert (first["keep"], first["tests"]) == (FIRST, {"labs/tests/c.py": ["a", "d"]})
