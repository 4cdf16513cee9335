"""Rows and texts of differences of numbers: means, quantiles, and shares above limits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from uldp_transforms.ldp.comparisons.compare_numbers import MEAN, QUANTILE, FigureDifference, compare_numbers
from uldp_transforms.ldp.comparisons.p_values import FOUND
from uldp_transforms.ldp.estimators.number_sums import NumberSums
from uldp_transforms.rows.figures.figure import halves_of, is_without_zero, name_of_quantile, name_of_share
from uldp_transforms.rows.figures.figure_words import digits_of
from uldp_transforms.rows.row_types import ComparedValue

ONLY_SMOOTH = "~"
"""Mark of a difference that is not found and whose interval contains 0, although its smooth interval does not."""

_FEWEST_DIGITS = 4  # of shares


def shows_only_smooth(row: ComparedValue) -> bool:
    """Whether a difference is not found and its interval contains 0, although its smooth interval does not."""
    is_told = row.q_value <= FOUND or is_without_zero(row.low, row.high)
    return not is_told and is_without_zero(row.display_low, row.display_high)


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
    """A difference and its interval as texts, as precise as they are: shares with four decimals or more."""
    digits = _digits(row)
    return f"{row.difference:+.{digits}f}", _span(row.low, row.high, digits)


def smooth_text(row: ComparedValue) -> str:
    """The interval of the difference of smooth estimates; empty if there is none."""
    return "" if row.display_difference is None else _span(row.display_low, row.display_high, _digits(row))


def _digits(row: ComparedValue) -> int:
    """Decimals of the shorter one of both intervals."""
    halves = halves_of(row.difference, row.low, row.high)
    if row.display_difference is not None:
        halves += halves_of(row.display_difference, row.display_low, row.display_high)
    digits = digits_of(halves, is_share=False)
    return digits if row.figure in (MEAN, QUANTILE) else max(digits, _FEWEST_DIGITS)


def _span(low: float | None, high: float | None, digits: int) -> str:
    """``+2.9 to +5.8``; ``below +5.8``, ``from +2.9`` or ``any`` if ends are open."""
    if low is None:
        return "any" if high is None else f"below {high:+.{digits}f}"
    return f"from {low:+.{digits}f}" if high is None else f"{low:+.{digits}f} to {high:+.{digits}f}"
