"""Logistic regression of the truthful answer to a survey question on columns that are known in the clear.

Prints one table per question: for each covariate the coefficient (log odds of yes per unit), its standard error and
95 % interval, and p-values of the hypothesis that it is 0, by Wald's test and by the likelihood ratio. Rows that cannot
be used are counted by reason, with their places in the file. Exit code 1 if a question has no result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

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


def configure(argv: Sequence[str]) -> Configuration:
    """Parse the command line; raises SpecError."""
    parser = cli.Parser("regress", description=__doc__)
    add_options(parser)
    parser.add_argument(
        "--covariates",
        type=cli.columns,
        metavar="COLUMN,...",
        required=True,
        help="names of numeric columns, separated by commas; an intercept is added",
    )
    args = parser.parse_args(argv)
    if len(set(args.covariates)) != len(args.covariates):
        raise SpecError(f"--covariates must name each column once, got {describe(','.join(args.covariates))}")
    return Configuration(columns=columns_of(args, args.covariates))


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
            lines = regression_lines(answers, rows, (INTERCEPT, *columns.covariates))
        except EstimationError as error:
            lines, failed = [f"no result: {error}"], True
        print("\n".join([*[printable(question)] * bool(question), *lines, ""]))
    print("\n".join(answers.used))
    return NO_RESULT if failed else cli.DONE


def regression_lines(answers: Answers, rows: np.ndarray, names: Sequence[str]) -> list[str]:
    """The table of one question.

    Raises:
        EstimationError: if the coefficients of a question cannot be determined.
        SpecError: if covariates are linear combinations of others.
    """
    matrices = np.array([design.channel.probabilities for design in answers.designs])
    channel = matrices[answers.design[rows]]
    covariates = np.column_stack([np.ones(rows.sum()), answers.covariates[rows]])

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
    return [*aligned([_TITLES, *cells]), likelihood]


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("regress", configure, job, argv, faults_of_job=(SpecError, OSError))


if __name__ == "__main__":
    uldp.run_program("regress")
