"""A collection: its JSON form, its fingerprint, and the way from values to an estimate."""

from __future__ import annotations

import copy
import dataclasses
import functools
import hashlib
import json
import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.cases import (
    ALL_COLLECTIONS,
    ALPHABET_CASES,
    DECOMPOSED,
    ESTIMATOR_CASES,
    MECHANISM_CASES,
    VALUES,
    all_collections,
    answers,
    golden,
)
from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator
from uldp_transforms import ldp
from uldp_transforms.ldp import CohortCounts, Collection, Estimate, ReportBatch, SpecError
from uldp_transforms.ldp import collection as collection_module
from uldp_transforms.ldp.alphabets import ALPHABETS
from uldp_transforms.ldp.client_window import HOUR
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.sampling import SeededSource, SystemSource

SECRET = "TOP-SECRET-TOKEN"


@pytest.mark.parametrize(
    ("registry", "cases"),
    [(MECHANISMS, MECHANISM_CASES), (ALPHABETS, ALPHABET_CASES), (ESTIMATORS, ESTIMATOR_CASES)],
    ids=lambda item: getattr(item, "kind", ""),
)
def test_every_registered_class_has_cases_of_its_own(registry, cases):
    assert set(registry) == set(cases), "each registered id needs instances in tests/support/cases.py"
    for name, instances in cases.items():
        assert {type(item[1] if isinstance(item, tuple) else item) for item in instances} == {registry[name]}
        assert registry[name].id == name


def test_public_names_exist():
    assert sorted(ldp.__all__) == ldp.__all__
    assert all(hasattr(ldp, name) for name in ldp.__all__)


# ---------------------------------------------------------------------- JSON

SPEC = {
    "id": "animals",
    "version": 3,
    "alphabet": {"id": "closed", "values": ["ant", "bee", "cat"], "sensitive": ["bee"]},
    "mechanism": {"id": "urap", "epsilon": 1.0, "theta": 0.5},
    "num_cohorts": 2,
}


def changed(path: str, value: Any, spec: dict = SPEC) -> dict:
    """The specification with another value at a dotted path."""
    result = copy.deepcopy(spec)
    *parents, last = path.split(".")
    inner = result
    for key in parents:
        inner = inner[key]
    inner[last] = value
    return result


@all_collections
def test_json_form_makes_an_equal_collection(name, tmp_path):
    collection = ALL_COLLECTIONS[name]
    path = tmp_path / "collection.json"
    path.write_text(json.dumps(collection.to_json()), encoding="utf-8")
    for source in (path, str(path), collection.to_json()):
        again = Collection.from_json(source)
        assert again == collection
        assert again.fingerprint == collection.fingerprint


def test_reading_changes_nothing():
    spec = copy.deepcopy(SPEC)
    Collection.from_json(spec)
    assert spec == SPEC


def test_one_cohort_is_the_default():
    spec = {key: value for key, value in SPEC.items() if key != "num_cohorts"}
    assert Collection.from_json(spec) == Collection.from_json(changed("num_cohorts", 1))


def test_missing_file_is_the_error_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        Collection.from_json(tmp_path / "none.json")


@pytest.mark.parametrize("path", ["other", "fingerprint", "alphabet.other", "mechanism.num_symbols", "mechanism.kappa"])
def test_unknown_fields_are_refused(path):
    with pytest.raises(SpecError, match="takes the keys"):
        Collection.from_json(changed(path, 1))


# ---------------------------------------------------------------------- fingerprint


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return value


@pytest.mark.parametrize(
    "same",
    [
        changed("mechanism.epsilon", 1),
        reversed_keys(SPEC),
        changed("alphabet.values", ("ant", "bee", "cat")),
        json.loads(json.dumps(SPEC)),
        changed("mechanism.inversion", "aware"),
        changed("mechanism.inversion", None),
        changed("noun", {"one": "zoo", "many": "zoos"}),
    ],
    ids=[
        "1 for 1.0",
        "keys in another order",
        "tuple for list",
        "through JSON",
        "default named",
        "default null",
        "noun",
    ],
)
def test_equal_meaning_has_an_equal_fingerprint(same):
    assert Collection.from_json(same).fingerprint == Collection.from_json(SPEC).fingerprint


def test_unicode_spelling_does_not_change_the_fingerprint():
    composed, decomposed = (changed("alphabet.values", ["ant", "bee", text]) for text in ("é", DECOMPOSED))
    assert Collection.from_json(composed).fingerprint == Collection.from_json(decomposed).fingerprint


MEMOS = SPEC | {"mechanism": SPEC["mechanism"] | {"epsilon_inf": 2.0}}
OPEN = changed("alphabet", {"id": "hashed", "num_buckets": 4, "seed": 0, "num_hashes": 1})
TWICE = changed("mechanism", {"id": "rappor", "epsilon": 1.0}, OPEN)
STATES = changed("alphabet", {"id": "closed", "values": ["ant", "bee", "cat"]})
PRIORS = changed("mechanism", {"id": "agrr", "epsilon": 1.0, "priors": [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]}, STATES)
RATES = changed("mechanism", {"id": "tsp", "epsilon": 1.0, "missing_rates": [0.5, 0.25]}, STATES)
FOLDED = changed(
    "alphabet",
    {"id": "permuted", "values": ["ant", "bee", "cat"], "num_buckets": 2, "seed": 0},
    SPEC | {"num_cohorts": 20},
)


@pytest.mark.parametrize(
    ("spec", "path", "value"),
    [
        (SPEC, "id", "animals2"),
        (SPEC, "version", 4),
        (SPEC, "num_cohorts", 3),
        (SPEC, "alphabet", {"id": "closed", "values": ["ant", "bee", "cat"], "sensitive": None}),
        (SPEC, "alphabet.values", ["ant", "bee", "dog"]),
        (SPEC, "alphabet.values", ["ant", "cat", "bee"]),
        (SPEC, "alphabet.values", ["ant", "bee", "cat", "dog"]),
        (SPEC, "alphabet.sensitive", ["ant"]),
        (SPEC, "alphabet.sensitive", ["ant", "bee"]),
        (SPEC, "mechanism", {"id": "rappor", "epsilon": 1.0, "theta": 0.5}),
        (SPEC, "mechanism", {"id": "urap", "epsilon": 1.0}),
        (SPEC, "mechanism", {"id": "urr", "epsilon": 1.0}),
        (SPEC, "mechanism.epsilon", 1.0000000000000002),
        (SPEC, "mechanism.epsilon_inf", 2.0),
        (MEMOS, "mechanism.epsilon_inf", 2.0000000000000004),
        (MEMOS, "mechanism.epsilon", 1.0000000000000002),
        (SPEC, "mechanism.theta", 0.5000000000000001),
        (SPEC, "mechanism.theta", "optimal"),
        (SPEC, "mechanism.inversion", "marginal"),
        (TWICE, "alphabet.num_hashes", 2),
        (PRIORS, "mechanism.id", "aoue"),
        (PRIORS, "mechanism.priors", [[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]]),
        (PRIORS, "mechanism.priors", [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.25, 0.5, 0.25]]),
        (RATES, "mechanism.missing_rates", [0.5, 0.125]),
        (RATES, "mechanism", {"id": "up", "epsilon": 1.0}),
        (STATES, "mechanism", {"id": "krr", "epsilon": 1.0}),
        (OPEN, "alphabet.num_buckets", 5),
        (OPEN, "alphabet.seed", 1),
        (FOLDED, "alphabet.values", ["ant", "bee", "dog"]),
        (FOLDED, "alphabet.num_buckets", 3),
        (FOLDED, "alphabet.seed", 1),
        (FOLDED, "alphabet.sensitive", ["ant", "bee"]),
        (FOLDED, "alphabet", {"id": "closed", "values": ["ant", "bee", "cat"]}),
    ],
)
def test_any_single_change_changes_the_fingerprint(spec, path, value):
    other = changed(path, value, spec)
    assert Collection.from_json(other).fingerprint != Collection.from_json(spec).fingerprint


def test_the_wire_version_is_part_of_the_fingerprint(monkeypatch):
    before = Collection.from_json(SPEC).fingerprint
    monkeypatch.setattr("uldp_transforms.ldp.collection.WIRE_VERSION", 2)
    assert Collection.from_json(SPEC).fingerprint != before


def test_the_fingerprint_is_the_digest_of_canonical_json():
    """Written out once by hand: a client in another language must come to the same bytes."""
    mechanism = Collection.from_json(SPEC).mechanism
    text = (
        '{"alphabet":{"id":"closed","sensitive":["bee"],"values":["ant","bee","cat"]},"id":"animals","mechanism":'
        f'{{"epsilon":"1.0","id":"urap","keep_weight":{mechanism.keep_weight},'
        f'"noise_rate":"{mechanism.noise_rate.numerator}/{mechanism.noise_rate.denominator}","theta":"0.5"}},'
        '"num_cohorts":2,"version":3,"wire_version":1}'
    )
    assert Collection.from_json(SPEC).fingerprint == hashlib.sha256(text.encode()).digest()


def propose_fingerprints() -> list[dict]:
    return [{"collection": name, "fingerprint": item.fingerprint.hex()} for name, item in ALL_COLLECTIONS.items()]


def test_golden_fingerprints():
    assert propose_fingerprints() == golden("fingerprints.json", propose_fingerprints)


def test_fingerprints_of_all_cases_differ():
    assert len({collection.fingerprint for collection in ALL_COLLECTIONS.values()}) == len(ALL_COLLECTIONS)


@all_collections
def test_pickling_keeps_meaning(name):
    collection = ALL_COLLECTIONS[name]
    again = pickle.loads(pickle.dumps(collection))
    assert again == collection
    assert hash(again) == hash(collection)
    assert again.fingerprint == collection.fingerprint


# ---------------------------------------------------------------------- from values to an estimate


@functools.cache
def reports_of(name: str) -> tuple[ReportBatch, CohortCounts]:
    """Of 3,000 people, and their counts."""
    batch = ALL_COLLECTIONS[name].perturb(["ant", "bee", "ant"] * 1000, generator("happy", name))
    return batch, ALL_COLLECTIONS[name].count(batch)


@functools.cache
def estimate_of(name: str, estimator: str) -> Estimate:
    return ALL_COLLECTIONS[name].estimate(reports_of(name)[1], estimator, candidates=VALUES)


@answers
def test_values_become_reports_counts_and_an_estimate(name, estimator):
    collection = ALL_COLLECTIONS[name]
    batch, counts = reports_of(name)
    assert (len(batch), counts.total, counts.shape) == (3000, 3000, (collection.num_cohorts, collection.num_cells))
    assert collection.mechanism.is_valid(batch.payloads).all()
    estimate = estimate_of(name, estimator.id)
    public = [value for value in collection.alphabet.clear_values if value not in VALUES]
    assert (estimate.values, estimate.num_reports, estimate.estimator) == ((*VALUES, *public), 3000, estimator.id)


@answers
def test_estimators_need_to_know_the_model_alone(name, estimator):
    collection = ALL_COLLECTIONS[name]
    fields = {field.name: getattr(collection, field.name) for field in dataclasses.fields(Model)}
    _, counts = reports_of(name)
    of_model = estimator.estimate(Model(**fields), counts, VALUES)
    of_collection = estimate_of(name, estimator.id)
    np.testing.assert_array_equal(of_model.frequencies, of_collection.frequencies)


@all_collections
def test_counts_of_two_parts_add_up(name):
    collection = ALL_COLLECTIONS[name]
    rng = generator("parts", name)
    batch = collection.perturb(rng.choice(VALUES, 300).tolist(), rng)
    first = rng.random(300) < 0.3
    assert collection.count(batch[first]) + collection.count(batch[~first]) == collection.count(batch)


@all_collections
def test_reports_give_the_estimate_of_their_counts(name):
    collection = ALL_COLLECTIONS[name]
    of_reports = collection.estimate_reports(reports_of(name)[0], "projected", candidates=VALUES)
    of_counts = estimate_of(name, "projected")
    np.testing.assert_array_equal(of_reports.frequencies, of_counts.frequencies)


def test_the_example_of_the_package():
    collection = Collection.from_json(SPEC)
    estimate = collection.estimate(collection.count(collection.perturb(["ant", "bee", "ant"])), "projected")
    assert estimate.values == ("ant", "bee", "cat")
    assert estimate.frequencies.sum() == pytest.approx(1)


def test_the_unbiased_estimate_is_the_default():
    collection = Collection.from_json(SPEC)
    counts = collection.count(collection.perturb(["ant"] * 100, generator("default")))
    assert collection.estimate(counts).estimator == "empirical"


class Zeros:
    """A source of words of somebody's own."""

    def words(self, *shape: int) -> np.ndarray:
        return np.zeros(shape, np.uint64)


class OwnSystemSource(SystemSource):
    """Only looks like the operating system's."""

    words = Zeros.words


@pytest.mark.parametrize(
    ("rng", "seeded"),
    [
        (None, False),
        (SystemSource(), False),
        (generator("seeded"), True),
        (SeededSource(generator("seeded")), True),
        (Zeros(), True),
        (OwnSystemSource(), True),
    ],
)
def test_only_reproducible_reports_are_marked(rng, seeded):
    assert Collection.from_json(SPEC).perturb(["ant"] * 5, rng).seeded is seeded


def test_real_reports_come_from_the_system_source(monkeypatch):
    asked = []
    system = SystemSource.words
    monkeypatch.setattr(SystemSource, "words", lambda self, *shape: asked.append(shape) or system(self, *shape))
    Collection.from_json(SPEC).perturb(["ant"] * 5)
    assert asked


def test_a_generator_makes_reproducible_reports():
    collection = Collection.from_json(SPEC)
    first, second = (collection.perturb(["ant"] * 50, generator("same"), event_times=np.arange(50)) for _ in range(2))
    assert first == second
    assert first != collection.perturb(["ant"] * 50, generator("other"), event_times=np.arange(50))


@pytest.mark.parametrize(
    ("fields", "offset", "unit"),
    [
        ({}, 0, HOUR),
        ({"client_window": "15m"}, 0, HOUR // 4),
        ({"client_window": "1d"}, 0, 24 * HOUR),
        ({"client_window": "1d", "client_timezone": "Asia/Kolkata"}, 11 * HOUR // 2, 24 * HOUR),
    ],
)
def test_event_times_are_now_rounded_down(fields, offset, unit):
    before = time.time_ns() // 1_000_000
    times = Collection.from_json(SPEC | fields).perturb(["ant", "bee"]).event_times + offset
    after = time.time_ns() // 1_000_000
    assert not (times % unit).any()
    assert ((before + offset - unit < times) & (times <= after + offset)).all()


@all_collections
def test_nobody_makes_an_empty_batch_and_empty_counts(name):
    collection = ALL_COLLECTIONS[name]
    batch = collection.perturb([])
    assert len(batch) == 0
    assert batch.payloads.shape == (0, collection.mechanism.payload_size)
    assert collection.count(batch) == ldp.CohortCounts.empty(collection.num_cohorts, collection.num_cells)


def test_values_may_be_any_sequence_of_texts():
    collection = Collection.from_json(SPEC)
    for values in (("ant", "bee"), np.array(["ant", "bee"])):
        assert len(collection.perturb(values)) == 2


# ---------------------------------------------------------------------- refusals


def replaced(batch: ReportBatch, **columns: Any) -> ReportBatch:
    names = ("fingerprint", "cohorts", "payloads", "event_times", "report_ids")
    return ReportBatch(**{name: getattr(batch, name) for name in names} | columns)


@pytest.mark.parametrize(
    "columns",
    [
        {"fingerprint": bytes(32)},
        {"payloads": np.zeros((3, 1), np.uint8)},
        {"payloads": np.zeros((3, 3), np.uint8)},
        {"payloads": np.full((3, 2), 255, np.uint8)},
        {"cohorts": np.array([0, 1, 2], np.uint16)},
        {"cohorts": np.array([0, 1, 65_535], np.uint16)},
    ],
    ids=["fingerprint", "short", "long", "impossible", "cohort", "last cohort"],
)
def test_reports_that_no_client_can_send_are_not_counted(columns):
    collection = Collection.from_json(SPEC)
    batch = collection.perturb(["ant"] * 3)
    with pytest.raises(SpecError):
        collection.count(replaced(batch, **columns))


@pytest.mark.parametrize(
    "name",
    [
        *("closed-krr", "closed-sensitive-urap", "closed-tsp", "permuted-rappor", "hashed-krr"),
        *("hashed-listed-urr", "hashed-clear-uss", "hashed-twice-rappor", "tagged-urr"),
    ],
)
@pytest.mark.parametrize(
    "act",
    [
        lambda collection: collection.perturb(["ant", SECRET]),
        lambda collection: collection.perturb(["ant", SECRET], event_times=[1]),
        lambda collection: collection.perturb(["ant", SECRET + "\ud800"]),
        lambda collection: collection.perturb([SECRET.encode()]),
        lambda collection: collection.perturb([[SECRET]]),
    ],
    ids=["stranger", "times", "surrogate", "bytes", "list"],
)
def test_errors_never_repeat_the_value_of_a_person(name: str, act: Callable[[Collection], Any]):
    """Neither in the sentence nor in what a logger prints of the exception and its causes."""
    try:
        act(ALL_COLLECTIONS[name])
    except (ValueError, TypeError) as error:
        chain = [error]
        while chain[-1] is not None:
            chain.append(chain[-1].__cause__ or (None if chain[-1].__suppress_context__ else chain[-1].__context__))
        assert not [shown for shown in map(repr, chain) if SECRET in shown]


def test_reports_name_their_collection_by_eight_bytes():
    assert (collection_module.PREFIX_BYTES, collection_module.WIRE_VERSION) == (8, 1)


def wide(num_values: int, mechanism: str = "krr", num_cohorts: int = 1) -> Collection:
    alphabet = {"id": "closed", "values": [f"v{i}" for i in range(num_values)]}
    return made(alphabet, {"id": mechanism, "epsilon": 1.0}, num_cohorts=num_cohorts, id="wide")


@pytest.mark.parametrize("periods", [1, 2, 3])
def test_periods_of_one_cohort_are_counted_apart(periods):
    collection = wide(3)
    batch = collection.perturb(["v0", "v1", "v2"] * periods, generator("periods", periods))
    rows = np.repeat(np.arange(periods), 3)
    for count in (collection.count_groups, collection.count_few):
        found = count(batch.payloads, rows, periods)
        assert found == [collection.count(batch[rows == period]) for period in range(periods)]
