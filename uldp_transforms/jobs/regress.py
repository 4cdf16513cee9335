"""Logistic regression of the truthful answer to a survey question on columns that are known in the clear.

Prints one table per question: for each covariate the coefficient (log odds of yes per unit, or of a category compared
with the base that is named below the table), its standard error and
95 % interval, and p-values of the hypothesis that it is 0, by Wald's test and by the likelihood ratio. Rows that cannot
be used are counted by reason, with their places in the file. Exit code 1 if a question has no result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.files.p_values import p_text
from uldp_transforms.jobs.files.text_table import aligned, printable
from uldp_transforms.jobs.survey.answer_options import AnswerColumns, add_options, columns_of
from uldp_transforms.jobs.survey.answer_table import Answers, read_answers
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import EstimationError, SpecError
from uldp_transforms.ldp.regression import Regression, regress

NO_RESULT = 1

INTERCEPT = "(intercept)"
_TITLES = ("covariate", "coefficient", "error", "95 % interval", "p (Wald)", "p (likelihood ratio)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Configuration:
    """Options of the program."""

    columns: AnswerColumns
    bases: dict[str, str]


class Matrix(NamedTuple):
    """The covariates of n rows.

    Attributes:
        names: P, the first is the intercept.
        numbers: (n, P) float64; of a category 1 where a row has it, else 0.
        compared: a line per column of categories, which names the base.
    """

    names: tuple[str, ...]
    numbers: np.ndarray
    compared: tuple[str, ...]


def configure(argv: Sequence[str]) -> Configuration:
    """Parse the command line; raises SpecError."""
    parser = cli.Parser("regress", description=__doc__)
    add_options(parser)
    parser.add_argument(
        "--covariates",
        type=cli.columns,
        metavar="COLUMN,...",
        required=True,
        help="names of columns, separated by commas: of numbers, or of names such as countries, which become "
        "categories; an intercept is added",
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
    args = parser.parse_args(argv)
    covariates = args.covariates
    if len(set(covariates)) != len(covariates):
        raise SpecError(f"--covariates must name each column once, got {describe(','.join(covariates))}")
    categories = args.categories or []
    bases = cli.by_name("--base", args.base or [])
    for option, names in (("--categories", categories), ("--base", list(bases))):
        unknown = [name for name in names if name not in covariates]
        if unknown:
            raise SpecError(f"{option} must name columns of --covariates, got {describe(unknown[0])}")
    return Configuration(columns=columns_of(args, covariates, categories), bases=bases)


def job(configuration: Configuration) -> int:
    """Read the table, and print a regression for each question and the omitted rows."""
    columns = configuration.columns
    answers = read_answers(columns)
    failed = not len(answers.answer)
    for number, question in enumerate(answers.questions):
        rows = answers.of_question(number)
        if not rows.any():
            continue
        try:
            lines = regression_lines(answers, rows, matrix_of(answers, rows, columns.covariates, configuration.bases))
        except EstimationError as error:
            lines, failed = [f"no result: {error}"], True
        print("\n".join([*[printable(question)] * bool(question), *lines, ""]))
    print("\n".join(answers.used))
    return NO_RESULT if failed else cli.DONE


def matrix_of(answers: Answers, rows: np.ndarray, columns: Sequence[str], bases: Mapping[str, str]) -> Matrix:
    """The covariates of the n rows of a question.

    Args:
        answers: all rows.
        rows: (N,) bool, those of the question.
        columns: names of the covariates.
        bases: column -> its base, if it is not the first category.

    Raises:
        SpecError: if no row of the question has a base.
    """
    names, matrix, compared = [INTERCEPT], [np.ones(rows.sum())], []
    for column, numbers, categories in zip(columns, answers.covariates[rows].T, answers.categories):
        if categories is None:
            names.append(column)
            matrix.append(numbers)
            if column in bases:
                raise SpecError(f"--base must name columns of categories, got {describe(column)}, a column of numbers")
            continue
        there = [categories[number] for number in np.unique(numbers).astype(np.int64)]
        base = bases.get(column, there[0])
        if base not in there:
            raise SpecError(f"--base must name a category of {column}, got one that no row has")
        names += [f"{column}: {name}" for name in there if name != base]
        matrix += [(numbers == categories.index(name)).astype(np.float64) for name in there if name != base]
        compared.append(f"{printable(column)}: compared with {printable(base)}")
    return Matrix(tuple(names), np.column_stack(matrix), tuple(compared))


def regression_lines(answers: Answers, rows: np.ndarray, matrix: Matrix) -> list[str]:
    """The table of one question.

    Raises:
        EstimationError: if the coefficients of a question cannot be determined.
        SpecError: if covariates are linear combinations of others.
    """
    matrices = np.array([design.channel.probabilities for design in answers.designs])
    channel = matrices[answers.design[rows]]
    names, covariates = matrix.names, matrix.numbers

    def fit(columns: np.ndarray) -> Regression:
        return regress(channel, answers.answer[rows], columns, answers.people[rows])

    found = fit(covariates)
    ratios = [found.likelihood_ratio(fit(np.delete(covariates, at, axis=1)))[2] for at in range(1, len(names))]
    low, high = found.intervals()
    shown = zip(found.coefficients[0], found.standard_errors[0], low[0], high[0], found.wald_p_values[0])
    cells = [
        (printable(name), f"{value:.4f}", f"{error:.4f}", f"{start:.4f} to {end:.4f}", p_text(wald, 3), ratio)
        for name, (value, error, start, end, wald), ratio in zip(
            names, shown, ["", *(p_text(ratio, 3) for ratio in ratios)]
        )
    ]
    likelihood = f"log-likelihood {found.log_likelihood:.4f}, {found.num_people:,} people"
    return [*aligned([_TITLES, *cells]), *matrix.compared, likelihood]


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("regress", configure, job, argv, faults_of_job=(SpecError, OSError))


if __name__ == "__main__":
    uldp.run_program("regress")
