"""Logistic regression of the truthful answer to a survey question on columns that are known in the clear.

Prints two tables per question. The first has for each covariate the coefficient (log odds of yes per unit, or of a
category compared with the base that is named below the table), its standard error and interval, p-values of the
hypothesis that it is 0, by Wald's test and by the likelihood ratio, and the odds ratio. The second has the predicted
shares of yes: of all people, and if all people had a value, with their other covariates as they are. Rows that cannot
be used are counted by reason, with their places in the file. Exit code 1 if a question has no result.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli, uldp
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_survey.survey.answer_options import AnswerColumns, add_options, add_page, columns_of, page_in
from uldp_transforms_survey.survey.answer_table import read_answers
from uldp_transforms_survey.survey.covariates import covariates_of
from uldp_transforms_survey.survey.regression_rows import lines_of, result_of

NO_RESULT = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Configuration:
    """Options of the program."""

    columns: AnswerColumns
    bases: dict[str, str]
    json: str | None
    html: str | None


def configure(argv: Sequence[str]) -> Configuration:
    """Parse the command line; raises SpecError."""
    parser = cli.Parser("regress", description=__doc__)
    add_options(parser)
    parser.add_argument(
        "--covariates",
        type=cli.columns,
        metavar="COLUMN,...",
        help="names of columns, separated by commas: of numbers, or of names such as countries, which become "
        "categories; an intercept is added (default: the intercept alone)",
    )
    parser.add_argument(
        "--categories",
        type=cli.columns,
        metavar="COLUMN,...",
        help="those of --covariates whose cells are names although they look like numbers",
    )
    parser.add_argument(
        "--base",
        type=cli.name_and_value,
        action="append",
        metavar="COLUMN=NAME",
        help="category with which the others of a column are compared; may be given several times (default: the first "
        "in alphabetical order)",
    )
    parser.add_argument("--json", metavar="FILE", help="JSON file for the results, one object per question and line")
    add_page(parser)
    args = parser.parse_args(argv)
    covariates = args.covariates or []
    if len(set(covariates)) != len(covariates):
        raise SpecError(f"--covariates must name each column once, got {describe(','.join(covariates))}")
    categories = args.categories or []
    bases = cli.by_name("--base", args.base or [])
    for option, names in (("--categories", categories), ("--base", list(bases))):
        unknown = [name for name in names if name not in covariates]
        if unknown:
            raise SpecError(f"{option} must name columns of --covariates, got {describe(unknown[0])}")
    columns = columns_of(args, covariates, categories)
    return Configuration(columns=columns, bases=bases, json=args.json, html=page_in(args))


def job(configuration: Configuration) -> int:
    """Read the table, and print a regression for each question and the omitted rows."""
    columns = configuration.columns
    answers = read_answers(columns)
    results = []
    for number, question in enumerate(answers.questions):
        rows = answers.of_question(number)
        if rows.any():
            covariates = covariates_of(answers, rows, columns.covariates, configuration.bases)
            results.append(result_of(question, answers, rows, covariates))
            print("\n".join([*lines_of(results[-1]), ""]))
    if configuration.json is not None:
        with whole_file(configuration.json) as file:
            file.writelines(f"{json.dumps(result)}\n".encode() for result in results)
    if configuration.html is not None and results:
        _write_page(configuration.html, columns.path, results, answers.used)
    print("\n".join(answers.used))
    return cli.DONE if results and all(result["problem"] is None for result in results) else NO_RESULT


def _write_page(path: str, table: str, results: Sequence[dict[str, Any]], accounts: Sequence[str]) -> None:
    from uldp_transforms_survey.survey import figures_of_answers as figures  # noqa: PLC0415  # of another package

    parts = [part for result in results if result["problem"] is None for part in figures.regression(result)]
    none = [line for result in results if result["problem"] is not None for line in lines_of(result)]
    figures.write_page(path, table, "Regression of survey answers", parts, [*none, *accounts])


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("regress", configure, job, argv, faults_of_job=(SpecError, OSError))


if __name__ == "__main__":
    uldp.run_program("regress")
