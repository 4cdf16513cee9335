"""Groups on real flights: the rule, the commands, what the pages show, and the count of false discoveries."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labs import reproduce
from labs.experiments import carriers
from labs.experiments.drawn_counts import draw_counts
from tests.project.documents import ROOT
from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection
from uldp_transforms_compare.comparisons import compare
from uldp_transforms_compare.comparisons.compare import q_values

PAGE = (ROOT / "docs" / "groups.md").read_text("utf-8")
DIFFERENT = {"FL", "VX"}


def test_two_airlines_fly_differently_by_all_their_flights() -> None:
    """No airline is near the rule: the third largest difference is 1.1 points."""
    airlines = carriers.read_airlines()
    assert next(iter(airlines)) == carriers.REFERENCE == max(airlines, key=lambda name: airlines[name].sum())
    assert len(airlines) == 11
    assert carriers.different(airlines) == DIFFERENT
    others = [abs(carriers.true_difference(airlines, name)) for name in airlines if name not in DIFFERENT]
    assert max(others) < 0.0115
    assert all(abs(carriers.true_difference(airlines, name)) > 0.04 for name in DIFFERENT)


def test_the_commands_find_them_and_the_page_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default seed, and what ``uldp compare`` prints, which does not depend on the number of repetitions."""
    assert reproduce.main(["carriers", "--reduced", "--runs", "2", "--output", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    [shown] = re.findall(r"```\n(half-years: .*?)\.\.\.\n```", PAGE, flags=re.DOTALL)
    assert shown in said
    assert "holds: The airlines that fly differently are found, and no other. Different: FL, VX; found: FL, VX." in said
    with open(tmp_path / "carriers.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["carrier"]]
    assert {row["carrier"] for row in rows if row["found"] == "1"} == DIFFERENT
    assert len(rows) == 10
    assert (tmp_path / "carriers.png").stat().st_size > 0


def test_asked_are_flights_of_the_year() -> None:
    airlines = carriers.read_airlines()
    asked = carriers.ask(airlines, generator("carriers", "ask"))
    assert (asked["UA"] == airlines["UA"]).all()
    assert (asked["FL"] == airlines["FL"]).all()
    assert {name: int(flights.sum()) for name, flights in asked.items() if name not in ("UA", "FL")} == dict.fromkeys(
        airlines.keys() - {"UA", "FL"}, carriers.ASKED
    )
    assert all((asked[name] <= airlines[name]).all() for name in airlines)


@pytest.mark.parametrize("larger", [1, 3])
def test_a_repetition_finds_what_q_values_find(larger: int) -> None:
    """Also where many differ: shares of every second airline are moved."""
    airlines = carriers.read_airlines()
    collection = Collection.from_json(carriers.question(airlines))
    asked = carriers.ask(airlines, generator("carriers", "q", larger))
    if larger > 1:
        asked |= {name: asked[name] * [larger, 1] for name in list(asked)[1::2]}
    counts = {
        name: draw_counts(collection, carriers.HALVES, flights, generator("carriers", name, larger))
        for name, flights in asked.items()
    }
    sides = {name: collection.estimate(of, "empirical") for name, of in counts.items()}
    p_values = [compare(sides[name], sides["UA"]).p_values for name in list(asked)[1:]]
    lowest = q_values(np.concatenate(p_values)).reshape(len(p_values), -1).min(axis=1)
    expected = {name for name, q in zip(list(asked)[1:], lowest) if q <= 0.05}
    assert carriers.found_in(sides) == expected
    assert len(expected) >= (5 if larger > 1 else 1)


def test_alike_airlines_have_the_share_of_the_reference() -> None:
    airlines = carriers.read_airlines()
    alike = carriers.alike(airlines)
    assert carriers.different(alike) == DIFFERENT
    assert all(abs(carriers.true_difference(alike, name)) < 1e-12 for name in alike if name not in DIFFERENT)


def row(name: str, different: int, found: int) -> dict[str, Any]:
    return {"carrier": name, "different": different, "found": found}


@pytest.mark.parametrize(
    ("found", "holds"), [((1, 1, 0), True), ((1, 0, 0), False), ((1, 1, 1), False), ((0, 0, 0), False)]
)
def test_the_verdict_sees_what_is_missing_or_too_much(found: tuple[int, ...], holds: bool) -> None:
    rows = [row(name, int(name != "AA"), here) for name, here in zip(("FL", "VX", "AA"), found)]
    rates = {"runs": 10, "exactly": 0.8, "missed": 0.1, "others": 0.1}
    assert carriers.exactly([*rows, {"population": "flights"} | rates]).holds is holds


@pytest.mark.parametrize(("share", "holds"), [(0.04, True), (0.2, False)])
def test_the_verdict_on_false_discoveries(share: float, holds: bool) -> None:
    rows = [{"population": name, "runs": 500, "false_share": share} for name in ("flights", "others exactly alike")]
    assert carriers.false_shares(rows).holds is holds


def test_a_command_that_fails_ends_the_experiment(tmp_path: Path) -> None:
    """An airline that the collection refuses: the name of the values that are not listed."""
    with pytest.raises(RuntimeError, match="the commands must end with 0, got 2"):
        carriers.run_commands(tmp_path, {"UA": np.array([3, 4]), "other": np.array([1, 1])}, 1)
