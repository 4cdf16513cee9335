"""Public blocks against the flat list: what the experiment finds, and its picture."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pytest

from labs import reproduce
from labs.experiments import EXPERIMENTS
from labs.experiments.frame import Result
from labs.experiments.public_blocks import (
    BLOCKS,
    POPULATIONS,
    airports,
    collection,
    population,
    sum_of_variances,
    what_blocks_tell,
)
from tests.support.tolerance import generator

[EXPERIMENT] = [experiment for experiment in EXPERIMENTS if experiment.id == "blocks"]


@functools.cache
def reduced() -> Result:
    return EXPERIMENT.run(generator("reproduce", EXPERIMENT.id), reduced=True, runs=None)


def test_blocks_need_fewer_people(tmp_path: Path) -> None:
    """A correct program is refuted with probability at most 16 Pr(|t| > 6), t of 19 degrees: 1.5e-4, of one seed."""
    assert [verdict.holds for verdict in reduced().verdicts] == [True, True, True]
    reproduce.draw(EXPERIMENT, reduced(), tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 0


def test_what_blocks_tell_of_four_values() -> None:
    """Two bits, of which blocks of one and three values tell .8113; guesses are 1/4 and (1 + 1) / 4."""
    told = what_blocks_tell(population(["a", "b", "c", "d"], [1.0] * 4, ["x", "y", "y", "y"]))
    assert told == pytest.approx({
        "bits": 2, "told": 0.8112781, "guess": 0.25, "guess_from_block": 0.5, "noise": 2.25 / (0.75 * 4 / 3),
    })  # fmt: skip


@pytest.mark.parametrize("name", POPULATIONS)
def test_every_value_is_in_one_block(name: str) -> None:
    people = POPULATIONS[name]()
    assert len(set(people.values)) == len(people.values) == int(name.split(maxsplit=1)[0].replace(",", ""))
    assert people.law_of_blocks.sum() == pytest.approx(1)
    assert min(map(len, people.blocks.values())) > 1


def test_variances_are_of_the_values_in_the_order_of_symbols() -> None:
    """With the two largest regions exchanged nothing changes."""
    people = airports()
    turned = people._replace(blocks=dict(reversed(people.blocks.items())))
    sums = [sum_of_variances(collection(each, BLOCKS, 1.0), each) for each in (people, turned)]
    assert np.ptp(sums) < 1e-9 * sums[0]
