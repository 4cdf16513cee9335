"""Intervals for all looks together: by enumeration of every course of a count, and by simulation of whole estimates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from tests.support.tolerance import generator, student_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.anytime import anytime_confidence, confidence_of_look
from uldp_transforms.ldp.estimators.estimator import ANYTIME, FIXED
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals

LOOKS, EACH = 60, 100
"""How often is looked, and the reports between two looks."""

SIZE = 24
VALUES = tuple(f"value {i}" for i in range(SIZE))
SHARES = np.array([*[0.2, 0.15, 0.1, 0.08], *[0.4 / 8] * 8, *[0.068 / 4] * 4, *[0.0005] * 4, *[0.0] * 4])
RARE = SHARES < 0.001
REPETITIONS = 40


# ---------------------------------------------------------------------- the boundary


@pytest.mark.parametrize("ratio", [0.001, 0.1, 1.0, 8.0])
@pytest.mark.parametrize("alpha", [0.05, 0.0005])
def test_the_end_is_where_the_likelihood_ratio_of_a_normal_drift_is_1_over_alpha(ratio, alpha):
    """By integration over the drift: Robbins's mixture of exp(d S - n d^2 / 2), d ~ N(0, 1 / scale)."""
    n = 1000
    z = stats.norm.isf((1 - anytime_confidence(1 - alpha, n, ratio * n)) / 2)
    total, scale = z * np.sqrt(n), ratio * n
    centre = total / (n + scale)
    near = (centre - 12 / np.sqrt(n + scale), centre + 12 / np.sqrt(n + scale))
    mixed = integrate.quad(
        lambda drift: np.exp(drift * total - n * drift**2 / 2) * stats.norm.pdf(drift, scale=scale**-0.5), *near
    )[0]
    assert mixed == pytest.approx(1 / alpha, rel=1e-3) or z == pytest.approx(8, rel=1e-3)


def test_confidence_for_all_looks_is_never_smaller_nor_1():
    for n in (1, 10, 1000, 10**9):
        for scale in (1e-3, 1.0, 1e6):
            for confidence in (0.05, 0.95, 1 - 1e-9):
                assert confidence <= anytime_confidence(confidence, n, scale) < 1


# ---------------------------------------------------------------------- every course of a count


def share_missed(probability: float, scale: float | None) -> float:
    """Probability that the interval of a binomial probability misses it at any of the looks, exactly."""
    between = stats.binom.pmf(np.arange(EACH + 1), EACH, probability)
    held = np.array([1.0])
    for look in range(1, LOOKS + 1):
        n = look * EACH
        held = np.convolve(held, between)
        successes = np.flatnonzero(held > 1e-20)  # what is less likely is taken as missed
        confidence = 0.95 if scale is None else anytime_confidence(0.95, n, scale)
        low, high = binomial_intervals(successes, n, confidence)
        inside = successes[(low <= probability) & (probability <= high)]
        held = np.where(np.isin(np.arange(len(held)), inside), held, 0)
    return 1 - held.sum()


@pytest.mark.parametrize("probability", [1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.4, 0.9, 0.9999])
@pytest.mark.parametrize("scale", [1, 100, 1000])
def test_no_more_than_5_percent_of_all_courses_of_a_count_are_missed(probability, scale):
    assert share_missed(probability, scale) <= 0.05


# ---------------------------------------------------------------------- whole estimates


def collection_of(alphabet: dict, mechanism: dict, **fields: object) -> Collection:
    return Collection.from_json({"id": "c", "version": 1, "alphabet": alphabet, "mechanism": mechanism} | fields)


CLOSED = {"id": "closed", "values": list(VALUES)}
COLLECTIONS = {
    "closed krr": collection_of(CLOSED, {"id": "krr", "epsilon": 2}),
    "closed urr": collection_of(CLOSED | {"sensitive": list(VALUES[::3])}, {"id": "urr", "epsilon": 2}),
    "closed uss": collection_of(CLOSED | {"sensitive": list(VALUES[::2])}, {"id": "uss", "epsilon": 2}),
    "hashed krr": collection_of(
        {"id": "hashed", "num_buckets": 12, "seed": 4}, {"id": "krr", "epsilon": 4}, num_cohorts=32
    ),
    "hashed krr, little noise": collection_of(
        {"id": "hashed", "num_buckets": 32, "seed": 4}, {"id": "krr", "epsilon": 10}, num_cohorts=16
    ),
}


def misses(item: Collection, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Of one window, looked at again and again: which values the intervals of both kinds miss at any look, (S,) each.

    An open alphabet has 10 % of people with texts that nobody listed, each of its own.
    """
    missed = {FIXED: np.zeros(SIZE, dtype=bool), ANYTIME: np.zeros(SIZE, dtype=bool)}
    open_alphabet = item.alphabet.known_values is None
    shares = SHARES * (0.9 if open_alphabet else 1)
    texts = np.array([*VALUES, "other"], dtype=object)
    counts: CohortCounts | None = None
    for look in range(LOOKS):
        held = rng.choice(SIZE + 1, EACH, p=np.append(shares, max(1 - shares.sum(), 0)))
        asked = [f"other {look} {i}" if value == SIZE else texts[value] for i, value in enumerate(held.tolist())]
        more = item.count(item.perturb(asked, rng))
        counts = more if counts is None else counts + more
        estimate = item.estimate(counts, "empirical", VALUES if open_alphabet else None)
        for kind in (estimate, estimate.anytime(EACH)):
            missed[kind.interval] |= (kind.ci_low > shares) | (shares > kind.ci_high)
    return missed[FIXED], missed[ANYTIME]


@pytest.mark.parametrize("name", COLLECTIONS)
def test_no_more_than_5_percent_of_values_are_missed_at_any_of_60_looks(name):
    """The mean over windows of the share of values, rare and others; intervals for one look miss far more."""
    rng = generator("anytime", name)
    fixed, anytime = np.array([misses(COLLECTIONS[name], rng) for _ in range(REPETITIONS)]).swapaxes(0, 1)
    limit = student_limit(REPETITIONS, 3)
    for values in (RARE, ~RARE):
        share = anytime[:, values].mean(axis=1)
        spread = max(share.std(ddof=1), np.sqrt(0.05 * 0.95 / values.sum()))
        assert share.mean() <= 0.05 + limit * spread / np.sqrt(REPETITIONS)
    share = fixed[:, ~RARE].mean(axis=1) - anytime[:, ~RARE].mean(axis=1)
    assert share.mean() - limit * share.std(ddof=1) / np.sqrt(REPETITIONS) > 0
    print(
        f"{name}: one look {fixed.mean():.3f}, all {anytime.mean():.3f}, all of rare ones {anytime[:, RARE].mean():.3f}"
    )


# ---------------------------------------------------------------------- the kind


def test_all_intervals_of_an_estimate_are_of_the_same_kind_and_contain_those_for_one_look():
    item, rng = COLLECTIONS["hashed krr"], generator("kind")
    counts = item.count(item.perturb(rng.choice(VALUES, 3000, p=SHARES).tolist(), rng))
    fixed = item.estimate(counts, "eb", VALUES)
    anytime = fixed.anytime(100)
    assert (fixed.interval, anytime.interval) == (FIXED, ANYTIME)
    assert (anytime.ci_low <= fixed.ci_low).all() and (anytime.ci_high >= fixed.ci_high).all()
    assert (anytime.ci_high - anytime.ci_low > fixed.ci_high - fixed.ci_low).all()
    assert anytime.unexplained_low <= fixed.unexplained_low and anytime.unexplained_high > fixed.unexplained_high
    wide, narrow = anytime.display_intervals(5), fixed.display_intervals(5)
    assert (wide[0] <= narrow[0]).all() and (wide[1] > narrow[1]).all()
    np.testing.assert_array_equal(anytime.frequencies, fixed.frequencies)
    assert anytime.unexplained_status == fixed.unexplained_status


# ---------------------------------------------------------------------- the planned look


def looks_missed(probability: float, planned: int | None) -> float:
    """As ``share_missed``, but one of the looks is planned; None: no look is."""
    between, held, missed = stats.binom.pmf(np.arange(EACH + 1), EACH, probability), np.array([1.0]), 0.0
    for look in range(1, LOOKS + 1):
        n = look * EACH
        held = np.convolve(held, between)
        successes = np.flatnonzero(held > 1e-20)
        is_planned = None if planned is None else look == planned
        low, high = binomial_intervals(successes, n, float(confidence_of_look(0.95, n, EACH, is_planned)))
        inside = np.isin(np.arange(len(held)), successes[(low <= probability) & (probability <= high)])
        missed += float(held[~inside].sum())
        held = np.where(inside, held, 0)
    return missed


@pytest.mark.parametrize("planned", [1, 20, LOOKS])
@pytest.mark.parametrize("probability", [1e-4, 0.01, 0.1, 0.5, 0.9999])
def test_a_planned_look_and_all_others_miss_no_more_than_5_percent_together(probability, planned):
    """Exactly, over every course of a count; where counts are large, one planned look alone misses 2.5 %."""
    together = looks_missed(probability, planned)
    assert together <= 0.05
    if probability in (0.1, 0.5) and planned > 1:
        assert together > 0.025 * 0.95


@pytest.mark.parametrize("scale", [0, -1.5])
def test_a_scale_is_above_0(scale):
    item = COLLECTIONS["closed krr"]
    estimate = item.estimate(item.count(item.perturb(list(VALUES), generator("scale"))), "empirical")
    with pytest.raises(SpecError) as caught:
        estimate.anytime(scale)
    assert str(caught.value) == f"Estimate.anytime needs a scale above 0, got {scale}"
    assert estimate.anytime(1e-3).interval == ANYTIME
