"""The table of what a job needs is that of the operator's page, and each of its costs has a command and a page."""

from __future__ import annotations

import importlib.util
import re

import pytest

from labs.benchmarks import __main__ as benchmarks
from labs.benchmarks import capacity
from tests.project.documents import DOCS


def test_the_page_has_the_table_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "operations.md").read_text("utf-8")
    assert benchmarks.main(["capacity"]) == 0
    *_, rows = printed = capsys.readouterr().out.splitlines()
    table = [line for line in printed if line.startswith("|")]
    assert len(table) == len(capacity.NUMBERS) + 2 and "\n".join(table) in page
    amount = rows.partition(": ")[2].removesuffix(" a day")
    assert "`python -m labs.benchmarks capacity`" in page and amount in page


def test_costs_are_those_of_the_page_of_scale() -> None:
    page = " ".join((DOCS / "scale.md").read_text("utf-8").split())
    for name, cost in capacity.COSTS.items():
        assert cost["text"] in page, name
        numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", cost["text"])
        assert str(cost["value"]) in numbers, name


def test_each_cost_has_a_command_that_exists() -> None:
    for cost in capacity.COSTS.values():
        if cost["command"].startswith("/usr/bin/time "):
            continue
        module, *words = cost["command"].removeprefix("python -m ").split()
        assert importlib.util.find_spec(module), cost
        assert module != "labs.benchmarks" or words[0] in benchmarks.ALL, cost
        assert cost["command"] in (DOCS / "scale.md").read_text("utf-8")


def test_a_row_by_hand() -> None:
    """10^11 reports a day are 1.157 million a second: 6 us and 36.5 us each, 4,200 s of ids, 7,800 s of state."""
    assert capacity.row(10**11, 27, 35) == ("10^11", "7; 43", "51 GB", "72 GB", "2.7 TB; 3.5 TB")


@pytest.mark.parametrize(
    ("number", "text"), [(140_160, "140 kB"), (3.1e8, "0.31 GB"), (2.7e10, "27 GB"), (5e14, "500 TB")]
)
def test_sizes_have_two_digits(number: float, text: str) -> None:
    assert capacity.size(number) == text
