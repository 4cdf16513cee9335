"""Intervals of the values that are shown because they are the largest, and what is too uncertain to be shown."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.made_collections import made
from tests.support.tolerance import RATE, generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate
from uldp_transforms.ldp.sampling import SeededSource
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.rows.row_types import ValueEstimate
from uldp_transforms.rows.windowed_estimate import value_estimates

SIZE, SHOWN, WINDOWS = 2000, 20, 60
VALUES = tuple(f"value {i}" for i in range(SIZE))
ZIPF = 1 / np.arange(1, SIZE + 1) / (1 / np.arange(1, SIZE + 1)).sum()


def hashed(seed: int, epsilon: float, num_cohorts: int = 256, num_buckets: int = 8) -> Collection:
    alphabet = {"id": "hashed", "num_buckets": num_buckets, "seed": seed}
    return made(alphabet, {"id": "krr", "epsilon": epsilon}, num_cohorts=num_cohorts)


def window(item: Collection, shares: np.ndarray, n: int, rng: np.random.Generator) -> CohortCounts:
    cohorts = rng.integers(0, item.num_cohorts, n)
    symbols = item.alphabet.symbol_table(VALUES, item.num_cohorts)[cohorts, rng.choice(len(shares), n, p=shares)]
    return item.count_groups(item.mechanism.perturb(symbols, SeededSource(rng)), cohorts, 1)[0]


def closed(epsilon: float) -> Collection:
    alphabet = {"id": "closed", "values": list(VALUES)}
    mechanism = {"id": "rappor", "epsilon": epsilon}
    return made(alphabet, mechanism)


def closed_window(item: Collection, shares: np.ndarray, n: int, rng: np.random.Generator) -> CohortCounts:
    """Bits of unary reports are independent, so that counts are binomial but for what one person's own bit adds."""
    cells = rng.binomial(n, item.mechanism.response(shares))
    return CohortCounts(np.array([n]), cells[np.newaxis].astype(np.int64))


def test_the_largest_of_many_are_covered_by_their_display_intervals_and_not_by_the_plain_ones():
    """The expected share of missed ones is at most 5 % (Benjamini and Yekutieli 2005), at the rate of the suite.

    Shares of windows are independent, of the mean 0.05 at most, and their error is taken from them.
    """
    item, rng = closed(1.0), generator("largest")
    plain, display = np.zeros((2, WINDOWS))
    for i in range(WINDOWS):
        estimate = item.estimate(closed_window(item, ZIPF, 20_000, rng), "projected")
        shown, (low, high) = estimate.largest(SHOWN), estimate.display_intervals(SHOWN)
        truth = ZIPF[shown]
        plain[i] = ((estimate.ci_low[shown] <= truth) & (truth <= estimate.ci_high[shown])).mean()
        display[i] = ((low <= truth) & (truth <= high)).mean()
    limit = stats.t.isf(RATE, WINDOWS - 1)
    assert display.mean() >= 0.95 - limit * max(display.std(ddof=1), np.sqrt(0.05 * 0.95 / SHOWN)) / np.sqrt(WINDOWS)
    assert plain.mean() <= 0.8 - limit * plain.std(ddof=1) / np.sqrt(WINDOWS)


@pytest.mark.parametrize("epsilon", [2.0, 6.0])
def test_the_largest_of_many_hashed_values(epsilon):
    rng, display = generator("largest hashed", epsilon), np.zeros(WINDOWS // 2)
    for i in range(len(display)):
        item = hashed(i, epsilon)
        estimate = item.estimate(window(item, ZIPF, 20_000, rng), "projected", VALUES)
        shown, (low, high) = estimate.largest(SHOWN), estimate.display_intervals(SHOWN)
        display[i] = ((low <= ZIPF[shown]) & (ZIPF[shown] <= high)).mean()
    limit = stats.t.isf(RATE, len(display) - 1)
    error = max(display.std(ddof=1), np.sqrt(0.05 * 0.95 / SHOWN)) / np.sqrt(len(display))
    assert display.mean() >= 0.95 - limit * error


@functools.cache
def some(estimator: str = "projected") -> Estimate:
    item = hashed(1, 4.0)
    return item.estimate(window(item, ZIPF, 20_000, generator("some")), estimator, VALUES)


def test_the_largest_are_the_largest_in_the_order_of_the_list():
    estimate = some("empirical")
    shown = estimate.largest(SHOWN)
    assert len(shown) == SHOWN
    assert (np.diff(shown) > 0).all()
    assert estimate.frequencies[shown].min() >= np.delete(estimate.frequencies, shown).max()
    assert estimate.largest(SIZE + 1).tolist() == list(range(SIZE))


@pytest.mark.parametrize("estimator", ["empirical", "projected", "eb"])
def test_each_rank_has_its_own_level_however_many_are_shown(estimator):
    """Equal frequencies, of which ``projected`` has many 0, are in the order of the list."""
    estimate = some(estimator)
    low, high = estimate.display_intervals(SIZE)
    ranks = sorted(range(SIZE), key=lambda i: -estimate.frequencies[i])
    for rank in (1, 2, SHOWN, SIZE // 2, SIZE):
        own = estimate.intervals(1 - 0.05 * rank / SIZE, strict=True)
        at = ranks[rank - 1]
        assert low[at] == min(own[0][at], estimate.ci_low[at])
        assert high[at] == max(own[1][at], estimate.ci_high[at])
        shown = estimate.largest(rank)
        np.testing.assert_array_equal(estimate.display_intervals(rank), (low[shown], high[shown]))
    assert (low <= estimate.ci_low).all() and (estimate.ci_high <= high).all()


def test_intervals_of_smaller_ranks_hold_those_of_larger_ones():
    """On which the proof in docs/decisions/0058-intervals.md rests."""
    estimate, before = some(), (np.full(SIZE, np.inf), np.full(SIZE, -np.inf))
    for rank in (SIZE, SIZE // 2, 100, 10, 3, 1):
        low, high = estimate.intervals(1 - 0.05 * rank / SIZE, strict=True)
        assert (low <= before[0]).all() and (before[1] <= high).all()
        before = low, high


def test_a_row_has_the_entries_of_the_largest():
    estimate = some()
    everything, few = value_estimates(estimate), value_estimates(estimate, SHOWN)
    assert [entry.value for entry in few] == [VALUES[i] for i in estimate.largest(SHOWN)]
    of_all = {entry.value: entry for entry in everything}
    assert few == [of_all[entry.value] for entry in few]
    for entry in everything:
        assert entry.display_low <= entry.ci_low <= entry.frequency <= entry.ci_high <= entry.display_high


@pytest.mark.parametrize(("numbers", "most"), [(7, 420), (11, 520)], ids=["plain", "smoothed"])
def test_an_entry_takes_few_bytes_and_those_of_its_value(numbers, most):
    """So that BigQuery takes rows of 10,000, unless their texts are long; these are the longest numbers."""
    entry = ValueEstimate("v" * 20, *[-1.2345678901234567e-300] * numbers)
    assert numbers <= len(ValueEstimate._fields) - 1
    assert len(to_json(entry)) <= most + 20


# ---------------------------------------------------------------------- what a list leaves over


@pytest.mark.parametrize(("n", "status"), [(100, "too_uncertain"), (100_000, "ok")])
def test_a_rest_is_published_where_its_interval_is_at_most_half_as_long_as_a_share_can_be(n, status):
    """Of 3 listed values too, not of long lists alone."""
    item, rng = hashed(1, 1.0), generator("few listed", n)
    estimate = item.estimate(window(item, ZIPF, n, rng), "projected", VALUES[:3])
    half = stats.norm.isf(0.025) * estimate.unexplained_standard_error
    assert estimate.unexplained_status == status
    assert (2 * half <= 0.5) == (status == "ok")
    assert (estimate.unexplained_mass is None) == (status != "ok")
    ends = np.clip(np.array([-1, 1]) * half + estimate.raw_unexplained_mass, 0, 1)
    assert (estimate.unexplained_low, estimate.unexplained_high) == pytest.approx(tuple(ends), abs=0.005)
    assert estimate.frequencies.sum() + estimate.left_over == pytest.approx(1)


def test_the_interval_of_the_rest_holds_it():
    """At the rate of the suite, if the true coverage is 95 % at least."""
    rng, truth, held = generator("rest"), 1 - ZIPF[:300].sum(), 0
    for i in range(120):
        item = hashed(i, 4.0, 64, 32)
        estimate = item.estimate(window(item, ZIPF, 20_000, rng), candidates=VALUES[:300])
        held += estimate.unexplained_low <= truth <= estimate.unexplained_high
    assert held >= stats.binom.ppf(RATE, 120, 0.95)
