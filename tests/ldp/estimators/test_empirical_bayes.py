"""The estimator eb: its law of counts against exact ones, its posteriors against enumeration, and what always holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support import cases
from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator, normal_limit, student_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import empirical_bayes as estimator_module
from uldp_transforms.ldp.estimators.empirical_bayes import _hashed_slope, noise_of
from uldp_transforms.ldp.estimators.stacked_priors import Frequencies, posterior_means
from uldp_transforms.ldp.solvers import fitted_prior as module
from uldp_transforms.ldp.solvers.fitted_prior import Noisy, checked, fit_prior
from uldp_transforms.ldp.solvers.linear import estimate_linear
from uldp_transforms.ldp.solvers.question import ask
from uldp_transforms.ldp.solvers.sharpened import sharpened
from uldp_transforms.ldp.solvers.simplex import nearest_distribution

TEXTS = tuple(f"value {i}" for i in range(64))


def closed(mechanism: str, size: int = 6, sensitive: int | None = None, epsilon: float = 1.0) -> Collection:
    alphabet = {"id": "closed", "values": list(TEXTS[:size]), "sensitive": list(TEXTS[: sensitive or size])}
    return made(alphabet, {"id": mechanism, "epsilon": epsilon})


def counted(cells: np.ndarray, num_reports: int) -> CohortCounts:
    return CohortCounts(np.array([num_reports]), np.array([cells]))


# ------------------------------------------------------------------------------------------------------------ laws


@pytest.mark.parametrize("name", ["krr", "rappor", "ss", "urr"])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_law_of_an_own_count_is_the_binomial_one(name, epsilon):
    """Symbols whose estimate is a function of their own count; clear ones of uRR among them."""
    spec = closed(name, sensitive=4 if name == "urr" else None, epsilon=epsilon)
    counts = counted(np.array([30, 20, 9, 1, 0, 2]), 62)
    question = ask(spec, counts, None)
    noisy = noise_of(question, estimate_linear(question))
    frequencies = np.array([0.0, 0.01, 0.2, 0.7])
    for row in range(6):
        found = noisy.exponents(np.full(4, row), frequencies)
        points = np.zeros((4, 6))
        points[:, row] = frequencies
        points[:, 0 if row else 1] = 1 - frequencies
        if name == "urr" and row >= 4:
            rates = spec.mechanism.kappa * frequencies
        else:
            rates = spec.mechanism.miss + spec.mechanism.delta * frequencies
        expected = stats.binom.logpmf(counts.cells[0, row], 62, rates)
        possible = np.isfinite(expected)
        np.testing.assert_allclose((found - expected)[possible], (found - expected)[possible][-1], atol=1e-6)
        assert (found[~possible] < found[possible].min() - 100).all()


@pytest.mark.parametrize("buckets", [2, 3, 8, 60])
def test_the_slope_of_hashed_values_is_that_of_local_hashing(buckets):
    """With hash functions of their own for everybody the reports in a value's bucket are binomial."""
    mechanism = cases.MECHANISM_CASES["krr"][0].__class__(num_symbols=buckets, num_sensitive=buckets, epsilon=1.0)
    gain = mechanism.kappa * (1 - 1 / buckets)
    assert _hashed_slope(mechanism, buckets) == pytest.approx((1 - 2 / buckets) / gain, abs=1e-9)


# ------------------------------------------------------------------------------------------------------ posteriors


@pytest.mark.parametrize("name", ["krr", "rappor"])
def test_the_posterior_is_that_of_the_prior_and_the_counts(name):
    spec, n = closed(name), 40
    cells = np.array([19, 9, 4, 4, 3, 1])
    question = ask(spec, counted(cells, n), None)
    found = fit_prior(noise_of(question, estimate_linear(question)), 1 / 6)
    rates = spec.mechanism.miss + spec.mechanism.delta * found.atoms
    for count, mean, variance in zip(cells, *found.moments()):
        weights = [w * stats.binom.pmf(count, n, min(rate, 1)) for w, rate in zip(found.weights, rates)]
        by_hand = sum(w * atom for w, atom in zip(weights, found.atoms)) / sum(weights)
        assert mean == pytest.approx(by_hand, abs=1e-9)
        squares = sum(w * (atom - by_hand) ** 2 for w, atom in zip(weights, found.atoms)) / sum(weights)
        assert variance == pytest.approx(squares, abs=1e-9)


def test_no_other_prior_within_the_bound_is_much_more_likely():
    """Against all priors on few atoms, by enumeration of a fine simplex."""
    noisy = Noisy(np.array([0.4, 0.05, -0.02, 0.3]), np.full(4, 0.01), np.zeros(4), np.inf)
    found = fit_prior(noisy, 0.25)

    def log_likelihood(atoms: np.ndarray, weights: np.ndarray) -> float:
        densities = np.exp(-((noisy.estimates[:, np.newaxis] - atoms) ** 2) / 0.02)
        return float(np.log(densities @ weights).sum())

    atoms = np.array([0.0, 0.1, 0.25, 0.4])
    steps = np.arange(0, 1.01, 0.05)
    others = (
        log_likelihood(atoms, np.array([1 - a - b - c, a, b, c]))
        for a in steps
        for b in steps
        for c in steps
        if a + b + c <= 1 and 0.1 * a + 0.25 * b + 0.4 * c <= 0.25
    )
    assert log_likelihood(found.atoms, found.weights) >= max(others) - 0.1


@given(
    st.lists(st.tuples(st.floats(-1, 2), st.floats(0, 1), st.floats(1e-6, 1)), min_size=1, max_size=40),
    st.sampled_from([1.0, 30.0, 1e6]),
    st.sampled_from([1e-6, 0.1, 1.0]),
)
def test_of_any_law(rows, trials, bound):
    estimates, null, slope = np.array(rows).T
    found = fit_prior(Noisy(estimates, null, slope, trials), bound)
    for moment in found.moments():
        assert np.isfinite(moment).all()
        assert (moment >= 0).all()
    assert found.weights.sum() == pytest.approx(1)
    assert found.weights @ found.atoms <= bound * (1 + 1e-9)


def test_a_million_values_are_binned_without_a_trace():
    """Counts of a million, most of which nobody holds: the bins against the posterior of single values."""
    size, n = 1_000_000, 10_000_000
    rng = generator("million")
    truth = np.zeros(size)
    truth[:1000] = 0.9 / 1000
    truth[1000:] = 0.1 / (size - 1000)
    rate, gain = 1e-4, 0.3
    estimates = (rng.poisson(n * (rate + gain * truth)) / n - rate) / gain
    null, slope = rate * (1 - rate) / gain**2 / n, (1 - 2 * rate) / gain / n
    noisy = Noisy(estimates, np.full(size, null), np.full(size, slope), float(n))
    found = fit_prior(noisy, 1 / size)
    means = found.means()
    shares = nearest_distribution(means, noisy.variances(means))
    assert shares.sum() == pytest.approx(1)
    assert ((shares - truth) ** 2).sum() < 0.2 * ((estimates - truth) ** 2).sum()
    some = rng.choice(size, 300, replace=False)
    rates = rate + gain * found.atoms
    count = np.rint(n * (rate + gain * estimates[some]))
    likelihood = stats.binom.pmf(count[:, np.newaxis], n, rates)
    exact = likelihood @ (found.weights * found.atoms) / (likelihood @ found.weights)
    np.testing.assert_allclose(means[some], exact, atol=module._BIN * np.sqrt(null + slope * estimates.max()))


def test_bins_cost_neither_errors_nor_coverage(monkeypatch):
    """Windows of 500 values: squared errors beside those without bins, and how often intervals hold."""
    size, windows, rng = 500, 40, generator("bins of windows")
    spec = Collection.from_json(
        {"id": "c", "version": 1, "alphabet": {"id": "closed", "values": [str(i) for i in range(size)]}}
        | {"mechanism": {"id": "krr", "epsilon": 4.0}}
    )
    law = 1 / np.arange(1, size + 1)
    law /= law.sum()
    cells = rng.multinomial(100_000, spec.mechanism.response(law), windows)
    binned, exact = [], []
    for found, most in ((binned, module.EXACT), (exact, size)):
        monkeypatch.setattr(module, "EXACT", most)
        found += [spec.estimate(counted(own, 100_000), "eb") for own in cells]
    errors = [np.array([((one.frequencies - law) ** 2).sum() for one in found]) for found in (binned, exact)]
    more = (errors[0] - errors[1]) / errors[1].mean()
    assert more.mean() <= student_limit(windows, 2) * more.std(ddof=1) / np.sqrt(windows)
    held = np.array([((one.ci_low <= law) & (law <= one.ci_high)).mean() for one in binned])
    assert held.mean() >= 0.95 - student_limit(windows, 2) * held.std(ddof=1) / np.sqrt(windows)
    np.testing.assert_allclose(errors[0], errors[1], rtol=module._BIN)


# ----------------------------------------------------------------------------------------- how far it is trusted


def risks(truth: np.ndarray, name: str, runs: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Squared errors (runs,) in units of the noise, with the prior as it is and as far as it is trusted."""
    rng, found = generator("trust", name), []
    for _ in range(runs):
        noisy = Noisy(truth + rng.normal(size=len(truth)), np.ones(len(truth)), np.zeros(len(truth)), np.inf)
        prior = fit_prior(noisy, float(truth.mean()) * 2)
        found.append([((of.means() - truth) ** 2).sum() for of in (prior, checked(prior))])
    before, after = np.array(found).T
    return before, after


def test_a_prior_that_has_only_copied_the_estimates_is_not_trusted():
    """Frequencies with nothing in common, 256 over 40 times the noise: as good as the estimates, which are unbiased."""
    truth = np.geomspace(6, 240, 256)
    before, after = risks(truth, "spread")
    slack = student_limit(len(after)) * after.std(ddof=1) / np.sqrt(len(after))
    assert after.mean() <= 1.03 * len(truth) + slack
    gain = before - after
    assert gain.mean() > student_limit(len(gain)) * gain.std(ddof=1) / np.sqrt(len(gain))


@pytest.mark.parametrize("groups", [1, 3])
def test_a_prior_that_has_learned_something_is_trusted(groups):
    """A few hundred values on one or three frequencies: nine tenths of the noise is gone."""
    truth = np.repeat(np.array([10.0, 40.0, 90.0])[:groups], 100)
    _, after = risks(truth, f"{groups} groups", 50)
    slack = student_limit(len(after)) * after.std(ddof=1) / np.sqrt(len(after))
    assert after.mean() <= 0.1 * len(truth) + slack


# ------------------------------------------------------------------------------------------------------- sharpened


def hashed(epsilon: float, num_buckets: int, num_cohorts: int, seed: int = 1) -> Collection:
    alphabet = {"id": "hashed", "num_buckets": num_buckets, "seed": seed}
    return made(alphabet, {"id": "krr", "epsilon": epsilon}, num_cohorts=num_cohorts)


def drawn(spec: Collection, texts: tuple[str, ...], shares: np.ndarray, n: int, rng: np.random.Generator):
    """Counts of n people in cohorts of random size."""
    table, cells = spec.alphabet.symbol_table(texts, spec.num_cohorts), []
    sizes = rng.multinomial(n, np.full(spec.num_cohorts, 1 / spec.num_cohorts))
    for row, size in zip(table, sizes):
        rates = spec.mechanism.response(np.bincount(row, shares, spec.num_cells))
        cells.append(rng.multinomial(size, rates / rates.sum()))
    return CohortCounts(sizes, np.array(cells))


@pytest.mark.parametrize(("unlisted", "ratio"), [(0.0, 1.0), (0.2, 1.05)])
def test_weights_of_buckets_make_hashed_frequencies_more_precise_and_their_errors_are_right(unlisted, ratio):
    """Epsilon 6, where a full bucket has many times the noise of an empty one; unlisted texts even that out, and cost
    no more than 5 %."""
    truth = 1 / np.arange(1.0, 65)
    truth *= (1 - unlisted) / truth.sum()
    texts, rng = (*TEXTS, *(f"unlisted {i}" for i in range(50))), generator("sharpened", unlisted)
    shares = np.append(truth, np.full(50, unlisted / 50))
    errors, scores = [], []
    for seed in range(60):
        spec = hashed(6.0, 128, 64, seed % 6)
        question = ask(spec, drawn(spec, texts, shares, 200_000, rng), TEXTS)
        linear = estimate_linear(question)
        found = sharpened(question, linear)
        errors.append([((of.raw - truth) ** 2).sum() for of in (linear, found)])
        scores.append((found.raw - truth) / found.standard_errors)
    before, after = np.array(errors).T
    lead = ratio * before - after
    assert lead.mean() > student_limit(len(lead)) * lead.std(ddof=1) / np.sqrt(len(lead))
    scores = np.array(scores)
    assert abs(scores.mean(axis=0)).max() <= normal_limit(64) * 1.1 / np.sqrt(60)
    spread = (scores**2).mean(axis=1)
    assert abs(spread.mean() - 1) <= 0.1 + student_limit(60) * spread.std(ddof=1) / np.sqrt(60)


# ------------------------------------------------------------------------------------------------------ what holds


def priors_of(item: Collection, counts: CohortCounts, candidates: tuple[str, ...] | None = None) -> list[tuple]:
    """Of each prior that an estimate fits: the bound of its mean times its number of values, and the prior's mean."""
    found = []

    def solve(lists: Sequence[Frequencies]) -> list[np.ndarray]:
        for one in lists:
            prior, size = fit_prior(one.noisy, one.bound), len(one.noisy.estimates)
            found.append((one.bound * size, float(prior.weights @ prior.atoms) * size))
        return posterior_means(lists)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimator_module, "posterior_means", solve)
        item.estimate(counts, "eb", candidates)
    return found


@pytest.mark.parametrize("mechanism", ["urr", "urap"])
def test_all_values_together_are_not_held_by_more_than_everybody(mechanism):
    """32 values of which only holders are counted have the share that is seen, 32 noisy ones no more than the rest."""
    item = closed(mechanism, 64, 32, epsilon=1.0)
    counts = item.count(item.perturb(list(TEXTS) * 40, generator("bounds", mechanism)))
    (seen, of_seen), (rest, of_rest) = priors_of(item, counts)
    raw = item.estimate(counts).raw_frequencies
    assert seen == pytest.approx(raw[32:].sum())
    assert seen + rest == pytest.approx(1)
    assert of_seen <= seen * (1 + 1e-9)
    assert of_rest <= rest * (1 + 1e-9)


def test_listed_values_of_an_open_list_are_not_held_by_those_who_hold_others():
    """A quarter hold listed values: the bound is what is seen of the list, and two standard errors."""
    alphabet = {"id": "hashed", "num_buckets": 32}
    item = made(alphabet, {"id": "krr", "epsilon": 4.0}, num_cohorts=32)
    others = [f"other {i}" for i in range(300)]
    counts = item.count(item.perturb([*TEXTS[:30]] * 100 + others * 30, generator("open bound")))
    [(bound, of_prior)] = priors_of(item, counts, TEXTS[:30])
    linear = sharpened(question := ask(item, counts, TEXTS[:30]), estimate_linear(question))
    assert bound == pytest.approx(linear.raw.sum() + 2 * linear.rest_standard_error)
    assert 0.2 < of_prior <= bound * (1 + 1e-9) < 0.5


# ------------------------------------------------------------------------------------------------------ invariants


def test_without_noise_it_is_what_was_counted():
    found = closed("krr", epsilon=16.0).estimate(counted(np.array([500, 300, 100, 100, 0, 0]), 1000), "eb")
    np.testing.assert_allclose(found.frequencies, [0.5, 0.3, 0.1, 0.1, 0, 0], atol=0.01)


# -------------------------------------------------------------------------------------------------------- accuracy


@pytest.mark.parametrize("mechanism", ["krr", "rappor", "urr"])
def test_it_is_nearer_than_the_nearest_distribution_where_most_values_are_alike(mechanism):
    """The mean lead over ``projected`` on the same reports, in standard errors, beyond the suite's limit."""
    size = 64
    spec = closed(mechanism, size, sensitive=32 if mechanism == "urr" else None)
    truth = np.append(0.3, np.full(size - 1, 0.7 / (size - 1)))
    rng = generator("lead", mechanism)
    leads = []
    for _ in range(60):
        held = np.repeat(np.arange(size), rng.multinomial(4000, truth))
        counts = spec.count(spec.perturb([TEXTS[i] for i in held], rng=rng))
        errors = [((spec.estimate(counts, name).frequencies - truth) ** 2).sum() for name in ("projected", "eb")]
        leads.append(errors[0] - errors[1])
    assert np.mean(leads) > normal_limit() * np.std(leads) / np.sqrt(len(leads))
