"""Survey answers from a table. Rows that cannot be used are left out and counted; no cell is shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms_survey.answers.samples import Sample
from uldp_transforms_survey.survey.answer_options import NO, YES, AnswerColumns, DesignOption
from uldp_transforms_survey.survey.cells import Cells, LeftOut, are_missing, are_numbers, require_column, used
from uldp_transforms_survey.survey_designs import SurveyDesign
from uldp_transforms_tables.cell_texts import whole_number
from uldp_transforms_tables.table import Table
from uldp_transforms_tables.tables import table_of

_MOST_PEOPLE = 1 << 53
_MOST_CATEGORIES = 50
_ONE_COLUMN = ("question", "answer", "people", "weight", "stratum", "cluster")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answers:
    """The N rows of a table that can be used.

    Attributes:
        questions: names; one, the empty text, if the table has no column of them.
        designs: all that occur.
        question: (N,) int64, number in ``questions``.
        design: (N,) int64, number in ``designs``.
        answer: (N,) int64, 0 or 1.
        people: (N,) int64, above 0.
        covariates: (N, P) float64; of a covariate of names, the number in ``categories``.
        categories: names of each covariate in alphabetical order; None for one of numbers.
        num_rows: of the table, with those that are left out.
        left_out: why rows are not among the N.
        weights: (N,) float64, of each person of a row; None: no column has them.
        strata, clusters: (N,) int64; None: no column names them.
    """

    questions: tuple[str, ...]
    designs: tuple[SurveyDesign, ...]
    question: np.ndarray
    design: np.ndarray
    answer: np.ndarray
    people: np.ndarray
    covariates: np.ndarray
    categories: tuple[tuple[str, ...] | None, ...]
    num_rows: int
    left_out: tuple[LeftOut, ...]
    weights: np.ndarray | None
    strata: np.ndarray | None
    clusters: np.ndarray | None

    @property
    def used(self) -> list[str]:
        """Lines with the number of rows that are used, and the reasons for omitting the others."""
        return used(len(self.answer), self.num_rows, self.left_out)

    def of_question(self, number: int) -> np.ndarray:
        """(N,) bool: the rows of a question."""
        rows: np.ndarray = self.question == number
        return rows

    def sample(self, rows: np.ndarray) -> Sample | None:
        """How the people of some rows were drawn; None: independently, with equal chances.

        Args:
            rows: (N,) bool.

        Raises:
            SpecError: if a stratum has only one cluster.
        """
        if self.weights is None and self.strata is None and self.clusters is None:
            return None
        return Sample(
            people=self.people[rows],
            weights=np.ones(rows.sum()) if self.weights is None else self.weights[rows],
            strata=np.zeros(rows.sum(), dtype=np.int64) if self.strata is None else self.strata[rows],
            clusters=None if self.clusters is None else self.clusters[rows],
        )


def read_answers(columns: AnswerColumns) -> Answers:
    """Read a table.

    Raises:
        OSError: if the file cannot be opened.
        SpecError: if it lacks a column or has one twice, has no rows, or ``--design`` does not fit it.
    """
    table = table_of(columns.path)
    names = table.columns()
    single = {f"--{name}": getattr(columns, name) for name in _ONE_COLUMN}
    for name, column in [*single.items(), *(("--covariates", column) for column in columns.covariates)]:
        if column is not None:
            require_column(columns.path, names, name, column)
    option = DesignOption.parse(columns.design, names)
    for column in option.columns:
        require_column(columns.path, names, "--design", column)
    return _Reading(table, columns, option).answers()


class _Reading:
    """One pass over a table, which finds for each row the first reason to leave it out."""

    def __init__(self, table: Table, columns: AnswerColumns, option: DesignOption):
        self._columns, self._option = columns, option
        named = (*(getattr(columns, name) for name in _ONE_COLUMN), *option.columns, *columns.covariates)
        self._cells = Cells(columns.path, table, list(filter(None, named)))

    def answers(self) -> Answers:
        questions, question = self._questions()
        answer = self._answer(question)
        designs, design = self._designs()
        people = self._people()
        weights, strata, clusters = self._weights(), *map(self._named, ("stratum", "cluster"))
        columns = [self._covariate(column) for column in self._columns.covariates]
        keep = self._cells.keep
        self._cells.check_unreadable(self._columns.max_unreadable, "--max_unreadable", people)
        covariates = np.stack([numbers for numbers, _ in columns], axis=1) if columns else np.zeros((len(keep), 0))
        return Answers(
            questions=questions,
            designs=designs,
            question=question[keep],
            design=design[keep],
            answer=answer[keep],
            people=people[keep],
            covariates=covariates[keep],
            categories=tuple(categories for _, categories in columns),
            num_rows=len(keep),
            left_out=tuple(self._cells.left_out()),
            weights=None if weights is None else weights[keep],
            strata=None if strata is None else strata[keep],
            clusters=None if clusters is None else clusters[keep],
        )

    def _questions(self) -> tuple[tuple[str, ...], np.ndarray]:
        if self._columns.question is None:
            return ("",), np.zeros(len(self._cells.keep), dtype=np.int64)
        texts, codes = self._cells.coded(self._columns.question)
        self._cells.leave_out(are_missing(texts)[codes], f"no question in {self._columns.question}")
        return texts, codes

    def _weights(self) -> np.ndarray | None:
        column = self._columns.weight
        if column is None:
            return None
        numbers = self._cells.numbers(column)
        self._cells.leave_out(numbers < 0, f"a weight below 0 in {column}", cure="write weights of at least 0")
        self._cells.leave_out(numbers == 0, f"weight 0 in {column}")
        return numbers

    def _named(self, option: str) -> np.ndarray | None:
        """(N,) numbers of the names of strata or clusters."""
        column = getattr(self._columns, option)
        if column is None:
            return None
        texts, codes = self._cells.coded(column)
        self._cells.leave_out(are_missing(texts)[codes], f"no {option} in {column}")
        return codes

    def _answer(self, question: np.ndarray) -> np.ndarray:
        column, yes, no = self._columns.answer, self._columns.yes or YES, self._columns.no or NO
        texts, codes = self._cells.coded(column)
        is_yes, is_no = _are(texts, self._columns.yes, YES), _are(texts, self._columns.no, NO)
        self._cells.leave_out((are_missing(texts) & ~is_yes & ~is_no)[codes], f"no answer in {column}")
        unknown = (is_yes == is_no)[codes]
        self._check_pairs(question, is_yes[codes], is_no[codes], unknown)
        wanted = f"{'/'.join(yes)} nor {'/'.join(no)}"
        cure = "name the texts of answers with --yes and --no"
        self._cells.leave_out(unknown, f"an answer in {column} that is neither {wanted}", cure=cure)
        answers: np.ndarray = is_yes.astype(np.int64)[codes]
        return answers

    def _check_pairs(self, question: np.ndarray, is_yes: np.ndarray, is_no: np.ndarray, unknown: np.ndarray) -> None:
        """Refuse a question with unknown answers and only one of the known ones: 1 and 2 would be yes alone."""
        kept = self._cells.keep
        there = [
            np.bincount(question[rows & kept], minlength=1 + question.max()) > 0 for rows in (is_yes, is_no, unknown)
        ]
        alone = there[2] & (there[0] != there[1])
        if alone.any():
            known, lacks = ("yes", "no") if there[0][alone.argmax()] else ("no", "yes")
            raise SpecError(
                f"{self._columns.path} has answers in {self._columns.answer} of which one is known to mean {known}, "
                f"others are unknown and none means {lacks}; name the texts of both with --yes and --no"
            )

    def _covariate(self, column: str) -> tuple[np.ndarray, tuple[str, ...] | None]:
        """(N,) float64: numbers and None, or the numbers of names, and these names."""
        texts, codes = self._cells.coded(column)
        missing = are_missing(texts)
        if column not in self._columns.categories and (missing.all() or are_numbers(texts).any()):
            return self._cells.numbers(column, "; --categories reads names"), None
        self._cells.leave_out(missing[codes], f"no text in {column}")
        names = tuple(text for text, is_none in zip(texts, missing) if not is_none)
        if len(names) > _MOST_CATEGORIES:
            raise SpecError(
                f"--covariates must name columns of numbers, or of at most {_MOST_CATEGORIES} different texts, got "
                f"{column} with {len(names):,}"
            )
        return np.maximum(np.cumsum(~missing) - 1, 0)[codes].astype(np.float64), names

    def _designs(self) -> tuple[tuple[SurveyDesign, ...], np.ndarray]:
        option = self._option
        if not option.columns:
            return (option.design(()),), np.zeros(len(self._cells.keep), dtype=np.int64)
        coded = [self._cells.coded(column) for column in option.columns]
        missing = np.any([are_missing(texts)[codes] for texts, codes in coded], axis=0)
        where = " or ".join(option.columns)
        self._cells.leave_out(missing, f"no {'design' if option.name is None else 'rate'} in {where}")
        kinds, kind = np.unique(np.stack([codes for _, codes in coded]), axis=1, return_inverse=True)
        found = [_design(option, [texts[code] for (texts, _), code in zip(coded, row)]) for row in kinds.T.tolist()]
        kind = kind.reshape(-1)
        known = np.array([design is not None for design in found])
        wrong = "no known design" if option.name is None else f"no rates of {option.name} that tell yes from no"
        form = "designs as --design does" if option.name is None else "rates such as 0.2 or 1/5, with a decimal point"
        self._cells.leave_out(~known[kind], f"{wrong} in {where}", cure=f"write {form}")
        designs = tuple(dict.fromkeys(design for design in found if design is not None))
        number = np.array([designs.index(design) if design is not None else 0 for design in found])
        return designs, number[kind]

    def _people(self) -> np.ndarray:
        column = self._columns.people
        if column is None:
            return np.ones(len(self._cells.keep), dtype=np.int64)
        numbers = self._cells.numbers(column)
        whole = (numbers == np.floor(numbers)) & (numbers >= 0) & (numbers <= _MOST_PEOPLE)
        self._cells.leave_out(~whole, f"no whole number of people in {column}", cure="write whole numbers of people")
        self._cells.leave_out(numbers == 0, f"0 people in {column}")
        return np.where(whole, numbers, 0).astype(np.int64)


def _are(texts: Sequence[str], wanted: Sequence[str] | None, usual: Sequence[str]) -> np.ndarray:
    """Whether texts are answers: the usual ones in any letters, others exactly; 1.0 is 1."""
    if wanted is None:
        return np.array([whole_number(text.lower()) in usual for text in texts], dtype=bool)
    named = {whole_number(canonical(text.strip())) for text in wanted}
    return np.array([whole_number(text) in named for text in texts], dtype=bool)


def _design(option: DesignOption, cells: Sequence[str]) -> SurveyDesign | None:
    try:
        return option.design(cells)
    except SpecError:
        return None
