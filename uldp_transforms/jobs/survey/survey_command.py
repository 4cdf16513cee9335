"""Estimates how many people would truthfully say yes, from a table of answers to survey questions.

Prints one line per question and design: the number of people, the unbiased share of yes, its standard error, and the
95 % interval. The share can be below 0 or above 1 by chance; the interval cannot. Epsilon bounds what one answer
reveals (inf: an answer can rule out yes or no). A question with several designs also has a line with the most likely
share of all, and a test of whether they agree; if they do not, this line has no share. Rows that cannot be used are
counted by reason, with their places in the file. Exit code 1 if no row can be used, or if answers are too far from
those that their design can have.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.survey.answer_options import AnswerColumns, add_options, columns_of
from uldp_transforms.jobs.survey.answer_table import read_answers
from uldp_transforms.jobs.survey.share_rows import estimates
from uldp_transforms.jobs.survey.survey_table import lines_of
from uldp_transforms.ldp.errors import SpecError

NO_RESULT = 1


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
    lines = [*lines_of(rows, named=survey.columns.question is not None), *[""] * bool(rows), *answers.used]
    print("\n".join(lines))
    return cli.DONE if rows and all(row["fits"] for row in rows) else NO_RESULT


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("survey", configure, job, argv, faults_of_job=(SpecError, OSError))
