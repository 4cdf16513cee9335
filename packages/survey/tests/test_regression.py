"""Regression of a private value: independent maxima and information, closed forms, real people, coverage."""

from __future__ import annotations

import csv
import dataclasses
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, special

from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms.ldp.errors import EstimationError, SpecError
from uldp_transforms_survey import regression
from uldp_transforms_survey.regression import Regression, _Problem, regress
from uldp_transforms_survey.survey_designs import SurveyDesign

FORCED = np.array([[5 / 6, 1 / 6], [1 / 6, 5 / 6]])
THREE = np.array([[0.5, 0.125, 0.125], [0.25, 0.625, 0.125], [0.125, 0.125, 0.625], [0.125, 0.125, 0.125]])
NIGERIA = "ULDP_NIGERIA_CSV"
"""Environment variable with the path of data set ``nigeria`` of the R package rr 1.4.2 as CSV. It is under the GPL."""


def drawn(
    channel: np.ndarray, covariates: np.ndarray, coefficients: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Reports of people whose values follow the model; of channel (M, K) or (N, M, K)."""
    logits = np.column_stack([np.zeros(len(covariates)), covariates @ coefficients.T])
    chances = np.einsum(
        "nyv,nv->ny", np.broadcast_to(channel, (len(logits), *channel.shape[-2:])), special.softmax(logits, 1)
    )
    reports: np.ndarray = (rng.random((len(logits), 1)) > chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return reports


def people(number: int, rng: np.random.Generator) -> np.ndarray:
    """An intercept, a number and an indicator."""
    return np.column_stack([np.ones(number), rng.normal(size=number), rng.random(number) < 0.4])


def log_chances(channel: np.ndarray, covariates: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """(N, M) ln P(y | x), person by person."""
    coefficients = flat.reshape(-1, covariates.shape[1])
    rows = []
    for number, person in enumerate(covariates):
        odds = np.array([1.0, *(np.exp(person @ row) for row in coefficients)])
        rows.append(np.log((channel if channel.ndim == 2 else channel[number]) @ (odds / odds.sum())))
    return np.array(rows)


@pytest.fixture(scope="module")
def three_values() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Channels, one for each of 1,000 people, reports and covariates."""
    rng = generator("three-values")
    covariates = people(1000, rng)
    channel = np.where(rng.random(1000)[:, None, None] < 0.5, THREE, np.roll(THREE, 1, axis=0))
    return channel, drawn(channel, covariates, np.array([[0.2, 0.5, -0.5], [-0.3, 0.0, 1.0]]), rng), covariates


def test_an_independent_maximum_has_the_same_coefficients(three_values):
    channel, reports, covariates = three_values

    def loss(flat: np.ndarray) -> float:
        return -float(log_chances(channel, covariates, flat)[np.arange(len(reports)), reports].sum())

    found = regress(channel, reports, covariates)
    other = optimize.minimize(loss, np.zeros(6), method="BFGS", options={"gtol": 1e-3})
    assert -loss(found.coefficients.ravel()) == pytest.approx(found.log_likelihood, abs=1e-8)
    assert found.log_likelihood >= -other.fun - 1e-7
    np.testing.assert_allclose(found.coefficients.ravel(), other.x, rtol=0, atol=1e-3)


def test_the_covariance_is_the_inverse_of_the_expected_information(three_values):
    """Differences of enumerated log probabilities, weighted by the probabilities."""
    channel, reports, covariates = three_values
    found, step = regress(channel, reports, covariates), 1e-5
    at = found.coefficients.ravel()
    slopes = np.stack(
        [
            (log_chances(channel, covariates, at + move) - log_chances(channel, covariates, at - move)) / (2 * step)
            for move in step * np.eye(len(at))
        ]
    )
    weights = np.exp(log_chances(channel, covariates, at))
    information = np.einsum("ny,any,bny->ab", weights, slopes, slopes)
    np.testing.assert_allclose(found.covariance @ information, np.eye(len(at)), rtol=0, atol=1e-6)


def test_shares_of_groups_are_those_of_each_group_alone():
    """A coefficient for each group: the most likely share is the group's own linear estimate. Real answers."""
    counts = defaultdict(lambda: np.zeros(2, dtype=np.int64))
    with (Path(__file__).parent / "data" / "mturk_counts.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["RRmodel"] == "Forced" and row["Question"] == "shoplifting":
                counts[row["cheater"]][int(row["answer"])] += int(row["people"])
    assert sorted(counts) == ["cheater", "honest", "unknown"]
    cells = np.array([counts[group] for group in sorted(counts)])
    channel = SurveyDesign("forced", ("0.75", "2/3")).channel.probabilities
    groups = np.arange(3).repeat(2)
    covariates = np.column_stack([np.ones(6), groups == 1, groups == 2])
    found = regress(channel, np.tile([0, 1], 3), covariates, cells.ravel())
    alone = (cells[:, 1] / cells.sum(axis=1) - 0.25 * 2 / 3) / 0.75
    assert ((alone > 0) & (alone < 1)).all()
    np.testing.assert_allclose(found.probabilities(covariates)[::2, 1], alone, rtol=0, atol=1e-6)
    assert found.num_people == cells.sum()


def test_without_noise_it_is_multinomial_logistic_regression():
    """With an intercept alone: log odds of counts, and the covariance of a multinomial sample."""
    counts = np.array([50, 30, 20])
    found = regress(np.eye(3), np.arange(3), np.ones((3, 1)), counts)
    np.testing.assert_allclose(found.coefficients[:, 0], np.log(counts[1:] / counts[0]), rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.covariance, np.diag(1 / counts[1:]) + 1 / counts[0], rtol=0, atol=1e-6)


def test_people_count_as_rows():
    rng = generator("weights")
    covariates, number = people(300, rng), rng.integers(1, 4, 300)
    reports = drawn(FORCED, covariates, np.array([[0.0, 0.5, 1.0]]), rng)
    once = regress(FORCED, reports, covariates, number)
    rows = regress(FORCED, reports.repeat(number), covariates.repeat(number, axis=0))
    np.testing.assert_allclose(once.coefficients, rows.coefficients, rtol=0, atol=1e-8)
    np.testing.assert_allclose(once.covariance, rows.covariance, rtol=1e-8)
    assert once.num_people == rows.num_people == number.sum()


def test_units_of_covariates_do_not_matter():
    """Such as years around 2000, and their squares."""
    rng = generator("units")
    covariates = people(2000, rng)
    reports = drawn(FORCED, covariates, np.array([[0.0, 0.5, 1.0]]), rng)
    year = 2000 + 10 * covariates[:, 1]
    one = regress(FORCED, reports, np.column_stack([covariates, covariates[:, 1] ** 2]))
    other = regress(FORCED, reports, np.column_stack([np.ones(2000), year, covariates[:, 2], year**2]))
    assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-8)
    assert other.coefficients[0, 3] == pytest.approx(one.coefficients[0, 3] / 100, rel=1e-4)
    assert other.standard_errors[0, 3] == pytest.approx(one.standard_errors[0, 3] / 100, rel=1e-4)


@pytest.mark.skipif(NIGERIA not in os.environ, reason=f"{NIGERIA} is not set: data set nigeria of the R package rr")
def test_the_coefficients_of_the_r_package():
    """``rr::rrreg`` 1.4.2 (Blair, Imai and Zhou 2015); an independent maximum agrees with it to 4e-5."""
    with open(os.environ[NIGERIA], encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("rr.q1", "cov.asset.index", "cov.married", "cov.age", "cov.education", "cov.female")
    complete = [[float(row[name]) for name in names] for row in rows if "NA" not in [row[name] for name in names]]
    answer, asset, married, age, education, female = np.array(complete).T
    covariates = np.column_stack([np.ones(len(age)), asset, married, age / 10, (age / 10) ** 2, education, female])
    found = regress(FORCED, answer.astype(int), covariates)
    assert (len(rows), len(complete)) == (2457, 2423)
    published = [-0.340171, 0.078963, -0.267426, -0.352826, 0.040992, -0.006908, -0.554395]
    np.testing.assert_allclose(found.coefficients[0], published, rtol=0, atol=1e-3)
    errors = [0.502520, 0.040924, 0.249590, 0.263926, 0.026434, 0.045173, 0.162493]
    np.testing.assert_allclose(found.standard_errors[0], errors, rtol=0, atol=1e-5)
    assert found.log_likelihood == pytest.approx(-1540.11785, abs=1e-5)


def test_a_likelihood_ratio_compares_nested_regressions():
    rng = generator("ratio")
    covariates = people(3000, rng)
    reports = drawn(FORCED, covariates, np.array([[0.0, 1.0, 0.0]]), rng)
    whole = regress(FORCED, reports, covariates)
    statistic, degrees, p_value = whole.likelihood_ratio(regress(FORCED, reports, covariates[:, :1]))
    assert degrees == 2
    assert statistic > 0 and p_value < 1e-9  # the effect is ten standard errors
    assert whole.wald_p_values[0, 1] < 1e-9
    low, high = whole.intervals(0.9)
    assert (high - low)[0] == pytest.approx(2 * 1.6448536 * whole.standard_errors[0])
    with pytest.raises(SpecError) as caught:
        whole.likelihood_ratio(whole)
    assert str(caught.value) == (
        "Regression.likelihood_ratio needs a regression of the same people with fewer coefficients than 3, got 3 of "
        "3000 people"
    )


def fit_of(**fields) -> Regression:
    """Two coefficients, without reports."""
    plain = {
        "fit": None,
        "coefficients": np.array([[0.3, -1.2]]),
        "covariance": np.diag([0.04, 0.25]),
        "log_likelihood": -10.0,
    }
    return Regression(**plain | {"num_people": 100} | fields)


def test_p_values_and_intervals_are_of_both_sides():
    found = fit_of()
    np.testing.assert_allclose(found.standard_errors, [[0.2, 0.5]], rtol=1e-12)
    np.testing.assert_allclose(found.wald_p_values, [[0.133614402537716, 0.016395071849219]], rtol=1e-9)
    np.testing.assert_allclose(found.intervals()[0], [[-0.0919927969080108, -2.179981992270027]], rtol=1e-12)
    np.testing.assert_allclose(found.intervals()[1], [[0.6919927969080108, -0.220018007729973]], rtol=1e-12)


def test_the_likelihood_ratio_is_twice_the_difference_and_never_below_0():
    smaller = fit_of(coefficients=np.array([[0.1]]), covariance=np.eye(1), log_likelihood=-12.0)
    statistic, degrees, p_value = fit_of().likelihood_ratio(smaller)
    assert (statistic, degrees, p_value) == (4.0, 1, pytest.approx(0.04550026389635842, rel=1e-9))
    above = dataclasses.replace(smaller, log_likelihood=-9.0)  # by rounding
    assert fit_of().likelihood_ratio(above) == (0.0, 1, 1.0)
    with pytest.raises(SpecError, match="of the same people with fewer coefficients than 2, got 1 of 99 people"):
        fit_of().likelihood_ratio(dataclasses.replace(smaller, num_people=99))


@pytest.mark.parametrize("halvings", [0, 1, 5])
def test_a_step_is_halved_until_the_likelihood_does_not_fall(halvings):
    """Of three quarters of ones: the log odds are about 1.4, so twice that is the last length that does not fall."""
    problem = _Problem(FORCED, np.array([0, 1]), np.ones((2, 1)), np.array([30.0, 70.0]))
    begin, step = np.zeros((1, 1)), np.full((1, 1), 1.5 * 2**halvings)
    height = problem.log_likelihood(begin)
    there, reached = problem._climb(begin, height, step)
    lengths = [step[0, 0] / 2**number for number in range(20)]
    assert there[0, 0] == next(at for at in lengths if problem.log_likelihood(np.full((1, 1), at)) >= height)
    assert reached == problem.log_likelihood(there)


def test_reports_determine_a_coefficient_with_a_standard_error_up_to_100():
    problem = _Problem(FORCED, OUTPUTS, ONES, np.ones(4))
    step = problem._step(np.array([[2.2e-4]]), np.array([[1.1e-4]]))
    np.testing.assert_allclose(step, [[2.0]])
    with pytest.raises(EstimationError, match="do not determine all coefficients"):
        problem._step(np.array([[2.2e-4]]), np.array([[0.9e-4]]))


@pytest.mark.parametrize(("apart", "taken"), [(1.2e-9, True), (0.8e-9, False)])
def test_covariates_may_share_all_but_a_billionth(apart, taken):
    covariates = np.column_stack([np.ones(4), 1 + apart * np.array([1, -1, 1, -1])])
    if taken:
        scaled, _ = regression._orthonormal(covariates, np.ones(4))
        np.testing.assert_allclose(scaled.T @ scaled / 4, np.eye(2), atol=1e-3)
    else:
        with pytest.raises(SpecError, match="not linear combinations of others"):
            regression._orthonormal(covariates, np.ones(4))


def test_columns_may_miss_1_by_a_billionth():
    regress(FORCED * (1 + 0.9e-9), OUTPUTS, ONES)
    with pytest.raises(SpecError, match="whose columns sum to 1"):
        regress(FORCED * (1 + 1.1e-9), OUTPUTS, ONES)


ONES = np.ones((4, 1))
OUTPUTS = np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("channel", "counts"),
    [(FORCED, [900, 100]), (np.eye(2), [100, 0])],  # fewer answers 1 than forced ones; nobody
    ids=["below 0", "nobody"],
)
def test_a_share_that_is_not_above_0_has_no_coefficient(channel, counts):
    outputs = np.flatnonzero(counts)
    with pytest.raises(EstimationError, match=r"^Regression does not converge: "):
        regress(channel, outputs, np.ones((len(outputs), 1)), np.array(counts)[outputs])


SIMULATIONS = 500


@pytest.mark.slow
@pytest.mark.parametrize("channel", [FORCED, SurveyDesign("unrelated", ("0.778", "0.49")).channel.probabilities])
def test_intervals_hold_the_truth_in_95_per_cent_and_tests_raise_5_per_cent_of_false_alarms(channel):
    rng, truth = generator("coverage", channel.tolist()), np.array([[-0.5, 0.6, 0.0]])
    covered, alarms = np.zeros(3, dtype=np.int64), np.zeros(2, dtype=np.int64)
    for _ in range(SIMULATIONS):
        covariates = people(2500, rng)
        reports = drawn(channel, covariates, truth, rng)
        found = regress(channel, reports, covariates)
        low, high = found.intervals()
        covered += ((low <= truth) & (truth <= high))[0]
        ratio: Regression = regress(channel, reports, covariates[:, :2])
        alarms += np.array([found.wald_p_values[0, 2], found.likelihood_ratio(ratio)[2]]) < 0.05
    print("covered", covered / SIMULATIONS, "false alarms", alarms / SIMULATIONS)
    assert within(covered, binomial_limits(SIMULATIONS, np.full(3, 0.95))).all()
    assert within(alarms, binomial_limits(SIMULATIONS, np.full(2, 0.05))).all()
