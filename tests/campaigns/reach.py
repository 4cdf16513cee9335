"""Which tests wait for ``make slow`` because those of ``make test`` reach nearly every branch without them.

It reads what two runs of the suite left, and writes ``tests/waiting.yaml``::

    python -m tests.campaigns.cpu_seconds --costs build/costs.json
    python -m pytest -n 2 --cov=uldp_transforms --cov=packages --cov-branch --cov-context=test --cov-report=
    python -m tests.campaigns.reach build/costs.json .coverage

The second needs pytest-cov, which is not among the requirements.

A test stays if it takes less than ``DEAR``, if ``STAY`` or a planted fault names it, or if it adds ``RATE`` branches a
second to those that are reached without it. The first of several cases stays if it is cheap, and each file keeps one
test of at most ``A_FILE``. Branches in processes that a test starts are not recorded: such tests are judged by what
they reach besides. What waits already goes on waiting; ``[]`` as the file's text begins anew. A test is named in it or
in ``plan.yaml``.
"""

from __future__ import annotations

import argparse
import functools
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.campaigns.planted import PLANTED
from tests.campaigns.planted.plant import path_of_test
from tests.plan import FIRST, NONE

DEAR, DEAR_FORMULA, DEAR_CASE = 0.06, 0.2, 0.1
"""CPU seconds of all cases of a test; of one of ``FORMULAS``; of the first of several cases."""

FORMULAS = (
    *(f"tests/{room}/" for room in ("clients", "collector", "files", "ldp", "messages", "rows", "spec")),
    *(f"packages/{name}/" for name in ("compare", "survey")),
)
"""Where formulas and bytes are tested, by cheap tests: most of these stay."""

RATE = 10.0
"""Branches that a test must add to the others, for each CPU second that it takes."""

A_FILE = 0.5
"""CPU seconds, at most, of the test that a file keeps if all others wait."""

STAY = ("tests/project/", "labs/tests/test_demo.py::test_succeeds_and_writes_all_files")
"""Laws of the sources, which reach no branch (those that take long are in ``plan.yaml``), and the first promise."""

WAITING = Path(__file__).parents[1] / "waiting.yaml"
BESIDE = ("labs/", "packages/")
WHY = "Costs much CPU time for the few branches that no other test of `make test` reaches."

Costs = Mapping[str, float]
"""CPU seconds of each case, by its id in pytest."""

Reached = Mapping[str, Collection[int]]
"""Numbers of the branches that each case reaches."""


class Part(NamedTuple):
    """Cases of a test that can stay without the others: the first one, or all."""

    test: str
    cases: Sequence[str]
    seconds: float


def function_of(case: str) -> str:
    """File and function of a case."""
    return case.partition("[")[0]


def choose(costs: Costs, reached: Reached, needed: Callable[[str], bool]) -> dict[str, str]:
    """How many cases of a test stay (``NONE``, ``FIRST``); tests that stay as a whole are not in it."""
    cases: dict[str, list[str]] = defaultdict(list)
    for case in costs:
        cases[function_of(case)].append(case)
    wholes = [Part(test, own, sum(costs[case] for case in own)) for test, own in cases.items()]
    dear = [part for part in wholes if part.seconds > dearness(part.test) and not needed(part.test)]
    keep = {part.test: NONE for part in dear}
    stays = [part for part in wholes if part.test not in keep]
    firsts = [Part(part.test, part.cases[:1], costs[part.cases[0]]) for part in dear if len(part.cases) > 1]
    for part in in_turn([*firsts, *dear], reached, set().union(*(reach_of(part, reached) for part in stays))):
        if len(part.cases) == len(cases[part.test]):
            keep.pop(part.test, None)
        elif part.test in keep:
            keep[part.test] = FIRST
    cheap_firsts = [part for part in firsts if part.test in keep and part.seconds <= DEAR_CASE]
    for part in (*cheap_firsts, *one_of_each_file(wholes, keep, costs)):
        keep[part.test] = FIRST
    return {test: how for test, how in keep.items() if how == NONE or len(cases[test]) > 1}


def staying(costs: Costs, keep: Mapping[str, str]) -> Iterator[str]:
    """The cases that stay."""
    seen: set[str] = set()
    for test, case in ((function_of(case), case) for case in costs):
        if test not in keep or (keep[test] == FIRST and test not in seen):
            yield case
        seen.add(test)


def dearness(test: str) -> float:
    """CPU seconds above which a test is dear."""
    return DEAR_FORMULA if test.startswith(FORMULAS) else DEAR


def reach_of(part: Part, reached: Reached) -> set[int]:
    """Numbers of the branches that any of its cases reaches."""
    return set().union(*(reached.get(case, ()) for case in part.cases))


def in_turn(parts: Sequence[Part], reached: Reached, seen: set[int]) -> Iterator[Part]:
    """Parts that add to what was seen, the one with the most new branches per second first, as long as it has
    ``RATE``."""
    left = [(part, reach_of(part, reached)) for part in parts]
    while left := [(part, new) for part, branches in left if (new := branches - seen)]:
        part, new = max(left, key=lambda one: len(one[1]) / one[0].seconds)
        if len(new) < RATE * part.seconds:
            return
        seen |= new
        yield part


def one_of_each_file(wholes: Sequence[Part], keep: Mapping[str, str], costs: Costs) -> Iterator[Part]:
    """The cheapest test of each file of which all wait."""
    files: dict[str, list[Part]] = defaultdict(list)
    for part in wholes:
        files[part.test.partition("::")[0]].append(part)
    for parts in files.values():
        cheapest = min(parts, key=lambda part: costs[part.cases[0]])
        if all(keep.get(part.test) == NONE for part in parts) and costs[cheapest.cases[0]] <= A_FILE:
            yield cheapest


def branches(path: Path) -> dict[str, set[int]]:
    """Those of each case in a file of coverage.py, outside of tests."""
    reached: dict[str, set[int]] = defaultdict(set)
    numbers: dict[tuple[int, int, int], int] = {}
    with closing(sqlite3.connect(path)) as data:
        contexts = dict(data.execute("SELECT id, context FROM context"))
        tests = {file for file, path in data.execute("SELECT id, path FROM file") if "tests" in Path(path).parts}
        for context, *branch in data.execute("SELECT context_id, file_id, fromno, tono FROM arc"):
            if branch[0] in tests:
                continue
            reached[contexts[context].partition("|")[0]].add(numbers.setdefault(tuple(branch), len(numbers)))
    return reached


def must_stay(test: str) -> bool:
    """Whether it is one of ``STAY``, a method, or named by a planted fault."""
    return test.startswith(STAY) or "::" in test.partition("::")[2] or test in named_by_faults()


@functools.cache
def named_by_faults() -> set[str]:
    return {function_of(path_of_test(test)) for plant in PLANTED for test in plant.tests}


def known() -> dict[str, str]:
    """What the file says already: those tests did not run."""
    groups = yaml.load(WAITING.read_text("utf-8"), Loader=yaml.CSafeLoader)
    return {
        f"{path if path.startswith(BESIDE) else f'tests/{path}'}::{name}": group["keep"]
        for group in groups
        for path, names in group["tests"].items()
        for name in names
    }


def groups_of(keep: Mapping[str, str]) -> list[dict[str, Any]]:
    """Groups in the form of ``plan.yaml``."""
    groups: dict[str, dict[str, list[str]]] = {NONE: defaultdict(list), FIRST: defaultdict(list)}
    for test, how in sorted(keep.items()):
        path, _, function = test.removeprefix("tests/").partition("::")
        groups[how][path].append(function)
    return [{"why": WHY, "keep": how, "tests": dict(tests)} for how, tests in groups.items()]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("costs", type=Path, help="written by tests.campaigns.cpu_seconds --costs")
    parser.add_argument("coverage", type=Path, help="written by pytest-cov")
    args = parser.parse_args(argv)
    costs, reached = json.loads(args.costs.read_text("utf-8")), branches(args.coverage)
    keep = choose(costs, reached, must_stay)
    left = set().union(*(reached.get(case, ()) for case in staying(costs, keep)))
    print(f"{len(left):,} of {len(set().union(*reached.values())):,} branches are reached without what waits")
    WAITING.write_text(yaml.safe_dump(groups_of(known() | keep), sort_keys=False, width=120), encoding="utf-8")


if __name__ == "__main__":
    main()
