"""The level of confidence of published intervals: its default, its limits, and how texts and rows say it."""

from __future__ import annotations

from uldp_transforms.ldp.checks import describe, is_number
from uldp_transforms.ldp.errors import SpecError

CONFIDENCE = 0.95
"""Default confidence of published intervals."""

MOST_CONFIDENCE = 0.999999
"""Largest confidence that can be requested: of a million values, the quantiles of higher ones lose digits."""

ALLOWED_CONFIDENCE = f"a number between 0 and 1, at most {MOST_CONFIDENCE}, such as {CONFIDENCE}"
_DECIMALS = 12  # of a rate: 1 minus a confidence has rounding errors of 1e-16


def is_confidence(value: object) -> bool:
    """Whether a value is a confidence that can be requested."""
    return is_number(value) and 0 < value <= MOST_CONFIDENCE


def check_confidence(where: str, value: object) -> None:
    """Refuse what is no confidence; raises SpecError."""
    if not is_confidence(value):
        raise SpecError(f"{where} must be {ALLOWED_CONFIDENCE}, got {describe(value)}")


def confidence_or_default(stored: float | None) -> float:
    """The confidence of a row; rows of versions without this field have the default."""
    return CONFIDENCE if stored is None else stored


def percent(confidence: float) -> str:
    """A confidence as text, such as ``95 %``."""
    return f"{100 * confidence:.10g} %"


def error_rate(confidence: float) -> float:
    """1 - confidence: the share of intervals that may miss, and the largest q-value of what is called found."""
    return round(1 - confidence, _DECIMALS)


INTERVAL = f"{percent(CONFIDENCE)} interval"
"""Name of an interval at the default confidence, such as the title of a column."""
