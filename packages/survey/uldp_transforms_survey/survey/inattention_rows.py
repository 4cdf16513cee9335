"""Rows with the share of people who do not follow a design, and the share of yes among the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import EstimationError, SpecError
from uldp_transforms_survey.answers.inattention import InattentiveAnswers, attention
from uldp_transforms_survey.survey.answer_table import Answers
from uldp_transforms_survey.survey.designed import designed
from uldp_transforms_survey.survey.share_rows import disagreement, is_pooled, joined, model_of, numbers

DIRECT = "direct"
"""The design without instructions that somebody could fail to follow."""


@dataclasses.dataclass(frozen=True)
class Model:
    """What is assumed of people who do not follow a design.

    Attributes:
        habit: what they answer: "one", "zero" or "chance".
        anchor: a question whose share of yes is known, and this share; None: there is none.
    """

    habit: str
    anchor: tuple[str, float] | None = None

    @property
    def does(self) -> str:
        """What these people do, in words."""
        return {"one": "always answer 1", "zero": "always answer 0", "chance": "answer 0 or 1 by chance"}[self.habit]

    @property
    def assumption(self) -> str:
        """A sentence."""
        anchor = f" and in the anchor question, whose share of yes is {self.anchor[1]:.6g}" if self.anchor else ""
        return (
            f"inattentive: people who {self.does}, assumed to be the same share at each rate{anchor}; "
            "yes: share among the others"
        )


def inattention_rows(answers: Answers, lines: Sequence[dict[str, Any]], model: Model) -> list[dict[str, Any]]:
    """A row for each question, other than the anchor, and name of a design with instructions.

    Args:
        answers: of a table.
        lines: rows of ``share_rows.estimates``.
        model: what is assumed.

    Raises:
        SpecError: if no row has the anchor, or no question has designs that determine both shares.
    """
    anchor = None if model.anchor is None else model.anchor[0]
    if anchor is not None and anchor not in answers.questions:
        raise SpecError(f"--anchor must name a question of the table, got {describe(anchor)}")
    rows = []
    for number, question in enumerate(answers.questions):
        if question != anchor:
            of_question = [line for line in lines if line["question"] == question and not is_pooled(line)]
            rows += list(_of_question(answers, number, of_question, model))
    if all(row["problem"] == _needs(model) for row in rows):
        raise SpecError(f"{_needs(model)}, got neither")
    return rows


def _needs(model: Model) -> str:
    return f"--inattentive {model.habit} needs --anchor, or two rates of a design whose answers determine both shares"


def _of_question(
    answers: Answers, number: int, lines: Sequence[dict[str, Any]], model: Model
) -> Iterator[dict[str, Any]]:
    names = [line["design"].partition(":")[0] for line in lines]
    for name in dict.fromkeys(names):
        if name != DIRECT:
            row = joined(name, [line for line, own in zip(lines, names) if own == name])
            yield row | _fitted(_data(answers, number, name, model), model)


def _data(answers: Answers, number: int, name: str, model: Model) -> Callable[[], InattentiveAnswers]:
    """The answers to a question and its anchor in designs of a name; raises SpecError if they do not determine both."""
    rows, known = answers.of_question(number), np.nan
    if model.anchor is not None:
        rows, known = rows | answers.of_question(answers.questions.index(model.anchor[0])), model.anchor[1]
    name_of = np.array([design.name for design in answers.designs])
    questions, _, together = designed(answers, rows & (name_of[answers.design] == name))
    return lambda: InattentiveAnswers(
        answers=together, known=np.where(questions == number, np.nan, known), habit=model.habit
    )


def _fitted(data: Callable[[], InattentiveAnswers], model: Model) -> dict[str, Any]:
    found, problem = None, None
    try:
        found = attention(data())
        problem = disagreement(found.agreement)
    except SpecError:
        problem = _needs(model)
    except EstimationError as error:
        problem = str(error)
    shown = found if problem is None else None
    tested = None if found is None else found.agreement
    return {
        **numbers(None if shown is None else shown.yes),
        "raw_frequency": None,
        "agreement_p_value": None if tested is None else tested[2],
        "fits": problem is None,
        "problem": problem,
        **model_of(model.habit, model.anchor, None if shown is None else shown.inattentive),
    }
