"""Estimates how many people would truthfully say yes, from a table of answers to survey questions.

Prints one line per question and design: the number of people, the unbiased share of yes, its standard error, and the
95 % interval. The share can be below 0 or above 1 by chance; the interval cannot. Epsilon bounds what one answer
reveals (inf: an answer can rule out yes or no). Rows that cannot be used are counted by reason, with their places in
the file. Exit code 1 if no row can be used.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.files.text_table import aligned, printable
from uldp_transforms.jobs.survey.answer_options import AnswerColumns, add_options, columns_of
from uldp_transforms.jobs.survey.answer_table import Answers, read_answers
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.channels.survey_designs import SurveyDesign

NOTHING_USED = 1

_TITLES = ("question", "design", "people", "yes", "error", "95 % interval", "epsilon")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Survey:
    """Options of the program."""

    columns: AnswerColumns
    json: str | None


def configure(argv: Sequence[str]) -> Survey:
    """Parse the command line; raises SpecError."""
    parser = cli.Parser("survey", description=__doc__)
    add_options(parser)
    parser.add_argument(
        "--json", metavar="FILE", help="also write the estimates to this file, one JSON object per line"
    )
    args = parser.parse_args(argv)
    return Survey(columns=columns_of(args), json=args.json)


def job(survey: Survey) -> int:
    """Read the table, print the estimates and what was left out."""
    answers = read_answers(survey.columns)
    rows = list(estimates(answers))
    if survey.json is not None:
        with whole_file(survey.json) as file:
            file.writelines(f"{json.dumps(row)}\n".encode() for row in rows)
    lines = [_TITLES, *map(_cells, rows)]
    first = 0 if survey.columns.question else 1  # one question has no name
    table = aligned([line[first:] for line in lines], left=range(2 - first)) if rows else []
    print("\n".join([*table, *[""] * bool(rows), *answers.used]))
    return cli.DONE if rows else NOTHING_USED


def estimates(answers: Answers) -> Iterator[dict[str, Any]]:
    """One row per question and design that has answers, in the order of their texts."""
    shape = (len(answers.questions), len(answers.designs), 2)
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, (answers.question, answers.design, answers.answer), answers.people)
    for question, design in np.argwhere(counts.sum(axis=2)).tolist():
        yield _estimate(answers.questions[question], answers.designs[design], counts[question, design])


def collection_of(design: SurveyDesign, name: str = "survey") -> Collection:
    """A question with the values no and yes, whose answers 0 and 1 follow this design."""
    alphabet = {"id": "closed", "values": ["no", "yes"]}
    return Collection.from_json({"id": name, "version": 1, "alphabet": alphabet, "mechanism": design.channel.to_json()})


def _estimate(question: str, design: SurveyDesign, cells: np.ndarray) -> dict[str, Any]:
    collection = collection_of(design)
    estimate = collection.estimate(CohortCounts(np.array([cells.sum()]), cells[np.newaxis]), "projected")
    yes = estimate.values.index("yes")
    return {
        "question": question,
        "design": str(design),
        "epsilon": None if math.isinf(design.channel.epsilon) else design.channel.epsilon,
        "num_reports": int(cells.sum()),
        "num_ones": int(cells[1]),
        "value": "yes",
        "frequency": float(estimate.frequencies[yes]),
        "raw_frequency": float(estimate.raw_frequencies[yes]),
        "standard_error": float(estimate.standard_errors[yes]),
        "ci_low": float(estimate.ci_low[yes]),
        "ci_high": float(estimate.ci_high[yes]),
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        printable(row["question"]),
        row["design"],
        f"{row['num_reports']:,}",
        f"{row['raw_frequency']:.4f}",
        f"{row['standard_error']:.4f}",
        f"{row['ci_low']:.4f} to {row['ci_high']:.4f}",
        "inf" if row["epsilon"] is None else f"{row['epsilon']:.2f}",
    )


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("survey", configure, job, argv, faults_of_job=(SpecError, OSError))
