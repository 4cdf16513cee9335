"""Covariates of a regression: numbers, and categories that are compared with a base."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_survey.survey.answer_table import Answers

INTERCEPT = "(intercept)"
_FEW = 5  # different numbers of a column for each of which a share is predicted
_QUARTILES = (0.25, 0.5, 0.75)


@dataclasses.dataclass(frozen=True)
class Base:
    """The category with which those of a column are compared."""

    covariate: str
    base: str


@dataclasses.dataclass(frozen=True, eq=False)
class Covariates:
    """The covariates of n rows.

    Attributes:
        names: P, the first is the intercept.
        numbers: (n, P) float64; of a category 1 where a row has it, else 0.
        compared: one per column of categories.
        columns: of each column its name, where its numbers begin in ``names``, and of each value for which a share is
            predicted its text and these numbers.
    """

    names: tuple[str, ...]
    numbers: np.ndarray
    compared: tuple[Base, ...]
    columns: tuple[tuple[str, int, tuple[tuple[str, np.ndarray], ...]], ...]

    def settings(self) -> Iterator[tuple[str, str, np.ndarray]]:
        """Names of columns, values, and all rows with this value; first all rows as they are."""
        yield "all", "", self.numbers
        for column, start, values in self.columns:
            for text, numbers in values:
                changed = self.numbers.copy()
                changed[:, start : start + len(numbers)] = numbers
                yield column, text, changed


def covariates_of(answers: Answers, rows: np.ndarray, names: Sequence[str], bases: Mapping[str, str]) -> Covariates:
    """The covariates of the n rows of a question.

    Args:
        answers: all rows.
        rows: (N,) bool, those of the question.
        names: of the columns.
        bases: column -> its base, if it is not the first category.

    Raises:
        SpecError: if no row of the question has a base.
    """
    titles, matrix, compared = [INTERCEPT], [np.ones((rows.sum(), 1))], []
    columns = []
    for column, numbers, categories in zip(names, answers.covariates[rows].T, answers.categories):
        if categories is None:
            if column in bases:
                raise SpecError(f"--base must name columns of categories, got {describe(column)}, a column of numbers")
            columns.append((column, len(titles), _of_numbers(numbers, answers.people[rows])))
            titles.append(column)
            matrix.append(numbers[:, np.newaxis])
            continue
        there = [categories[number] for number in np.unique(numbers).astype(np.int64)]
        base = bases.get(column, there[0])
        if base not in there:
            raise SpecError(f"--base must name a category of {column}, got one that no row has")
        others = [name for name in there if name != base]
        values = tuple((name, np.array([float(name == other) for other in others])) for name in there)
        columns.append((column, len(titles), values))
        titles += [f"{column}: {name}" for name in others]
        matrix.append(numbers[:, np.newaxis] == [categories.index(name) for name in others])
        compared.append(Base(column, base))
    return Covariates(tuple(titles), np.hstack(matrix).astype(np.float64), tuple(compared), tuple(columns))


def _of_numbers(numbers: np.ndarray, people: np.ndarray) -> tuple[tuple[str, np.ndarray], ...]:
    """The different numbers if they are few, else the quartiles of people."""
    values, place = np.unique(numbers, return_inverse=True)
    if len(values) > _FEW:
        reached = np.cumsum(np.bincount(place, weights=people)) / people.sum()
        values = values[np.minimum(np.searchsorted(reached, _QUARTILES), len(values) - 1)]
    return tuple((f"{value:g}", np.array([value])) for value in np.unique(values).tolist())
