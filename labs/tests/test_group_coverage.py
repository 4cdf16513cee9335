"""Coverage of differences of groups: one cell exactly, the sums against simulation, and the reduced experiment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labs import reproduce
from labs.experiments import group_coverage as of
from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms.ldp import CohortCounts
from uldp_transforms_compare.comparisons.compare import difference_at


def test_intervals_hold_in_94_to_97_per_cent_in_one_cell() -> None:
    """Exact sums, and the values that the page excepts."""
    rows = list(of.of_cell(200, 2.0, {"krr": None, "urr": 5}))
    assert {row["population"] for row in rows} == set(of.POPULATIONS)
    assert {row["clear"] for row in rows} == {0, 1}
    enough = [row["expected"] >= of.ENOUGH for row in rows]
    assert 0 < sum(enough) < len(rows)
    for verdict in (of.differences_hold(rows), of.few_reports_hold_more_often(rows), of.lifts_hold(rows)):
        assert verdict.holds, verdict.evidence


def test_a_normal_interval_does_not_hold_there() -> None:
    """The rows of an interval that is too short are judged so."""
    rows = [row | {"difference": row["difference"] - 0.02} for row in of.of_cell(200, 2.0, {"krr": None})]
    assert not of.differences_hold(rows).holds


def test_exact_coverage_is_what_simulation_finds() -> None:
    model, (p, q), people, runs = of.collection("krr", 2.0), of.POPULATIONS["steep"], 200, 300
    rng = generator("exact coverage")
    law = [model.mechanism.response(shares) for shares in (p, q)]
    counts = [rng.multinomial(people, one / one.sum(), runs) for one in law]
    held = np.zeros(2)
    for pair in zip(*counts):
        sides = [CohortCounts(np.array([people]), cells[np.newaxis]) for cells in pair]
        low, high = difference_at(*(model.estimate(each, "empirical") for each in sides), 0.95)
        held += ((low <= p - q) & (p - q <= high))[[0, 9]]
    exact = []
    for place in (0, 9):
        a, b = (of.Counted.of(model.mechanism, place, people, shares) for shares in (p, q))
        exact.append(of.coverage(a, b, p[place] - q[place], p[place] / q[place])[0])
    assert within(held, binomial_limits(np.array(runs), np.array(exact))).all()


@pytest.mark.usefixtures("capsys")
def test_the_reduced_experiment_finds_what_the_page_says(tmp_path: Path) -> None:
    assert reproduce.main(["group-coverage", "--reduced", "--output", str(tmp_path)]) == 0
    assert '"holds": false' not in (tmp_path / "group-coverage.json").read_text("utf-8")
    assert (tmp_path / "group-coverage.png").stat().st_size > 0
