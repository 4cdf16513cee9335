"""Estimates how many people would truthfully say yes, from a table of answers to survey questions.

Prints one line per question and design: the number of people, the unbiased share of yes, its standard error, and its
interval. The share can be below 0 or above 1 by chance; the interval cannot. Epsilon bounds what one answer
reveals (inf: an answer can rule out yes or no). A question with several designs also has a line with the most likely
share of all, and a test of whether they agree; if they do not, this line has no share. With --inattentive, a second
table has the share of people who do not follow the design. Rows that cannot be used are counted by reason, with their
places in the file. Exit code 1 if no row can be used, or if answers are too far from
those that their design can have.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_survey.answers.inattention import HABITS
from uldp_transforms_survey.survey.answer_options import AnswerColumns, add_options, add_page, columns_of, page_in
from uldp_transforms_survey.survey.answer_table import read_answers
from uldp_transforms_survey.survey.inattention_rows import Model, inattention_rows
from uldp_transforms_survey.survey.share_rows import estimates, is_pooled
from uldp_transforms_survey.survey.survey_table import lines_of, lines_of_model
from uldp_transforms_survey.survey_designs import rate_of

NO_RESULT = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Survey:
    """Options of the program."""

    columns: AnswerColumns
    model: Model | None
    json: str | None
    json_pooled: str | None
    html: str | None


def configure(argv: Sequence[str]) -> Survey:
    """Parse the command line; raises SpecError."""
    parser = cli.Parser("survey", description=__doc__)
    add_options(parser)
    parser.add_argument(
        "--inattentive",
        choices=tuple(HABITS),
        help="also estimate the share of people who do not follow the design but always answer 1 (`one`), always "
        "answer 0 (`zero`), or answer by chance (`chance`), and the share of yes among the others; assumes that they "
        "are the same share at each rate of a question, and in that of --anchor (default: all follow the design)",
    )
    parser.add_argument(
        "--anchor",
        metavar="QUESTION=SHARE",
        help="question of the table to which a known share of people would truthfully say yes, such as "
        '"never born=0"; assumes that as many people do not follow its design as for the other questions (with '
        "--inattentive)",
    )
    parser.add_argument("--json", metavar="FILE", help="JSON file for the estimates by design, one object per line")
    parser.add_argument(
        "--json_pooled",
        metavar="FILE",
        help="also write the estimates of several designs together, and those of --inattentive, to this file",
    )
    add_page(parser)
    args = parser.parse_args(argv)
    columns, model = columns_of(args), _model_of(args)
    return Survey(columns=columns, model=model, json=args.json, json_pooled=args.json_pooled, html=page_in(args))


def _model_of(args: argparse.Namespace) -> Model | None:
    if args.anchor is None:
        return args.inattentive and Model(args.inattentive)
    for option in ("inattentive", "question"):
        if getattr(args, option) is None:
            raise SpecError(f"--anchor needs --{option}, got none")
    name, _, text = args.anchor.rpartition("=")  # a question may have the sign too
    share = rate_of(text)
    if not name or share is None:
        raise SpecError(f"--anchor must be QUESTION=SHARE with a share from 0 to 1, got {describe(args.anchor)}")
    return Model(args.inattentive, (name, float(share)))


def job(survey: Survey) -> int:
    """Read the table, print the estimates and what was left out."""
    answers = read_answers(survey.columns)
    rows = list(estimates(answers))
    by_model = [] if survey.model is None or not rows else inattention_rows(answers, rows, survey.model)
    _write(survey.json, [row for row in rows if not is_pooled(row)])
    _write(survey.json_pooled, [row for row in [*rows, *by_model] if is_pooled(row)])
    if survey.html is not None and rows:
        _write_page(survey, rows, by_model, answers.used)
    named = survey.columns.question is not None
    lines = [*lines_of(rows, named=named), *[""] * bool(rows)]
    if survey.model is not None and by_model:
        lines += [*lines_of_model(by_model, survey.model, named=named), ""]
    print("\n".join([*lines, *answers.used]))
    return cli.DONE if rows and all(row["fits"] for row in [*rows, *by_model]) else NO_RESULT


def _write(path: str | None, rows: Sequence[dict[str, Any]]) -> None:
    if path is not None:
        with whole_file(path) as file:
            file.writelines(f"{json.dumps(row)}\n".encode() for row in rows)


def _write_page(
    survey: Survey, rows: Sequence[dict[str, Any]], by_model: Sequence[dict[str, Any]], accounts: Sequence[str]
) -> None:
    from uldp_transforms_survey.survey import figures_of_answers as figures  # noqa: PLC0415  # of another package

    parts = [figures.shares(rows)]
    if survey.model is not None and by_model:
        parts.append(figures.shares_by_model(by_model, survey.model))
    figures.write_page(str(survey.html), survey.columns.path, "Survey answers", parts, accounts)


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("survey", configure, job, argv, faults_of_job=(SpecError, OSError))
