"""Numbers and foreign texts as a page shows them."""

from __future__ import annotations

import math
from collections.abc import Sequence

_JOINERS = "\u200c\u200d"  # letters of Persian, Hindi and others need them; so do some emoji
_NOTHING = 1e-6  # percent


def shown(text: str, longest: int = 120) -> str:
    """A value that anybody may have written, as harmless text of one line; escaping is the template's."""
    clean = "".join(c if c.isprintable() or c in _JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text)
    if not clean.strip():
        return "(empty)" if not clean else "(white space)"
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


def percent(share: float | None, digits: int = 1) -> str:
    """``3.1 %``; more digits where that would be nothing, a dash for what is not known."""
    if share is None or math.isnan(share):
        return "\N{EN DASH}"
    size = abs(100 * share)
    if _NOTHING < size < 10.0**-digits:
        digits = -math.floor(math.log10(size))
    return f"{100 * share:.{digits}f} %"


def span(low: float | None, high: float | None) -> str:
    """An interval: ``2.9 to 5.8 %``."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "\N{EN DASH}"
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def certain(low: float) -> str:
    """The lower end of an interval in words."""
    return f"at least {percent(low)}" if low > 0 else "may be nobody"


def in_words(names: Sequence[str], most: int = 5) -> str:
    """``a, b and 3 more``."""
    listed = ", ".join(names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"
