"""The same people in several windows: variances of means by simulation, and the numbers of the planner."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.tolerance import chi_square_limits, generator, within
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.mechanisms import MECHANISMS, KaryRR, SetReportMechanism
from uldp_transforms.ldp.sampling import SeededSource
from uldp_transforms_planner.plan.plan_over_time import ways_in_words
from uldp_transforms_planner.utility import variance_of_mean, ways
from uldp_transforms_planner.utility.longitudinal import MAX_WINDOWS

SHARES = np.array([0.5, 0.2, 0.2, 0.1])
N, RUNS = 400, 400


def build(name: str, epsilon_inf: float | None) -> SetReportMechanism:
    mechanism = MECHANISMS[name](num_symbols=4, num_sensitive=3, epsilon=1, epsilon_inf=epsilon_inf)  # type: ignore[call-arg]  # not of all members
    assert isinstance(mechanism, SetReportMechanism)
    return mechanism


@pytest.mark.parametrize("windows", [1, 3])
@pytest.mark.parametrize("epsilon_inf", [None, 2.0])
@pytest.mark.parametrize("name", ["krr", "urr", "urap", "uss"])
def test_variance_of_the_mean_of_windows(name: str, epsilon_inf: float | None, windows: int) -> None:
    """People with memos that stay, many times over; as many runs at once as there are groups to count."""
    mechanism = build(name, epsilon_inf)
    rng = generator("windows", name, epsilon_inf, windows)
    source = SeededSource(rng)
    symbols = rng.choice(4, N * RUNS, p=SHARES)
    groups = np.repeat(np.arange(RUNS), N)
    memos = mechanism.draw_memos(symbols, source)
    means = np.zeros((RUNS, 4))
    for _ in range(windows):
        reports = mechanism.perturb(symbols, source) if epsilon_inf is None else mechanism.draw_reports(memos, source)
        counted = CohortCounts(np.full(RUNS, N), mechanism.count(reports, groups, RUNS))
        means += mechanism.invert(counted) / windows
    expected = variance_of_mean(mechanism, SHARES, windows) / N
    squares = ((means - SHARES) ** 2 / expected).sum(axis=0)  # chi-square: the estimates are means of 400 reports
    assert within(squares, chi_square_limits(RUNS, 4)).all()


def test_one_window_is_the_variance_of_its_mechanism() -> None:
    for mechanism in (build("urap", 2.0), build("urap", None)):
        np.testing.assert_allclose(variance_of_mean(mechanism, SHARES, 1), mechanism.variances(SHARES), rtol=1e-14)


def test_averages_of_memos_have_a_floor_and_those_of_fresh_reports_have_that_of_the_people() -> None:
    memos, fresh = (variance_of_mean(build("krr", given), SHARES, MAX_WINDOWS) for given in (2.0, None))
    alone = KaryRR(num_symbols=4, num_sensitive=4, epsilon=2).variances(SHARES)
    np.testing.assert_allclose(memos, alone, rtol=1e-6)
    np.testing.assert_allclose(fresh, SHARES * (1 - SHARES), rtol=1e-6)


def test_ways_to_ask_again() -> None:
    """By hand, for two symbols: V = 1 / (4 kappa**2) at equal shares, kappa = tanh(epsilon / 2)."""
    mechanism = KaryRR(num_symbols=2, num_sensitive=2, epsilon=1, epsilon_inf=2)
    fresh, memos, few = ways(mechanism, 10)
    one, memo = (1 / (4 * math.tanh(epsilon / 2) ** 2) for epsilon in (1, 2))
    assert fresh.one_window == memos.one_window == pytest.approx(one)
    assert memos.mean_of_windows == pytest.approx(memo + (one - memo) / 10)
    assert fresh.mean_of_windows == pytest.approx(0.25 + (one - 0.25) / 10)
    assert (few.one_window, few.mean_of_windows) == (pytest.approx(10 * one), pytest.approx(one))
    assert fresh.losses == {1: 1, 7: 7, 30: 30, 365: 365}
    assert few.losses == {1: 1, 7: 1, 30: 3, 365: 37}
    assert list(memos.losses.values()) == pytest.approx([mechanism.epsilon_after(number) for number in (1, 7, 30, 365)])


def test_the_text_has_the_numbers() -> None:
    mechanism = KaryRR(num_symbols=4, num_sensitive=4, epsilon=1, epsilon_inf=2)
    text = " ".join(" ".join(ways_in_words(mechanism, 16, 10_000, 30)).split())
    for words in (
        "fresh reports 1 7 30 365 ",
        "memos, epsilon_inf 2 1 2 2 2 ",
        "one window of 30 1 1 1 13 ",
        f"kappa_1 {mechanism.memo.kappa:.4g}",
        "at worst 4 x 2 = 8;",
        "a pseudonym of 4 bits",
    ):
        assert words in text
    assert "one cohort" in ways_in_words(mechanism, 1, 100, 2)[-1]
