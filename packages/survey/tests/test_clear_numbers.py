"""Numbers in the clear by private value: the published rule, independent formulas, coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, stats

from tests.support.tolerance import binomial_limits, chi_square_limits, generator, student_limit, within
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms_survey.clear_numbers import (
    MOST_OUTSIDE,
    UNKNOWN,
    agreement_of,
    answer_noise,
    mean_of,
    outside,
    quantile_of,
    share_of,
    two_answer_weights,
)

RATE = 0.4994798


def channel(rate: str) -> Collection:
    other, keep = f"{int(float(rate) * 50)}/100", f"{100 - int(float(rate) * 50)}/100"
    mechanism = {"id": "channel", "matrix": [[keep, other], [other, keep]]}
    alphabet = {"id": "closed", "values": ["low", "high"]}
    return Collection.from_json({"id": "a", "version": 1, "alphabet": alphabet, "mechanism": mechanism})


# ---------------------------------------------------------------------- the published rule


def test_six_records_by_hand() -> None:
    """W3C: w = (R - r/2) / (1 - r); the mean is sum w t / sum w. With r = 1/2, w is 3/2 and -1/2."""
    held = np.array([True, True, False, True, False, True])
    times = np.array([100.0, 200.0, 400.0, 100.0, 200.0, 300.0])
    weights = two_answer_weights(held, np.full(6, 0.5))
    np.testing.assert_allclose(weights, [1.5, 1.5, -0.5, 1.5, -0.5, 1.5])
    assert share_of(held, np.full(6, 0.5))[0].value == pytest.approx((4 * 1.5 - 2 * 0.5) / 6)
    expected = (1.5 * (100 + 200 + 100 + 300) - 0.5 * (400 + 200)) / 5
    assert mean_of(weights, times, confidence=0.5).value == pytest.approx(expected)


def test_the_standard_error_is_that_of_the_channel_formula() -> None:
    """With the inverse B of the channel, sums S and sums of squares S2 of each answer: T = B S / n, u = B c / n, and
    the error sqrt((V_T - 2 m C + m^2 V_u) / n) / |u|. Half of Fieller's interval is z times that, for many records."""
    rng = generator("clear numbers")
    n = 400_000
    held = rng.random(n) < 0.4
    times = rng.gamma(2.0, np.where(held, 100.0, 60.0))
    said = np.where(rng.random(n) < RATE, rng.random(n) < 0.5, held)
    inverse = np.linalg.inv(np.array([[1 - RATE / 2, RATE / 2], [RATE / 2, 1 - RATE / 2]]))[1]
    counts = np.array([(~said).sum(), said.sum()])
    sums, squares = (np.array([(times**power)[~said].sum(), (times**power)[said].sum()]) for power in (1, 2))
    u, t = inverse @ counts / n, inverse @ sums / n
    mean = t / u
    v_t, c, v_u = (inverse**2 @ squares / n - t**2, inverse**2 @ sums / n - u * t, inverse**2 @ counts / n - u**2)
    error = np.sqrt((v_t - 2 * mean * c + mean**2 * v_u) / n) / abs(u)
    found = mean_of(two_answer_weights(said, np.full(n, RATE)), times)
    assert found.value == pytest.approx(mean, rel=1e-9)
    assert (found.high - found.low) / 2 == pytest.approx(stats.norm.ppf(0.975) * error, rel=1e-3)


def test_the_share_is_the_mean_of_the_channels_estimates_by_their_records() -> None:
    """Each rate as a declared channel; every record counts once, although those of rate .2 have less noise."""
    numbers = {"0.5": (700, 300), "0.2": (80, 120)}
    alone = [
        channel(rate).estimate(CohortCounts(np.array([sum(c)]), np.array([c])), "empirical").raw_frequencies[1]
        for rate, c in numbers.items()
    ]
    held = np.concatenate([np.repeat([False, True], c) for c in numbers.values()])
    rates = np.repeat([float(rate) for rate in numbers], [sum(c) for c in numbers.values()])
    share, error = share_of(held, rates)
    assert share.value == pytest.approx((1000 * alone[0] + 200 * alone[1]) / 1200, abs=1e-12)
    assert error == pytest.approx(two_answer_weights(held, rates).std() / np.sqrt(1200), rel=1e-12)


@pytest.mark.parametrize("rate", [0.0, 0.3, RATE, 0.999])
def test_the_square_of_a_weight_is_the_weight_and_the_noise(rate: float) -> None:
    weights = two_answer_weights(np.array([True, False]), np.full(2, rate))
    np.testing.assert_allclose(weights**2, weights + answer_noise(np.array([rate])), rtol=1e-9)


def test_the_interval_of_one_rate_is_wilsons() -> None:
    held, z = np.repeat([True, False], [70, 50]), stats.norm.ppf(0.975)
    wilson = stats.binomtest(70, 120).proportion_ci(0.95, method="wilson")
    share, _ = share_of(held, np.full(120, 0.3))
    inverted = [(end - 0.15) / 0.7 for end in wilson]
    assert (share.low, share.high) == pytest.approx(inverted, abs=1e-12)
    assert z > 1.9


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_interval_of_two_rates_covers_as_often_as_it_says(share: float) -> None:
    """Enumerated: every pair of counts of 60 records at rate .5 and 40 at rate .2. Score intervals of a discrete
    number are near their level, not above it: 2 % are allowed, as for Wilson's (Brown, Cai and DasGupta 2001)."""
    chance = 0.0
    for first in range(61):
        for second in range(41):
            probability = stats.binom.pmf(first, 60, 0.25 + 0.5 * share) * stats.binom.pmf(
                second, 40, 0.1 + 0.8 * share
            )
            if probability < 1e-12:
                continue
            held = np.repeat([True, False, True, False], [first, 60 - first, second, 40 - second])
            found, _ = share_of(held, np.repeat([0.5, 0.2], [60, 40]))
            chance += probability * (found.low <= share <= found.high)
    assert chance >= 0.93


# ---------------------------------------------------------------------- means and quantiles


@pytest.mark.parametrize("share", [0.15, 0.5, 0.9])
def test_intervals_hold_the_truth_as_often_as_they_say(share: float) -> None:
    """2,000 windows of 3,000 records with exponential times; 1 % is allowed for the normal approximation."""
    rng, windows, n, q = generator("clear numbers", share), 2000, 3000, 0.75
    truth = {"mean": 100.0, "quantile": float(stats.expon.ppf(q, scale=100.0))}
    hits = dict.fromkeys(truth, 0)
    for _ in range(windows):
        held = rng.random(n) < share
        times = rng.exponential(np.where(held, 100.0, 40.0))
        said = np.where(rng.random(n) < RATE, rng.random(n) < 0.5, held)
        weights = two_answer_weights(said, np.full(n, RATE))
        for name, found in (("mean", mean_of(weights, times)), ("quantile", quantile_of(weights, times, q))):
            hits[name] += found.low <= truth[name] <= found.high
    for name, number in hits.items():
        low, _ = binomial_limits(np.array(windows), np.array(0.94))
        _, high = binomial_limits(np.array(windows), np.array(0.96))
        assert within(np.array(number), (low, high)), (name, number / windows)


def test_weights_of_one_give_the_plain_quantile() -> None:
    numbers = generator("plain").exponential(size=501)
    for q in (0.1, 0.5, 0.75, 0.99):
        found = quantile_of(np.ones(501), numbers, q)
        assert found.value == np.quantile(numbers, q, method="inverted_cdf")
        assert found.low < found.value < found.high


def test_a_number_lies_in_its_interval() -> None:
    rng = generator("inside")
    for _ in range(300):
        n = int(rng.integers(1, 60))
        weights = two_answer_weights(rng.random(n) < 0.6, rng.choice([0.0, 0.3, RATE, 0.9], n))
        numbers = rng.integers(0, 10, n).astype(float)
        for found in (mean_of(weights, numbers), quantile_of(weights, numbers, 0.75)):
            assert np.isnan(found.value) or found.low <= found.value <= found.high


def test_noise_leaves_ends_open() -> None:
    assert mean_of(np.array([1.0, -1.0, 1.0]), np.arange(3.0)) == UNKNOWN
    assert mean_of(np.zeros(0), np.zeros(0)) == UNKNOWN
    assert quantile_of(np.array([-1.0]), np.zeros(1), 0.5) == UNKNOWN
    found = quantile_of(np.ones(2), np.array([1.0, 2.0]), 0.5)
    assert (found.low, found.high) == (-np.inf, np.inf)


# ---------------------------------------------------------------------- several rates


def test_every_record_counts_once_whatever_its_rate() -> None:
    """Browsers of two rates with other shares and times: 2,000 windows of 3,000 records, which draw their browser too.
    The truth is that of all records; 1 % is allowed for the normal approximation."""
    rng, windows, n, q = generator("several rates"), 2000, 3000, 0.75
    rates, shares, times = np.array([0.5, 0.25]), np.array([0.2, 0.9]), np.array([300.0, 500.0])
    truth = {"share": 0.55, "mean": float((shares * times).sum() / 1.1)}
    below = [stats.expon(scale=scale) for scale in times]

    def excess(number: float) -> float:
        return sum(share * law.cdf(number) for share, law in zip(shares, below)) / 1.1 - q

    truth["quantile"] = float(optimize.brentq(excess, 0, 5000))
    hits, found_shares, errors = dict.fromkeys(truth, 0), np.zeros(windows), np.zeros(windows)
    for window in range(windows):
        browser = rng.integers(0, 2, n)
        held = rng.random(n) < shares[browser]
        numbers = rng.exponential(np.where(held, times[browser], 40.0))
        said = np.where(rng.random(n) < rates[browser], rng.random(n) < 0.5, held)
        weights = two_answer_weights(said, rates[browser])
        share, errors[window] = share_of(said, rates[browser])
        found_shares[window] = share.value
        for name, found in (
            ("share", share),
            ("mean", mean_of(weights, numbers)),
            ("quantile", quantile_of(weights, numbers, q)),
        ):
            hits[name] += found.low <= truth[name] <= found.high
    for name, number in hits.items():
        low, _ = binomial_limits(np.array(windows), np.array(0.94))
        _, high = binomial_limits(np.array(windows), np.array(0.96))
        assert within(np.array(number), (low, high)), (name, number / windows)
    distance = (found_shares.mean() - truth["share"]) / (found_shares.std(ddof=1) / np.sqrt(windows))
    assert abs(distance) <= student_limit(windows)
    low, high = chi_square_limits(windows - 1)
    assert low <= (windows - 1) * found_shares.var(ddof=1) / (errors**2).mean() <= high


@pytest.mark.parametrize(
    ("numbers", "rates", "share"),
    [
        ((60, 5000), (0.5, 0.1), 0.02),
        ((300, 5000), (0.1, 0.0), 0.0),
        ((400, 5000), (0.1, 0.2), 1.0),
        ((200, 200, 200), (0.3, RATE, 0.6), 0.5),
        (tuple([1] * 60 + [3000]), (*np.linspace(0.4, 0.99, 60), 0.5), 0.3),
    ],
)
def test_rates_that_agree_are_said_to_differ_as_often_as_stated(
    numbers: tuple[int, ...], rates: tuple[float, ...], share: float
) -> None:
    """p-values below 1 % in 2,000 windows; twice as many are allowed for the normal approximation."""
    rng, windows = generator("agreement", numbers, share), 2000
    alarms = 0
    for _ in range(windows):
        held = np.concatenate([np.arange(n) < rng.binomial(n, r / 2 + (1 - r) * share) for n, r in zip(numbers, rates)])
        found = agreement_of(held, np.repeat(rates, numbers))
        alarms += found is not None and found.p_value < 0.01
    assert alarms <= binomial_limits(np.array(windows), np.array(0.02))[1]


def test_rates_that_differ_are_found() -> None:
    """.2 and .9, whose difference has a standard error of .0078; rare rates are compared together, or not at all."""
    rng = generator("difference")

    def held(n: int, rate: float, share: float) -> np.ndarray:
        return rng.random(n) < rate / 2 + (1 - rate) * share

    two = np.concatenate([held(20_000, 0.5, 0.2), held(20_000, 0.25, 0.9)])
    found = agreement_of(two, np.repeat([0.5, 0.25], 20_000))
    assert found is not None and found.num_rates == 2 and found.p_value < 1e-100
    rare = np.concatenate([held(20_000, 0.5, 0.2), *(held(50, rate, 0.9) for rate in np.linspace(0.1, 0.3, 20))])
    found = agreement_of(rare, np.repeat([0.5, *np.linspace(0.1, 0.3, 20)], [20_000, *[50] * 20]))
    assert found is not None and found.num_rates == 2 and found.p_value < 1e-100
    assert agreement_of(two[:20_020], np.repeat([0.5, 0.25], [20_000, 20])) is None
    assert agreement_of(two[:100], np.full(100, 0.5)) is None
    assert agreement_of(np.ones(200, bool), np.repeat([0.0, 1e-9], 100)) is None
    assert agreement_of(np.zeros(0, bool), np.zeros(0)) is None


def test_a_share_far_outside_is_no_chance() -> None:
    """60 of 60 answers "high" at the rate .5: the unbiased share is 1.5, and an honest 1 has probability .75^60."""
    share, error = share_of(np.ones(60, bool), np.full(60, 0.5))
    assert outside(share.value, error) == pytest.approx(0.5 / np.sqrt(0.75 / 60)) and 0.5 / np.sqrt(0.75 / 60) > 4.4
    assert outside(*reversed_share(60)) == pytest.approx(-0.5 / np.sqrt(0.75 / 60))
    assert [outside(inside, 0.0) for inside in (0.0, 0.5, 1.0)] == [0, 0, 0]
    for n in (1, 10, 100, 1000):  # the largest probability of more than the limit, if all hold the value
        least = int(np.floor(n * (0.75 + 0.5 * MOST_OUTSIDE * np.sqrt(0.75 / n)))) + 1
        assert stats.binom.sf(least - 1, n, 0.75) < 1 / 30_000


def reversed_share(n: int) -> tuple[float, float]:
    share, error = share_of(np.zeros(n, bool), np.full(n, 0.5))
    return share.value, error


def test_numbers_without_spread_leave_the_ends_of_a_mean_open() -> None:
    assert mean_of(np.ones(50), np.full(50, 300.0)) == (300.0, -np.inf, np.inf)
    assert quantile_of(np.ones(50), np.full(50, 300.0), 0.5) == (300.0, 300.0, 300.0)


# ---------------------------------------------------------------------- ends by their definition


def drawn(name: str, size: int, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Weights of records at several rates, some below 0, and numbers."""
    rng = generator("ends", name, size)
    weights = two_answer_weights(rng.random(size) < 0.8, rng.choice([0.0, 0.3, RATE], size))
    return scale * weights, rng.gamma(2.0, size=size)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_at_the_ends_of_a_mean_the_sum_is_z_standard_deviations_from_0(scale: float) -> None:
    weights, numbers = drawn("mean", 40, scale)
    found = mean_of(weights, numbers, confidence=0.9)
    assert found.value == pytest.approx(weights @ numbers / weights.sum(), rel=1e-12)
    for end in (found.low, found.high):
        variance = weights**2 @ (numbers - end) ** 2
        assert (weights @ (numbers - end)) ** 2 == pytest.approx(stats.norm.ppf(0.95) ** 2 * variance, rel=1e-9)
    assert found.low < found.value < found.high


def test_at_the_ends_of_a_share_it_is_z_standard_deviations_away() -> None:
    held, rates = np.repeat([True, False, True], [30, 25, 15]), np.repeat([0.5, 0.2], [40, 30])
    share, error = share_of(held, rates, confidence=0.8)

    def variance(p: float) -> float:
        means = rates / 2 + (1 - rates) * p  # of an answer; a weight is an answer over 1 - rate
        return float((means * (1 - means) / (1 - rates) ** 2).sum() / len(rates) ** 2)

    for end in (share.low, share.high):
        assert (share.value - end) ** 2 == pytest.approx(stats.norm.ppf(0.9) ** 2 * variance(end), rel=1e-9)
    assert 0 < share.low < share.value < share.high < 1
    assert error == pytest.approx(np.sqrt(variance(share.value)), rel=1e-12)


@pytest.mark.parametrize("held", [True, False])
def test_a_share_outside_of_0_to_1_has_the_error_and_the_interval_of_the_end(held: bool) -> None:
    share, error = share_of(np.full(10, held), np.full(10, 0.5))
    assert share.value == (1.5 if held else -0.5)
    assert error == pytest.approx(np.sqrt(0.25 * 0.75 / 10) / 0.5, rel=1e-12)
    [inner] = {share.low, share.high} - {float(held)}
    variance = (inner * (1 - inner) + 0.75) / 10
    assert 0 < inner < 1
    assert (held - inner) ** 2 == pytest.approx(stats.norm.ppf(0.975) ** 2 * variance, rel=1e-9)


def quantile_by_definition(weights: np.ndarray, numbers: np.ndarray, q: float, z: float) -> tuple[float, float, float]:
    """Candidate by candidate: none of the numbers is at most the first one, -inf."""
    points = np.unique(numbers)
    at_most = numbers <= np.array([-np.inf, *points])[:, np.newaxis]
    sums = (weights * (at_most - q)).sum(axis=1)
    reach = z * np.sqrt((weights**2 * (at_most - q) ** 2).sum(axis=1))
    lows, highs = np.flatnonzero(sums >= -reach), np.flatnonzero(sums <= reach)
    middle = [(sums[: k + 1].max() + sums[k:].min()) / 2 for k in range(1, len(sums))]
    value = next(point for point, level in zip(points, middle) if level >= 0)
    return value, np.array([-np.inf, *points])[lows[0]], np.array([*points, np.inf])[highs[-1]]


@pytest.mark.parametrize("scale", [1.0, 1e-2])
def test_quantiles_are_those_of_their_definition(scale: float) -> None:
    """At levels that no sum of weights reaches exactly, where rounding would decide."""
    for size in range(1, 60):
        weights, numbers = drawn("quantile", size, scale)
        if weights.sum() > 0:
            for q in (0.1003, 0.5003, 0.8003):
                found = quantile_of(weights, np.round(numbers, 1), q, confidence=0.6)
                expected = quantile_by_definition(weights, np.round(numbers, 1), q, stats.norm.ppf(0.8))
                assert tuple(found) == expected


def test_a_quantile_that_is_reached_exactly_is_the_first_number_that_reaches_it() -> None:
    assert quantile_of(np.ones(4), np.arange(4.0), 0.5).value == 1
    assert quantile_of(np.ones(50), np.arange(50.0), 0.5) == quantile_of(np.ones(50), np.arange(50.0), 0.5, 0.95)
    assert mean_of(np.ones(50), np.arange(50.0)) == mean_of(np.ones(50), np.arange(50.0), 0.95)


def test_weights_that_do_not_sum_to_more_than_0_say_nothing() -> None:
    for weights in (np.array([1.0, -1.0]), -np.ones(2), np.zeros(0)):
        assert quantile_of(weights, np.arange(float(len(weights))), 0.5) == UNKNOWN
    assert mean_of(-np.ones(50), np.arange(50.0)) == UNKNOWN
    assert mean_of(np.ones(3), np.arange(3.0), confidence=0.95) == UNKNOWN  # 3 records, of which z^2 > 3
