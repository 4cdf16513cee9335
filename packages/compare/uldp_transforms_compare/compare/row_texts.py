"""What differs, and by how much, as texts."""

from __future__ import annotations

from uldp_transforms.rows.figures.compared_figures import QUANTILE, WITH_UNIT, is_found
from uldp_transforms.rows.figures.figure import halves_of, is_without_zero, name_of_quantile, name_of_share
from uldp_transforms.rows.figures.figure_words import digits_of
from uldp_transforms.rows.row_types import ComparedValue
from uldp_transforms_compare.comparisons.difference_columns import Subject

ONLY_SMOOTH = "~"
"""Mark of a difference that is not found and whose interval contains 0, although its smooth interval does not."""

_FEWEST_DIGITS = 4  # of shares


def shows_only_smooth(row: ComparedValue) -> bool:
    """Whether a difference is not found and its interval contains 0, although its smooth interval does not."""
    is_told = is_found(row.q_value, row.confidence) or is_without_zero(row.low, row.high)
    return not is_told and is_without_zero(row.display_low, row.display_high)


def name_of(one: Subject, unit: str) -> str:
    """The value, or the name of the figure, for a row."""
    if one.at is None:
        return one.value or one.figure or ""
    return name_of_quantile(one.at) if one.figure == QUANTILE else name_of_share(one.at, unit)


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
    return digits if row.figure in WITH_UNIT else max(digits, _FEWEST_DIGITS)


def _span(low: float | None, high: float | None, digits: int) -> str:
    """``+2.9 to +5.8``; ``below +5.8``, ``from +2.9`` or ``any`` if ends are open."""
    if low is None:
        return "any" if high is None else f"below {high:+.{digits}f}"
    return f"from {low:+.{digits}f}" if high is None else f"{low:+.{digits}f} to {high:+.{digits}f}"
