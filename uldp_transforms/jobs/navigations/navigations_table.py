"""Navigations from a table: answer, rate and loading time. Rows that cannot be used are left out and counted."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.jobs.files.values_file import table_of
from uldp_transforms.jobs.survey.cells import Cells, LeftOut, are_missing
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError

LOW, HIGH = "low", "high"
"""The two answers."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns of a table."""

    path: str
    value: str
    rate: str
    duration: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Navigations:
    """The n rows that can be used.

    Attributes:
        high: (n,) bool, whether the answer is "high".
        rates: (n,) float64 in [0, 1), the rate at which the answer is random.
        durations: (n,) float64, milliseconds.
        num_rows: of the table, with those that are left out.
        left_out: why rows are not among the n.
    """

    high: np.ndarray
    rates: np.ndarray
    durations: np.ndarray
    num_rows: int
    left_out: tuple[LeftOut, ...]


def read_navigations(columns: Columns) -> Navigations:
    """Read a table.

    Raises:
        OSError: if the file cannot be opened.
        SpecError: if it lacks a column, has one twice, or has no rows.
    """
    table = table_of(columns.path)
    names = table.columns()
    for option, column in (("value", columns.value), ("rate", columns.rate), ("duration", columns.duration)):
        if names.count(column) != 1:
            raise SpecError(
                f"--{option}_column must name one column of {columns.path}, got {describe(column)}, found "
                f"{names.count(column)} times"
            )
    cells = Cells(columns.path, table, [columns.value, columns.rate, columns.duration])
    texts, codes = cells.coded(columns.value)
    cells.leave_out(are_missing(texts)[codes], f"no answer in {columns.value}")
    cells.leave_out(~np.isin(texts, (LOW, HIGH))[codes], f"an answer in {columns.value} that is neither high nor low")
    high = np.array([text == HIGH for text in texts], dtype=bool)[codes]
    rates = cells.numbers(columns.rate)
    cells.leave_out((rates < 0) | (rates >= 1), f"a rate in {columns.rate} that is not from 0 to below 1")
    durations = cells.numbers(columns.duration)
    cells.leave_out(durations < 0, f"a time below 0 in {columns.duration}")
    keep = cells.keep
    return Navigations(
        high=high[keep],
        rates=rates[keep],
        durations=durations[keep],
        num_rows=len(keep),
        left_out=tuple(cells.left_out()),
    )
