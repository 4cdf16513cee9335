"""Refusals of a mechanism's JSON form name what the user wrote, and no class of this package."""

from __future__ import annotations

import re
from typing import Any

import pytest

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import NestedLevels

TINY: list[tuple[dict[str, Any], str]] = [
    *(({"id": name, "epsilon": epsilon}, "mechanism.epsilon") for name in ("sw", "usw") for epsilon in (1e-15, 1e-20)),
    ({"id": "krr", "epsilon": 1e-20}, "mechanism.epsilon"),
    (
        {"id": "levels", "levels": [{"epsilon": 1e-20, "values": ["a"]}, {"epsilon": 1, "values": ["b"]}]},
        "mechanism.levels",
    ),
]


@pytest.mark.parametrize(("mechanism", "field"), TINY)
def test_an_epsilon_without_a_signal_is_refused_by_the_name_that_was_written(
    mechanism: dict[str, Any], field: str
) -> None:
    """However small it is, and never by a division by 0."""
    alphabet = {"id": "closed", "values": ["a", "b", "c", "d", "e"], "sensitive": ["a", "b"]}
    with pytest.raises(SpecError, match=rf"^{re.escape(field)} must .*a signal in 64-bit weights, got 1e-") as caught:
        Collection.from_json({"id": "q", "version": 1, "alphabet": alphabet, "mechanism": mechanism})
    assert not re.search(r"[a-z][A-Z]", str(caught.value))


def test_levels_whose_chain_has_no_signal_name_the_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where each level by itself has one."""
    monkeypatch.setattr(NestedLevels, "has_signal", False)
    levels = [{"epsilon": 0.5, "values": ["a"]}, {"epsilon": 1, "values": ["b"]}]
    spec = {"id": "closed", "values": ["a", "b", "c"], "sensitive": ["a", "b"]}
    with pytest.raises(SpecError, match=r"^mechanism\.levels must have epsilons with a signal"):
        Collection.from_json(
            {"id": "q", "version": 1, "alphabet": spec, "mechanism": {"id": "levels", "levels": levels}}
        )


@pytest.mark.parametrize(
    ("mechanism", "alphabet", "sentence"),
    [
        (
            {"id": "tsp", "epsilon": 1, "missing_rates": [0.1]},
            {"id": "closed", "values": ["a", "b"]},
            "mechanism.num_symbols (of the alphabet) must be 3 to 1024 (at least two answers and the missing one), "
            "got 2",
        ),
        (
            {"id": "sw", "epsilon": 1},
            {"id": "hashed", "num_buckets": 4096},
            "mechanism.num_symbols (of the alphabet) must be at most 1024, two or more of them with a place in the "
            "order, got 4096, 4096 of them with a place in the order",
        ),
    ],
)
def test_numbers_of_the_alphabet_are_named_as_such(
    mechanism: dict[str, Any], alphabet: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SpecError) as caught:
        Collection.from_json({"id": "q", "version": 1, "alphabet": alphabet, "mechanism": mechanism, "num_cohorts": 1})
    assert str(caught.value) == sentence
