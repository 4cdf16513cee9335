"""How often honest answers are called disagreeing or misfits: plain ones at .001; weighted and stratified samples."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms_survey.answers.samples import Sample
from uldp_transforms_survey.answers.shares import DISAGREE, DesignedAnswers, agreement, misfit, share_of_yes
from uldp_transforms_survey.regression import regress

pytestmark = pytest.mark.slow

RUNS = 10_000

QUESTIONS = {
    "two halves": ([0.2, 0.8], [500, 500], 0.05),
    "two small halves": ([0.15, 0.85], [60, 60], 0.3),
    "a small and a large part": ([0.2, 0.3], [80, 4000], 0.1),
    "ten rates": (list(np.linspace(0.12, 0.88, 10)), [150] * 10, 0.15),
    "ten rates of few": (list(np.linspace(0.12, 0.88, 10)), [45] * 10, 0.0),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_honest_designs_are_called_disagreeing_in_about_one_of_1000_questions(name: str) -> None:
    """At most 1.5 per 1,000, as far as so many runs can tell."""
    rates, people, yes = QUESTIONS[name]
    rate, size = np.array(rates), np.array(people, dtype=float)
    rng, p_values = generator("disagree", name), []
    for _ in range(RUNS):
        ones = rng.binomial(people, yes * rate + (1 - yes) * (1 - rate)).astype(float)
        tested = agreement(DesignedAnswers(no=1 - rate, yes=rate, ones=ones, people=size))
        assert tested is not None
        p_values.append(tested[2])
    alarms = np.array([(np.array(p_values) <= level).sum() for level in (DISAGREE, 0.01, 0.05)])
    print(name, "false alarms at .001, .01, .05:", alarms / RUNS)
    limits = binomial_limits(np.full(3, RUNS), np.array([1.5 * DISAGREE, 0.015, 0.055]))
    assert (alarms <= limits[1]).all()


def sampled(rng: np.random.Generator, yes: float) -> tuple[DesignedAnswers, float]:
    """One survey of 50 clusters of 16 people in two strata, with weights, each person at one of three rates.

    Clusters have shares of their own, on average ``yes``, which strata and weights have nothing to do with.
    """
    rates = np.array([0.15, 0.3, 0.8])
    cluster = np.arange(50).repeat(16)
    shares = rng.beta(10 * yes, 10 * (1 - yes), 50) if yes > 0 else np.zeros(50)
    design = rng.integers(0, 3, len(cluster))
    truth = rng.random(len(cluster)) < shares[cluster]
    answer = (rng.random(len(cluster)) < np.where(truth, rates[design], 1 - rates[design])).astype(float)
    sample = Sample(
        people=np.ones(len(cluster), dtype=np.int64),
        weights=rng.choice([1.0, 2.0, 4.0], len(cluster)),
        strata=cluster % 2,
        clusters=cluster,
    )
    of_design = design[:, np.newaxis] == np.arange(3)
    people, ones = sample.shares @ of_design, (sample.shares * answer) @ of_design
    scores = of_design * (answer[:, np.newaxis] - ones / people) / people
    return DesignedAnswers(
        no=1 - rates,
        yes=rates,
        ones=ones,
        people=people,
        covariance=sample.covariance(scores),
        effects=np.array([sample.effect(rows) for rows in of_design.T]),
        degrees=sample.degrees,
    ), sample.degrees


SAMPLES = 3000


def test_weighted_designs_that_agree_keep_their_rates() -> None:
    """The pooled interval holds the share in 95 %, and the test of agreement is wrong in 5 and in 1 %."""
    rng, truth, covered, p_values = generator("weighted agreement"), 0.25, 0, []
    for _ in range(SAMPLES):
        answers, degrees = sampled(rng, truth)
        assert degrees == 48
        found, tested = share_of_yes(answers), agreement(answers)
        assert tested is not None
        covered += found.ci_low <= truth <= found.ci_high
        p_values.append(tested[2])
    counts = np.array([covered, *((np.array(p_values) <= level).sum() for level in (0.05, 0.01))])
    print("weighted: covered, false alarms at .05 and .01:", counts / SAMPLES)
    assert within(counts, binomial_limits(np.full(3, SAMPLES), np.array([0.95, 0.05, 0.01]))).all()


def test_weighted_answers_that_fit_are_seldom_refused() -> None:
    """At a share of 0, where half of the estimates are outside: each line by design, and all together."""
    rng, refused, outside = generator("weighted misfit"), 0, 0
    for _ in range(SAMPLES):
        answers, _ = sampled(rng, 0.0)
        lines = [answers, *(answers.of(np.arange(3) == design) for design in range(3))]
        refused += sum(misfit(line) is not None for line in lines)
        outside += share_of_yes(answers).raw < 0
    print("weighted misfits:", refused, "of", 4 * SAMPLES, "outside", outside / SAMPLES)
    assert outside > SAMPLES / 3
    assert refused <= binomial_limits(np.array([4 * SAMPLES]), np.array([2 * np.exp(-8)]))[1]


FORCED = np.array([[5 / 6, 1 / 6], [1 / 6, 5 / 6]])


def test_regressions_of_stratified_samples_hold_the_coefficients() -> None:
    """Strata of equally many people, asked in unequal numbers: the model of all people is saturated in x, so exact.

    Without strata and weights, the same answers hold it less often than 95 % allow.
    """
    rng, runs, asked = generator("strata"), 600, np.array([150, 300, 600])
    shares = np.array([[0.15, 0.35], [0.25, 0.5], [0.5, 0.8]])  # by stratum and x
    logits = np.log(shares.mean(axis=0) / (1 - shares.mean(axis=0)))
    truth, covered = np.array([logits[0], logits[1] - logits[0]]), np.zeros((2, 2), dtype=np.int64)
    strata = np.arange(3).repeat(asked)
    people = np.ones(len(strata), dtype=np.int64)
    sample = Sample(people=people, weights=1 / asked[strata], strata=strata)
    for _ in range(runs):
        x = rng.integers(0, 2, len(strata))
        yes = rng.random(len(x)) < shares[strata, x]
        answer = (rng.random(len(x)) < np.where(yes, 5 / 6, 1 / 6)).astype(np.int64)
        covariates = np.column_stack([np.ones(len(x)), x])
        for row, drawn in enumerate((sample, None)):
            low, high = regress(FORCED, answer, covariates, sample=drawn).intervals()
            covered[row] += (low[0] <= truth) & (truth <= high[0])
    print("strata: covered", covered[0] / runs, "without", covered[1] / runs)
    limits = binomial_limits(np.full(2, runs), np.full(2, 0.95))
    assert within(covered[0], limits).all()
    assert covered[1, 0] < limits[0][0]
