"""The result of ``uldp regress`` for one question, as it is written and as it is printed."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from uldp_transforms.jobs.files.text_table import aligned, printable
from uldp_transforms.ldp.confidence import INTERVAL
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators.display import interval_text
from uldp_transforms.rows.figures.compared_figures import p_text
from uldp_transforms_survey.answers.shares import DISAGREE, agreement, misfit
from uldp_transforms_survey.regression import Regression, regress
from uldp_transforms_survey.survey.answer_table import Answers
from uldp_transforms_survey.survey.covariates import Covariates
from uldp_transforms_survey.survey.designed import designed

_LEAST_DECIMALS, _DIGITS = 4, 3


def result_of(question: str, answers: Answers, rows: np.ndarray, covariates: Covariates) -> dict[str, Any]:
    """The regression of a question; only with ``problem`` if there is none.

    Args:
        question: its name.
        answers: of a table with N rows.
        rows: (N,) bool, those of the question.
        covariates: of these rows.

    Raises:
        SpecError: if covariates are linear combinations of others, or a stratum has only one cluster.
    """
    result: dict[str, Any] = {"question": question, "num_people": int(answers.people[rows].sum())}
    problem, p_value = _of_designs(answers, rows)
    try:
        if problem is None:
            return result | _fitted(answers, rows, covariates) | {"agreement_p_value": p_value, "problem": None}
    except EstimationError as error:
        problem = str(error)
    empty: dict[str, Any] = {"log_likelihood": None, "coefficients": [], "compared": [], "predicted": []}
    return result | empty | {"agreement_p_value": p_value, "problem": problem}


def _of_designs(answers: Answers, rows: np.ndarray) -> tuple[str | None, float | None]:
    """The first design that answers do not fit, with the sentence; and the p-value of the agreement of designs."""
    _, numbers, together = designed(answers, rows)
    problems = ((number, misfit(together.of(numbers == number))) for number in numbers.tolist())
    problem = next((f"{answers.designs[number]}: {said}" for number, said in problems if said is not None), None)
    tested = agreement(together)
    return problem, None if tested is None else tested[2]


def _fitted(answers: Answers, rows: np.ndarray, covariates: Covariates) -> dict[str, Any]:
    channel = np.array([design.channel.probabilities for design in answers.designs])[answers.design[rows]]
    sample, names = answers.sample(rows), covariates.names

    def fit(columns: np.ndarray) -> Regression:
        return regress(channel, answers.answer[rows], columns, answers.people[rows], sample)

    found = fit(covariates.numbers)
    ratios: list[float | None] = [None] * len(names)
    if sample is None:  # ratios of weighted likelihoods have no chi-square distribution
        for at in range(1, len(names)):
            ratios[at] = found.likelihood_ratio(fit(np.delete(covariates.numbers, at, axis=1)))[2]
    low, high = found.intervals()
    coefficients = [
        {
            "covariate": names[at],
            "coefficient": float(found.coefficients[0, at]),
            "standard_error": float(found.standard_errors[0, at]),
            "ci_low": float(low[0, at]),
            "ci_high": float(high[0, at]),
            "p_wald": float(found.wald_p_values[0, at]),
            "p_likelihood_ratio": ratios[at],
            "odds_ratio": _odds(found.coefficients[0, at]),
            "odds_ratio_low": _odds(low[0, at]),
            "odds_ratio_high": _odds(high[0, at]),
        }
        for at in range(len(names))
    ]
    people = answers.people[rows] if sample is None else sample.shares
    predicted = [
        {"covariate": name, "value": value, **_predicted(found, numbers, people)}
        for name, value, numbers in covariates.settings()
    ]
    return {
        "log_likelihood": found.log_likelihood,
        "coefficients": coefficients,
        "compared": [dataclasses.asdict(base) for base in covariates.compared],
        "predicted": predicted,
    }


def _odds(coefficient: float) -> float | None:
    """None if it is too large for a number of JSON."""
    with np.errstate(over="ignore"):
        odds = float(np.exp(coefficient))
    return odds if math.isfinite(odds) else None


def _predicted(found: Regression, numbers: np.ndarray, people: np.ndarray) -> dict[str, float]:
    """A mean of fitted shares, with its interval by the profile likelihood."""
    share, error = found.mean_probability(numbers, people)
    low, high = found.mean_interval(numbers, people)
    return {"share": share, "standard_error": error, "ci_low": low, "ci_high": high}


def lines_of(result: dict[str, Any]) -> list[str]:
    """The tables of a result, or the sentence that says why there is none."""
    name = [printable(result["question"])] * bool(result["question"])
    if result["problem"] is not None:
        return [*name, f"no result: {result['problem']}"]
    ratios = any(row["p_likelihood_ratio"] is not None for row in result["coefficients"])
    titles = ["covariate", "coefficient", "error", INTERVAL, "p (Wald)"]
    titles += ["p (likelihood ratio)"] * ratios + ["odds ratio", INTERVAL] * (len(result["coefficients"]) > 1)
    shown = [_cells(row, first=not at) for at, row in enumerate(result["coefficients"])]
    table = [[*cells[:5], *cells[5:6] * ratios, *cells[6:]][: len(titles)] for cells in shown]
    predicted = [
        (
            *(printable(row[part]) for part in ("covariate", "value")),
            f"{row['share']:.4f}",
            f"{row['standard_error']:.4f}",
            _interval(row),
        )
        for row in result["predicted"]
    ]
    return [
        *name,
        *aligned([titles, *table]),
        *(f"{printable(base['covariate'])}: compared with {printable(base['base'])}" for base in result["compared"]),
        *disagreement_of(result["agreement_p_value"]),
        f"log-likelihood {result['log_likelihood']:.4f}, {result['num_people']:,} people",
        "",
        *aligned([("predicted for", "", "yes", "error", INTERVAL), *predicted], left=(0, 1)),
    ]


def _interval(row: dict[str, Any]) -> str:
    """In words if no share is rejected."""
    if row["ci_low"] <= 0 and row["ci_high"] >= 1:
        return "not bounded by the answers"
    return interval_text(row["share"], row["ci_low"], row["ci_high"])


def disagreement_of(p_value: float | None) -> list[str]:
    """A sentence if the designs of a question disagree."""
    if p_value is None or p_value > DISAGREE:
        return []
    return [f"the designs disagree (p {p_text(p_value)}): these are averages of different shares; see uldp survey"]


def _cells(row: dict[str, Any], *, first: bool) -> list[str]:
    decimals = max(_LEAST_DECIMALS, _DIGITS - 1 - math.floor(math.log10(row["standard_error"])))
    coefficient, error, low, high = (
        f"{round(row[name], decimals) + 0.0:.{decimals}f}"  # no -0
        for name in ("coefficient", "standard_error", "ci_low", "ci_high")
    )
    ratio = row["p_likelihood_ratio"]
    odds = ["inf" if row[name] is None else f"{row[name]:.4g}" for name in _ODDS]
    return [
        printable(row["covariate"]),
        coefficient,
        error,
        f"{low} to {high}",
        p_text(row["p_wald"], _DIGITS),
        "" if ratio is None else p_text(ratio, _DIGITS),
        *(["", ""] if first else [odds[0], f"{odds[1]} to {odds[2]}"]),
    ]


_ODDS = ("odds_ratio", "odds_ratio_low", "odds_ratio_high")
