"""Intervals of repeated people, crossed with looks while reports arrive, the largest values, and versions."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection, Estimate
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.ldp.repeated_people import with_repeated_people
from uldp_transforms.ldp.versions import questions_of

MECHANISMS = {
    "krr": {"id": "krr", "epsilon": 1.0},
    "memos": {"id": "rappor", "epsilon": 1.0, "epsilon_inf": 3.0},
}


def of(mechanism: dict[str, object], version: int = 1) -> Collection:
    form = {"id": "c", "version": version, "question": "asked", "client_window": "1d", "mechanism": mechanism}
    return Collection.from_json(form | {"alphabet": {"id": "closed", "values": list("abcdef")}})


def estimate_of(collection: Collection) -> Estimate:
    rng = generator("repeated people", collection.mechanism.id)
    batch = collection.perturb(rng.choice(list("abcdef"), 4000).tolist(), rng)
    return collection.estimate(collection.count(batch), "eb")


def ends_of(estimate: Estimate) -> list[np.ndarray]:
    """Both ends of all intervals that rows and comparisons take."""
    intervals = [(estimate.ci_low, estimate.ci_high), estimate.display_intervals(3), estimate.unclipped(0.95)]
    rest = (np.array([estimate.unexplained_low]), np.array([estimate.unexplained_high]))
    return [*itertools.chain(*intervals), *rest]


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("anytime", [False, True])
def test_more_reports_of_a_person_make_every_interval_longer(name: str, *, anytime: bool) -> None:
    collection = of(MECHANISMS[name])
    once, often = (with_repeated_people(collection, estimate_of(collection), times) for times in (1, 7))
    if anytime:
        once, often = once.anytime(100), often.anytime(100)
    for place, (short, long) in enumerate(zip(ends_of(once), ends_of(often))):
        assert (long <= short).all() if place % 2 == 0 else (long >= short).all()
    assert (often.standard_errors > once.standard_errors).all()
    assert (often.unclipped(0.95)[0] < once.unclipped(0.95)[0]).all()


@pytest.mark.parametrize("anytime", [False, True])
def test_versions_have_the_longer_intervals_of_their_people(*, anytime: bool) -> None:
    versions = [of(mechanism, number) for number, mechanism in enumerate(MECHANISMS.values(), 1)]
    (question,) = questions_of(versions)
    rng = generator("versions of repeated people")
    counts = {one.fingerprint: one.count(one.perturb(list("abcdef") * 500, rng)) for one in versions}
    found = []
    for times in (1, 7):
        of_people = {one.fingerprint: times for one in versions}
        estimate = question.estimate(counts, ESTIMATORS["eb"](), None, of_people).estimate
        found.append(estimate.anytime(100) if anytime else estimate)
    for place, (short, long) in enumerate(zip(*map(ends_of, found))):
        assert (long <= short).all() if place % 2 == 0 else (long >= short).all()
    assert (found[1].standard_errors > found[0].standard_errors).all()


# ---------------------------------------------------------------------- against the formula

CLOSED = {"id": "closed", "values": list("abcdef")}
PARTLY = CLOSED | {"sensitive": list("bcf")}
HASHED = {"id": "hashed", "num_buckets": 5, "seed": 3}
LISTED = HASHED | {"non_sensitive": ["a", "d"]}
POPULATIONS = {
    "fresh": (CLOSED, {"id": "krr", "epsilon": 1.0}),
    "fresh and partly sensitive": (PARTLY, {"id": "urap", "epsilon": 1.0}),
    "memos": (CLOSED, {"id": "rappor", "epsilon": 1.0, "epsilon_inf": 3.0}),
    "partly sensitive memos": (PARTLY, {"id": "urr", "epsilon": 1.0, "epsilon_inf": 3.0}),
    "hashed memos": (HASHED, {"id": "krr", "epsilon": 1.0, "epsilon_inf": 3.0}),
    "listed memos": (LISTED, {"id": "uss", "epsilon": 1.0, "epsilon_inf": 3.0}),
    "listed memos in buckets": (LISTED | {"num_clear_buckets": 3}, {"id": "urr", "epsilon": 1.0, "epsilon_inf": 3.0}),
}
SHARES = np.array([3, 16, 0, 64, 32, 1]) / 64
"""Raw frequencies; those of other shares are interpolated between multiples of 1/64."""


def population(name: str) -> Collection:
    alphabet, mechanism = POPULATIONS[name]
    cohorts = 8 if alphabet["id"] == "hashed" else 1
    return made(alphabet, mechanism, num_cohorts=cohorts)


def with_shares(collection: Collection, shares: np.ndarray = SHARES) -> Estimate:
    """An estimate with these raw frequencies; all else is that of 4,000 reports."""
    rng = generator("formula", collection.mechanism.id)
    counts = collection.count(collection.perturb(rng.choice(list("abcdef"), 4000).tolist(), rng))
    estimate = collection.estimate(counts, "empirical", list("abcdef"))
    return dataclasses.replace(estimate, raw_frequencies=shares)


def variance(mechanism: Mechanism, symbol: int, share: float, others: list[int]) -> float:
    """Of one report, where all other people are spread evenly over some symbols."""
    frequencies = np.zeros(mechanism.num_symbols)
    frequencies[others] = (1 - share) / len(others)
    frequencies[symbol] = share
    return float(mechanism.variances(frequencies)[symbol])


def share_that_stays(collection: Collection, value: str, share: float) -> float:
    """L / V, in the worse of the cases that everybody else has a sensitive symbol and that nobody has one."""
    mechanism: Any = collection.mechanism
    sensitive = mechanism.num_sensitive
    listed = value in collection.alphabet.clear_values or (value in "ade" and collection.alphabet.to_json() == PARTLY)
    symbol = mechanism.num_symbols - 1 if listed else 0
    found = [0.0]
    for group in (range(sensitive), range(sensitive, mechanism.num_symbols)):
        if others := [each for each in group if each != symbol]:
            whole = variance(mechanism, symbol, share, others)
            memos = getattr(mechanism, "epsilon_inf", None) is not None
            stays = variance(mechanism.memo, symbol, share, others) if memos else share * (1 - share)
            found.append(stays / whole if whole else 0.0)
    return max(found)


def symbol_shares(collection: Collection) -> np.ndarray:
    """Shares of the symbols: in buckets with other values there are other people too."""
    own = collection.alphabet.has_own_symbol(tuple("abcdef"))
    buckets = [3 if value in collection.alphabet.clear_values else 5 for value in "abcdef"]
    return np.where(own, SHARES, SHARES + (1 - SHARES) / buckets)


@pytest.mark.parametrize("name", POPULATIONS)
@pytest.mark.parametrize("times", [1, 3])
def test_standard_errors_are_those_of_the_formula(name: str, times: int) -> None:
    """V + (m - 1) L in place of V; what windows share is L without the choice of people, and hash functions."""
    collection = population(name)
    estimate = with_shares(collection)
    found = with_repeated_people(collection, estimate, times)
    shares = symbol_shares(collection)
    lasting = np.array([share_that_stays(collection, value, share) for value, share in zip("abcdef", shares)])
    exact = np.isclose(shares * 64, np.rint(shares * 64))  # others are interpolated
    tolerance = np.where(exact, 1e-9, 1e-3)
    stretch = np.sqrt(1 + (times - 1) * lasting)
    assert (np.abs(found.standard_errors / (estimate.standard_errors * stretch) - 1) <= tolerance).all()
    assert found.unexplained_standard_error == pytest.approx(
        estimate.unexplained_standard_error * max(stretch.max(), 1), rel=1e-3
    )
    if "memos" not in name:
        assert found.common_variances is estimate.common_variances
        return
    hashed = np.zeros(6) if estimate.common_variances is None else np.maximum(estimate.common_variances, 0)
    of_people = lasting * (estimate.standard_errors**2 - hashed)
    common = hashed + times * np.maximum(of_people - SHARES * (1 - SHARES) / 4000, 0)
    np.testing.assert_allclose(found.common_variances, common, rtol=2e-3, atol=1e-9)


@pytest.mark.parametrize("name", ["fresh", "partly sensitive memos"])
def test_intervals_are_extended_by_the_same_factor_and_never_shortened(name: str) -> None:
    """On both sides of the raw frequency; the displayed ones within 0 and 1."""
    collection = population(name)
    estimate = with_shares(collection, np.array([0.02, 0.3, 0.1, 0.25, 0.2, 0.13]))
    found = with_repeated_people(collection, estimate, 4)
    stretch, centres = found.standard_errors / estimate.standard_errors, estimate.raw_frequencies
    low, high = estimate.unclipped(0.9)
    longer = centres + stretch * (low - centres), centres + stretch * (high - centres)
    np.testing.assert_allclose(found.unclipped(0.9), (np.minimum(low, longer[0]), np.maximum(high, longer[1])))
    low, high = estimate.intervals(0.9)
    longer = centres + stretch * (low - centres), centres + stretch * (high - centres)
    expected = np.minimum(low, np.clip(longer[0], 0, 1)), np.maximum(high, np.clip(longer[1], 0, 1))
    np.testing.assert_allclose(found.intervals(0.9), expected)
    rest, widest = estimate.raw_unexplained_mass, stretch.max()
    ends = estimate.unexplained_intervals(0.9)
    expected = [np.clip(rest + widest * (end - rest), 0, 1) for end in ends]
    assert found.unexplained_intervals(0.9) == pytest.approx((min(ends[0], expected[0]), max(ends[1], expected[1])))


def test_one_report_each_changes_nothing_without_memos() -> None:
    collection = population("fresh")
    estimate = with_shares(collection)
    assert with_repeated_people(collection, estimate, 1) is estimate
    assert with_repeated_people(collection, estimate, None) is estimate


@pytest.mark.parametrize(("times", "kept"), [(1, True), (2, False), (None, False)])
def test_the_fit_of_memos_is_tested_if_each_person_reports_once(times: int | None, kept: bool) -> None:
    for name in ("memos", "fresh"):
        collection = population(name)
        estimate = dataclasses.replace(with_shares(collection), fit_p_value=0.5)
        found = with_repeated_people(collection, estimate, times)
        assert found.fit_p_value == (0.5 if kept or name == "fresh" else None)


def test_values_of_several_hash_functions_keep_all_their_noise() -> None:
    collection = made(HASHED | {"num_hashes": 2}, {"id": "rappor", "epsilon": 1.0}, num_cohorts=8)
    estimate = with_shares(collection)
    found = with_repeated_people(collection, estimate, 5)
    np.testing.assert_allclose(found.standard_errors, estimate.standard_errors * np.sqrt(5))
