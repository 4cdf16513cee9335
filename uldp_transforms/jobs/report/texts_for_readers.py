"""Formats numbers and untrusted texts for a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

_JOINERS = "\u200c\u200d"  # used in Persian, Hindi and other scripts, and in some emoji
_NOTHING = 1e-6  # percent
_FEWEST_DIGITS, _MOST_DIGITS = 1, 4


def shown(text: str, longest: int = 120) -> str:
    """Convert an untrusted value to harmless text of one line; the template escapes it."""
    clean = "".join(c if c.isprintable() or c in _JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text)
    if not clean.strip():
        return "(empty)" if not clean else "(white space)"
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


def percent(share: float | None, digits: int = 1) -> str:
    """Format as ``3.1 %`` in a sentence; with more digits for small shares, and a dash for unknown ones."""
    if share is None or math.isnan(share):
        return "\N{EN DASH}"
    size = abs(100 * share)
    if _NOTHING < size < 10.0**-digits:
        digits = -math.floor(math.log10(size))
    return f"{100 * share:.{digits}f} %"


def span(low: float | None, high: float | None) -> str:
    """Format an interval as ``2.9 to 5.8 %``."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "\N{EN DASH}"
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def digits_of(halves: Iterable[float | None]) -> int:
    """Number of decimals of all percentages of a table: the shortest interval shows two digits of half its length.

    Args:
        halves: half lengths of the intervals, as shares; unknown ones and zeros do not count.

    Returns:
        from 1 to 4.
    """
    known = np.array([np.nan if half is None else half for half in halves], dtype=float)
    known = known[np.isfinite(known) & (known > 0)]
    if not len(known):
        return _FEWEST_DIGITS
    return min(max(1 - math.floor(math.log10(100 * float(known.min()))), _FEWEST_DIGITS), _MOST_DIGITS)


def fixed(share: float | None, digits: int) -> str:
    """Format as ``3.10 %`` in a table whose percentages all have the same number of decimals."""
    if share is None or math.isnan(share):
        return "\N{EN DASH}"
    return f"{_decimal(share, digits)} %"


def fixed_span(low: float | None, high: float | None, digits: int) -> str:
    """Format an interval as ``2.90 to 5.80 %`` in such a table."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "\N{EN DASH}"
    return f"{_decimal(low, digits)} to {_decimal(high, digits)} %"


def _decimal(share: float, digits: int) -> str:
    """A percentage, never as minus zero."""
    text = f"{100 * share:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def in_words(names: Sequence[str], most: int = 5) -> str:
    """Format as ``a, b and 3 more``."""
    listed = ", ".join(names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"
