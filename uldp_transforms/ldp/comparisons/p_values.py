"""P-values for people: which are called findings, and how they are written."""

from __future__ import annotations

FOUND = 0.05
"""Largest p-value or q-value of what is called found."""

_LEAST, _MOST_DIGITS = 1e-15, 6


def p_text(p_value: float, digits: int = 2) -> str:
    """A p-value or q-value with as many digits as show on which side of ``FOUND`` it is.

    Below 1e-15 there is only the bound: the approximations of tests and rounding are larger than such numbers.
    """
    if p_value < _LEAST:
        return f"< {_LEAST:.0e}"
    texts = [f"{p_value:.{number}g}" for number in range(digits, _MOST_DIGITS + 1)]
    return next((text for text in texts if (float(text) <= FOUND) == (p_value <= FOUND)), texts[-1])
