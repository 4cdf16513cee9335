"""The list of planted faults does not rot: each can be planted, in code that Python reads, before tests that exist."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.campaigns.mutants import LIBRARY, TARGETS
from tests.campaigns.planted import PLANTED, Plant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("plant", PLANTED, ids=[plant.name for plant in PLANTED])
def test_a_fault_can_be_planted(plant: Plant) -> None:
    source = (ROOT / plant.path).read_text(encoding="utf-8")
    assert ast.dump(ast.parse(plant.apply(source))) != ast.dump(ast.parse(source))
    assert all((ROOT / test.partition("::")[0]).is_file() for test in plant.tests)


def test_a_fault_that_lost_its_place_is_told() -> None:
    for source, number in (("", 0), (PLANTED[0].old * 2, 2)):
        with pytest.raises(ValueError, match=rf"{PLANTED[0].path} must have the old text once, got {number}"):
            PLANTED[0].apply(source)


def test_faults_have_names_of_their_own() -> None:
    assert len({plant.name for plant in PLANTED}) == len(PLANTED)


def test_faults_are_drawn_from_files_that_exist() -> None:
    assert all((ROOT / LIBRARY / target).exists() for target in TARGETS)
