"""Which tests wait for ``make slow``, and why: ``plan.yaml``, and ``waiting.yaml``, which ``tests.campaigns.reach``
writes. Nothing else divides the suite, besides ``pytest.mark.slow``.

A test is named by its file below tests/, or below the root for those of companions and labs/, and its function.
``tests/support/suite.py`` marks them as slow; ``keep`` says how many of their cases stay in ``make test``. A test that
is asked for by the id of one case runs, unless no case of it stays: then add ``-m slow``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

NONE, FIRST, COVER = "none", "first", "cover"
"""Cases that stay: none; the first one; so many that every part of an id (between hyphens) is in one of them."""

DEAREST = (
    "ldp/estimators/test_largest.py",
    "labs/tests/test_discovery_of_hosts.py",
    "ldp/estimators/test_few_values.py",
    "packages/planner/tests/test_forecast.py",
    "beam/test_memo_populations.py",
)
"""Files of ``make slow`` that take minutes, the longest first. They start first: no process waits long for another."""


class Group(NamedTuple):
    """Tests that wait for one reason: what stays in ``make test``, and the functions by file below tests/."""

    why: str
    keep: str
    tests: Mapping[str, Sequence[str]]


PLAN = tuple(
    Group(**entry)
    for name in ("plan.yaml", "waiting.yaml")
    for entry in yaml.load(Path(__file__).with_name(name).read_text("utf-8"), Loader=yaml.CSafeLoader)
)


def turn(case: str) -> int:
    """When a test comes, by its id in pytest: in the dearest files, in those that start programs, or after both."""
    path = case.partition("::")[0].removeprefix("tests/")
    return DEAREST.index(path) if path in DEAREST else len(DEAREST) + (not path.startswith(("jobs/", "packages/")))


class Divider:
    """Decides for the cases of all tests, in the order of the suite, which of them wait."""

    def __init__(self, plan: Iterable[Group] = PLAN):
        self._keep = {
            f"{path}::{name}": group.keep for group in plan for path, names in group.tests.items() for name in names
        }
        self._seen: dict[str, set[Any]] = defaultdict(set)

    def waits(self, case: str) -> bool:
        """Whether a case waits, by its id in pytest: file, function and, in brackets, the parts of its parameters."""
        name, _, parameters = case.partition("[")
        name = name.removeprefix("tests/")
        if name not in self._keep:
            return False
        seen, keep = self._seen[name], self._keep[name]
        parts = set(enumerate(parameters.rstrip("]").split("-"))) if keep == COVER else {FIRST}
        new = parts - seen
        seen |= parts
        return keep == NONE or not new
