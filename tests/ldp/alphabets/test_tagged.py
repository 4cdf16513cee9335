"""Tags: values that one person calls sensitive, what the collector sees of them, and how tags are shared out.

Letters: K symbols, the sensitive values first, then the tags, then the other values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import DECOMPOSED, SENSITIVE, UTILITY_OPTIMIZED, VALUES, collection, e_below, exact_channel
from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.alphabets import PersonalTags, Tagged

SECRET = "TOP-SECRET-TOKEN"
TAGS = ("home", "work")
BACKGROUND = {"home": {"cat": 0.75, "dog": 0.25}}
PLAIN = Tagged(values=VALUES, tags=TAGS, sensitive=SENSITIVE[:2])
KNOWN = Tagged(values=VALUES, tags=TAGS, sensitive=SENSITIVE[:2], background=BACKGROUND)
NOBODYS = Tagged(values=VALUES, tags=TAGS, background={"work": {"ant": 1.0}})
ALPHABETS_TO_TEST = (PLAIN, KNOWN, NOBODYS, Tagged(values=("a", "b"), tags=("t",), background={"t": {"b": 1}}))

alphabets = pytest.mark.parametrize("alphabet", ALPHABETS_TO_TEST, ids=range(len(ALPHABETS_TO_TEST)))


# ---------------------------------------------------------------------- symbols


def test_sensitive_values_come_first_then_tags_then_the_others():
    assert (PLAIN.num_symbols, PLAIN.num_sensitive) == (8, 4)
    assert PLAIN.symbol_table(("fox", "bee"), 1).tolist() == [[0, 1]]
    assert PLAIN.symbol_table(TAGS, 1).tolist() == [[2, 3]]
    assert PLAIN.symbol_table(("ant", "cat", "dog", "émeu"), 3).tolist() == [[4, 5, 6, 7]]
    assert (NOBODYS.num_symbols, NOBODYS.num_sensitive) == (8, 2)
    assert NOBODYS.symbol_table((*TAGS, *VALUES), 1).tolist() == [list(range(8))]


@alphabets
def test_every_value_and_tag_has_a_symbol_of_its_own(alphabet):
    texts = (*alphabet.tags, *alphabet.values)
    assert sorted(alphabet.symbol_table(texts, 1)[0]) == list(range(alphabet.num_symbols))
    assert alphabet.has_own_symbol(texts).all()
    assert alphabet.known_values == alphabet.values
    assert alphabet.num_hashes == 1


def test_texts_are_kept_in_canonical_form():
    alphabet = Tagged(
        values=("a", DECOMPOSED, "x"),
        tags=("t" + DECOMPOSED,),
        sensitive=("x",),
        background={"té": {DECOMPOSED: 0.5, "a": 0.5}},
    )
    assert alphabet.values == ("a", "é", "x")
    assert alphabet.tags == ("té",)
    assert alphabet.background == {"té": {"é": 0.5, "a": 0.5}}


def fingerprint(**fields: Any) -> bytes:
    spec = collection(KNOWN, 1, "urr").to_json()
    return Collection.from_json(spec | {"alphabet": spec["alphabet"] | fields}).fingerprint


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": ["home"]},
        {"tags": ["work", "home"]},
        {"tags": ["home", "office"]},
        {"sensitive": ["fox"]},
        {"sensitive": ["bee", "fox"]},
        {"values": [*VALUES, "yak"]},
    ],
)
def test_what_changes_the_meaning_of_a_report_changes_the_fingerprint(fields):
    assert fingerprint(**fields) != fingerprint()


@pytest.mark.parametrize("background", [None, {"home": {"cat": 1.0}}, {"work": {"cat": 0.5, "dog": 0.5}}])
def test_clients_stay_as_they_are_when_the_background_becomes_better(background):
    assert fingerprint(background=background) == fingerprint()


# ---------------------------------------------------------------------- on the device


def test_hidden_values_become_their_tag():
    personal = PersonalTags(PLAIN, {"home": ["dog", DECOMPOSED + "meu"], "work": ["cat"]})
    assert personal.hide(["dog", "émeu", DECOMPOSED + "meu", "cat", "ant"]) == ["home", "home", "home", "work", "ant"]
    assert personal.hide([]) == []


def test_values_that_are_sensitive_to_everybody_stay_themselves():
    assert PersonalTags(PLAIN, {"home": ["fox", "dog"]}).hide(["fox", "bee", "dog"]) == ["fox", "bee", "home"]


def test_what_is_hidden_can_be_sent():
    item = collection(PLAIN, 1, "urr")
    hidden = PersonalTags(PLAIN, {"home": ["dog"]}).hide(["dog", "ant"] * 50)
    assert item.count(item.perturb(hidden, generator("hidden"))).total == 100


@pytest.mark.parametrize(
    "act",
    [
        lambda: PersonalTags(PLAIN, {"home": [SECRET], "work": [SECRET]}),
        lambda: PersonalTags(PLAIN, {"home": [SECRET + "\ud800"]}),
        lambda: PersonalTags(PLAIN, {"home": [SECRET.encode()]}),
        lambda: PersonalTags(PLAIN, {"home": [[SECRET]]}),
        lambda: PersonalTags(PLAIN, {"home": ["dog"]}).hide([SECRET + "\ud800"]),
        lambda: PersonalTags(PLAIN, {"home": ["dog"]}).hide([SECRET.encode()]),
        lambda: PersonalTags(PLAIN, {"home": ["dog"]}).hide([[SECRET]]),
        lambda: collection(PLAIN, 1, "urr").perturb(PersonalTags(PLAIN, {"home": ["dog"]}).hide([SECRET])),
    ],
    ids=["two tags", "surrogate", "bytes", "list", "hide surrogate", "hide bytes", "hide list", "stranger"],
)
def test_errors_never_repeat_the_value_of_a_person(act):
    with pytest.raises((ValueError, TypeError)) as caught:
        act()
    error: BaseException | None = caught.value
    while error is not None:
        assert SECRET not in repr(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_what_a_person_hides_is_not_shown():
    assert "dog" not in repr(PersonalTags(PLAIN, {"home": ["dog"]}))


def test_background_is_kept_in_canonical_form():
    composed, decomposed = "\N{LATIN SMALL LETTER E WITH ACUTE}", "e\N{COMBINING ACUTE ACCENT}"
    alphabet = Tagged(values=(composed, "b"), tags=(f"t{composed}",), background={f"t{decomposed}": {decomposed: 1}})
    assert alphabet.background == {f"t{composed}": {composed: 1.0}}
    assert Tagged(values=("a", "b"), tags=("t",), background={}) == Tagged(values=("a", "b"), tags=("t",))
    with pytest.raises(SpecError, match="must not repeat an entry"):
        Tagged(values=(composed, "b"), tags=("t",), background={"t": {composed: 0.5, decomposed: 0.5}})


@pytest.mark.parametrize("mechanism", UTILITY_OPTIMIZED)
def test_the_values_of_one_person_are_protected_like_those_of_everybody(mechanism):
    """Enumerated: for a person who hides dog and cat these and the sensitive values are protected against all values,
    and no clear report comes from them."""
    item = collection(PLAIN, 1, mechanism)
    personal = PersonalTags(PLAIN, {"home": ["dog"], "work": ["cat"]})
    symbols = PLAIN.symbol_table(tuple(personal.hide(VALUES)), 1)[0]
    _, rows = exact_channel(item.mechanism)
    secret = [VALUES.index(value) for value in ("fox", "bee", "dog", "cat")]
    for row in rows:
        of_values = [row[symbol] for symbol in symbols]
        if any(of_values[i] for i in secret):
            assert max(of_values) <= e_below(1.0) * min(of_values)
        else:
            assert sum(q > 0 for q in of_values) <= 1
    assert all(sum(row[symbol] for row in rows) == 1 for symbol in symbols)


# ---------------------------------------------------------------------- who is behind a tag


def by_the_formula(alphabet: Tagged, r: np.ndarray) -> np.ndarray:
    """p(x) = r(x) + sum over tags of r(tag) pi_tag(x), value by value."""
    symbol = {text: int(alphabet.symbol_table((text,), 1)[0, 0]) for text in (*alphabet.tags, *alphabet.values)}
    others = [value for value in alphabet.values if value not in alphabet.sensitive]
    seen = {value: max(r[symbol[value]], 0) for value in others}
    total = sum(seen.values())
    p = np.zeros(len(r))
    for value in alphabet.values:
        p[symbol[value]] = r[symbol[value]]
        for tag in alphabet.tags:
            known = (alphabet.background or {}).get(tag)
            if known is not None:
                share = known.get(value, 0.0)
            elif value not in others:
                share = 0.0
            else:
                share = seen[value] / total if total > 0 else 1 / len(others)
            p[symbol[value]] += r[symbol[tag]] * share
    return p


frequencies = st.lists(st.floats(-1, 1), min_size=8, max_size=8).map(np.array)


@pytest.mark.parametrize("alphabet", [PLAIN, KNOWN, NOBODYS], ids=["plain", "known", "nobodys"])
@given(r=frequencies)
def test_redistribution_is_the_formula_and_keeps_the_sum(alphabet, r):
    before = r.copy()
    p = alphabet.redistribute(r)
    np.testing.assert_array_equal(r, before)
    scale = max(1.0, abs(p).max())
    np.testing.assert_allclose(p, by_the_formula(alphabet, r), atol=1e-9 * scale)
    assert p.sum() == pytest.approx(r.sum(), abs=1e-9 * scale)
    assert not p[len(alphabet.sensitive) : alphabet.num_sensitive].any()
    np.testing.assert_array_equal(p[: len(alphabet.sensitive)], r[: len(alphabet.sensitive)])


@pytest.mark.parametrize("alphabet", [PLAIN, KNOWN, NOBODYS], ids=["plain", "known", "nobodys"])
@pytest.mark.parametrize("index", range(5))
def test_the_derivative_is_that_of_central_differences(alphabet, index):
    """Also where frequencies, and the sum over the other values, are negative."""
    r = generator("derivative", index).normal(0.125, 0.2, 8)
    v, step = alphabet.num_sensitive, 1e-6
    r[v] += (0.9 if index else -0.9) - r[v:].sum()  # keeps away from the sum 0, where there is none
    numeric = np.column_stack(
        [(alphabet.redistribute(r + step * e) - alphabet.redistribute(r - step * e)) / (2 * step) for e in np.eye(8)]
    )
    np.testing.assert_allclose(alphabet.redistribution(r), numeric, atol=1e-7)


def test_wrong_knowledge_moves_the_estimate_by_at_most_twice_the_mass_of_the_tags():
    rng = generator("wrong")
    others = ("ant", "cat", "dog", "émeu")
    for _ in range(50):
        r = rng.dirichlet(np.ones(8))
        p, q = (
            Tagged(values=VALUES, tags=TAGS, sensitive=("fox", "bee"), background=known).redistribute(r)
            for known in (
                {tag: dict(zip(others, rng.dirichlet(np.ones(4) / 4))) for tag in TAGS},
                {tag: dict(zip(others, rng.dirichlet(np.ones(4) / 4))) for tag in TAGS[:1]},
            )
        )
        assert abs(p - q).sum() <= 2 * PLAIN.redistributed_mass(r) + 1e-12


def test_a_tag_is_no_value_to_estimate():
    item = collection(PLAIN, 1, "urr")
    counts = item.count(item.perturb(["home", "ant"] * 100, generator("tag")))
    with pytest.raises(SpecError, match="1 candidate"):
        item.estimate(counts, candidates=["ant", "home"])
