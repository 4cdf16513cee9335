"""What is shown of windows: scales of values, seasons and breaks, against linear algebra and by simulation."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.drifting_shares import SHARES, a_series, drifting, normalised, scores
from tests.support.tolerance import chi_square_limits, generator, student_limit
from uldp_transforms.ldp.smoothing import (
    LEAST_HISTORY,
    Series,
    course_of,
    filtered,
    log_likelihood,
    scales_of,
    season_of,
    smoothed,
)
from uldp_transforms.ldp.smoothing import scales as scales_module
from uldp_transforms.ldp.smoothing import season as season_module
from uldp_transforms.ldp.smoothing import smoothed_shares as shares_module
from uldp_transforms.ldp.smoothing.breaks import Broken, branches, breaks_of, suspects
from uldp_transforms.ldp.smoothing.course import Course
from uldp_transforms.ldp.smoothing.drift_fit import BEND
from uldp_transforms.ldp.smoothing.series import Law

ROOM = 0.05  # half length that a coverage may have before it says nothing


# ------------------------------------------------------------------------------------------- scores and breaks


def test_scores_are_those_of_the_whole_normal_law() -> None:
    """A change from window t on is the direction 1[u >= t], one of window t alone the direction 1[u = t]."""
    series, _ = a_series(generator("scores"), drifting(generator("scores of"), 20))
    law = series.law()
    drift, nugget = 3e-4 * law.shares, 2e-3 * law.shares
    course = course_of(series, law, drift, nugget)
    for value in (0, 5, 52):
        inverse, whitened = scores(series, drift, nugget, value)
        lasting = np.triu(np.ones((20, 20)))
        np.testing.assert_allclose(course.shift[:, value], lasting @ whitened, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(
            course.shift_information[:, value], np.einsum("tu,uv,tv->t", lasting, inverse, lasting), rtol=1e-6
        )
        np.testing.assert_allclose(course.pulse[:, value], whitened, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(course.pulse_information[:, value], np.diag(inverse), rtol=1e-6)


@pytest.mark.parametrize("lasts", [True, False])
def test_branches_are_courses_with_one_more_change(lasts: bool) -> None:
    """With a huge change that stands alone there is one branch: that of a course in which it has a large variance."""
    shares = drifting(generator("branches", lasts), 30)
    series, _ = a_series(generator("branches noise", lasts), shares)
    raw = series.raw.copy()
    raw[12 : 30 if lasts else 13, 4] += 20
    series, places = dataclasses.replace(series, raw=raw), np.array([4])
    law = series.law()
    law = dataclasses.replace(law, noise=np.full_like(law.noise, 1e-3), people=np.full_like(law.people, 1e-5))
    few = dataclasses.replace(
        series, raw=raw[:, places], variances=series.variances[:, places], common=np.full(1, 2e-3)
    )
    own, drift, nugget = law.values(places), np.array([1e-5]), np.array([1e-4])
    nothing, change = np.zeros((30, 1)), np.zeros((30, 1))
    change[12] = 1e6
    means, low, high = branches(Broken.of(few, own, drift, nugget, nothing, nothing), 0.95)
    course = course_of(few, own, drift, nugget, *((change, nothing) if lasts else (nothing, change)))
    weight = course.own / (course.own + own.noise)
    expected = course.mean + weight * (few.raw - course.mean)
    half = stats.norm.isf(0.025) * np.sqrt(
        (1 - weight) ** 2 * course.variance + weight * own.noise + 2e-3
    )  # common to all windows
    np.testing.assert_allclose(means, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(low, expected - half, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(high, expected + half, rtol=1e-5, atol=1e-5)


def test_a_break_is_found_where_it_is() -> None:
    series, _ = a_series(generator("break"), drifting(generator("break of"), 60))
    raw = series.raw.copy()
    raw[30:, 4] += 12 * np.sqrt(series.variances[0, 4])
    raw[45, 7] -= 12 * np.sqrt(series.variances[0, 7])
    series = dataclasses.replace(series, raw=raw)
    law = series.law()
    scales, likelihoods = scales_of(series, law)
    drift, nugget = np.outer(scales.common, law.shares)
    common = Broken.quiet(series, law, drift, nugget, course_of(series, law, drift, nugget))
    assert {4, 7} <= set(suspects(common.course).tolist())
    drift, nugget = scales.means(scales.posterior(likelihoods)[0], law)
    own = Broken.quiet(series, law, drift, nugget, course_of(series, law, drift, nugget))
    found = breaks_of(common, own, scales)
    assert [30, 4] in np.argwhere(found.shifts > 0).tolist()
    assert [45, 7] in np.argwhere(found.pulses > 0).tolist()


def test_a_window_that_contradicts_its_neighbours_spans_both() -> None:
    """Four standard errors in one window: the interval holds what the neighbours say and what the window says."""
    series, _ = a_series(generator("both"), drifting(generator("both of"), 60))
    error = np.sqrt(series.law().noise[0, 4])
    raw = series.raw.copy()
    raw[30, 4] = raw[:30, 4].mean() + 4 * error
    found, quiet = smoothed(dataclasses.replace(series, raw=raw)), smoothed(series)
    assert found.low[30, 4] < quiet.means[29, 4]
    assert found.high[30, 4] > raw[30, 4] + 1.6 * error
    assert (found.high - found.low)[30, 4] > 4 * (quiet.high - quiet.low)[30, 4]


def test_a_lasting_change_is_not_smeared_over_the_days_before() -> None:
    """20 standard errors: the line jumps in that window."""
    series, _ = a_series(generator("jump"), drifting(generator("jump of"), 60))
    error = np.sqrt(series.law().noise[0, 4])
    raw = series.raw.copy()
    raw[30:, 4] += 20 * error
    found = smoothed(dataclasses.replace(series, raw=raw))
    assert found.means[29, 4] < raw[:30, 4].mean() + 2 * error
    assert found.means[30, 4] > raw[30:, 4].mean() - 2 * error


# ------------------------------------------------------------------------------------------- scales


def test_likelihoods_of_the_fine_grid_are_those_of_the_model() -> None:
    """Splines are exact on the coarse grid; between its points they differ by less than a prior does, 0.5."""
    series, _ = a_series(generator("grid"), drifting(generator("grid of"), 60, 1e-5, 1e-3))
    law = series.law()
    scales, likelihoods = scales_of(series, law)
    some = np.arange(0, len(scales.pairs), 9)
    for value in (0, 10, 50):
        one = dataclasses.replace(series, raw=series.raw[:, [value]], variances=series.variances[:, [value]])
        own = law.values(np.array([value]))
        exact = log_likelihood(one, own, *scales.pairs[some].T, bend=BEND)
        found = likelihoods[some, value]
        np.testing.assert_allclose(found - found.max(), exact - exact.max(), atol=0.5)


def test_values_that_move_more_have_larger_scales() -> None:
    """Every tenth value has a nugget of 50 times that of others. Each is found within a factor of 3.

    The logarithm of a variance that 400 windows tell has a standard deviation of .07 where noise is small: 15 of them.
    """
    rng = generator("scales")
    nugget = np.where(np.arange(40) % 10 == 5, 5e-3, 1e-4)
    shares = 1 / 40 + rng.normal(0, np.sqrt(nugget / 40), (400, 40))
    series, _ = a_series(rng, normalised(shares), n=1_000_000, noise=0.1)
    law = series.law()
    scales, likelihoods = scales_of(series, law)
    _, found = scales.means(scales.posterior(likelihoods)[0], law)
    relative = found / law.shares / nugget
    assert (relative > 1 / 3).all()
    assert (relative < 3).all()


# ------------------------------------------------------------------------------------------- seasons


def seasonal(rng: np.random.Generator, size: float, windows: int = 84) -> np.ndarray:
    return normalised(SHARES * np.exp(rng.normal(0, size, (7, len(SHARES))))[np.arange(windows) % 7])


def test_gains_of_a_season_are_those_of_the_normal_law() -> None:
    """The season's posterior mean and covariance, from the whole covariance of one value's windows."""
    rng = generator("season law")
    series, _ = a_series(rng, seasonal(rng, 0.5), n=20_000, phases=True)
    law = series.law()
    drift, nugget = 1e-6 * law.shares, 1e-4 * law.shares
    season = season_of(series, law, drift, nugget)
    assert season is not None
    indicator = np.eye(7)[series.phases]
    for value in (0, 1, 2):
        inverse, whitened = scores(series, drift, nugget, value)
        precision = np.linalg.inv(season.variances[value])
        np.testing.assert_allclose(precision @ season.means[:, value], indicator.T @ whitened, rtol=1e-2, atol=1e-2)
        rest = precision - indicator.T @ inverse @ indicator  # what is left is the prior's, a mean over its variances
        assert np.linalg.eigvalsh(rest).min() > 0


def test_a_week_is_found_and_its_effects_are_near_the_truth() -> None:
    rng = generator("week")
    shares = seasonal(rng, 0.3)
    series, own = a_series(rng, shares, n=20_000, phases=True)
    plain = dataclasses.replace(series, phases=None)
    with_week, without = (smoothed(one) for one in (series, plain))
    better, worse = (((found.means - own) ** 2).sum() for found in (with_week, without))
    assert better < worse / 1.5
    assert (with_week.high - with_week.low).mean() < (without.high - without.low).mean()


def test_residuals_of_a_season_are_as_large_as_the_noise_was() -> None:
    """Of white noise beside strong weeks 77 of 84 degrees of freedom are left, made longer by 84 / 78; chi-square."""
    rng = generator("residuals")
    noise, effects = rng.normal(0, 1e-3, (84, len(SHARES))), rng.normal(0, 0.02, (7, len(SHARES)))
    weeks, phases = SHARES + effects[np.arange(84) % 7], np.arange(84) % 7
    series, _ = a_series(rng, drifting(rng, 84), n=1_000_000, phases=True)
    series = dataclasses.replace(series, raw=weeks + noise, phases=phases, variances=np.full(noise.shape, 1e-6))
    law = series.law()
    season = season_of(series, law, 1e-12 * law.shares, 1e-12 * law.shares)
    assert season is not None
    assert (season.freedom > 5).all()
    squares = ((left := season.residuals(series).raw) - left.mean(axis=0)) ** 2
    low, high = (limit * 84 / 78 * 1e-6 for limit in chi_square_limits(77 * len(SHARES)))
    assert low < squares.sum() < high
    plain = season.effects
    assert squares.sum() > 1.05 * ((series.raw - plain - (series.raw - plain).mean(axis=0)) ** 2).sum()


def test_there_is_no_week_where_there_is_none() -> None:
    """The gain of the log likelihood is 3 or more with probability exp(-3) at most (Markov); the limit has 1e-6."""
    found, streams = 0, 40
    for seed in range(streams):
        series, _ = a_series(generator("no week", seed), np.tile(SHARES / SHARES.sum(), (42, 1)), phases=True)
        law = series.law()
        scales, likelihoods = scales_of(series, law)
        drift, nugget = scales.means(scales.posterior(likelihoods)[0], law)
        found += season_of(series, law, drift, nugget) is not None
    assert found < stats.binom.isf(1e-6, streams, np.exp(-3))


def test_four_weeks_are_needed() -> None:
    rng = generator("short")
    shares = seasonal(rng, 0.5)
    series, _ = a_series(rng, shares, n=50_000, phases=True)
    for end, expected in ((27, False), (28, True)):
        known = series.until(end)
        law = known.law()
        assert (season_of(known, law, 1e-7 * law.shares, 1e-4 * law.shares) is not None) == expected


def test_blocks_of_values_are_smoothed_as_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = generator("blocks")
    series, _ = a_series(rng, seasonal(rng, 0.3, 35), n=20_000, phases=True)
    whole = smoothed(series)
    for module in (shares_module, season_module, scales_module):
        monkeypatch.setattr(module, "_BLOCK", 10)
    parts = smoothed(series)
    for name in ("means", "low", "high"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-5, atol=1e-9)


# ------------------------------------------------------------------------------------------- coverage

TRUTHS: list[dict[str, Any]] = [{}, {"drift": 1e-5}, {"nugget": 1e-3}, {"drift": 1e-5, "nugget": 1e-3, "noise": 20.0}]


@pytest.mark.parametrize("truth", TRUTHS, ids=str)
def test_intervals_cover_the_people_of_each_window(truth: dict[str, float]) -> None:
    """Streams are independent, so the shares that each of them covers are; Student's limit around .94 and .98."""
    hits: dict[str, list[float]] = {"smoothed": [], "filtered": [], "largest": []}
    noise = {"noise": truth["noise"]} if "noise" in truth else {}
    for seed in range(30):
        rng = generator("coverage", seed, *truth)
        shares = drifting(rng, **{name: size for name, size in truth.items() if name != "noise"})
        series, own = a_series(rng, shares, **noise)
        found = smoothed(series)
        assert ((found.low <= found.means) & (found.means <= found.high)).all()
        inside = (found.low <= own) & (own <= found.high)
        hits["smoothed"].append(inside.mean())
        hits["largest"].append(inside[:, :10].mean())
        last = filtered(series, t := int(rng.integers(LEAST_HISTORY, len(own))))
        hits["filtered"].append(((last.low <= own[t]) & (own[t] <= last.high)).mean())
    for name, covered in hits.items():
        error = student_limit(30) * np.std(covered, ddof=1) / np.sqrt(30)
        assert 0.94 - error <= np.mean(covered) <= 0.98 + error, (name, np.mean(covered), error)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1_000, 20_000])
@pytest.mark.parametrize("size", [1.0, 2.0, 3.0, 5.0, 8.0, 10.0])
@pytest.mark.parametrize("lasts", [True, False], ids=["for good", "one window"])
def test_a_value_that_moves_is_covered_around_its_jump(lasts: bool, size: float, n: int) -> None:
    """By standard errors of a window alone: in the five windows before and after, at least .90 are covered.

    The mean of 400 streams; it is more than Student's limit below .90 with probability 1e-6.
    """
    noise, streams, at = 3.68, 400, 30  # optimized unary encoding at epsilon 1
    covered = []
    for seed in range(streams):
        rng = generator("jumps", lasts, size, n, seed)
        shares = normalised(np.exp(rng.normal(0, 0.05, (60, 20))) / np.arange(1, 21))
        here = slice(at, 60 if lasts else at + 1)
        before = shares[here, 4].copy()
        after = np.minimum(before + size * np.sqrt(noise / n), 0.95)
        shares[here] *= ((1 - after) / (1 - before))[:, np.newaxis]
        shares[here, 4] = after
        series, own = a_series(rng, normalised(shares), n=n, noise=noise)
        found = smoothed(series)
        inside = (found.low <= own) & (own <= found.high)
        covered.append(inside[at - 5 : at + 6, 4].mean())
    limit = stats.t.isf(1e-6, streams - 1) * np.std(covered, ddof=1) / np.sqrt(streams)
    assert limit < ROOM
    assert np.mean(covered) >= 0.9 - limit, (np.mean(covered), limit)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.1, 0.3, 0.6])
def test_strong_weeks_are_covered(size: float) -> None:
    """Of all values and of the ten largest at least .93; the mean of 60 streams, Student's limit with 1e-6."""
    hits: dict[str, list[float]] = {"all": [], "largest": []}
    for seed in range(60):
        rng = generator("weeks", size, seed)
        series, own = a_series(rng, seasonal(rng, size, 70), n=5_000, phases=True)
        found = smoothed(series)
        inside = (found.low <= own) & (own <= found.high)
        hits["all"].append(inside.mean())
        hits["largest"].append(inside[:, :10].mean())
    for name, covered in hits.items():
        limit = stats.t.isf(1e-6, 59) * np.std(covered, ddof=1) / np.sqrt(60)
        assert limit < ROOM
        assert np.mean(covered) >= 0.93 - limit, (name, np.mean(covered), limit)


def of_windows(raw: np.ndarray, variances: np.ndarray) -> Series:
    """A series of windows of 100 reports."""
    number, values = raw.shape
    steps, reports = np.ones(number, dtype=np.int64), np.full(number, 100)
    return Series(raw=raw, variances=variances, common=np.zeros(values), num_reports=reports, steps=steps)


@pytest.mark.parametrize("confidence", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("apart", [0.0, 0.5, 1.0, 2.0])
def test_an_interval_extends_to_the_window_s_own_as_far_as_others_contradict_it(
    apart: float, confidence: float
) -> None:
    """Of two values, of which one is above all other windows and one below; not at all if they agree."""
    raw, zero, one, deviation = np.array([[0.9, 0.1]]), np.zeros((1, 2)), np.ones((1, 2)), 0.01
    series = of_windows(raw, one * deviation**2)
    law = Law(shares=one[0], noise=one * deviation**2, people=zero)
    contradicts = (1 + apart) * 1.2 if apart else 0.5
    nothing = dict.fromkeys(("variance", "prior", "gain", "precision", "own", "shift", "shift_information"), zero)
    pulse = np.array([[1.0, -1.0]]) * contradicts / deviation  # a score
    course = Course(mean=one / 2, pulse=pulse, pulse_information=one / deviation**2, **nothing)
    _, low, high = shares_module._around(series, law, course, zero, confidence)
    own = max(stats.norm.ppf(confidence), 0) * min(apart, 1) * deviation
    expected = [0.5, 0.9 + own, 0.1 - own, 0.5] if apart else [0.5] * 4
    np.testing.assert_allclose([low[0, 0], high[0, 0], low[0, 1], high[0, 1]], expected, rtol=1e-12)


def test_values_that_nobody_and_that_all_hold_are_smoothed(recwarn: pytest.WarningsRecorder) -> None:
    """Their drifts and nuggets are of very different sizes: the products of variances need 64 bits."""
    share = np.random.default_rng(1).normal(1, 0.01, (12, 1))
    raw = np.concatenate([share, 1 - share], axis=1)
    series = Series(
        raw=raw,
        variances=np.full_like(raw, 1e-4),
        common=np.zeros(2),
        num_reports=np.full(12, 3000),
        steps=np.ones(12, dtype=int),
    )
    found = smoothed(series)
    assert not recwarn.list
    assert ((found.low <= found.means) & (found.means <= found.high)).all()
