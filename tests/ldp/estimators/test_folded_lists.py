"""Estimates of folded known lists: exact ones of short lists, message passing of long ones, and their errors."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tests.support.calibration import assert_calibrated, excess_slack, windows
from tests.support.cases import VALUES, collection
from tests.support.tolerance import chi_square_limits, generator, normal_limit
from uldp_transforms.ldp import CohortCounts, Collection, Estimate
from uldp_transforms.ldp.alphabets import Hashed, Permuted
from uldp_transforms.ldp.errors import SpecError

TRUTH = np.array([0.35, 0.1, 0.2, 0.25, 0.06, 0.04])
EXACT = 10**12


def folded(
    num_cohorts: int, mechanism: str, epsilon: float = 2.0, fields: dict[str, Any] | None = None, **of_list: Any
) -> Collection:
    """A collection over VALUES with the first seed that tells them apart."""
    for seed in range(100):
        try:
            alphabet = Permuted(values=VALUES, seed=seed, **of_list)
            return collection(alphabet, num_cohorts, mechanism, epsilon=epsilon, **(fields or {}))
        except SpecError as error:
            assert "alphabet.seed" in str(error)
    raise AssertionError("no seed of a hundred")


def exact_counts(item: Collection, values: tuple[str, ...], shares: np.ndarray) -> CohortCounts:
    """Rounded expected counts of 10**12 reports in each cohort."""
    table = item.alphabet.symbol_table(values, item.num_cohorts).reshape(item.num_cohorts, len(values), -1)
    held = np.zeros((item.num_cohorts, item.mechanism.num_symbols))
    for cohort, of_cohort in enumerate(table):
        for value, symbols in enumerate(of_cohort):
            held[cohort, np.unique(symbols)] += shares[value]
    cells = np.rint(EXACT * item.mechanism.response(held)).astype(np.int64)
    return CohortCounts(np.full(item.num_cohorts, EXACT), cells)


@pytest.mark.parametrize("num_cohorts", range(1, 17))
@pytest.mark.parametrize(("sensitive", "mechanism"), [(None, "krr"), (None, "ss"), (VALUES[:4], "urr")])
def test_few_cohorts_give_the_truth(num_cohorts, sensitive, mechanism):
    """As many buckets as the rank condition C (k - 1) + 1 >= S needs, and a seed that tells all values apart."""
    size = len(sensitive or VALUES)
    num_buckets = max(-(-(size - 1) // num_cohorts) + 1, 2) + (num_cohorts == 2)
    item = folded(num_cohorts, mechanism, num_buckets=num_buckets, sensitive=sensitive)
    estimate = item.estimate(exact_counts(item, VALUES, TRUTH))
    np.testing.assert_allclose(estimate.raw_frequencies, TRUTH, atol=1e-4)
    assert estimate.raw_frequencies.sum() == pytest.approx(1, abs=1e-6)


def test_two_permutations_give_the_truth():
    item = folded(6, "rappor", num_buckets=5, num_hashes=2)
    np.testing.assert_allclose(item.estimate(exact_counts(item, VALUES, TRUTH)).raw_frequencies, TRUTH, atol=1e-4)


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "fields"),
    [("urr", 8, {}), ("urr", 2, {}), ("uss", 2, {"subset_size": 1}), ("urap", 2, {}), ("krr", 2, {})],
)
@pytest.mark.parametrize("size", [2, 4])
def test_standard_errors_with_values_that_are_not_sensitive(mechanism, epsilon, fields, size):
    """The share of all sensitive values comes from the others; of two values each receives half of its error, which
    is nearly all of it at epsilon 8."""
    item = folded(6, mechanism, epsilon, num_buckets=2, sensitive=VALUES[:size], fields=fields)
    rng = generator("calibration", mechanism, epsilon, size)
    counts = windows(item, VALUES, TRUTH, 400, 3000, rng=rng)
    clear = np.arange(len(VALUES)) >= size
    slack = excess_slack(6 + 1 - size)
    assert_calibrated([item.estimate(each) for each in counts], TRUTH, 0, slack=slack, cautious=clear)
    asked = [0, 2, len(VALUES) - 1]
    some = [item.estimate(each, candidates=[VALUES[at] for at in asked]) for each in counts]
    rest = 1 - float(TRUTH[asked].sum())
    assert_calibrated(some, TRUTH[asked], rest, slack=slack, cautious=clear[asked])


# ---------------------------------------------------------------------- long lists

LONG = tuple(f"value-{place}" for place in range(4000))
ZIPF = 1 / np.arange(1.0, len(LONG) + 1)
ZIPF /= ZIPF.sum()


def long(alphabet: Permuted | Hashed, mechanism: str = "krr", num_cohorts: int = 1024) -> Collection:
    return collection(alphabet, num_cohorts, mechanism, epsilon=2.0)


def errors(estimate: Estimate) -> np.ndarray:
    at = {value: place for place, value in enumerate(estimate.values)}
    order = [at[value] for value in LONG]
    found: np.ndarray = estimate.raw_frequencies[order] - ZIPF
    return found


def test_a_folded_long_list_is_as_precise_as_a_hashed_one_and_as_fast():
    """4,000 values, 400,000 people, epsilon 2. The squared error of S values has a relative deviation of at most
    sqrt(2 / S): errors are nearly normal and independent."""
    permuted, hashed = (
        long(alphabet) for alphabet in (Permuted(values=LONG, num_buckets=8, seed=1), Hashed(num_buckets=8, seed=1))
    )
    repetitions, squares, seconds = 2, np.zeros(2), []
    rng = generator("as precise")
    for _ in range(repetitions):
        people = rng.choice(LONG, 400_000, p=ZIPF).tolist()
        ours, theirs = (item.count(item.perturb(people, rng)) for item in (permuted, hashed))
        started = time.process_time()
        estimate = permuted.estimate(ours, "eb")
        seconds.append(time.process_time() - started)
        squares += [(errors(each) ** 2).sum() for each in (estimate, hashed.estimate(theirs, candidates=LONG))]
    spread = np.sqrt(2 * 2 / (len(LONG) * repetitions))  # of the ratio
    assert squares[0] / squares[1] <= 1.02 * (1 + normal_limit() * spread)
    assert min(seconds) <= 0.3, "CPU seconds a window, without the table of buckets"


@pytest.mark.parametrize(
    ("sensitive", "mechanism", "fields"),
    [(None, "krr", {}), (None, "rappor", {"num_hashes": 2}), (LONG[::2], "urr", {}), (LONG[::2], "uss", {})],
)
def test_errors_of_a_long_list_are_as_large_as_stated(sensitive, mechanism, fields):
    """Sums of squared errors in units of their variances, over values and windows; and the sum of all is known."""
    alphabet = Permuted(values=LONG, num_buckets=16, seed=1, sensitive=sensitive, **fields)
    item = long(alphabet, mechanism, 512)
    rng, several = generator("stated", mechanism), bool(fields)
    for counts in windows(item, LONG, ZIPF, 2, 100_000, rng=rng):
        estimate = item.estimate(counts)
        noisy = ~item.alphabet.has_own_symbol(LONG)
        squares = (errors(estimate) / estimate.standard_errors)[noisy] ** 2
        low, high = chi_square_limits(int(noisy.sum()))
        assert low * (0.5 if several else 1) <= squares.sum() <= high * 1.02, "bits of two functions: an upper bound"
        assert estimate.raw_frequencies.sum() == pytest.approx(1, abs=1e-6)
        asked = LONG[: len(LONG) // 2]
        some = item.estimate(counts, candidates=asked)
        missed = some.raw_unexplained_mass - ZIPF[len(asked) :].sum()
        assert abs(missed) <= normal_limit() * some.unexplained_standard_error
        assert some.unexplained_standard_error == pytest.approx(
            item.estimate(counts, candidates=LONG[len(asked) :]).unexplained_standard_error, rel=0.02
        )
