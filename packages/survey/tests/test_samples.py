"""Linearized covariances of survey samples, beside loops over clusters; coverage in drawn populations."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms_survey.answers.samples import Sample
from uldp_transforms_survey.answers.shares import DesignedAnswers, share_of_yes
from uldp_transforms_survey.regression import regress

FORCED = np.array([[5 / 6, 1 / 6], [1 / 6, 5 / 6]])


def drawn(rng: np.random.Generator, size: int = 80) -> dict[str, np.ndarray]:
    return {
        "people": rng.integers(1, 4, size),
        "weights": rng.uniform(0.5, 2, size),
        "strata": rng.integers(0, 2, size) * 2,  # a number that no stratum has
        "clusters": rng.integers(0, 5, size),
    }


def by_loops(units: list[tuple[int, np.ndarray]]) -> np.ndarray:
    """The formula, of pairs of a stratum and a total."""
    size = len(units[0][1])
    covariance = np.zeros((size, size))
    for stratum in {stratum for stratum, _ in units}:
        totals = [total for where, total in units if where == stratum]
        mean = sum(totals) / len(totals)
        factor = len(totals) / (len(totals) - 1)
        covariance += factor * sum(np.outer(total - mean, total - mean) for total in totals)
    return covariance


def test_the_covariance_of_clusters_is_that_of_a_loop() -> None:
    rng = generator("clusters")
    columns, scores = drawn(rng), rng.normal(size=(80, 3))
    sample = Sample(**columns)
    scaled = columns["weights"] * columns["people"].sum() / (columns["weights"] @ columns["people"])
    totals = scores * (scaled * columns["people"])[:, None]
    units = [
        (stratum, totals[(columns["strata"] == stratum) & (columns["clusters"] == cluster)].sum(axis=0))
        for stratum in (0, 2)
        for cluster in range(5)
    ]
    np.testing.assert_allclose(sample.covariance(scores), by_loops(units), rtol=1e-10)
    assert sample.degrees == 8
    assert sample.shares.sum() == pytest.approx(columns["people"].sum())


def test_without_clusters_each_person_of_a_row_is_one() -> None:
    rng = generator("people")
    columns, scores = drawn(rng) | {"clusters": None}, rng.normal(size=(80, 3))
    scaled = columns["weights"] * columns["people"].sum() / (columns["weights"] @ columns["people"])
    units = [
        (int(columns["strata"][row]), scores[row] * scaled[row]) for row in np.arange(80).repeat(columns["people"])
    ]
    sample = Sample(**columns)
    np.testing.assert_allclose(sample.covariance(scores), by_loops(units), rtol=1e-10)
    assert sample.degrees == columns["people"].sum() - 2


def test_the_design_effect_of_people_who_answer_alike() -> None:
    people, strata = np.full(12, 5), np.zeros(12, dtype=np.int64)
    clusters, every = np.arange(12) % 3, np.ones(12, dtype=bool)
    equal = {"people": people, "weights": np.ones(12), "strata": strata}
    assert Sample(**equal, clusters=clusters).effect(every) == pytest.approx(20)  # 60 people in 3 clusters
    assert Sample(**equal).effect(every) == pytest.approx(1)
    weights = np.arange(1.0, 13.0)
    kish = 12 * (weights @ weights) / weights.sum() ** 2
    assert Sample(**equal | {"weights": weights}).effect(every) == pytest.approx(kish)


SIMULATIONS, CLUSTERS, SIZE = 600, 60, 20


@pytest.mark.slow
def test_intervals_of_clustered_and_weighted_samples_hold_the_truth_in_95_per_cent() -> None:
    """Clusters have shares of their own, and people who say yes are drawn half as often: weights mend that.

    Intervals that ignore the clusters hold less than the least number with which 95 % are compatible.
    """
    rng, truth = generator("coverage of samples"), 0.3
    covered = np.zeros(3, dtype=np.int64)
    for _ in range(SIMULATIONS):
        shares = rng.beta(2 * truth, 2 * (1 - truth), CLUSTERS).repeat(40)
        yes = rng.random(len(shares)) < shares
        kept = rng.random(len(yes)) < np.where(yes, 0.25, 0.5)
        cluster, yes = np.arange(CLUSTERS).repeat(40)[kept], yes[kept]
        answer = (rng.random(len(yes)) < np.where(yes, 5 / 6, 1 / 6)).astype(np.int64)
        rows = np.ones(len(yes), dtype=np.int64)
        weights = np.where(yes, 4.0, 2.0)
        sample = Sample(people=rows, weights=weights, strata=0 * rows, clusters=cluster)
        fitted = regress(FORCED, answer, np.ones((len(yes), 1)), sample=sample)
        low, high = fitted.intervals()
        logit = np.log(truth / (1 - truth))
        ones, people = np.array([sample.shares @ answer]), np.array([float(len(yes))])
        base = {"no": np.array([1 / 6]), "yes": np.array([5 / 6]), "ones": ones, "people": people}
        scores = (answer - ones / people)[:, np.newaxis] / people
        share = share_of_yes(
            DesignedAnswers(**base, covariance=sample.covariance(scores), effects=np.ones(1), degrees=sample.degrees)
        )
        naive = share_of_yes(DesignedAnswers(**base))
        covered += [
            (low <= logit).item() and (logit <= high).item(),
            share.ci_low <= truth <= share.ci_high,
            naive.ci_low <= truth <= naive.ci_high,
        ]
    print("covered", covered / SIMULATIONS)
    limits = binomial_limits(np.full(3, SIMULATIONS), np.full(3, 0.95))
    assert within(covered, limits).tolist() == [True, True, False]
