"""People who do not follow their design: independent maxima, curvatures and edges; bias and coverage of surveys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from packages.survey.tests.support.crosswise_answers import QUESTION, crosswise
from tests.support.tolerance import binomial_limits, generator, student_limit, within
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms_survey.answers.inattention import HABITS, InattentiveAnswers, attention
from uldp_transforms_survey.answers.samples import Sample
from uldp_transforms_survey.answers.shares import DesignedAnswers

NO_FORCED, YES_FORCED = np.array([0.1, 0.3]), np.array([0.85, 0.75])


def chances_of(data: InattentiveAnswers, inattentive: float, yes: float) -> np.ndarray:
    """The model, person by person: who does not follow, and who follows with the truth yes or no."""
    truth = np.where(np.isnan(data.known), yes, data.known)
    following = truth * data.answers.yes + (1 - truth) * data.answers.no
    return inattentive * HABITS[data.habit] + (1 - inattentive) * following


def loss(data: InattentiveAnswers, numbers: Any) -> float:
    chances = np.clip(chances_of(data, *numbers), 1e-12, 1 - 1e-12)
    return -float(stats.binom.logpmf(data.answers.ones, data.answers.people, chances).sum())


CASES = {
    "two rates, always 1": (crosswise([0.2, 0.8], [1540, 640], [2000, 2100], None, "one")),
    "two rates, always 0": (crosswise([0.15, 0.75], [500, 280], [800, 900], None, "zero")),
    "four rates, always 1": (
        crosswise([0.15, 0.25, 0.7, 0.85], [300, 280, 190, 140], [400, 400, 390, 410], None, "one")
    ),
    "an anchor, by chance": (crosswise([0.15, 0.15], [1427, 1541], [2000, 2000], [QUESTION, 0], "chance")),
    "an anchor and two rates, by chance": (
        crosswise([0.2, 0.75, 0.2], [620, 390, 700], [1000, 1000, 1000], [QUESTION, QUESTION, 0.1], "chance")
    ),
    "two forced designs, by chance": InattentiveAnswers(
        answers=DesignedAnswers(
            no=NO_FORCED, yes=YES_FORCED, ones=np.array([350.0, 430.0]), people=np.array([1000.0, 1000.0])
        ),
        known=np.array([QUESTION, QUESTION]),
        habit="chance",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_both_shares_have_the_largest_likelihood(name: str) -> None:
    """Beside a grid over all shares, from which another program climbs."""
    data = CASES[name]
    found = attention(data)
    grid = np.linspace(0.0, 1.0, 101)
    start = min(((g, t) for g in grid for t in grid), key=lambda numbers: loss(data, numbers))
    best = optimize.minimize(
        lambda numbers: loss(data, numbers),
        start,
        method="Nelder-Mead",
        bounds=[(0, 1), (0, 1)],
        options={"xatol": 1e-9, "fatol": 1e-10},
    )
    assert (found.inattentive.share, found.yes.share) == pytest.approx(best.x, abs=1e-5)
    assert loss(data, (found.inattentive.share, found.yes.share)) <= best.fun + 1e-7


@pytest.mark.parametrize("name", CASES)
def test_standard_errors_are_those_of_the_information(name: str) -> None:
    """The expected information from differences of probabilities, in these numbers themselves."""
    data = CASES[name]
    found = attention(data)
    at, step = np.array([found.inattentive.share, found.yes.share]), 1e-6
    chances = chances_of(data, *at)
    slopes = np.array([(chances_of(data, *(at + move)) - chances_of(data, *(at - move))) / (2 * step)
                       for move in step * np.eye(2)])  # fmt: skip
    information = slopes * (data.answers.people / (chances * (1 - chances))) @ slopes.T
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    assert (found.inattentive.standard_error, found.yes.standard_error) == pytest.approx(errors, rel=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_ends_of_intervals_are_as_likely_as_stated(name: str) -> None:
    """With the other number free, found by another program; all of these estimates are inside."""
    data = CASES[name]
    found = attention(data)
    at = np.array([found.inattentive.share, found.yes.share])
    assert ((at > 0) & (at < 1)).all()
    for which, share in enumerate((found.inattentive, found.yes)):
        for end in (share.ci_low, share.ci_high):

            def given(other: float, end: float = end, which: int = which) -> float:
                return loss(data, (end, other) if which == 0 else (other, end))

            best = optimize.minimize_scalar(given, bounds=(-2, 1), method="bounded", options={"xatol": 1e-10}).fun
            assert 2 * (best - loss(data, at)) == pytest.approx(stats.chi2.isf(0.05, 1), abs=2e-3) or end in (0, 1)


def test_two_rates_by_hand() -> None:
    """Expected answers of g .1 and t .2: P_i = g + (1 - g) lambda_i."""
    lambdas = 0.2 * np.array([0.2, 0.8]) + 0.8 * np.array([0.8, 0.2])
    found = attention(crosswise([0.2, 0.8], 2000 * (0.1 + 0.9 * lambdas), [2000, 2000], None, "one"))
    assert (found.inattentive.share, found.yes.share) == pytest.approx((0.1, 0.2), abs=1e-9)
    assert found.agreement is None


def test_the_cheating_detection_model() -> None:
    """Clark and Desharnais 1998: honest yes pi, honest no beta, cheaters gamma who say no; a share p must say yes."""
    forced, people, (pi, beta) = np.array([0.3, 0.7]), np.array([900.0, 900.0]), (0.2, 0.65)
    counted = DesignedAnswers(no=forced, yes=np.ones(2), ones=people * (pi + beta * forced), people=people)
    found = attention(InattentiveAnswers(answers=counted, known=np.full(2, QUESTION), habit="zero"))
    assert found.inattentive.share == pytest.approx(1 - pi - beta, abs=1e-9)
    assert found.yes.share * (1 - found.inattentive.share) == pytest.approx(pi, abs=1e-9)


def test_three_rates_are_tested_for_agreement() -> None:
    rates, people = [0.2, 0.5001, 0.8], np.array([2000, 2000, 2000])
    data = crosswise(rates, people * 0.5, people, None, "one")
    fitting = crosswise(rates, people * chances_of(data, 0.1, 0.2), people, None, "one")
    agreement = attention(fitting).agreement
    assert agreement is not None
    assert agreement == (pytest.approx(0, abs=1e-9), 1, pytest.approx(1, abs=1e-4))
    ones = fitting.answers.ones + np.array([0, 150, 0])
    agreement = attention(crosswise(rates, ones, people, None, "one")).agreement
    assert agreement is not None
    assert agreement[2] < 1e-6


EVERY = [(people, rate) for people in (7, 60, 400) for rate in ((0.2, 0.8), (0.1, 0.3))]


@pytest.mark.parametrize(("people", "rates"), EVERY)
@pytest.mark.parametrize("habit", ["one", "zero"])
def test_intervals_hold_their_numbers_and_are_never_short(people: int, rates: tuple[float, float], habit: str) -> None:
    shown = 0
    for first in range(0, people + 1, max(people // 10, 1)):
        for second in range(0, people + 1, max(people // 10, 1)):
            data = crosswise(list(rates), [first, second], [people, people], None, habit)
            try:
                found = attention(data)
            except EstimationError:
                continue
            shown += 1
            for share in (found.inattentive, found.yes):
                assert 0 <= share.ci_low <= share.share <= share.ci_high <= 1
                assert share.ci_high - share.ci_low > min(share.standard_error, 1) / 2
    assert shown > 20


def test_an_unlucky_sample_has_the_interval_of_the_edge() -> None:
    """More answers 0 than even people who all follow would give: as if none were inattentive."""
    people = [2000, 2000]
    edge = attention(crosswise([0.2, 0.8], [1360, 640], people, None, "one"))
    unlucky = attention(crosswise([0.2, 0.8], [1330, 610], people, None, "one"))
    assert edge.inattentive.share == pytest.approx(0, abs=1e-9)
    assert (unlucky.inattentive.share, unlucky.inattentive.ci_low) == (0, 0)
    assert unlucky.inattentive.ci_high == pytest.approx(edge.inattentive.ci_high, rel=0.02)
    assert unlucky.yes.ci_high - unlucky.yes.ci_low == pytest.approx(edge.yes.ci_high - edge.yes.ci_low, rel=0.02)


def test_people_asked_twice_are_those_of_a_loop() -> None:
    """With clusters of two answers, standard errors are those of the delta method for pairs."""
    rng = generator("asked twice")
    size, rate, attentive = 3000, 0.15, generator("attentive").random(3000) < 0.75
    asked = [np.where(attentive, rng.random(size) < chance, rng.random(size) < 0.5) for chance in (0.73, 0.85)]
    answer = np.concatenate(asked).astype(float)
    fractions = np.array([each.mean() for each in asked])
    of_question = np.arange(2).repeat(size)
    sample = Sample(
        people=np.ones(2 * size, dtype=np.int64),
        weights=np.ones(2 * size),
        strata=np.zeros(2 * size, dtype=np.int64),
        clusters=np.tile(np.arange(size), 2),
    )
    scores = (of_question[:, None] == np.arange(2)) * (answer[:, None] - fractions) / size
    counted = DesignedAnswers(
        no=np.full(2, 1 - rate),
        yes=np.full(2, rate),
        ones=size * fractions,
        people=np.full(2, float(size)),
        covariance=sample.covariance(scores),
        effects=np.ones(2),
        degrees=sample.degrees,
    )
    found = attention(InattentiveAnswers(answers=counted, known=np.array([QUESTION, 0.0]), habit="chance"))
    assert found.inattentive.share == pytest.approx(1 - (fractions[1] - 0.5) / (0.5 - rate), abs=1e-9)

    def corrected(pair: np.ndarray) -> float:
        attentive = (pair[1] - 0.5) / (0.5 - rate)
        return float(((pair[0] - 0.5) / attentive - (0.5 - rate)) / (2 * rate - 1))

    assert found.yes.share == pytest.approx(corrected(fractions), abs=1e-9)
    slopes = [(corrected(fractions + move) - corrected(fractions - move)) / 2e-6 for move in 1e-6 * np.eye(2)]
    variance = np.array(slopes) @ np.cov(np.stack(asked)) @ slopes / size
    assert found.yes.standard_error == pytest.approx(variance**0.5, rel=1e-3)


RUNS = 500

SURVEYS = {
    "two rates, g .1": (crosswise([0.2, 0.8], [1, 1], [2000, 2000], None, "one"), 0.1, 0.2),
    "two rates, all follow": (crosswise([0.2, 0.8], [1, 1], [1000, 1000], None, "one"), 0.0, 0.05),
    "two rates, hardly any": (crosswise([0.25, 0.75], [1, 1], [800, 800], None, "zero"), 0.02, 0.02),
    "an anchor nobody has": (crosswise([0.15, 0.15], [1, 1], [1500, 1500], [QUESTION, 0], "chance"), 0.2, 0.1),
    "an anchor, few people": (crosswise([0.2, 0.2], [1, 1], [300, 300], [QUESTION, 0], "chance"), 0.1, 0.3),
    "ten rates": (crosswise(list(np.linspace(0.12, 0.88, 10)), [1] * 10, [150] * 10, None, "one"), 0.08, 0.15),
}


def drawn(name: str) -> tuple[np.ndarray, np.ndarray]:
    """(RUNS, 2, 4): share, error, low and high of both numbers; and (RUNS,) p-values of agreement."""
    data, inattentive, yes = SURVEYS[name]
    rng, rows, p_values = generator("inattention", name), [], []
    for _ in range(RUNS):
        ones = rng.binomial(data.answers.people.astype(int), chances_of(data, inattentive, yes))
        found = attention(crosswise(list(data.answers.yes), ones, data.answers.people, list(data.known), data.habit))
        rows.append(
            [[each.share, each.standard_error, each.ci_low, each.ci_high] for each in (found.inattentive, found.yes)]
        )
        p_values.append(np.nan if found.agreement is None else found.agreement[2])
    return np.array(rows), np.array(p_values)


@pytest.mark.slow
@pytest.mark.parametrize("name", SURVEYS)
def test_intervals_hold_both_shares(name: str) -> None:
    """In at least 95 % of surveys, and more where an edge is near; farther inside there is no bias either."""
    _, *truth = SURVEYS[name]
    rows, p_values = drawn(name)
    covered = ((rows[..., 2] <= truth) & (truth <= rows[..., 3])).sum(axis=0)
    low, high = binomial_limits(np.full(2, RUNS), np.full(2, 0.95))
    print(name, "covered", covered / RUNS, "mean", rows[..., 0].mean(axis=0), "error", rows[..., 1].mean(axis=0))
    assert (covered >= low).all()
    inside = np.array(truth) > 5 * rows[..., 1].mean(axis=0)
    assert (covered[inside] <= high[inside]).all()
    apart = np.abs(rows[..., 0].mean(axis=0) - truth) / (rows[..., 0].std(axis=0, ddof=1) / RUNS**0.5)
    assert (apart[inside] < student_limit(RUNS, 2)).all()
    if np.isfinite(p_values).all():
        assert within(np.array([(p_values <= 0.05).sum()]), binomial_limits(np.array([RUNS]), np.array([0.05]))).all()
