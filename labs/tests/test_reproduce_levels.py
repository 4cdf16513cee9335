"""Levels against one epsilon: what the experiment finds, and its picture."""

from __future__ import annotations

import functools
from pathlib import Path

from labs import reproduce
from labs.experiments import EXPERIMENTS
from labs.experiments.frame import Result
from labs.experiments.value_levels import LEVELS, ONE, SETTINGS, mechanisms, sum_of_variances
from tests.support.tolerance import generator

[EXPERIMENT] = [experiment for experiment in EXPERIMENTS if experiment.id == "levels"]


@functools.cache
def reduced() -> Result:
    return EXPERIMENT.run(generator("reproduce", EXPERIMENT.id), reduced=True, runs=None)


def test_levels_need_fewer_people(tmp_path: Path) -> None:
    """A correct program is refuted with probability at most 4 Pr(|t| > 6), t of 29 degrees: 7e-6, of one given seed."""
    assert [verdict.holds for verdict in reduced().verdicts] == [True, True]
    reproduce.draw(EXPERIMENT, reduced(), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 0


def test_the_sums_are_those_of_the_table() -> None:
    sums = [[round(sum_of_variances(mechanisms(setting)[way])) for way in (ONE, LEVELS)] for setting in SETTINGS]
    assert sums == [[756, 175], [178, 36], [362, 48], [79, 36], [1539, 1456]]
