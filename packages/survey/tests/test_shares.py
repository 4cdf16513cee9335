"""Shares of yes by the likelihood of several designs: independent maxima, coverage, false alarms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms_survey.answers import shares
from uldp_transforms_survey.answers.shares import DesignedAnswers, agreement, misfit, share_of_yes

NO = np.array([0.8, 0.25, 1 / 6, 0.0])
YES = np.array([0.2, 0.75, 5 / 6, 1.0])


def answers_of(ones: np.ndarray, people: np.ndarray, designs: slice = slice(None)) -> DesignedAnswers:
    return DesignedAnswers(no=NO[designs], yes=YES[designs], ones=ones.astype(float), people=people.astype(float))


@pytest.mark.parametrize(("ones", "people"), [(30, 100), (0, 7), (7, 7), (60, 60), (1, 50)])
@pytest.mark.parametrize("design", range(4))
def test_the_share_of_one_design_is_the_unbiased_estimate(design: int, ones: int, people: int) -> None:
    found = share_of_yes(answers_of(np.array([ones]), np.array([people]), slice(design, design + 1)))
    assert found.raw == pytest.approx((ones / people - NO[design]) / (YES[design] - NO[design]), abs=1e-9)
    assert found.share == min(max(found.raw, 0.0), 1.0)
    assert 0 <= found.ci_low <= found.share <= found.ci_high <= 1
    assert found.ci_high - found.ci_low > found.standard_error / 2
    assert not np.signbit(found.raw) or found.raw < 0


def test_an_estimate_outside_has_the_interval_of_the_edge() -> None:
    people = np.array([200])
    edge = share_of_yes(answers_of(np.array([160]), people, slice(0, 1)))
    outside = share_of_yes(answers_of(np.array([170]), people, slice(0, 1)))
    assert outside.raw < 0 == outside.share
    assert (outside.ci_low, outside.ci_high) == (0, pytest.approx(edge.ci_high, abs=1e-9))


@pytest.mark.parametrize("people", [30, 60, 200, 5000])
def test_answers_that_fit_are_seldom_refused(people: int) -> None:
    """By exact enumeration at the edges; the limit is that of Chernoff's bound, for both criteria."""
    for edge, chance in ((0.0, NO), (1.0, YES)):
        for design in range(3):
            chances = stats.binom.pmf(np.arange(people + 1), people, chance[design])
            refused = [
                ones
                for ones in np.flatnonzero(chances > 1e-12)
                if misfit(answers_of(np.array([ones]), np.array([people]), slice(design, design + 1)))
            ]
            assert chances[refused].sum() < 2 * np.exp(-8), (edge, design)


def test_the_interval_and_the_test_of_agreement_keep_their_rates() -> None:
    rng, truth, runs = generator("rates of shares"), 0.12, 1500
    people = np.array([400, 300, 500, 200])
    covered = alarms = 0
    for _ in range(runs):
        answers = answers_of(rng.binomial(people, NO + (YES - NO) * truth), people)
        found, tested = share_of_yes(answers), agreement(answers)
        covered += found.ci_low <= truth <= found.ci_high
        assert tested is not None and tested[1] == 3
        alarms += tested[2] <= 0.05
    print("covered", covered / runs, "false alarms", alarms / runs)
    numbers = np.array([covered, alarms])
    assert within(numbers, binomial_limits(np.full(2, runs), np.array([0.95, 0.05]))).all()


def test_designs_with_hardly_any_answers_are_not_tested() -> None:
    people, ones = np.array([400, 300, 6, 4]), np.array([300, 90, 3, 4])
    tested = agreement(answers_of(ones, people))
    assert tested is not None and tested[1] == 1
    assert agreement(answers_of(ones[2:], people[2:], slice(2, 4))) is None


def test_a_covariance_that_is_binomial_changes_nothing() -> None:
    people, ones = np.array([400, 300, 500]), np.array([280, 110, 150])
    plain = answers_of(ones, people, slice(0, 3))
    fractions = ones / people
    drawn = DesignedAnswers(
        no=plain.no,
        yes=plain.yes,
        ones=plain.ones,
        people=plain.people,
        covariance=np.diag(fractions * (1 - fractions) / people),
        effects=np.ones(3),
        degrees=np.inf,
    )
    one, other = share_of_yes(plain), share_of_yes(drawn)
    assert other.raw == one.raw
    assert other.standard_error == pytest.approx(one.standard_error, rel=0.02)
    doubled = DesignedAnswers(**{**vars(drawn), "covariance": 2 * drawn.covariance})
    assert share_of_yes(doubled).standard_error == pytest.approx(other.standard_error * 2**0.5)


def test_limits_are_those_that_the_page_states() -> None:
    assert (shares.MOST_OUTSIDE, shares.DISAGREE) == (4, 0.001)
