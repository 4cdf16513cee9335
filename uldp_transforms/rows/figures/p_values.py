"""P-values for people: which are called findings, and how they are written."""

from __future__ import annotations

from uldp_transforms.ldp.confidence import CONFIDENCE, confidence_or_default, error_rate

FOUND = error_rate(CONFIDENCE)
"""Largest p-value or q-value of what is called found, at the default confidence."""

_LEAST, _MOST_DIGITS = 1e-15, 6


def is_found(q_value: float, confidence: float | None) -> bool:
    """Whether a difference is called found: its q-value is at most 1 minus the confidence (None: the default).

    Then its interval after the selection, which has this confidence, does not contain 0.
    """
    return q_value <= error_rate(confidence_or_default(confidence))


def p_text(p_value: float, digits: int = 2, found: float = FOUND) -> str:
    """A p-value or q-value with as many digits as show on which side of ``found`` it is.

    Below 1e-15 there is only the bound: the approximations of tests and rounding are larger than such numbers.
    """
    if p_value < _LEAST:
        return f"< {_LEAST:.0e}"
    texts = [f"{p_value:.{number}g}" for number in range(digits, _MOST_DIGITS + 1)]
    return next((text for text in texts if (float(text) <= found) == (p_value <= found)), texts[-1])


def rate_text(rate: float) -> str:
    """A rate below 1 as text, such as ``.05``."""
    return f"{rate:.6g}".removeprefix("0")
