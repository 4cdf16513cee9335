"""Survey answers from a table. Rows that cannot be used are left out and counted; no cell is shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from uldp_transforms.jobs.files.values_file import Table, table_of
from uldp_transforms.jobs.survey.answer_options import NO, YES, AnswerColumns, DesignOption
from uldp_transforms.jobs.survey.cells import Cells, LeftOut, are_missing, require_column, used
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.channels.survey_designs import SurveyDesign

_MOST_PEOPLE = 1 << 53


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
        covariates: (N, P) float64.
        num_rows: of the table, with those that are left out.
        left_out: why rows are not among the N.
    """

    questions: tuple[str, ...]
    designs: tuple[SurveyDesign, ...]
    question: np.ndarray
    design: np.ndarray
    answer: np.ndarray
    people: np.ndarray
    covariates: np.ndarray
    num_rows: int
    left_out: tuple[LeftOut, ...]

    @property
    def used(self) -> list[str]:
        """Lines with the number of rows that are used, and the reasons for omitting the others."""
        return used(len(self.answer), self.num_rows, self.left_out)

    def of_question(self, number: int) -> np.ndarray:
        """(N,) bool: the rows of a question."""
        rows: np.ndarray = self.question == number
        return rows


def read_answers(columns: AnswerColumns) -> Answers:
    """Read a table.

    Raises:
        OSError: if the file cannot be opened.
        SpecError: if it lacks a column or has one twice, has no rows, or ``--design`` does not fit it.
    """
    table = table_of(columns.path)
    names = table.columns()
    single = {"--question": columns.question, "--answer": columns.answer, "--people": columns.people}
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
        named = (columns.question, columns.answer, columns.people, *option.columns, *columns.covariates)
        self._cells = Cells(columns.path, table, list(filter(None, named)))

    def answers(self) -> Answers:
        questions, question = self._questions()
        answer = self._answer()
        designs, design = self._designs()
        people = self._people()
        columns = [self._cells.numbers(column) for column in self._columns.covariates]
        keep = self._cells.keep
        covariates = np.stack(columns, axis=1) if columns else np.zeros((len(keep), 0))
        return Answers(
            questions=questions,
            designs=designs,
            question=question[keep],
            design=design[keep],
            answer=answer[keep],
            people=people[keep],
            covariates=covariates[keep],
            num_rows=len(keep),
            left_out=tuple(self._cells.left_out()),
        )

    def _questions(self) -> tuple[tuple[str, ...], np.ndarray]:
        if self._columns.question is None:
            return ("",), np.zeros(len(self._cells.keep), dtype=np.int64)
        texts, codes = self._cells.coded(self._columns.question)
        self._cells.leave_out(are_missing(texts)[codes], f"no question in {self._columns.question}")
        return texts, codes

    def _answer(self) -> np.ndarray:
        column, yes, no = self._columns.answer, self._columns.yes, self._columns.no
        texts, codes = self._cells.coded(column)
        is_yes, is_no = _are(texts, yes, YES), _are(texts, no, NO)
        self._cells.leave_out((are_missing(texts) & ~is_yes & ~is_no)[codes], f"no answer in {column}")
        wanted = f"{'/'.join(yes or YES)} nor {'/'.join(no or NO)}"
        self._cells.leave_out((is_yes == is_no)[codes], f"an answer in {column} that is neither {wanted}")
        return is_yes.astype(np.int64)[codes]

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
        self._cells.leave_out(~known[kind], f"{wrong} in {where}")
        designs = tuple(dict.fromkeys(design for design in found if design is not None))
        number = np.array([designs.index(design) if design is not None else 0 for design in found])
        return designs, number[kind]

    def _people(self) -> np.ndarray:
        column = self._columns.people
        if column is None:
            return np.ones(len(self._cells.keep), dtype=np.int64)
        numbers = self._cells.numbers(column)
        whole = (numbers == np.floor(numbers)) & (numbers >= 0) & (numbers <= _MOST_PEOPLE)
        self._cells.leave_out(~whole, f"no whole number of people in {column}")
        self._cells.leave_out(numbers == 0, f"0 people in {column}")
        return np.where(whole, numbers, 0).astype(np.int64)


def _are(texts: Sequence[str], wanted: Sequence[str] | None, usual: Sequence[str]) -> np.ndarray:
    is_wanted: Callable[[str], bool] = (lambda text: text.lower() in usual) if wanted is None else wanted.__contains__
    return np.array([is_wanted(text) for text in texts], dtype=bool)


def _design(option: DesignOption, cells: Sequence[str]) -> SurveyDesign | None:
    try:
        return option.design(cells)
    except SpecError:
        return None
