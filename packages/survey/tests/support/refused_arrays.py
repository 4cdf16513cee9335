"""What the estimates refuse: the kind of error, the call, and its sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from packages.survey.tests.support.crosswise_answers import QUESTION, crosswise
from uldp_transforms.ldp.errors import EstimationError, SpecError
from uldp_transforms_survey import regression
from uldp_transforms_survey.answers.inattention import attention
from uldp_transforms_survey.answers.samples import Sample
from uldp_transforms_survey.clear_numbers import mean_of, quantile_of, share_of, two_answer_weights
from uldp_transforms_survey.regression import _Problem, regress
from uldp_transforms_survey.survey_designs import SurveyDesign

FORCED = np.array([[5 / 6, 1 / 6], [1 / 6, 5 / 6]])
ONES = np.ones((4, 1))
OUTPUTS = np.array([0, 1, 0, 1])

WRONG = [
    ((np.ones(2), OUTPUTS, ONES), "regress needs a channel of shape (M, K) or (N, M, K) with K > 1, got (2,)"),
    (
        (FORCED[None], OUTPUTS, ONES),
        "regress needs a channel of shape (M, K) or (N, M, K) with K > 1, got (1, 2, 2)",
    ),
    (
        (np.array([[1.0], [0.0]]), OUTPUTS, ONES),
        "regress needs a channel of shape (M, K) or (N, M, K) with K > 1, got (2, 1)",
    ),
    (
        (np.array([[1.1, 0.5], [-0.1, 0.5]]), OUTPUTS, ONES),
        "regress needs a channel of probabilities whose columns sum to 1, got other columns",
    ),
    ((FORCED, OUTPUTS - 1, ONES), "regress needs a list of outputs from 0 to 1, got other values or none"),
    ((FORCED, OUTPUTS[:, None], ONES), "regress needs a list of outputs from 0 to 1, got other values or none"),
    ((FORCED, OUTPUTS, np.ones(4)), "regress needs finite covariates of shape (4, P), got (4,) or non-finite numbers"),
    ((FORCED, OUTPUTS, ONES, np.ones(3)), "regress needs 4 positive numbers of people, got other values"),
    (
        (FORCED, OUTPUTS, ONES, np.array([1, 1, 1, np.inf])),
        "regress needs 4 positive numbers of people, got other values",
    ),
    (
        (FORCED, OUTPUTS[:2], np.arange(6.0).reshape(2, 3) ** 2),
        "regress needs covariates that are not linear combinations of others, got dependent ones",
    ),
    (
        (FORCED, OUTPUTS, np.column_stack([np.ones(4), np.zeros(4)])),
        "regress needs covariates that are not linear combinations of others, got dependent ones",
    ),
    ((2 * FORCED, OUTPUTS, ONES), "regress needs a channel of probabilities whose columns sum to 1, got other columns"),
    ((FORCED, OUTPUTS + 1, ONES), "regress needs a list of outputs from 0 to 1, got other values or none"),
    ((FORCED, OUTPUTS[:0], ONES[:0]), "regress needs a list of outputs from 0 to 1, got other values or none"),
    ((FORCED, OUTPUTS, ONES[:3]), "regress needs finite covariates of shape (4, P), got (3, 1) or non-finite numbers"),
    (
        (FORCED, OUTPUTS, ONES * np.nan),
        "regress needs finite covariates of shape (4, P), got (4, 1) or non-finite numbers",
    ),
    ((FORCED, OUTPUTS, ONES, np.zeros(4)), "regress needs 4 positive numbers of people, got other values"),
    (
        (FORCED, OUTPUTS, np.ones((4, 2))),
        "regress needs covariates that are not linear combinations of others, got dependent ones",
    ),
]


def calling(*arguments):
    return lambda: regress(*arguments)


def fitting(channel, counts):
    """A call that fits a constant to these numbers of outputs."""
    outputs = np.flatnonzero(counts)
    return lambda: regress(channel, outputs, np.ones((len(outputs), 1)), np.array(counts)[outputs])


def climbing():
    """A call whose likelihood can only fall."""
    problem = _Problem(FORCED, OUTPUTS, ONES, np.ones(4))
    problem._climb(np.zeros((1, 1)), np.inf, np.ones((1, 1)))


def out_of_steps():
    """A call that may take no step."""
    with mock.patch.object(regression, "_STEPS", 0):
        regress(FORCED, OUTPUTS, ONES)


def comparing():
    whole = regress(FORCED, OUTPUTS, ONES)
    whole.likelihood_ratio(whole)


def lonely(clusters: np.ndarray | None) -> Callable[[], Any]:
    rows = np.ones(3, dtype=np.int64)
    return lambda: Sample(people=rows, weights=rows, strata=np.array([0, 0, 1]), clusters=clusters)


def building(rates: list[float], known: list[float] | None, habit: str) -> Callable[[], Any]:
    people = [100] * len(rates)
    return lambda: crosswise(rates, people, people, known, habit)


def needs(habit: str) -> str:
    return (
        f"InattentiveAnswers with habit {habit} needs an anchor question, or two rates whose answers determine both "
        "shares, got neither"
    )


DESIGNS = [
    ("kuk:0.2", "SurveyDesign.name must be one of direct, crosswise, forced, unrelated, got 'kuk'"),
    ("crosswise", "SurveyDesign.rates of crosswise must be 1 number(s), got 0"),
    ("direct:0.5", "SurveyDesign.rates of direct must be 0 number(s), got 1"),
    ("forced:0.5", "SurveyDesign.rates of forced must be 2 number(s), got 1"),
    ("crosswise:1.5", "SurveyDesign.rates must be numbers from 0 to 1 with at most 18 decimals, got '1.5'"),
    ("crosswise:1/2", "SurveyDesign.rates must tell yes from no, got crosswise:1/2"),
    ("forced:0,0.5", "SurveyDesign.rates must tell yes from no, got forced:0,0.5"),
]


def parsing(text: str) -> Callable[[], SurveyDesign]:
    return lambda: SurveyDesign.parse(text)


REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
    # designs
    *((SpecError, parsing(text), sentence) for text, sentence in DESIGNS),
    # regression
    *((SpecError, calling(*arguments), sentence) for arguments, sentence in WRONG),
    (
        SpecError,
        comparing,
        "Regression.likelihood_ratio needs a regression of the same people with fewer coefficients than 1, got 1 of 4 "
        "people",
    ),
    (EstimationError, climbing, "Regression does not converge: no step increases the likelihood"),
    *(
        (EstimationError, call, "Regression does not converge: the reports do not determine all coefficients")
        for call in (fitting(FORCED, [900, 100]), fitting(np.eye(2), [100, 0]))
    ),
    (
        EstimationError,
        out_of_steps,
        "Regression does not converge: no finite coefficients have the largest likelihood",
    ),
    # samples
    (SpecError, lonely(None), "each stratum must have at least two people, got one in 1 of them"),
    (
        SpecError,
        lonely(np.array([0, 0, 0])),
        "each stratum must have at least two clusters, got one in 2 of them",
    ),
    # people who do not follow their design
    (SpecError, building([0.2], None, "one"), needs("one")),
    (SpecError, building([0.2, 0.2], None, "zero"), needs("zero")),
    (SpecError, building([0.1594625, 0.8, 0.3], None, "chance"), needs("chance")),
    (SpecError, building([0.2, 0.2], [QUESTION, 0.5], "chance"), needs("chance")),
    (SpecError, building([0.2, 0.2], [0, 0], "one"), needs("one")),
    (SpecError, building([0.2], None, "1"), "InattentiveAnswers.habit must be one of one, zero, chance, got '1'"),
    (
        EstimationError,
        lambda: attention(crosswise([0.2, 0.8], [100, 100], [1000, 1000], None, "one")),
        "the answers do not fit this design, even so (35 standard errors away)",
    ),
    (
        EstimationError,
        lambda: attention(crosswise([0.2, 0.8], [1000, 1000], [1000, 1000], None, "one")),
        "no share of yes: they are the answers of people of whom none follows the design",
    ),
    # numbers that are known in the clear
    (
        SpecError,
        lambda: two_answer_weights(np.ones(2, bool), np.zeros(3)),
        "held and rates must have the same shape (n,), got (2,) and (3,)",
    ),
    (
        SpecError,
        lambda: two_answer_weights(np.ones(1, bool), np.ones(1)),
        "rates must be numbers in [0, 1), got other values",
    ),
    (
        SpecError,
        lambda: two_answer_weights(np.ones((2, 1), bool), np.zeros((2, 1))),
        "held and rates must have the same shape (n,), got (2, 1) and (2, 1)",
    ),
    (
        SpecError,
        lambda: two_answer_weights(np.ones(2, bool), np.array([0.0, -1e-9])),
        "rates must be numbers in [0, 1), got other values",
    ),
    (SpecError, lambda: share_of(np.ones(0, bool), np.zeros(0)), "held must have at least one record, got none"),
    (
        SpecError,
        lambda: mean_of(np.ones(2), np.zeros(3)),
        "weights and numbers must have the same shape (n,), got (2,) and (3,)",
    ),
    (
        SpecError,
        lambda: quantile_of(np.ones((2, 1)), np.zeros((2, 1)), 0.5),
        "weights and numbers must have the same shape (n,), got (2, 1) and (2, 1)",
    ),
    (SpecError, lambda: quantile_of(np.ones(2), np.zeros(2), 0.0), "q must be a number between 0 and 1, got 0.0"),
    (SpecError, lambda: quantile_of(np.ones(2), np.zeros(2), 1.0), "q must be a number between 0 and 1, got 1.0"),
]
