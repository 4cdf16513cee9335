"""Rows with shares of yes: one per question and design, and one for the designs of a question together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from uldp_transforms.jobs.files.p_values import p_text
from uldp_transforms.jobs.survey.answer_table import Answers
from uldp_transforms.jobs.survey.designed import designed
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.answers import shares
from uldp_transforms.ldp.answers.shares import DesignedAnswers, Share
from uldp_transforms.ldp.mechanisms.channels.survey_designs import SurveyDesign

ALL = "all"
"""Design of a row that is of several designs with different names."""


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
    numbers, together = designed(answers, rows)
    counts = np.zeros((len(answers.designs), 2), dtype=np.int64)
    np.add.at(counts, (answers.design[rows], answers.answer[rows]), answers.people[rows])
    designs = [answers.designs[number] for number in numbers.tolist()]
    lines = [
        of_design(question, design, counts[number], together.of(numbers == number))
        for number, design in zip(numbers.tolist(), designs)
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
        **_numbers(_share(design, cells, answers), shown=problem is None),
        "num_designs": 1,
        "agreement_p_value": None,
        "fits": problem is None,
        "problem": problem,
    }


def _share(design: SurveyDesign, cells: np.ndarray, answers: DesignedAnswers) -> Share:
    """By exact binomial tails; by the likelihood for a sample that is not simple, and outside [0, 1]."""
    likely = shares.share_of_yes(answers)
    if answers.covariance is not None:
        return likely
    estimate = collection_of(design).estimate(CohortCounts(np.array([cells.sum()]), cells[np.newaxis]), "projected")
    yes = estimate.values.index("yes")
    low, high = float(estimate.ci_low[yes]), float(estimate.ci_high[yes])
    outside = likely.raw != likely.share
    return Share(
        raw=float(estimate.raw_frequencies[yes]),
        share=float(estimate.frequencies[yes]),
        standard_error=float(estimate.standard_errors[yes]),
        ci_low=min(low, likely.ci_low) if outside else low,
        ci_high=max(high, likely.ci_high) if outside else high,
    )


def _pooled(name: str, lines: list[dict[str, Any]], answers: DesignedAnswers) -> dict[str, Any]:
    """The row of several designs; without numbers if they disagree, or if the answers to one do not fit it."""
    tested, problem = shares.agreement(answers), shares.misfit(answers)
    fits = problem is None and all(line["fits"] for line in lines)
    if not fits:
        problem = problem or "no share of all: the answers of one of them do not fit it"
    elif tested is not None and tested[2] <= shares.DISAGREE:
        statistic, degrees, p_value = tested
        freedom = f"{degrees} {'degree' if degrees == 1 else 'degrees'} of freedom"
        problem = f"no share of all: the designs disagree (chi-square {statistic:.1f}, {freedom}, p {p_text(p_value)})"
    epsilons = [line["epsilon"] for line in lines]
    return {
        "question": lines[0]["question"],
        "design": name,
        "epsilon": None if None in epsilons else max(epsilons),
        "num_reports": sum(line["num_reports"] for line in lines),
        "num_ones": sum(line["num_ones"] for line in lines),
        "value": "yes",
        **_numbers(shares.share_of_yes(answers), shown=problem is None),
        "num_designs": len(lines),
        "agreement_p_value": None if tested is None else tested[2],
        "fits": fits,
        "problem": problem,
    }


def _numbers(share: Share, *, shown: bool) -> dict[str, float | None]:
    numbers = {
        "frequency": share.share,
        "raw_frequency": share.raw,
        "standard_error": share.standard_error,
        "ci_low": share.ci_low,
        "ci_high": share.ci_high,
    }
    return {name: number if shown else None for name, number in numbers.items()}
