"""Dimensions: how they are declared and sent, and that counts of groups add up."""

from __future__ import annotations

import functools
import itertools
import operator

import numpy as np
import pytest

from tests.support.ldp.dimensions import ARM, COUNTRY, GROUPED, ON_THE_WAY, PLAIN, SPEC
from uldp_transforms.ldp import Budget, Client, Collection, FileStorage, SpecError
from uldp_transforms.ldp.alphabets.dimensions import (
    Dimension,
    RollUp,
    encode_groups,
    group_text,
    groups_without,
    num_groups,
    shifts_of,
)
from uldp_transforms.ldp.client.client_form import client_form

HASHED = Collection.from_json(
    SPEC | {"alphabet": {"id": "hashed", "num_buckets": 4}, "mechanism": {"id": "rappor", "epsilon": 2.0}}
    | {"num_cohorts": 5}
)  # fmt: skip
TEXTS = {"country": ["DE", "FR", "PL", ""], "arm": ["new", "control", "new", "NEW"]}


def test_a_collection_without_dimensions_is_what_it_was():
    assert "dimensions" not in PLAIN.canonical
    assert Collection.from_json(SPEC | {"dimensions": None}).fingerprint == PLAIN.fingerprint
    assert PLAIN.fingerprint.hex() == "6de4be79a092b8f3daf25f1c7d9641a15dc1c0ca2c95a3c68a89e7d8e584016c"
    assert "dimensions" not in client_form(PLAIN)


@pytest.mark.parametrize("collection", [GROUPED, HASHED], ids=lambda collection: collection.alphabet.id)
def test_dimensions_are_part_of_the_fingerprint(collection):
    again = Collection.from_json(collection.to_json())
    assert again == collection
    assert again.fingerprint == collection.fingerprint
    spec = collection.to_json()
    others = [[COUNTRY], [ARM, COUNTRY], [COUNTRY, ARM | {"values": ["new", "control"]}]]
    assert len({Collection.from_json(spec | {"dimensions": d}).fingerprint for d in others} | {again.fingerprint}) == 4
    assert client_form(collection)["dimensions"] == [COUNTRY, ARM]


def test_groups_are_numbered_in_mixed_radix():
    """Country is more significant, and other is the last value; unlisted texts, of whatever case, are other."""
    batch = GROUPED.perturb(list("abca"), dimensions=TEXTS)
    assert batch.cohorts.tolist() == [0 * 3 + 1, 1 * 3 + 0, 2 * 3 + 1, 2 * 3 + 2]
    assert GROUPED.num_groups == num_groups(GROUPED.dimensions) == GROUPED.num_strata == 9
    by_hand = list(itertools.product(("DE", "FR", "other"), ("control", "new", "other")))
    whole = RollUp(GROUPED.dimensions, ("country", "arm"))
    assert [whole.values(number) for number in range(9)] == by_hand
    turned = RollUp(GROUPED.dimensions, ("arm", "country"))
    assert [turned.values(number)[::-1] for number in turned.table()] == by_hand
    arms = RollUp(GROUPED.dimensions, ("arm",))
    assert [arms.values(number) for number in arms.table()] == [(arm,) for _, arm in by_hand]
    assert group_text(list(whole.pairs(1))) == "country=DE,arm=new"


def test_reports_are_those_of_a_collection_without_dimensions():
    """Dimensions take no randomness: cohort and payload are those without, so that nothing about privacy changes."""
    plain = Collection.from_json({key: entry for key, entry in HASHED.to_json().items() if key != "dimensions"})
    values = ["x", "y", "x", "z"]
    without = plain.perturb(values, np.random.default_rng(1))
    grouped = HASHED.perturb(values, np.random.default_rng(1), dimensions=TEXTS)
    assert (grouped.payloads == without.payloads).all()
    assert (HASHED.without_groups(grouped.cohorts) == without.cohorts).all()
    assert (grouped.cohorts // 5 == HASHED.groups_of(grouped.cohorts)).all()
    assert HASHED.count(grouped) == plain.count(without)
    candidates = ["x", "y", "z"]
    found, expected = (
        one.estimate_reports(batch, candidates=candidates).frequencies
        for one, batch in ((HASHED, grouped), (plain, without))
    )
    assert (found == expected).all()


@pytest.mark.parametrize("names", [("country",), ("arm",), ("country", "arm"), ("arm", "country")])
@pytest.mark.parametrize("collection", [GROUPED, HASHED], ids=lambda collection: collection.alphabet.id)
def test_counts_of_groups_add_up_and_are_those_of_the_reports_in_them(collection, names):
    rng = np.random.default_rng(2)
    columns = {name: rng.choice(["DE", "FR", "new", "control", "x"], 500).tolist() for name in ("country", "arm")}
    batch = collection.perturb(rng.choice(list("abc"), 500), rng, dimensions=columns)
    found = collection.count_by(batch, names)
    assert functools.reduce(operator.add, found.values()) == collection.count(batch)
    known = {"country": ("DE", "FR"), "arm": ("control", "new")}
    groups = [
        tuple(text if text in known[name] else "other" for name, text in zip(names, texts))
        for texts in zip(*(columns[name] for name in names))
    ]
    assert found.keys() == set(groups)
    for group, counts in found.items():
        assert counts == collection.count(batch[np.array([own == group for own in groups])])


@pytest.mark.parametrize("epsilon_inf", [None, 4.0])
def test_a_client_states_its_group(tmp_path, epsilon_inf):
    mechanism = {"id": "rappor", "epsilon": 2.0} | ({} if epsilon_inf is None else {"epsilon_inf": epsilon_inf})
    collection = Collection.from_json(HASHED.to_json() | {"mechanism": mechanism})
    client = Client(collection, FileStorage(tmp_path / "state.json"), Budget(epsilon=1e6))
    first, again = (client.report("x", 0, {"country": c, "arm": "new"}) for c in ("FR", "DE"))
    second = client.report("x", 10 * 86_400_000, {"country": "DE", "arm": "?"})
    assert first == again, "the group is drawn with the report"
    assert [int(collection.groups_of(b.cohorts)[0]) for b in (first, second)] == [1 * 3 + 1, 0 * 3 + 2]
    later = [client.report("x", day * 86_400_000, {"country": "DE", "arm": "?"}).cohorts for day in range(11, 31)]
    assert len({int(cohorts[0]) % 5 for cohorts in [first.cohorts, second.cohorts, *later]}) == 1 or epsilon_inf is None
    with pytest.raises(SpecError, match="dimensions must give a value for country, arm, got none"):
        client.report("x", 0)


def test_what_is_set_on_the_way_is_other_in_the_report():
    batch = ON_THE_WAY.perturb(["a"] * 4, dimensions={"arm": TEXTS["arm"]})
    known = GROUPED.perturb(["a"] * 4, dimensions={"arm": TEXTS["arm"], "country": ["other"] * 4})
    assert batch.cohorts.tolist() == known.cohorts.tolist()
    client = Client(ON_THE_WAY, _Memory(), Budget(epsilon=100.0))
    assert ON_THE_WAY.groups_of(client.report("a", 0, {"arm": "new"}).cohorts).tolist() == [2 * 3 + 1]


class _Memory:
    """A storage for one client."""

    text = None

    def update(self, change):
        self.text, answer = change(self.text)
        return answer


def test_who_sets_a_dimension_is_in_the_fingerprint_and_clients_need_not_say_so():
    named = Collection.from_json(SPEC | {"dimensions": [COUNTRY | {"set_by": "client"}, ARM]})
    assert (named.fingerprint, named.to_json()) == (GROUPED.fingerprint, GROUPED.to_json())
    of_reader = Collection.from_json(SPEC | {"dimensions": [COUNTRY | {"set_by": "attribute"}, ARM]})
    assert len({GROUPED.fingerprint, ON_THE_WAY.fingerprint, of_reader.fingerprint}) == 3
    assert Collection.from_json(ON_THE_WAY.to_json()) == ON_THE_WAY
    assert client_form(ON_THE_WAY)["dimensions"] == [COUNTRY | {"set_by": "gateway"}, ARM]


THREE = tuple(Dimension(name, tuple(values), "gateway") for name, values in (("a", "xy"), ("b", "p"), ("c", "uvw")))


def stated(*names):
    """The dimensions, of which some are set by the client."""
    return tuple(Dimension(one.name, one.values, "client" if one.name in names else "gateway") for one in THREE)


@pytest.mark.parametrize("names", [(), ("a",), ("b",), ("c",), ("a", "c"), ("a", "b", "c")])
def test_groups_without_some_dimensions_are_those_in_which_these_are_other(names):
    """Numbered in mixed radix; the first dimension is the most significant."""
    places = itertools.product(range(3), range(2), range(4))
    others = {"a": 2, "b": 1, "c": 3}
    expected = [all(place[at] == others[name] for at, name in enumerate("abc") if name in names) for place in places]
    assert groups_without(THREE, names).tolist() == expected


@pytest.mark.parametrize("names", [("a",), ("b", "c"), ("a", "b", "c")])
def test_what_is_set_on_the_way_is_a_shift_of_the_group(names):
    texts = {"a": ["x", "y", "z"], "b": ["p", "q", "p"], "c": ["w", "other", "u"]}
    whole = encode_groups(stated("a", "b", "c"), texts, 3)
    kept = {name: column for name, column in texts.items() if name not in names}
    before = encode_groups(stated(*kept), kept, 3)
    assert groups_without(THREE, names)[before].all()
    set_later = {name: texts[name] for name in names}
    assert (before + shifts_of(THREE, set_later, 3)).tolist() == whole.tolist()
