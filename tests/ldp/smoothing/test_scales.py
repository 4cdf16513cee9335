"""Scales and seasons by enumeration: every pair of drift and nugget, every prior, and whole covariances of windows."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import special, stats

from tests.support.ldp.drifting_shares import a_series, normalised, scores
from tests.support.tolerance import generator
from uldp_transforms.ldp.smoothing import (
    Series,
    course_of,
    fit,
    log_likelihood,
    own_shares,
    scales_of,
    season_of,
    track,
)
from uldp_transforms.ldp.smoothing import scales as scales_module
from uldp_transforms.ldp.smoothing.season import Season
from uldp_transforms.ldp.smoothing.series import Law

# ------------------------------------------------------------------------------------------- series


def test_values_that_are_hardly_seen_have_variances_too() -> None:
    """Seen in one window of three, or in none; and a single report, whose share cannot be known better than by 1."""
    raw = np.array([[np.nan, np.nan], [0.3, np.nan], [np.nan, np.nan]])
    series = Series(
        raw=raw,
        variances=np.full((3, 2), 0.05),
        common=np.zeros(2),
        num_reports=np.array([10, 20, 30]),
        steps=np.ones(3, dtype=np.int64),
    )
    law = series.law()
    np.testing.assert_allclose(law.shares, [0.3, 1e-5])
    np.testing.assert_allclose(law.people[0], [1 / 40, 1e-6])  # at most that of a coin
    np.testing.assert_allclose(law.noise[0], [(0.05 * 20 - 1 / 4) / 10, 0])
    one = dataclasses.replace(series, raw=raw[1:2], variances=np.zeros((1, 2)), num_reports=np.ones(1), jump=2.0)
    np.testing.assert_allclose(one.law().noise, 2 * one.law().shares[np.newaxis])


def test_what_is_known_from_forgotten_windows_is_a_mean_and_a_variance() -> None:
    """Filters, likelihoods and seasons from a level are those of what windows say beyond it; by whole covariances."""
    series = with_phases(0.05)
    law, level, spread = series.law(), np.array([0.3, 0.2, 0.1, 0.1]), np.array([1e-3, 2e-3, 1e-4, 5e-4])
    drift, nugget = 1e-5 * law.shares, 1e-3 * law.shares
    known = dataclasses.replace(series, level=level, spread=spread)
    beyond = dataclasses.replace(series, raw=series.raw - level, spread=spread)
    first, second = (course_of(one, law, drift, nugget) for one in (known, beyond))
    np.testing.assert_allclose(first.mean, second.mean + level)
    for value in (0, 2):  # those that are seen in all windows
        walk = np.cumsum(series.steps * drift[value]) + spread[value]
        trend = np.minimum.outer(walk, walk)
        whole = trend + np.diag(law.noise[:, value] + law.people[:, value] + nugget[value])
        gain = np.linalg.solve(whole, trend).T
        expected = level[value] + gain @ (series.raw[:, value] - level[value])
        np.testing.assert_allclose(first.mean[:, value], expected, rtol=1e-9)
        np.testing.assert_allclose(first.variance[:, value], np.diag(trend - gain @ trend), rtol=1e-6)
    tracks = [track(one, law, 1e-5, 1e-3) for one in (known, beyond)]
    np.testing.assert_allclose(tracks[0].level, tracks[1].level + level)
    np.testing.assert_allclose(tracks[0].expected, tracks[1].expected + level)
    np.testing.assert_allclose(tracks[0].level[-1], first.mean[-1])
    likely = [log_likelihood(one, law, np.array([1e-5]), np.array([1e-3])) for one in (known, beyond)]
    np.testing.assert_allclose(*likely)
    seasons = [season_of(one, law, drift, nugget) for one in (known, beyond)]
    assert seasons[0] is not None and seasons[1] is not None
    np.testing.assert_allclose(seasons[0].means, seasons[1].means)


# ------------------------------------------------------------------------------------------- one drift for all


@pytest.mark.parametrize(("drift", "nugget"), [(3e-3, 3e-3), (0.0, 0.0)])
def test_drift_and_nugget_are_the_likeliest_of_grids_that_become_finer(drift: float, nugget: float) -> None:
    """Of 0 and powers of 100, then of half and of an eighth of a power of ten, by the 256 largest values; jumps count
    as Huber's loss says, from 3 standard deviations on."""
    rng = generator("finer grids", drift)
    shares, size = np.where(np.arange(260) < 256, 0.5, 0.05), (12, 260)
    raw = shares + np.cumsum(rng.normal(0, np.sqrt(drift * shares), size), axis=0)
    raw += rng.normal(0, np.sqrt(nugget * shares + 5e-5), size)
    raw[6, :250:10] += 12 * np.sqrt(nugget * 0.5 + 1e-4)
    raw[:, 256:] += rng.normal(0, 0.1, (12, 4))  # of the others
    raw[:, 256:] -= raw[:, 256:].mean(axis=0) - 0.05
    series = Series(
        raw=raw,
        variances=np.full(size, 1e-4),
        common=np.zeros(260),
        num_reports=np.full(12, 10**5),
        steps=np.ones(12, dtype=np.int64),
    )
    law, chosen = series.law(), np.arange(256)
    assert law.shares[256:].max() < law.shares[:256].min()
    large = dataclasses.replace(series, raw=raw[:, chosen], variances=series.variances[:, chosen], common=np.zeros(256))
    found = np.zeros(2)
    for factors in (None, 10 ** np.array([-1, -0.5, 0, 0.5, 1]), 10 ** np.array([-0.25, -0.125, 0, 0.125, 0.25])):
        axes = [[0, 1e-8, 1e-6, 1e-4, 1e-2, 1]] * 2 if factors is None else [one * factors for one in found]
        pairs = np.array(list(itertools.product(*axes)))
        found = pairs[np.argmax(log_likelihood(large, law.values(chosen), *pairs.T, bend=3.0))]
    assert fit(series, law) == pytest.approx(found.tolist(), rel=1e-9)
    assert found.all() or not drift


# ------------------------------------------------------------------------------------------- scales of values

STEPS = (np.arange(-2, 2.5, 0.5), np.arange(-3, 3.5, 0.5))
"""Logarithms to base 8 of drifts, and to base 4 of nuggets, relative to the centre."""


def priors() -> tuple[np.ndarray, np.ndarray]:
    """(H, G) normal densities of both logarithms around each whole step, four widths each, and their weights (H,)."""
    found, weights = [], []
    for drift, nugget in itertools.product(range(-2, 3), range(-3, 4)):
        for widths in itertools.product((0.1, 0.5, 1.0, 1.5), repeat=2):
            axes = []
            for steps, centre, width, base in zip(STEPS, (drift, nugget), widths, (8, 4)):
                density = stats.norm.pdf(np.log(base) * steps, np.log(base) * centre, np.log(4) * width)
                axes.append(density / density.sum())
            found.append(0.995 * np.outer(*axes).ravel() + 0.005 / 117)
            weights.append(4 ** (nugget / 4))
    return np.array(found), np.array(weights) / np.sum(weights)


@pytest.mark.parametrize("copies", [1, 2])
def test_scales_are_the_posterior_over_priors_and_values(copies: int) -> None:
    """By the 256 values with the largest shares; evidence of values that say nearly the same is divided."""
    rng, shares = generator("scales of many"), normalised(np.linspace(2, 1, 260))
    series, _ = a_series(rng, np.tile(shares, (12, 1)), n=20_000, noise=1.0)
    raw = series.raw.copy()
    raw[:, series.law().shares.argsort()[:4]] *= rng.choice([0.2, 1.8], (12, 4))  # rare ones vary
    raw[5, 7] += 12 * np.sqrt(series.variances[5, 7])
    series = dataclasses.replace(series, raw=raw, **({} if copies == 1 else {"copies": 2.0}))
    law, (prior, density) = series.law(), priors()
    scales, likelihoods = scales_of(series, law)
    assert scales.centre == pytest.approx(scales_module._likely(series, law))
    coarse = [place for place in range(117) if place // 13 % 2 == place % 13 % 2 == 0]
    one = dataclasses.replace(series, raw=raw[:, [7]], variances=series.variances[:, [7]])
    exact = log_likelihood(one, law.values(np.array([7])), *scales.pairs[coarse].T, bend=3.0)
    np.testing.assert_allclose(likelihoods[coarse, 7] - exact, (likelihoods[coarse, 7] - exact).mean(), atol=0.01)
    np.testing.assert_allclose(scales.pairs, scales_module._grid().factors * scales.centre)
    few = likelihoods[:, np.argsort(-law.shares, kind="stable")[:256]]
    told = np.log(prior @ np.exp(few - few.max(axis=0))).sum(axis=1) + few.max(axis=0).sum()
    logs = told / copies + np.log(density)
    chances = special.softmax(logs)
    kept = chances > 1e-4
    assert 1 < kept.sum() < len(kept)
    np.testing.assert_allclose(scales.priors, prior[kept])
    np.testing.assert_allclose(scales.weights, chances[kept] / chances[kept].sum(), rtol=1e-6)
    assert scales.evidence == pytest.approx(special.logsumexp(logs), rel=1e-9)
    logs_of_pairs = np.log(scales.pairs)
    assert np.log(scales.common) == pytest.approx((scales.weights @ scales.priors) @ logs_of_pairs)
    posterior, marginal = scales.posterior(likelihoods)
    for value in (0, 130, 259):
        each = np.exp(likelihoods[:, value] - likelihoods[:, value].max())
        by_prior = [weight * one * each / (one @ each) for weight, one in zip(scales.weights, scales.priors)]
        np.testing.assert_allclose(posterior[:, value], np.sum(by_prior, axis=0), rtol=1e-9)
        expected = np.log(scales.weights @ (scales.priors @ each)) + likelihoods[:, value].max()
        assert marginal[value] == pytest.approx(expected)
        chance, share = posterior[:, value], law.shares[value]
        roots = [(chance @ np.sqrt(part)) ** 2 * share for part in scales.pairs.T]
        assert [part[value] for part in scales.means(posterior, law)] == pytest.approx(roots)
        assert scales.likely(posterior, law)[:, value] == pytest.approx(np.exp(chance @ logs_of_pairs) * share)


def test_a_series_within_its_noise_has_the_least_scales() -> None:
    """They would be hidden in it: of noise over T windows, the share 1 / T^2 of a step and 1 / 4 T of a window."""
    series = dataclasses.replace(a_series(generator("still"), np.full((20, 3), 1 / 3))[0], raw=np.full((20, 3), 0.3))
    law = series.law()
    least = float(np.median((law.noise + law.people).mean(axis=0) / law.shares))
    assert scales_module._likely(series, law) == pytest.approx((least / 400, least / 80))


# ------------------------------------------------------------------------------------------- seasons


def with_phases(amplitude: float, windows: int = 18, noise: float = 1.0) -> Series:
    """Four values with three phases, whose effects are relative to their shares; the last value lacks a phase."""
    rng = generator("three phases")
    shares, phases = np.array([0.4, 0.3, 0.2, 0.1]), np.arange(windows) % 3
    effects = rng.normal(0, 1, (3, 4)) * np.sqrt(shares)
    series, _ = a_series(rng, np.tile(shares, (windows, 1)), n=5000, noise=noise)
    raw = series.raw + amplitude * effects[phases]
    raw[4, 1], raw[phases == 2, 3] = np.nan, np.nan
    return dataclasses.replace(series, raw=raw, phases=phases)


def enumerated_season(series: Series, law: Law, drift: np.ndarray, nugget: np.ndarray) -> tuple[float, Season]:
    """The evidence of a season, and the season, from whole covariances, by the variances and priors one by one."""
    size, indicator = len(law.shares), np.eye(3)[series.phases]
    told = []
    for value in range(size):
        seen = series.seen[:, value]
        some = dataclasses.replace(series, raw=np.where(series.seen, series.raw, 0.0))
        covariance = np.linalg.inv(scores_without_law(some, law, drift, nugget, value))[np.ix_(seen, seen)]
        inverse, shapes = np.linalg.inv(covariance), indicator[seen]
        told.append((shapes.T @ inverse @ shapes, shapes.T @ inverse @ series.raw[seen, value]))
    most = np.median([np.linalg.eigvalsh(information)[-1] * share for (information, _), share in zip(told, law.shares)])
    variances = np.append(0, 4.0 ** np.arange(-2, 8) / most)
    gains, means, covariances = np.zeros((11, size)), np.zeros((11, size, 3)), np.zeros((11, size, 3, 3))
    for (which, variance), value in itertools.product(enumerate(variances[1:], 1), range(size)):
        information, score = told[value]
        own = variance * law.shares[value]
        covariances[which, value] = np.linalg.inv(information + np.eye(3) / own)
        means[which, value] = covariances[which, value] @ score
        gains[which, value] = score @ means[which, value] / 2
        gains[which, value] -= np.linalg.slogdet(np.eye(3) + own * information)[1] / 2
    prior = []
    for width, centre in itertools.product((0.1, 0.5, 1.0), range(11)):
        density = stats.norm.pdf(np.arange(11), centre, width)
        prior.append(0.98 * density / density.sum() + 0.02 / 11)
    marginal = np.array([[special.logsumexp(np.log(one) + gains[:, value]) for value in range(size)] for one in prior])
    evidence = marginal.sum(axis=1)
    weights, chances = special.softmax(evidence), np.zeros((11, size))
    for weight, one, logs in zip(weights, prior, marginal):
        chances += weight * one[:, np.newaxis] * np.exp(gains - logs)
    spread = np.einsum("gs,gsij->sij", chances, covariances)
    freedom = np.array([np.trace(spread[value] @ told[value][0]) for value in range(size)])
    return evidence.max(), Season(series.phases, np.einsum("gs,gsi->is", chances, means), spread, freedom)


def scores_without_law(series: Series, law: Law, drift: np.ndarray, nugget: np.ndarray, value: int) -> np.ndarray:
    """The inverse covariance of one value's windows under a law that is given."""

    class Known(Series):
        def law(self) -> Law:
            return law

    fields = {field.name: getattr(series, field.name) for field in dataclasses.fields(Series)}
    return scores(Known(**fields), drift, nugget, value)[0]


def test_a_season_is_the_mean_over_all_variances_and_priors() -> None:
    series = with_phases(0.05)
    law = series.law()
    drift, nugget = 1e-6 * law.shares, 1e-4 * law.shares
    found = season_of(series, law, drift, nugget)
    assert found is not None
    evidence, expected = enumerated_season(series, law, drift, nugget)
    assert evidence > 3
    np.testing.assert_allclose(found.means, expected.means, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.variances, expected.variances, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found.freedom, expected.freedom, rtol=1e-6)
    np.testing.assert_array_equal(found.phases, series.phases)


def test_nothing_that_is_seen_has_no_season() -> None:
    series = with_phases(0.05)
    law = series.law()
    nothing = dataclasses.replace(series, raw=np.full_like(series.raw, np.nan))
    assert season_of(nothing, law, 1e-6 * law.shares, 1e-4 * law.shares) is None


def test_what_is_uncertain_of_a_season_is_uncertain_of_shares() -> None:
    """A share is the season's effect and what the rest of the window says; it moves by the effect, less that."""
    series = with_phases(0.05)
    law = series.law()
    drift, nugget = 1e-5 * law.shares, 1e-3 * law.shares
    rng = generator("uncertain season")
    roots = rng.normal(0, 0.01, (4, 3, 3))
    season = Season(series.phases, np.zeros((3, 4)), roots @ roots.transpose(0, 2, 1), np.ones(4))
    plain = own_shares(series, law, course_of(series, law, drift, nugget))[0]
    moves = []
    for phase in range(3):
        effect = (series.phases == phase)[:, np.newaxis] * 1.0
        less = dataclasses.replace(series, raw=series.raw - effect)
        moves.append(own_shares(less, law, course_of(less, law, drift, nugget))[0] + effect - plain)
    expected = np.einsum("kts,skl,lts->ts", moves, season.variances, moves)
    found = season.uncertainty(series, law, drift, nugget)
    np.testing.assert_allclose(found[series.seen], expected[series.seen], rtol=1e-6)
    some = season.values(np.array([2, 0]))
    np.testing.assert_array_equal(some.variances, season.variances[[2, 0]])
    np.testing.assert_array_equal(some.effects, season.effects[:, [2, 0]])
