"""Powers and false alarms of the alarm: a few cells of the tables, and in ``make slow`` all kinds of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from labs.benchmarks.alarms import EVERY, QUESTIONS, QUIET, REPORTS, Question, false_alarms, power, series_of
from tests.support.tolerance import binomial_limits
from uldp_transforms.ldp.smoothing import LEAST_HISTORY, judge

MISSED = 2e-6  # rate of false alarms of a test: twice what a side of its limits has
HALVES = Question("shares", 2, 0.5)
WINDOWS = 400
FEW = (100, 0.01, 2_000)
"""Values, share and reports of the question in which fewer moves ring, as the page says."""


@pytest.mark.parametrize("quiet", [10, 60])
def test_a_large_share_that_moves_for_good_rings_at_once(quiet: int) -> None:
    """Two values of .5 and 1,000,000 reports: + 6 points, which is an eighth of the share, after quiet windows."""
    for seed in range(6):
        rng = np.random.default_rng([91, seed])
        shares = np.full((quiet + 3, 2), 0.5)
        shares[quiet:] += [0.06, -0.06]
        alarms = judge(series_of(HALVES, shares, 1_000_000, rng), EVERY)
        assert alarms.moved.any(axis=1).tolist() == [False] * quiet + [True, False, False], seed


@pytest.mark.parametrize("question", [HALVES, Question("shares", 6, 0.41), Question("mean", 10, 0.1)], ids=str)
@pytest.mark.parametrize(("n", "errors"), [(2_000, 8.0), (1_000_000, 8.0), (20_000, 3.0)])
def test_moves_of_large_shares_ring(question: Question, n: int, errors: float) -> None:
    """By 8 standard errors within 2 windows, and by 3 within 10; after 30 quiet windows. The exact binomial limit."""
    streams, least = 40, 0.95 if errors == 8 else 0.8
    rang = power(question, n, 30, errors, streams)
    assert streams * rang >= binomial_limits(streams, least, rate=MISSED)[0], rang


@pytest.mark.parametrize("quiet", [8, 15])
@pytest.mark.parametrize("question", [Question("shares", 6, 0.41), Question("shares", 100, 0.2)], ids=str)
def test_small_moves_ring_after_a_few_quiet_windows(question: Question, quiet: int) -> None:
    """By 3 standard errors within 10 windows: all values together show that only known noise varies."""
    streams = 40
    rang = power(question, 20_000, quiet, 3.0, streams)
    assert streams * rang >= binomial_limits(streams, 0.8, rate=MISSED)[0], rang


@pytest.mark.parametrize(("values", "n"), [(2, 50_000), (6, 50_000)])
def test_random_walks_are_honest(values: int, n: int) -> None:
    """Steps of 10 %, by which shares come near 1, where steps are small, and return; 2.5 alarms in 1,000 windows."""
    streams = 6
    judged = streams * (WINDOWS - LEAST_HISTORY)
    rate = false_alarms(values, False, n, streams, {"walk": 0.1}, WINDOWS)
    assert rate * judged / 1000 <= binomial_limits(judged, 2.5 / EVERY, rate=MISSED)[1], rate


@pytest.mark.parametrize("days", [0.07, 0.1, 0.25])
def test_day_effects_of_any_size_are_honest(days: float) -> None:
    """Two values, whose days differ by sizes that are no multiple of each other; 1.5 alarms in 1,000 windows."""
    streams = 4
    rate = false_alarms(2, False, 50_000, streams, {"days": days}, WINDOWS)
    judged = streams * (WINDOWS - LEAST_HISTORY)
    assert rate * judged / 1000 <= binomial_limits(judged, 1.5 / EVERY, rate=MISSED)[1], rate


@pytest.mark.slow
@pytest.mark.parametrize("n", REPORTS)
@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_moves_ring_as_often_as_the_page_says(question: Question, n: int) -> None:
    """Each cell of the table: 8 standard errors in .95, and 3 in .8, after 8 windows in .7, but in one question."""
    streams = 200
    for errors, quiet in itertools.product((8.0, 3.0), QUIET):
        least = {8.0: 0.95, 3.0: 0.7 if quiet == LEAST_HISTORY else 0.8}[errors]
        if (question.values, question.share, n) == FEW:
            least = {8.0: 0.8, 3.0: 0.45}[errors]
        rang = power(question, n, quiet, errors, streams)
        print(f"{question}, {n:,} reports, {errors:g} after {quiet}: {rang:.3f}")
        assert streams * rang >= binomial_limits(streams, least, rate=MISSED)[0], (errors, quiet, rang)


@pytest.mark.slow
@pytest.mark.parametrize("days", [0.0, 0.02, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5])
@pytest.mark.parametrize(
    ("values", "falling", "n"), [(2, False, 2_000), (2, False, 50_000), (6, False, 50_000), (30, True, 20_000)]
)
def test_honest_days_ring_at_most_as_often_as_the_page_says(values: int, falling: bool, n: int, days: float) -> None:
    """1.5 alarms in 1,000 windows; the exact binomial limit."""
    streams = 15
    rate = false_alarms(values, falling, n, streams, {"days": days}, WINDOWS)
    print(f"{values} values, {n:,} reports, days of {days:g}: {rate:.2f} in 1,000")
    judged = streams * (WINDOWS - LEAST_HISTORY)
    assert rate * judged / 1000 <= binomial_limits(judged, 1.5 / EVERY, rate=MISSED)[1], rate
