"""Estimates against the truth and against their own standard errors.

Laws that hold of the estimators of other packages too are in ``packages/conformance/tests/test_conformance.py``.

Letters: C cohorts, k symbols (buckets), S values, R replicates of a window of n reports.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import warnings
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from tests.support.calibration import assert_calibrated, excess_slack, windows
from tests.support.cases import (
    COLLECTIONS,
    SENSITIVE,
    VALUES,
    collection,
    collections,
    enumerated,
    estimators,
)
from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms.ldp import CohortCounts, Collection, Estimate, EstimationError
from uldp_transforms.ldp.alphabets import Closed, Hashed, Permuted
from uldp_transforms.ldp.errors import IllConditionedError, InsufficientCohortsError, NoReportsError
from uldp_transforms.ldp.estimators import Normalized, Projected
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex

TRUTH = np.array([0.3, 0.25, 0.2, 0.1, 0.1, 0.05])


def symbol_shares(item: Collection, values: Sequence[str], shares: np.ndarray) -> np.ndarray:
    """(C, k): how often each symbol occurs in each cohort if people hold the values with these shares."""
    table = item.alphabet.symbol_table(tuple(values), item.num_cohorts)
    table = np.broadcast_to(table, (item.num_cohorts, len(values)))
    return np.stack([np.bincount(row, weights=shares, minlength=item.mechanism.num_symbols) for row in table])


@functools.cache
def exact_counts(item: Collection) -> CohortCounts:
    """What 10**12 and more reports count in each cohort, rounded to whole reports, when people hold TRUTH."""
    n = 10**12 * (1 + np.arange(item.num_cohorts))
    cells = n[:, np.newaxis] * item.mechanism.response(symbol_shares(item, VALUES, TRUTH))
    return CohortCounts(n, np.rint(cells).astype(np.int64))


@functools.cache
def noisy_counts(item: Collection, n: int = 3000) -> CohortCounts:
    rng = generator("noisy", item.id, item.mechanism.id, n)
    return item.count(item.perturb(rng.choice(VALUES, n, p=TRUTH).tolist(), rng))


# ---------------------------------------------------------------------- every estimator on every collection


@collections
@estimators
def test_exact_counts_give_the_truth(name, estimator):
    item = COLLECTIONS[name]
    estimate = item.estimate(exact_counts(item), estimator.id, VALUES)
    for shown in (estimate.frequencies, estimate.raw_frequencies):
        np.testing.assert_allclose(shown, TRUTH, atol=1e-9)
    assert estimate.unexplained_mass == pytest.approx(0, abs=1e-9)
    assert ((estimate.standard_errors > 0) & (estimate.standard_errors < 1e-5)).all()
    assert (np.maximum(abs(estimate.ci_low - TRUTH), abs(estimate.ci_high - TRUTH)) < 1e-4).all()


@collections
@estimators
@pytest.mark.parametrize("n", [100, 3000])
def test_intervals_lie_around_the_raw_frequencies(name, estimator, n):
    item = COLLECTIONS[name]
    estimate = item.estimate(noisy_counts(item, n), estimator.id, VALUES)
    raw = np.clip(estimate.raw_frequencies, 0, 1)
    assert ((estimate.ci_low <= raw) & (raw <= estimate.ci_high)).all()
    assert (estimate.ci_low >= np.minimum(estimate.frequencies, 0)).all()
    assert (estimate.ci_high <= np.maximum(estimate.frequencies, 1)).all()
    assert (estimate.standard_errors > 0).all()


@collections
@pytest.mark.parametrize("estimator", [Normalized(), Projected()], ids=lambda estimator: estimator.id)
@pytest.mark.parametrize("n", [100, 30_000])
def test_post_processed_frequencies_are_a_distribution(name, estimator, n):
    """Of an open alphabet with the unlisted values, where anything is known of them: hardly of 100 reports."""
    estimate = COLLECTIONS[name].estimate(noisy_counts(COLLECTIONS[name], n), estimator.id, VALUES)
    assert (estimate.frequencies >= 0).all()
    assert estimate.frequencies.sum() + estimate.left_over == pytest.approx(1)
    if n > 100:
        assert estimate.unexplained_mass == estimate.left_over


@functools.cache
def few_counts(name: str) -> list[tuple[int, CohortCounts]]:
    """Of one report to 400, twice each."""
    item, rng, found = COLLECTIONS[name], generator("few", name), []
    for n, _ in itertools.product((1, 2, 3, 6, 12, 40, 400), range(2)):
        found.append((n, item.count(item.perturb(rng.choice(VALUES, n).tolist(), rng))))
    return found


@collections
@estimators
def test_estimates_are_finite_or_refused_for_any_number_of_reports(name, estimator):
    """Each number and array of an estimate, whichever fields it has; figures of numbers have tests of their own."""
    item, answered = COLLECTIONS[name], set()
    for n, counts in few_counts(name):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                estimate = item.estimate(counts, estimator.id, VALUES)
            except EstimationError:
                continue
        ends = ("ci_low", "ci_high", "unexplained_low", "unexplained_high")
        fields = (*(field.name for field in dataclasses.fields(estimate)), *ends)
        shown = {field: getattr(estimate, field) for field in fields}
        numbers = {field: value for field, value in shown.items() if isinstance(value, (float, np.ndarray))}
        assert numbers.keys() >= {"frequencies", "raw_frequencies", "standard_errors", "ci_low", "ci_high"}
        assert [field for field, value in numbers.items() if not np.isfinite(value).all()] == [], n
        answered.add(n)
    assert 400 in answered


# ---------------------------------------------------------------------- candidates

OPEN = [name for name in COLLECTIONS if name.startswith(("hashed", "prefixes"))]
CLOSED = [name for name in COLLECTIONS if name not in OPEN]


@pytest.mark.parametrize("name", [name for name in CLOSED if COLLECTIONS[name].alphabet.known_values == VALUES])
@pytest.mark.parametrize("left_out", [[0], [5], [1, 2, 3]])
def test_unexplained_mass_of_a_closed_alphabet_has_the_standard_error_of_what_was_left_out(name, left_out):
    item = COLLECTIONS[name]
    counts = noisy_counts(item)
    covariance = closed_covariance(item, counts) if name.startswith("closed") else dense_covariance(item, counts)
    listed = [value for i, value in enumerate(VALUES) if i not in left_out]
    estimate = item.estimate(counts, candidates=listed)
    assert estimate.unexplained_mass == pytest.approx(item.estimate(counts).frequencies[left_out].sum())
    expected = np.sqrt(covariance[np.ix_(left_out, left_out)].sum())
    assert estimate.unexplained_standard_error == pytest.approx(expected, rel=1e-7)


# ---------------------------------------------------------------------- post-processing


def projected_by_bisection(point: np.ndarray) -> np.ndarray:
    """max(point - t, 0) with the t that makes the sum 1."""
    low, high = point.min() - 1, point.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(point - middle, 0).sum() > 1 else (low, middle)
    return np.maximum(point - low, 0)


points = st.lists(st.floats(-5, 5), min_size=1, max_size=12).map(np.array)


@given(points)
def test_projection_is_the_one_that_bisection_finds(point):
    np.testing.assert_allclose(project_onto_simplex(point), projected_by_bisection(point), atol=1e-12)


@given(points, st.data())
def test_no_distribution_is_nearer_than_the_projection(point, data):
    weights = data.draw(st.lists(st.floats(0, 1), min_size=len(point), max_size=len(point)).map(np.array))
    other = weights / weights.sum() if weights.sum() > 0 else np.full(len(point), 1 / len(point))
    nearest = project_onto_simplex(point)
    assert np.linalg.norm(point - nearest) <= np.linalg.norm(point - other) + 1e-12


@given(points, st.sampled_from([Normalized(), Projected()]))
def test_post_processing_makes_a_distribution_and_leaves_one_alone(point, estimator):
    before = point.copy()
    result = estimator.post_process(point)
    np.testing.assert_array_equal(point, before)
    assert (result >= 0).all()
    assert result.sum() == pytest.approx(1)
    np.testing.assert_allclose(estimator.post_process(result), result, atol=1e-12)


# ---------------------------------------------------------------------- least squares, written out with dense matrices


def enumerated_covariance(mechanism: SetReportMechanism, shares: np.ndarray) -> np.ndarray:
    """(k, k): n times the covariance of ``invert``, from all payloads that a client can send."""
    _, probabilities, _, inverse = enumerated(mechanism)
    return (inverse.T * (probabilities @ shares)) @ inverse - np.outer(shares, shares)


def closed_covariance(item: Collection, counts: CohortCounts) -> np.ndarray:
    """(S, S): covariance of the raw frequencies of a closed alphabet at its plausible distribution."""
    plausible = Normalized().post_process(item.mechanism.invert(counts.pooled())[0])
    symbols = item.alphabet.symbol_table(VALUES, 1)[0]
    return enumerated_covariance(item.mechanism, plausible)[np.ix_(symbols, symbols)] / counts.total


def dense_covariance(item: Collection, counts: CohortCounts) -> np.ndarray:
    """(S, S): covariance of the raw frequencies of a complete list."""
    return dense_least_squares(item, counts, VALUES, complete=True)[1]


def dense_least_squares(
    item: Collection, counts: CohortCounts, values: tuple[str, ...], complete: bool
) -> tuple[np.ndarray, np.ndarray, float]:
    """Frequencies (S,), their covariance (S, S) and what a report adds, with the weights that residuals ask for."""
    cohorts = np.flatnonzero(counts.num_reports)
    n = counts.num_reports[cohorts].astype(float)
    weights = n
    for _ in range(6):
        p, linear, known, squares, direction, degrees = dense_fit(item, counts, values, complete, weights)
        common = paule_mandel(squares, direction / n, degrees)
        better = 1 / (direction / n + common)
        if np.var(better / weights) <= 0.01 * np.mean(better / weights) ** 2:
            break
        weights = better
    jump = np.sqrt((weights**2 / n).sum() / n.sum()) / weights.sum() * item.mechanism.jumps[0]
    return p, linear @ (known + common * np.eye(len(known))) @ linear.T, jump


def paule_mandel(squares: np.ndarray, known: np.ndarray, degrees: int) -> float:
    """The common noise for which the squares in units of their variance are as many as their degrees of freedom."""

    def excess(common: float) -> float:
        return float((squares / (known + common)).sum()) - degrees

    return 0.0 if excess(0) <= 0 else float(optimize.brentq(excess, 0, squares.sum(), xtol=1e-16))


def dense_fit(item: Collection, counts: CohortCounts, values: tuple[str, ...], complete: bool, weights: np.ndarray):
    """By whole matrices, with enumerated covariances."""
    k = item.mechanism.num_symbols
    J = np.eye(k) - 1 / k
    table = item.alphabet.symbol_table(values, item.num_cohorts)
    cohorts = np.flatnonzero(counts.num_reports)
    blocks = [J @ (np.arange(k)[:, np.newaxis] == table[c]) for c in cohorts]
    system = np.vstack(blocks)
    target = np.concatenate([J @ row for row in item.mechanism.invert(counts)[cohorts]])
    roots = np.repeat(np.sqrt(weights), k)

    size = len(values)
    # p = start + directions q, where the directions span what the sum of p leaves free
    directions = np.linalg.svd(np.ones((1, size)))[2][1:].T if complete else np.eye(size)
    start = np.full(size, 1 / size) if complete else np.zeros(size)
    linear = directions @ np.linalg.pinv(roots[:, np.newaxis] * (system @ directions)) * roots
    p = start + linear @ (target - system @ start)

    known = np.zeros((len(target), len(target)))
    direction = 0.0
    for i, (c, block) in enumerate(zip(cohorts, blocks)):
        shares = np.maximum(block @ p + 1 / k, 0)
        covariance = J @ enumerated_covariance(item.mechanism, shares / shares.sum()) @ J
        known[i * k : (i + 1) * k, i * k : (i + 1) * k] = covariance / counts.num_reports[c]
        direction += np.trace(covariance) / (k - 1) / len(blocks)
    squares = ((target - system @ p) ** 2).reshape(-1, k).sum(axis=1)
    return p, linear, known, squares, direction, len(target) - len(blocks) - directions.shape[1]


# ---------------------------------------------------------------------- intervals


@pytest.mark.parametrize("mechanism", ["urr", "urap"])
@pytest.mark.parametrize("seen", [0, 1, 40])
def test_intervals_of_clear_symbols_are_those_of_their_counts(mechanism, seen):
    """Above Clopper and Pearson's, below half of the observed count's probability more is left out (mid-P)."""
    item = collection(Closed(values=VALUES, sensitive=SENSITIVE), 1, mechanism)
    n = 400
    estimate = item.estimate(CohortCounts(np.array([n]), np.array([[150, 100, 90, seen, 2, 3]])), "empirical")
    exact = stats.binomtest(seen, n).proportion_ci(0.95, method="exact")
    where = VALUES.index("cat")  # the first clear symbol
    low = estimate.ci_low[where] * item.mechanism.kappa
    left_out = stats.binom.sf(seen, n, low) + stats.binom.pmf(seen, n, low) / 2
    assert left_out == pytest.approx(0.025) if seen else low == 0
    assert low >= exact.low
    assert estimate.ci_high[where] == pytest.approx(min(exact.high / item.mechanism.kappa, 1))


# ---------------------------------------------------------------------- calibration of the standard errors

N = 600


def simulate(
    items: Sequence[Collection], values: Sequence[str], shares: np.ndarray, periods: int, n: int = N
) -> list[Estimate]:
    """Estimates of VALUES from ``periods`` windows of n reports for each collection."""
    rng = generator("calibration", items[0].alphabet.id, items[0].mechanism.id, len(values))
    return [
        item.estimate(counts, candidates=VALUES)
        for item in items
        for counts in windows(item, values, shares, periods, n, rng=rng)
    ]


@pytest.mark.parametrize("mechanism", ["krr", "urr", "rappor", "urap"])
@pytest.mark.parametrize("sensitive", [None, SENSITIVE])
def test_standard_errors_of_a_closed_alphabet(mechanism, sensitive):
    item = collection(Closed(values=VALUES, sensitive=sensitive), 1, mechanism, epsilon=2.0)
    assert_calibrated(simulate([item], VALUES, TRUTH, 1000), TRUTH, 0)


@pytest.mark.parametrize("mechanism", ["krr", "rappor"])
def test_standard_errors_of_a_permuted_alphabet(mechanism):
    item = collection(Permuted(values=VALUES, num_buckets=3), 20, mechanism, epsilon=2.0)
    estimates = simulate([item], VALUES, TRUTH, 1000)
    assert_calibrated(estimates, TRUTH, 0, slack=excess_slack(20 * 2 + 1 - len(VALUES)))


@pytest.mark.parametrize("mechanism", ["krr", "rappor"])
def test_standard_errors_of_a_hashed_alphabet(mechanism):
    item = collection(Hashed(num_buckets=4), 20, mechanism, epsilon=2.0)
    estimates = simulate([item], VALUES, TRUTH, 400)
    assert_calibrated(estimates, TRUTH, 0, slack=excess_slack(20 * 3 - len(VALUES)))


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "n"),
    [
        ("krr", 8.0, 400),
        ("urr", 0.5, 100),
        ("urr", 16.0, 400),
        ("urap", 8.0, 300),
        ("ss", 4.0, 150),
        ("uss", 0.7, 3000),
    ],
)
def test_standard_errors_at_other_epsilons(mechanism, epsilon, n):
    """With few reports and with many; of clear symbols the interval may be too long."""
    item = collection(Closed(values=VALUES, sensitive=SENSITIVE), 1, mechanism, epsilon=epsilon)
    in_clear = np.array([value not in SENSITIVE and not item.mechanism.protects_all for value in VALUES])
    assert_calibrated(simulate([item], VALUES, TRUTH, 400, n), TRUTH, 0, cautious=in_clear)


@pytest.mark.parametrize(("mechanism", "epsilon", "n"), [("krr", 0.7, 2000), ("ss", 4.0, 300), ("rappor", 16.0, 300)])
def test_standard_errors_of_a_permuted_alphabet_at_other_epsilons(mechanism, epsilon, n):
    item = collection(Permuted(values=VALUES, num_buckets=3), 12, mechanism, epsilon=epsilon)
    estimates = simulate([item], VALUES, TRUTH, 400, n)
    assert_calibrated(estimates, TRUTH, 0, slack=excess_slack(12 * 2 + 1 - len(VALUES)))


@pytest.mark.parametrize("mechanism", ["krr", "rappor"])
@pytest.mark.parametrize("num_unlisted", [1, 30])
def test_standard_errors_with_unlisted_values(mechanism, num_unlisted):
    """15 % of the people hold values that are not on the list. Their noise is that of the hash functions, which stay
    the same for all reports of a collection; so each window has hash functions of its own. If one value has all of
    the 15 %, it is the larger part of the noise."""
    values = (*VALUES, *(f"unlisted {i}" for i in range(num_unlisted)))
    shares = np.concatenate([0.85 * TRUTH, np.full(num_unlisted, 0.15 / num_unlisted)])
    items = [collection(Hashed(num_buckets=4, seed=seed), 20, mechanism, epsilon=2.0) for seed in range(300)]
    estimates = simulate(items, values, shares, periods=1, n=5000)
    assert_calibrated(estimates, 0.85 * TRUTH, 0.15, slack=excess_slack(20 * 3 - len(VALUES)))


@pytest.mark.parametrize("mechanism", ["urr", "urap"])
@pytest.mark.parametrize("rare", [0.0, 0.0005, 0.005])
def test_intervals_of_rare_clear_symbols_cover_at_least_as_often_as_they_say(mechanism, rare):
    """The normal interval would have no width where nothing is seen."""
    item = collection(Closed(values=VALUES, sensitive=SENSITIVE), 1, mechanism, epsilon=2.0)
    truth = np.where(np.array(VALUES) == "cat", rare, TRUTH)
    truth[0] += 1 - truth.sum()
    estimates = simulate([item], VALUES, truth, periods=1000, n=400)
    where = VALUES.index("cat")
    covered = sum(e.ci_low[where] <= rare <= e.ci_high[where] for e in estimates)
    assert covered >= binomial_limits(len(estimates), 0.95)[0]
    assert all(e.ci_high[where] > 0 for e in estimates)


# ---------------------------------------------------------------------- goodness of fit


@pytest.mark.parametrize("mechanism", ["krr", "rappor", "ss"])
def test_the_fit_of_a_complete_list_is_a_p_value(mechanism):
    """Five per cent of the windows are among the five per cent that fit worst, and among those that fit best."""
    items = [collection(Hashed(num_buckets=4, seed=seed), 16, mechanism, epsilon=1.0) for seed in range(300)]
    values = np.array([estimate.fit_p_value for estimate in simulate(items, VALUES, TRUTH, 1, 1000)])
    limits = binomial_limits(len(items), np.array([0.05, 0.05]))
    assert within(np.array([(values < 0.05).sum(), (values > 0.95).sum()]), limits).all()


@pytest.mark.parametrize("mechanism", ["krr", "rappor", "ss"])
def test_an_unlisted_value_does_not_fit(mechanism):
    item = collection(Hashed(num_buckets=4), 16, mechanism, epsilon=2.0)
    estimates = simulate([item], (*VALUES, "unlisted"), np.append(0.7 * TRUTH, 0.3), 20, 10_000)
    assert max(estimate.fit_p_value for estimate in estimates) < 1e-6


@pytest.mark.parametrize("name", CLOSED)
def test_only_hashed_symbols_have_a_fit(name):
    estimate = COLLECTIONS[name].estimate(noisy_counts(COLLECTIONS[name]))
    assert (estimate.fit_p_value is None) == name.startswith(("closed", "ordered"))


# ---------------------------------------------------------------------- counts that do not suffice


@collections
@estimators
def test_no_reports(name, estimator):
    item = COLLECTIONS[name]
    with pytest.raises(NoReportsError, match="needs at least 1 report, got 0") as caught:
        item.estimate(CohortCounts.empty(item.num_cohorts, item.num_cells), estimator.id, VALUES)
    assert caught.value.status == "empty"


def counts_of_cohorts(item: Collection, cohorts: Sequence[int]) -> CohortCounts:
    """1000 reports in each of these cohorts, as many of each symbol."""
    n = np.where(np.isin(np.arange(item.num_cohorts), cohorts), 1000, 0)
    uniform = item.mechanism.response(np.full(item.mechanism.num_symbols, 1 / item.mechanism.num_symbols))
    return CohortCounts(n, np.rint(n[:, np.newaxis] * uniform).astype(np.int64))


@pytest.mark.parametrize(
    ("name", "needed"), [("hashed-krr", 2), ("hashed-rappor", 2), ("permuted-krr", 3), ("permuted-rappor", 3)]
)
def test_too_few_cohorts(name, needed):
    item = COLLECTIONS[name]
    with pytest.raises(InsufficientCohortsError, match=f"at least {needed} reporting cohorts") as caught:
        item.estimate(counts_of_cohorts(item, range(needed - 1)), candidates=VALUES)
    assert caught.value.status == "insufficient_cohorts"


@pytest.mark.parametrize("alphabet", [Hashed(num_buckets=3), Permuted(values=VALUES, num_buckets=3)])
def test_cohorts_that_cannot_tell_two_values_apart(alphabet):
    item = collection(alphabet, 60, "krr")
    first, second = alphabet.symbol_table(VALUES[:2], 60).T
    together = np.flatnonzero(first == second)
    assert len(together) * 2 >= len(VALUES), "enough cohorts by number"
    with pytest.raises(IllConditionedError, match="must be distinguishable") as caught:
        item.estimate(counts_of_cohorts(item, together), candidates=VALUES)
    assert caught.value.status == "ill_conditioned"
    apart = [*together, *np.flatnonzero(first != second)[:3]]
    assert np.isfinite(item.estimate(counts_of_cohorts(item, apart), candidates=VALUES).frequencies).all()


@pytest.mark.parametrize("error", [NoReportsError, InsufficientCohortsError, IllConditionedError])
def test_statuses_belong_to_estimation_errors(error):
    assert issubclass(error, EstimationError)
    assert error.status != EstimationError.status


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0, 16.0])
@pytest.mark.parametrize("mechanism", ["krr", "urr", "rappor", "ss"])
@pytest.mark.parametrize("share", [0.0, 0.002, 0.01, 0.3, 1.0])
def test_intervals_of_sensitive_symbols_cover_as_often_as_they_promise(mechanism, epsilon, share):
    """By the binomial law of the symbol's count, for few reports and rare values too: 93.9 % wherever counts jump."""
    n, item = 60, collection(Closed(values=VALUES), 1, mechanism, epsilon=epsilon)
    others = (1 - share) / (len(VALUES) - 1)
    rates = item.mechanism.response(np.array([share] + [others] * (len(VALUES) - 1)))
    covered = 0.0
    for count in range(n + 1):
        cells = np.full((1, len(VALUES)), 0, dtype=np.int64)
        cells[0, 0] = count
        low, high = item.mechanism.intervals(CohortCounts(np.array([n]), cells), np.full(len(VALUES), 1 / 6), 0.95)
        covered += stats.binom.pmf(count, n, rates[0]) * (low[0] - 1e-9 <= share <= high[0] + 1e-9)
    assert covered >= 0.939
