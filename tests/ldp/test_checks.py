"""Checks of configuration: names that were meant, and JSON."""

from __future__ import annotations

import pytest

from uldp_transforms.ldp.checks import nearest, parse_json, require_keys
from uldp_transforms.ldp.errors import SpecError


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("num_cohort", ["id", "num_cohorts"], "num_cohorts"),
        ("cohort", ["id", "num_cohorts"], "num_cohorts"),
        ("hash", ["id", "hashed"], "hashed"),
        ("has", ["id", "hashed"], None),
        ("epsilom", ["epsilon"], "epsilon"),
        ("abcdefxx", ["abcdefgh"], "abcdefgh"),  # alike to three quarters
        ("abcdexxx", ["abcdefgh"], None),
        (7, ["seven"], None),
        ("something", [], None),
    ],
)
def test_a_name_of_four_letters_or_more_may_mean_another(name: object, known: list[str], meant: str | None) -> None:
    assert nearest(name, known) == meant


def test_needed_keys_come_first() -> None:
    with pytest.raises(SpecError) as caught:
        require_keys("X", {"epsilom": 1, "b": 2}, ["epsilon"], ["epsilon", "a"])
    assert str(caught.value) == "X needs the key 'epsilon', got 'epsilom', 'b'; did you mean 'epsilon' by 'epsilom'?"
    with pytest.raises(SpecError) as caught:
        require_keys("X", {"mechanism": 1, "other": 2}, ["epsilon"], ["epsilon", "mechanism"])
    assert str(caught.value) == "X needs the key 'epsilon', got 'mechanism', 'other'"
    with pytest.raises(SpecError) as caught:
        require_keys("X", {"epsilon": 1, "epsilom": 2}, ["epsilon"], ["epsilon", "a"])
    assert str(caught.value) == "X takes the keys epsilon, a, got 'epsilom'; did you mean 'epsilon'?"


def test_json_is_read_strictly() -> None:
    assert parse_json('{"a": [1, {"b": 2}], "c": {}}', "F") == {"a": [1, {"b": 2}], "c": {}}
    for text, sentence in (
        ('{"a": 1, "b": 2, "b": 3, "c": 1, "a": 4}', "F must not repeat a key, got a, b more than once"),
        ('{"a": {"b": 1, "b": 1}}', "F must not repeat a key, got b more than once"),
        ("[NaN]", "F must hold finite numbers, got NaN"),
        ("[\n1 2]", "F must be JSON, got an error in line 2: Expecting ',' delimiter"),
        ("9" * 5000, "F must be JSON with numbers and nesting of moderate size, got too many digits or levels"),
    ):
        with pytest.raises(SpecError) as caught:
            parse_json(text, "F")
        assert str(caught.value) == sentence
