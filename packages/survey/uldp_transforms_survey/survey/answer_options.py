"""Options that name the columns of a table of answers, and the design of its questions."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.pictures import drawing
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_survey.survey_designs import FORMS, RATES, SurveyDesign, rate_of
from uldp_transforms_tables.people_options import TABLE

YES, NO = ("1", "yes", "true"), ("0", "no", "false")
"""Answers 1 and 0 in small letters, if no option names others."""

MAX_UNREADABLE = 0.05
"""Largest share of people whose rows are left out for their content, unless an option sets it."""

_HELP = f"""{FORMS}, or the name of a column whose cells contain such texts. A rate is a number from 0 to 1, a fraction
such as 5/6, or the name of a column with numbers"""


@dataclasses.dataclass(frozen=True)
class DesignOption:
    """What ``--design`` says.

    Attributes:
        name: of the design; None: it is in the cells of a column, ``rates[0]``.
        rates: numbers or names of columns.
        columns: those of ``rates`` that are names of columns.
    """

    name: str | None
    rates: tuple[str, ...]
    columns: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, columns: Sequence[str]) -> DesignOption:
        """Read the option for a table with these columns.

        Raises:
            SpecError: if it is neither a design nor a column, or has other rates.
        """
        if text in columns:
            return cls(None, (text,), (text,))
        name, _, listed = text.partition(":")
        if name not in RATES:
            raise SpecError(f"--design must be {FORMS}, or the name of a column, got {describe(text)}")
        rates = tuple(listed.split(",")) if listed else ()
        named = tuple(rate for rate in rates if rate_of(rate) is None)
        unknown = [rate for rate in named if rate not in columns]
        if unknown:
            raise SpecError(
                f"--design must have rates from 0 to 1 such as 0.16 or 1/6, or names of columns, got "
                f"{describe(unknown[0])}"
            )
        if len(rates) != len(RATES[name]):
            form = ":".join(filter(None, (name, ",".join(RATES[name]))))
            raise SpecError(f"--design must be {form}, got {describe(text)}")
        if not named:
            _ = SurveyDesign(name, rates)  # raises
        return cls(name, rates, named)

    def design(self, cells: Sequence[str]) -> SurveyDesign:
        """The design of a row, from its cells of ``columns``; raises SpecError."""
        if self.name is None:
            return SurveyDesign.parse(cells[0])
        of_column = dict(zip(self.columns, (cell.strip() for cell in cells)))
        return SurveyDesign(self.name, tuple(of_column.get(rate, rate) for rate in self.rates))


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerColumns:
    """Names of the columns of a table, None if there is no such column; and how they are read.

    Attributes:
        yes, no: texts that mean answer 1 and 0; None: the usual ones.
        categories: those of ``covariates`` whose cells are names, even if they look like numbers.
        max_unreadable: largest share of people whose rows are left out because their content is not understood.
        weight, stratum, cluster: of a person, in a sample that is not simple.
    """

    path: str
    question: str | None
    answer: str
    people: str | None
    design: str
    yes: tuple[str, ...] | None
    no: tuple[str, ...] | None
    covariates: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    max_unreadable: float = MAX_UNREADABLE
    weight: str | None = None
    stratum: str | None = None
    cluster: str | None = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the file and the options that all programs for survey answers share."""
    parser.add_argument("path", metavar="FILE", help=f"table of answers: {TABLE}")
    parser.add_argument(
        "--question", metavar="COLUMN", help="column that names the question (default: all rows answer one question)"
    )
    parser.add_argument("--answer", metavar="COLUMN", default="answer", help="column of answers")
    parser.add_argument("--design", metavar="DESIGN", required=True, help=_HELP)
    parser.add_argument(
        "--people", metavar="COLUMN", help="column with the number of people of a row (default: a row is one person)"
    )
    for name, number, usual in (("--yes", 1, YES), ("--no", 0, NO)):
        parser.add_argument(
            name,
            metavar="TEXT",
            action="append",
            help=f"text that means answer {number}; may be given several times (default: {', '.join(usual)})",
        )
    parser.add_argument(
        "--max_unreadable",
        metavar="SHARE",
        type=cli.share,
        default=MAX_UNREADABLE,
        help="largest share of people whose rows may be left out because of what the cells contain; rows with missing "
        "cells do not count",
    )
    parser.add_argument(
        "--weight",
        metavar="COLUMN",
        help="column with the weight of each person of a row (only ratios of weights matter); standard errors are then "
        "those of the sample, by linearization",
    )
    parser.add_argument(
        "--stratum", metavar="COLUMN", help="column that names the stratum from which a person was drawn"
    )
    parser.add_argument(
        "--cluster",
        metavar="COLUMN",
        help="column that names the cluster of a person, such as a school, or the person in a table with several "
        "answers of each: answers of one cluster may depend on each other",
    )


def add_page(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--html", metavar="FILE", help="also write a page on which each estimate is drawn")


def page_in(args: argparse.Namespace) -> str | None:
    """The file of ``--html``; raises SpecError if the package that draws is not installed."""
    if args.html is not None:
        drawing("report")
        return str(args.html)
    return None


def columns_of(
    args: argparse.Namespace, covariates: Sequence[str] = (), categories: Sequence[str] = ()
) -> AnswerColumns:
    """The parsed options; raises SpecError if both answers have the same text, or two columns the same name."""
    both = [text for text in args.yes or () if text in (args.no or ())]
    if both:
        raise SpecError(f"--yes and --no must be different texts, got {describe(both[0])} for both")
    single = [column for column in (args.question, args.answer, args.people) if column is not None]
    if len(set(single)) < len(single):
        raise SpecError(f"--question, --answer and --people must name different columns, got {', '.join(single)}")
    for option in ("weight", "stratum", "cluster"):
        column = getattr(args, option)
        if column in single:
            raise SpecError(f"--{option} must name a column of its own, got {describe(column)}")
        single += [column] * (column is not None)
    return AnswerColumns(
        path=args.path,
        question=args.question,
        answer=args.answer,
        people=args.people,
        design=args.design,
        yes=args.yes and tuple(args.yes),
        no=args.no and tuple(args.no),
        covariates=tuple(covariates),
        categories=tuple(categories),
        max_unreadable=args.max_unreadable,
        weight=args.weight,
        stratum=args.stratum,
        cluster=args.cluster,
    )
