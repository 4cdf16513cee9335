"""The room for lies in pooled shares: the table of the page, and its columns by other ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from labs.experiments import liars_of_versions
from labs.experiments.liars_of_versions import LIARS, QUESTIONS, collection, lengths

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    liars_of_versions.main()
    assert capsys.readouterr().out in (ROOT / "docs" / "estimation.md").read_text("utf-8")


def test_equal_versions_are_as_one_and_others_give_liars_a_choice() -> None:
    weight, each, together = lengths(QUESTIONS[0])
    mechanism = collection(QUESTIONS[0][0]).mechanism
    room = LIARS * float(mechanism.largest_effects[0] - mechanism.smallest_effects[0]) / (1 - LIARS)
    assert (weight, each, together) == pytest.approx((0.5, room, room))
    assert all(lengths(versions)[2] > lengths(versions)[1] for versions in QUESTIONS[1:])
