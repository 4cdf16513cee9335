"""Rows with shares of yes: one per question and design, and one for the designs of a question together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.rows.figures.compared_figures import p_text
from uldp_transforms_survey.answers import shares
from uldp_transforms_survey.answers.shares import DesignedAnswers, Share
from uldp_transforms_survey.survey.answer_table import Answers
from uldp_transforms_survey.survey.designed import designed
from uldp_transforms_survey.survey_designs import SurveyDesign

ALL = "all"
"""Design of a row that is of several designs with different names."""

_ROUNDING = 1e-6  # of an expected number of answers


def is_pooled(row: dict[str, Any]) -> bool:
    """Whether a row is of several designs together, or of people who follow them."""
    return "num_designs" in row


def estimates(answers: Answers) -> Iterator[dict[str, Any]]:
    """Rows in the order of questions and designs; after the designs of a question those of several together.

    Raises:
        SpecError: if a stratum has only one cluster.
    """
    for number, question in enumerate(answers.questions):
        rows = answers.of_question(number)
        if rows.any():
            yield from _of_question(answers, question, rows)


def _of_question(answers: Answers, question: str, rows: np.ndarray) -> Iterator[dict[str, Any]]:
    _, of_designs, together = designed(answers, rows)
    counts = np.zeros((len(answers.designs), 2), dtype=np.int64)
    np.add.at(counts, (answers.design[rows], answers.answer[rows]), answers.people[rows])
    designs = [answers.designs[number] for number in of_designs.tolist()]
    lines = [
        of_design(question, design, counts[number], together.of(of_designs == number))
        for number, design in zip(of_designs.tolist(), designs)
    ]
    yield from lines
    names = np.array([design.name for design in designs])
    for name in [*dict.fromkeys(names.tolist()), *[ALL] * (len(set(names)) > 1)]:
        members = (names == name) | (name == ALL)
        if members.sum() > 1:
            yield _pooled(name, [line for line, member in zip(lines, members) if member], together.of(members))


def collection_of(design: SurveyDesign, name: str = "survey") -> Collection:
    """A question with the values no and yes, whose answers 0 and 1 follow this design."""
    alphabet = {"id": "closed", "values": ["no", "yes"]}
    return Collection.from_json({"id": name, "version": 1, "alphabet": alphabet, "mechanism": design.channel.to_json()})


def of_design(question: str, design: SurveyDesign, cells: np.ndarray, answers: DesignedAnswers) -> dict[str, Any]:
    """The row of a question and design; without numbers if its answers do not fit it.

    Args:
        question: its text.
        design: the design.
        cells: (2,) int64 numbers of answers 0 and 1.
        answers: the same, with what the sample says.
    """
    problem = shares.misfit(answers)
    return {
        "question": question,
        "design": str(design),
        "epsilon": None if math.isinf(design.channel.epsilon) else design.channel.epsilon,
        "num_reports": int(cells.sum()),
        "num_ones": int(cells[1]),
        "value": "yes",
        **numbers(_share(design, cells, answers) if problem is None else None),
        "fits": problem is None,
        "problem": problem,
    }


def _share(design: SurveyDesign, cells: np.ndarray, answers: DesignedAnswers) -> Share:
    """By exact binomial tails; by the likelihood for a sample that is not simple.

    An estimate outside [0, 1] has at least the interval of the nearest number of answers 1 whose estimate is inside.
    """
    likely = shares.share_of_yes(answers)
    if answers.covariance is not None:
        return likely
    exact = _exact(design, cells)
    if likely.raw == likely.share:
        return exact
    edge = answers.expected(likely.share).ones.item()
    ones = int(np.floor(edge + _ROUNDING) if cells[1] > edge else np.ceil(edge - _ROUNDING))
    inside = _exact(design, np.array([cells.sum() - ones, ones]))
    return dataclasses.replace(
        exact, ci_low=min(exact.ci_low, inside.ci_low), ci_high=max(exact.ci_high, inside.ci_high)
    )


def _exact(design: SurveyDesign, cells: np.ndarray) -> Share:
    estimate = collection_of(design).estimate(CohortCounts(np.array([cells.sum()]), cells[np.newaxis]), "projected")
    yes = estimate.values.index("yes")
    return Share(
        raw=float(estimate.raw_frequencies[yes]),
        share=float(estimate.frequencies[yes]),
        standard_error=float(estimate.standard_errors[yes]),
        ci_low=float(estimate.ci_low[yes]),
        ci_high=float(estimate.ci_high[yes]),
    )


def _pooled(name: str, lines: list[dict[str, Any]], answers: DesignedAnswers) -> dict[str, Any]:
    """The row of several designs; without numbers if they disagree, or if the answers to one do not fit it."""
    tested, problem = shares.agreement(answers), shares.misfit(answers)
    fits = problem is None and all(line["fits"] for line in lines)
    if not fits:
        problem = problem or "no share of all: the answers of one of them do not fit it"
    else:
        problem = disagreement(tested)
    return {
        **joined(name, lines),
        **numbers(shares.share_of_yes(answers) if problem is None else None),
        "agreement_p_value": tested and tested[2],
        "fits": fits,
        "problem": problem,
        **model_of(),
    }


def joined(name: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """What a row of several designs has whether or not there is a share.

    Args:
        name: of the designs.
        lines: rows of the designs.
    """
    epsilons = [line["epsilon"] for line in lines]
    return {
        "question": lines[0]["question"],
        "design": name,
        "epsilon": None if None in epsilons else max(epsilons),
        "num_designs": len(lines),
        "num_reports": sum(line["num_reports"] for line in lines),
        "num_ones": sum(line["num_ones"] for line in lines),
        "value": "yes",
    }


def disagreement(tested: tuple[float, int, float] | None) -> str | None:
    """A sentence if the test of agreement says that no number describes all designs."""
    if tested is None or tested[2] > shares.DISAGREE:
        return None
    statistic, degrees, p_value = tested
    freedom = f"{degrees} {'degree' if degrees == 1 else 'degrees'} of freedom"
    return f"no share of all: the designs disagree (chi-square {statistic:.1f}, {freedom}, p {p_text(p_value)})"


def model_of(
    habit: str | None = None, anchor: tuple[str, float] | None = None, inattentive: Share | None = None
) -> dict[str, Any]:
    """What a row of several designs says of people who do not follow them: nulls, if it assumes that all do."""
    return {
        "inattentive_habit": habit,
        "anchor": anchor and anchor[0],
        "anchor_share": anchor and anchor[1],
        "inattentive_share": inattentive and inattentive.share,
        "inattentive_standard_error": inattentive and inattentive.standard_error,
        "inattentive_ci_low": inattentive and inattentive.ci_low,
        "inattentive_ci_high": inattentive and inattentive.ci_high,
    }


def numbers(share: Share | None) -> dict[str, float | None]:
    """The numbers of a row, or nulls."""
    names = {"frequency": "share", "raw_frequency": "raw"}
    return {
        name: None if share is None else getattr(share, names.get(name, name))
        for name in ("frequency", "raw_frequency", "standard_error", "ci_low", "ci_high")
    }
