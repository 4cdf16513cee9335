"""Rows and texts of differences of numbers: means, quantiles, and shares above limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from uldp_transforms.jobs.report.compared.compared_rows import FOUND
from uldp_transforms.jobs.report.numbers.number_facts import digits_of_length, name_of_quantile, name_of_share
from uldp_transforms.ldp.comparisons.compare_numbers import MEAN, QUANTILE, FigureDifference, compare_numbers
from uldp_transforms.ldp.estimators.number_sums import NumberSums
from uldp_transforms.rows.row_types import ComparedValue

ONLY_SMOOTH = "~"
"""Mark of a difference that is not found, although its smooth interval is without 0."""


def shows_only_smooth(row: ComparedValue) -> bool:
    """Whether a difference is not found, although its smooth interval is without 0."""
    low, high = row.display_low, row.display_high
    return row.q_value > FOUND and ((low is not None and low > 0) or (high is not None and high < 0))


def figure_rows(
    shared: dict[str, Any],
    first: NumberSums,
    second: NumberSums,
    limits: Sequence[float],
    quantiles: Sequence[float],
) -> Iterator[ComparedValue]:
    """A row for each figure that both sides have; the q-values are the p-values.

    Args:
        shared: fields that all rows of a pair have.
        first, second: the sides.
        limits, quantiles: of the figures.
    """
    unit = first.reports[0].model.alphabet.unit
    for found in compare_numbers(first, second, limits, quantiles):
        yield ComparedValue(
            **shared,
            value=_name(found, unit),
            **dataclasses.asdict(found),
            q_value=found.p_value,
            lift=None,
            lift_low=None,
            lift_high=None,
        )


def _name(found: FigureDifference, unit: str) -> str:
    if found.at is None:
        return found.figure
    return name_of_quantile(found.at) if found.figure == QUANTILE else name_of_share(found.at, unit)


def difference_texts(row: ComparedValue) -> tuple[str, str]:
    """A difference and its interval as texts: shares with four decimals, numbers as precise as they are."""
    digits = 4 if row.figure not in (MEAN, QUANTILE) else digits_of_length(_known(row))
    return f"{row.difference:+.{digits}f}", _span(row.low, row.high, digits)


def smooth_text(row: ComparedValue) -> str:
    """The interval of the difference of smooth estimates; empty if there is none."""
    if row.display_difference is None:
        return ""
    digits = 4 if row.figure not in (MEAN, QUANTILE) else digits_of_length(_known(row))
    return _span(row.display_low, row.display_high, digits)


def _known(row: ComparedValue) -> list[float]:
    """Lengths of the intervals with two ends."""
    ends = (row.low, row.high), (row.display_low, row.display_high)
    return [high - low for low, high in ends if low is not None and high is not None]


def _span(low: float | None, high: float | None, digits: int) -> str:
    """``+2.9 to +5.8``; ``below +5.8``, ``from +2.9`` or ``any`` if ends are open."""
    if low is None:
        return "any" if high is None else f"below {high:+.{digits}f}"
    return f"from {low:+.{digits}f}" if high is None else f"{low:+.{digits}f} to {high:+.{digits}f}"
