"""The smooth posterior: golden values, derivatives, integrals by sampling, and the figures that are read from it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

from tests.support.ldp.made_collections import made
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators.log_smooth import (
    MOST_REPORTS,
    SCALES,
    LogSmooth,
    Posterior,
    fit_log_smooth,
    fit_scales,
    mixture,
    second_differences,
)
from uldp_transforms.ldp.estimators.number_estimates import estimate_numbers
from uldp_transforms.ldp.estimators.smooth_figures import SmoothFigures

COUNTS = np.array([900, 950, 1000, 1010, 980, 900, 840, 800, 720, 680, 630, 590], dtype=np.float64)
CENTRES = (np.arange(8) + 0.5) / 8
BELOW_HALF = np.array([1.0] * 4 + [0.0] * 4)
DIFFERENCES = second_differences(8, 8, {0, 7})


def collection(mechanism: str = "sw", epsilon: float = 1.0, **alphabet: Any) -> Collection:
    spec = {"id": "ordered", "low": 0, "high": 1, "num_bins": 8} | alphabet
    return made(spec, {"id": mechanism, "epsilon": epsilon}, id="numbers")


def posterior(cells: np.ndarray = COUNTS) -> Posterior:
    return Posterior(collection().mechanism.response(np.eye(8)).T, cells, DIFFERENCES)


def one(cells: Any) -> CohortCounts:
    cells = np.asarray(cells, dtype=np.int64)[np.newaxis]
    return CohortCounts(cells.sum(axis=1), cells)


# ---------------------------------------------------------------------- the posterior at one scale


def test_golden_values():
    """From an implementation of its own, whose prior is flat in the logarithm of the scale, and without bias."""
    fits = fit_scales(posterior(), SCALES)
    flat = mixture(fits, power=0, pull=0)
    assert flat.of(CENTRES) == (pytest.approx(0.34909, abs=5e-6), pytest.approx(0.00956, abs=5e-6))
    assert flat.of(BELOW_HALF) == (pytest.approx(0.67634, abs=5e-6), pytest.approx(0.01516, abs=5e-6))
    assert flat.scale == pytest.approx(0.1)


@pytest.mark.parametrize("scale", [0.01, 1.0])
def test_gradient_and_information_are_those_of_differences(scale: float):
    """Central differences; the information is the exact second derivative where counts are what is expected."""
    eta = generator("log-smooth").normal(size=8)
    at = posterior(1000 * posterior().channel @ special.softmax(eta))
    prior, step = at.prior(scale), 1e-5
    around = [(eta + step * way, eta - step * way) for way in np.eye(8)]
    slopes = np.array([(at.value(more, prior) - at.value(less, prior)) / (2 * step) for more, less in around])
    bends = np.array([(at.gradient(less, prior) - at.gradient(more, prior)) / (2 * step) for more, less in around])
    np.testing.assert_allclose(at.gradient(eta, prior), slopes, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(at.information(eta, prior), bends, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("scale", [1e-3, 0.1, 10.0])
def test_the_maximum_is_that_of_another_optimizer(scale: float):
    at = posterior()
    prior = at.prior(scale)
    eta, value = at.maximize(np.zeros(8), prior)
    found = optimize.minimize(
        lambda eta: -at.value(eta, prior), np.zeros(8), jac=lambda eta: -at.gradient(eta, prior), method="BFGS"
    )
    assert value == pytest.approx(-found.fun, abs=2e-4)
    np.testing.assert_allclose(special.softmax(eta), special.softmax(found.x), atol=2e-3)


def test_means_and_evidence_agree_with_integration_by_sampling():
    """200,000 draws of a wider normal density, weighted by the posterior: it is not normal, but nearly so.

    The most probable shares differ from the mean ones by less than a fifth of a standard deviation. The ratio of
    evidences of two scales agrees within 10 %: the standard error of each integral is below 1 %.
    """
    at, rng = posterior(), generator("log-smooth", "integral")
    integrals, fits = [], fit_scales(at, [0.1, 1.0])
    for fit in fits:
        prior = at.prior(fit.scale)
        eta = at.maximize(np.zeros(8), prior)[0]
        law = stats.multivariate_normal(eta, 1.5 * np.linalg.inv(at.information(eta, prior)))
        draws = law.rvs(200_000, random_state=rng)
        values = np.log(special.softmax(draws, axis=1) @ at.channel.T) @ COUNTS
        values -= np.einsum("ni,ij,nj->n", draws, prior, draws) / 2
        logs = values - law.logpdf(draws)
        assert 1 / (special.softmax(logs) ** 2).sum() > 20_000  # effective draws
        for weights in (CENTRES, BELOW_HALF):
            mean = special.softmax(logs) @ special.softmax(draws, axis=1) @ weights
            deviation = math.sqrt(weights @ fit.covariance @ weights)
            assert abs(fit.frequencies @ weights - mean) < 0.2 * deviation
        integrals.append(special.logsumexp(logs) - len(DIFFERENCES) * math.log(fit.scale))
    assert fits[1].evidence - fits[0].evidence == pytest.approx(integrals[1] - integrals[0], abs=0.1)


# ---------------------------------------------------------------------- the posterior of a collection


def test_there_is_no_posterior_without_a_likelihood_or_inner_neighbours():
    assert fit_log_smooth(collection(), one(np.zeros(12))) is None
    assert fit_log_smooth(collection(num_bins=4), one(np.full(collection(num_bins=4).num_cells, 5))) is None
    assert fit_log_smooth(collection("rappor"), one(np.full(8, 50))) is None
    assert fit_log_smooth(collection(), one(np.full(12, MOST_REPORTS // 8))) is None
    found = estimate_numbers(collection("rappor"), CohortCounts(np.array([100]), np.full((1, 8), 50)), limits=[0.5])
    assert (found.curve, found.mean.display_low, found.shares_above[0].display_value) == ((), None, None)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 16.0])
@pytest.mark.parametrize("others", [[], ["none"]], ids=["all-numbers", "others"])
def test_any_counts_have_a_posterior(epsilon: float, others: list[str]):
    """Equal counts, all reports alike, few cells, one report, as many as there may be: shares and bands in [0, 1]."""
    rng = generator("log-smooth", "any", epsilon)
    item = collection(epsilon=epsilon, others=others)
    cells = item.mechanism.num_cells
    laws = [np.full(cells, 1 / cells), *np.eye(cells)[[0, cells // 2]], *rng.dirichlet(np.full(cells, 0.05), size=3)]
    for law in laws:
        for people in (1, 300, MOST_REPORTS // 2):
            counts = one(np.floor(people * law) + (np.arange(cells) == law.argmax()))
            for bin_ in estimate_numbers(item, counts).curve:
                assert 0 <= bin_.display_low <= bin_.share <= bin_.display_high <= 1


@pytest.mark.parametrize("mechanism", ["sw", "krr"])
def test_others_do_not_move_the_curve(mechanism: str):
    """Expected counts of the same numbers, with and without people who have none: the same shares among numbers."""
    shares = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])
    found = []
    for item, law in ((collection(mechanism), shares), (collection(mechanism, others=["none"]), [*(shares / 2), 0.5])):
        counts = one(np.rint(1e9 * item.mechanism.response(np.array(law))))
        found.append(estimate_numbers(item, counts, limits=[0.5]))
    for pair in zip(*([bin_.share for bin_ in one_.curve] for one_ in found)):
        assert pair[0] == pytest.approx(pair[1], abs=1e-3)
    assert found[1].shares_above[0].display_value == pytest.approx(0.25, abs=1e-3)
    lengths = [one_.mean.display_high - one_.mean.display_low for one_ in found]
    assert lengths[1] > lengths[0]


def test_a_declared_atom_is_found_with_fewer_reports():
    """Expected counts of 10,000 people, 30 % with one number: the curve with the atom has it within 3 points."""
    shares = np.full(16, 0.7 / 15)
    shares[6] = 0.3
    found = []
    for atoms in ([], [6.5 / 16]):
        item = collection(num_bins=16, atoms=atoms)
        counts = one(np.rint(1e4 * item.mechanism.response(shares)))
        found.append(estimate_numbers(item, counts).curve[6].share)
    assert abs(found[1] - 0.3) < 0.03 < 0.3 - found[0]


# ---------------------------------------------------------------------- figures


def figures(shares: list[float], deviation: float) -> SmoothFigures:
    law = LogSmooth(frequencies=np.array(shares), covariance=deviation**2 * np.eye(len(shares)), scale=1.0)
    return SmoothFigures(law, np.array([0.0, 1, 2, 4, 8]), 2.0)


def test_quantiles_are_where_the_distribution_function_crosses():
    smooth = figures([0.1, 0.4, 0.4, 0.1], 0.05)
    value, low, high = smooth.quantile(0.5)
    half = 2 * 0.05 * math.sqrt(2)  # of the distribution function at 2
    assert value == 2
    assert low == pytest.approx(1 + (0.5 - 0.1 - 0.1) / (0.4 + half - 0.1))
    half, next_half = 0.5 - half, 0.9 - 2 * 0.05 * math.sqrt(3)
    assert high == pytest.approx(2 + 2 * (0.5 - half) / (next_half - half))


def test_quantiles_in_clamped_bins_have_open_ends():
    smooth = figures([0.1, 0.4, 0.4, 0.1], 0.05)
    assert smooth.quantile(0.05)[1] is None
    assert smooth.quantile(0.95)[2] is None
    assert smooth.quantile(0.05)[0] == pytest.approx(0.5)


def test_smooth_intervals_of_a_mean_hold():
    """60 windows of a log-normal population: no fewer than intervals of 95 % hold, at the suite's rate."""
    item, rng, windows, people = collection(num_bins=16), generator("log-smooth", "coverage"), 60, 10_000
    centres = (np.arange(16) + 0.5) / 16
    shares = np.exp(-0.5 * ((np.log(centres) + 1.2) / 0.5) ** 2) / centres
    shares /= shares.sum()
    held = np.zeros(2)
    for cells in rng.multinomial(people, item.mechanism.response(shares), size=windows):
        found = estimate_numbers(item, one(cells), limits=[0.25])
        for place, (figure, true) in enumerate(
            ((found.mean, shares @ centres), (found.shares_above[0], shares[4:].sum()))
        ):
            held[place] += figure.display_low <= true <= figure.display_high
    assert (held >= binomial_limits(np.full(2, windows), np.full(2, 0.95))[0]).all()
