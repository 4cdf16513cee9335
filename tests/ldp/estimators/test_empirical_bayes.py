"""The estimator eb: its law of counts against exact ones, its posteriors against enumeration, and what always holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support import cases
from tests.support.tolerance import generator, normal_limit, student_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.estimators import empirical_bayes as estimator_module
from uldp_transforms.ldp.estimators.empirical_bayes import _hashed_slope, _own_slopes, noise_of
from uldp_transforms.ldp.estimators.stacked_priors import Frequencies, posterior_means
from uldp_transforms.ldp.solvers import fitted_prior as module
from uldp_transforms.ldp.solvers import sharpened as sharpened_module
from uldp_transforms.ldp.solvers.buckets import Buckets
from uldp_transforms.ldp.solvers.fitted_prior import Noisy, checked, fit_prior
from uldp_transforms.ldp.solvers.linear import estimate_linear, observe
from uldp_transforms.ldp.solvers.question import ask
from uldp_transforms.ldp.solvers.sharpened import sharpened
from uldp_transforms.ldp.solvers.simplex import nearest_distribution

TEXTS = tuple(f"value {i}" for i in range(64))


def closed(mechanism: str, size: int = 6, sensitive: int | None = None, epsilon: float = 1.0) -> Collection:
    alphabet = {"id": "closed", "values": list(TEXTS[:size]), "sensitive": list(TEXTS[: sensitive or size])}
    spec = {"id": "c", "version": 1, "alphabet": alphabet}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": epsilon}})


def counted(cells: np.ndarray, num_reports: int) -> CohortCounts:
    return CohortCounts(np.array([num_reports]), np.array([cells]))


# ------------------------------------------------------------------------------------------------------------ laws


@cases.each_mechanism(cases.MECHANISMS_TO_TEST)
def test_the_slope_is_that_of_the_exact_variance(mechanism):
    """At any frequencies the variance is the one without the own people, plus slope p, less p^2."""
    frequencies = generator("slope", cases.label(mechanism)).dirichlet(np.ones(mechanism.num_symbols))
    found = mechanism.null_variances(frequencies) + _own_slopes(mechanism) * frequencies - frequencies**2
    np.testing.assert_allclose(found, mechanism.variances_alone(frequencies), rtol=1e-9)


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


def test_hashed_values_in_clear_have_the_noise_of_who_tells_them():
    """Reports of clear buckets are those of holders, told with probability kappa; others are noisy ones."""
    alphabet = {"id": "hashed", "num_buckets": 5, "num_clear_buckets": 3, "non_sensitive": ["n0", "n1"], "seed": 3}
    fields = {"alphabet": alphabet, "mechanism": {"id": "urr", "epsilon": 2.0}, "num_cohorts": 12}
    spec = Collection.from_json({"id": "c", "version": 1, **fields})
    counts = spec.count(spec.perturb(["a", "b", "n0", "n1"] * 100, generator("clear slopes")))
    question = ask(spec, counts, ("a", "n0", "b", "n1"))
    linear = estimate_linear(question)
    assert not question.own.any()
    told, hidden = 1 / spec.mechanism.kappa, _hashed_slope(spec.mechanism, spec.alphabet.num_sensitive)
    found = dict(zip(question.unknowns, noise_of(question, linear).slope * counts.total))
    assert found == pytest.approx({"a": hidden, "b": hidden, "n0": told, "n1": told})


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


def test_equal_frequencies_are_weighed_against_the_fitted_prior_by_hand():
    """Bayes' rule for two hypotheses, with the density of the normal law."""
    rng, alike = generator("alike"), []
    for spread in (0.0, 0.3, 1.0, 3.0):
        noisy = Noisy(8 + spread * np.resize([-1, 1], 40) + rng.normal(size=40), np.ones(40), np.zeros(40), np.inf)
        prior = fit_prior(noisy, 8.0)
        densities = stats.norm.pdf(noisy.estimates[:, np.newaxis], prior.atoms)
        equal = stats.norm.logpdf(noisy.estimates, 8).sum()
        lead = np.log(densities @ prior.weights).sum() - equal
        assert prior.alike == pytest.approx(1 / (1 + np.exp(lead)), rel=1e-3, abs=1e-9)
        expected = prior.alike * 8 + (1 - prior.alike) * prior.means()
        np.testing.assert_allclose(prior.means_given_the_sum(), expected)
        alike.append(prior.alike)
    assert alike[0] > 0.3
    assert alike[-1] < 1e-6


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


def test_the_trust_is_that_of_the_formula():
    """Twenty atoms for 32 values: 39 parameters, 8 in the prior's favour, and 12 to gain."""
    placed = np.arange(20.0) * 20 + 20
    noisy = Noisy(np.append(placed, placed[:12]), np.ones(32), np.zeros(32), np.inf)
    prior = fit_prior(noisy, 1e3)
    assert prior.used_up().sum() == pytest.approx(20, abs=0.01)
    assert checked(prior).trust == pytest.approx(1 / 12, abs=0.01)
    few = fit_prior(Noisy(placed[:3], np.ones(3), np.zeros(3), np.inf), 1e3)
    assert checked(few).trust == 1
    none = fit_prior(Noisy(np.zeros(3), np.ones(3), np.zeros(3), np.inf), 1e3)
    assert checked(none).trust == 1
    fields = dataclasses.replace(prior, trust=0.25)
    np.testing.assert_allclose(fields.means(), 0.25 * prior.means() + 0.75 * noisy.estimates, atol=1e-9)
    np.testing.assert_allclose(fields.moments()[1], 0.25 * prior.moments()[1] + 0.75, atol=1e-9)


@given(st.lists(st.floats(-2, 60), min_size=2, max_size=80), st.floats(0, 1))
def test_a_larger_estimate_has_a_larger_mean_however_far_it_is_trusted(noisy, trust):
    estimates = np.sort(np.array(noisy))
    law = Noisy(estimates, np.ones(len(noisy)), np.zeros(len(noisy)), np.inf)
    means = dataclasses.replace(fit_prior(law, 2.0), trust=trust).means()
    assert (np.diff(means) >= -1e-7 * max(means.max(), 1)).all()


# ------------------------------------------------------------------------------------------------------- sharpened


def hashed(epsilon: float, num_buckets: int, num_cohorts: int, seed: int = 1) -> Collection:
    alphabet = {"id": "hashed", "num_buckets": num_buckets, "seed": seed}
    spec = {"id": "c", "version": 1, "alphabet": alphabet, "num_cohorts": num_cohorts}
    return Collection.from_json(spec | {"mechanism": {"id": "krr", "epsilon": epsilon}})


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


def test_weighted_least_squares_is_the_dense_one(monkeypatch):
    """The minimum over frequencies and one number for each cohort, by a general solver."""
    monkeypatch.setattr(sharpened_module, "_ROUNDS", 1)
    spec, rng = hashed(4.0, 16, 8), generator("dense")
    shares = np.full(20, 0.05)
    question = ask(spec, drawn(spec, TEXTS[:20], shares, 5000, rng), TEXTS[:20])
    table = spec.alphabet.symbol_table(TEXTS[:20], 8)
    given_ = observe(question, Buckets(table, 16), question.counts, slice(0, 16))
    raw = estimate_linear(question).raw
    fit = sharpened_module._fit(given_, raw, np.ones((8, 16)))
    seen = np.maximum(raw, 0) + given_.jump / 5000
    variances = given_.noise(given_.plausible(given_.buckets.forward(seen))) / given_.num_reports[:, np.newaxis]
    rows = np.concatenate([given_.buckets.matrix().toarray(), np.kron(np.eye(8), np.ones((16, 1)))], axis=1)
    roots = 1 / np.sqrt(variances.ravel() + fit.common)
    solved = np.linalg.lstsq(rows * roots[:, np.newaxis], given_.inverted.ravel() * roots, rcond=None)[0]
    np.testing.assert_allclose(fit.frequencies, solved[:20], atol=1e-8)
    weighted = rows * roots[:, np.newaxis]
    np.testing.assert_allclose(fit.errors**2, np.diag(np.linalg.pinv(weighted.T @ weighted))[:20], rtol=1e-6)


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
    spec = {
        "id": "c",
        "version": 1,
        "alphabet": alphabet,
        "mechanism": {"id": "krr", "epsilon": 4.0},
        "num_cohorts": 32,
    }
    item = Collection.from_json(spec)
    others = [f"other {i}" for i in range(300)]
    counts = item.count(item.perturb([*TEXTS[:30]] * 100 + others * 30, generator("open bound")))
    [(bound, of_prior)] = priors_of(item, counts, TEXTS[:30])
    linear = sharpened(question := ask(item, counts, TEXTS[:30]), estimate_linear(question))
    assert bound == pytest.approx(linear.raw.sum() + 2 * linear.rest_standard_error)
    assert 0.2 < of_prior <= bound * (1 + 1e-9) < 0.5


# ------------------------------------------------------------------------------------------------------ invariants


@cases.all_collections
@pytest.mark.parametrize("number", [1, 2, 500])
@pytest.mark.parametrize("alike", [True, False])
def test_it_is_a_distribution(name, number, alike):
    item = cases.ALL_COLLECTIONS[name]
    rng = generator("eb", name, number, alike)
    values = (
        cases.VALUES[:1] * number if alike else [cases.VALUES[i] for i in rng.integers(len(cases.VALUES), size=number)]
    )
    counts = item.count(item.perturb(values, rng=rng))
    candidates = None if item.alphabet.known_values is not None else cases.VALUES
    try:
        found = item.estimate(counts, "eb", candidates)
    except EstimationError as error:
        assert number < 500 <= 100 * item.num_cohorts, error  # too few cohorts have sent reports
        return
    assert np.isfinite(found.frequencies).all()
    assert (found.frequencies >= 0).all()
    assert found.frequencies.sum() + found.left_over == pytest.approx(1)
    assert found.left_over >= 0


@given(st.lists(st.integers(0, 200), min_size=6, max_size=6).filter(any), st.permutations(range(6)))
def test_names_do_not_matter(cells, order):
    spec, given_cells = closed("krr"), np.array(cells)
    found = spec.estimate(counted(given_cells, given_cells.sum()), "eb").frequencies
    moved = spec.estimate(counted(given_cells[order], given_cells.sum()), "eb").frequencies
    np.testing.assert_allclose(moved, found[order], atol=1e-9)
    assert (np.diff(found[np.argsort(given_cells)]) >= -1e-9).all(), "who is counted more is shown as more"


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 16.0])
@pytest.mark.parametrize("mechanism", ["krr", "rappor", "urr", "urap", "uss"])
def test_two_values(mechanism, epsilon):
    spec = closed(mechanism, size=3, sensitive=2, epsilon=epsilon) if mechanism[0] == "u" else closed(mechanism, 2)
    for cells in ([7, 0, 0], [0, 7, 0], [3, 4, 0], [0, 0, 7]):
        own = np.array(cells[: spec.num_cells])
        found = spec.estimate(counted(own, 7), "eb").frequencies
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()


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


@pytest.mark.parametrize("num_hashes", [1, 2, 3, 8, 16])
def test_several_hash_functions(num_hashes):
    """Nearer than the raw frequencies, and the unlisted share is found; one beats several (decision 63)."""
    alphabet = {"id": "hashed", "num_buckets": 32, "seed": 1, "num_hashes": num_hashes}
    spec = Collection.from_json(
        {
            "id": "c",
            "version": 1,
            "alphabet": alphabet,
            "mechanism": {"id": "rappor", "epsilon": 4.0},
            "num_cohorts": 32,
        }
    )
    truth = 1 / np.arange(1.0, 41)
    truth *= 0.8 / truth.sum()
    rng = generator("hashes", num_hashes)
    texts = (*TEXTS[:40], "nobody listed this")
    held = rng.choice(41, 40_000, p=np.append(truth, 0.2))
    counts = spec.count(spec.perturb([texts[i] for i in held], rng=rng))
    found = spec.estimate(counts, "eb", TEXTS[:40])
    error = ((found.frequencies - truth) ** 2).sum()
    assert error < ((found.raw_frequencies - truth) ** 2).sum()
    limit = normal_limit() * (found.unexplained_standard_error + found.standard_errors.max())
    assert abs(found.left_over - 0.2) < limit
    assert ESTIMATORS["eb"]().supports(spec)


@pytest.mark.parametrize("listed", [1, 2])
def test_short_lists(listed):
    """One candidate or two of an open alphabet; the others are unlisted."""
    spec = Collection.from_json(
        {
            "id": "c",
            "version": 1,
            "alphabet": {"id": "hashed", "num_buckets": 8, "seed": 1},
            "mechanism": {"id": "krr", "epsilon": 6.0},
            "num_cohorts": 16,
        }
    )
    rng = generator("short", listed)
    held = [TEXTS[i] for i in rng.choice(20, 20_000, p=np.append(0.4, np.full(19, 0.6 / 19)))]
    found = spec.estimate(spec.count(spec.perturb(held, rng=rng)), "eb", TEXTS[:listed])
    assert found.frequencies[0] == pytest.approx(0.4, abs=normal_limit() * found.standard_errors[0])
    assert found.frequencies.sum() + found.left_over == pytest.approx(1)
