"""Checks of configuration: what error messages quote, and how much of it; names that were meant."""

from __future__ import annotations

import pytest

from uldp_transforms.ldp.checks import (
    _few,
    describe,
    nearest,
    parse_json,
    require_int,
    require_keys,
    require_texts,
    require_visible_differences,
)
from uldp_transforms.ldp.errors import SpecError


def test_long_values_are_cut_to_sixty_characters() -> None:
    assert describe("x" * 58) == repr("x" * 58) and len(describe("x" * 58)) == 60
    assert describe("x" * 59) == "'" + "x" * 56 + "..."
    assert len(describe("x" * 59)) == 60


@pytest.mark.parametrize(("number", "text"), [(0, ""), (1, "0"), (5, "0, 1, 2, 3, 4"), (6, "0, 1, 2, 3, 4, ...")])
def test_five_names_are_quoted(number: int, text: str) -> None:
    assert _few(map(str, range(number))) == text


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


@pytest.mark.parametrize("value", [True, 1.0, "1", 0, 4])
def test_integers_are_in_their_range(value: object) -> None:
    require_int("X", 1, 1, 3)
    require_int("X", 3, 1, 3)
    with pytest.raises(SpecError, match=r"^X must be an integer in \[1, 3\], got "):
        require_int("X", value, 1, 3)


def test_texts_differ_and_have_a_form_in_utf_8() -> None:
    require_texts("X", ["a", "b"], at_least=2)
    for values, sentence in (
        ("ab", "X must be a list of texts, got 'ab'"),
        (["a", 1], "X must be a list of texts, got ['a', 1]"),
        (["a"], "X must have at least 2 entries, got 1"),
        (["a", "\ud800"], r"X must be Unicode text, got '\ud800'"),
        (["a", "b", "a", "b"], "X must not repeat an entry (in Unicode NFC), got 'a' twice"),
    ):
        with pytest.raises(SpecError) as caught:
            require_texts("X", values, at_least=2)
        assert str(caught.value) == sentence


def test_texts_differ_in_more_than_what_nobody_sees() -> None:
    require_visible_differences("X", ["a b", "ab", "", " ", "\u200b", "\u00e9 b", "\u00e9b"])
    for one, other in (("a b", "a  b"), ("a", " a"), ("a", "a\u200b"), ("\u00e9", "\u200b\u00e9"), ("a b", "a\u00a0b")):
        with pytest.raises(SpecError, match="must differ in more than white space and invisible characters"):
            require_visible_differences("X", [one, other])


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
