"""Formats numbers and untrusted texts for a page."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from uldp_transforms.ldp.estimators.display import one_sided

if TYPE_CHECKING:
    from markupsafe import Markup

_JOINERS = "\u200c\u200d"  # used in Persian, Hindi and other scripts, and in some emoji
_NOTHING = 1e-6  # percent
_TAIL = 10  # letters at the end of a cut value, which values of one beginning often do not share
_QUOTED = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_FEWEST_DIGITS, _MOST_DIGITS = 1, 4


def shown(text: str, longest: int = 120) -> str:
    """Convert an untrusted value to harmless text of one line; the template escapes it."""
    clean = "".join(c if c.isprintable() or c in _JOINERS else "\N{REPLACEMENT CHARACTER}" for c in text)
    if not clean.strip():
        return "(empty)" if not clean else "(white space)"
    return clean if len(clean) <= longest else f"{clean[: longest - 1]}\N{HORIZONTAL ELLIPSIS}"


def named(value: str, longest: int = 120) -> str:
    """A value as ``shown`` writes it, cut in the middle: many long values, such as addresses, differ in their ends."""
    text = shown(value, len(value))
    if len(text) <= longest:
        return text
    tail = min(_TAIL, longest // 3)
    return f"{text[: longest - 1 - tail]}\N{HORIZONTAL ELLIPSIS}{text[-tail:]}"


def ends_of(text: str) -> tuple[str, str]:
    """A long text as its beginning, which a page may cut, and its end; no letter is divided from its accents."""
    at = max(len(text) - _TAIL, 0)
    while 0 < at < len(text) and (unicodedata.combining(text[at]) or text[at] in _JOINERS or text[at - 1] in _JOINERS):
        at += 1
    return text[:at], text[at:]


def with_values(sentence: str) -> Markup:
    """A sentence whose quoted values cannot change the direction of what stands around them."""
    from markupsafe import Markup, escape  # noqa: PLC0415  # of the extra plot

    parts = (
        f"<bdi>{escape(part)}</bdi>" if at % 2 else escape(part) for at, part in enumerate(_QUOTED.split(sentence))
    )
    return Markup("".join(parts))


def group_words(group: str) -> Markup:
    """A group such as ``country=DE,arm=new`` that may be broken into lines between its dimensions."""
    from markupsafe import Markup  # noqa: PLC0415  # of the extra plot

    return Markup(",<wbr>").join(group.split(","))


def points(difference: float | None, digits: int) -> str:
    """Format a difference of shares as ``+3.10``, in percentage points."""
    return signed(None if difference is None else 100 * difference, digits)


def points_span(low: float | None, high: float | None, digits: int) -> str:
    """Format the interval of such a difference as ``-2.90 to +5.80``."""
    low, high = (None if end is None else 100 * end for end in (low, high))
    return signed_span(low, high, digits)


def signed(difference: float | None, digits: int) -> str:
    """Format a difference as ``+3.10``; a dash if unknown; zero without a sign."""
    if difference is None or math.isnan(difference):
        return "\N{EN DASH}"
    text = f"{difference:+,.{digits}f}"
    return text[1:] if not text.strip("+-0.,") else text


def signed_span(low: float | None, high: float | None, digits: int) -> str:
    """Format an interval as ``-2.9 to +5.8``; ``below +5.8`` or ``from -2.9`` if an end is open.

    An end beside 0 keeps its sign, such as ``+0.0``: it says on which side of 0 the interval is.
    """
    ends = [None if end is None else _end(end, digits) for end in (low, high)]
    if ends[0] is None:
        return f"below {ends[1]}" if ends[1] is not None else "\N{EN DASH}"
    return f"{ends[0]} to {ends[1]}" if ends[1] is not None else f"from {ends[0]}"


def _end(end: float, digits: int) -> str:
    return signed(end, digits) if math.isnan(end) or end == 0 else f"{end:+,.{digits}f}"


def percent(share: float | None, digits: int = 1) -> str:
    """Format as ``3.1 %`` in a sentence; with more digits for small shares, and a dash for unknown ones."""
    if share is None or math.isnan(share):
        return "\N{EN DASH}"
    size = abs(100 * share)
    if size > _NOTHING:
        digits = max(digits, -math.floor(math.log10(size)))
    return f"{100 * share:.{digits}f} %"


def span(low: float | None, high: float | None) -> str:
    """Format an interval as ``2.9 to 5.8 %``."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "\N{EN DASH}"
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def share_words(share: float | None, low: float | None, high: float | None) -> str:
    """Format a share with its interval as ``3.1 % (2.9 to 5.8 %)``; as ``below 1.8 %`` or ``above 98.2 %`` where it is
    0 or 1, and its interval begins or ends there."""
    bound = None if low is None or high is None else one_sided(share, low, high)
    return f"{percent(share)} ({span(low, high)})" if bound is None else f"{bound[0]} {_inner_end(bound[1])}"


def _inner_end(share: float, digits: int = 1) -> str:
    """A percentage with enough decimals to be neither 0 nor 100."""
    needed = -math.log10(100 * min(share, 1 - share))
    return f"{100 * share:.{max(digits, math.ceil(needed - _NOTHING))}f} %"


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


def fixed_span(low: float | None, high: float | None, digits: int, share: float | None = None) -> str:
    """Format an interval as ``2.90 to 5.80 %`` in such a table; ``<0.01 to 5.80 %`` if it begins just above 0; ``below
    1.80 %`` or ``above 98.20 %`` if the share is 0 or 1."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return "\N{EN DASH}"
    bound = one_sided(share, low, high)
    if bound is not None:
        return f"{bound[0]} {_inner_end(bound[1], digits)}"
    start = _decimal(low, digits)
    if low > 0 and float(start) == 0:
        start = f"<{10**-digits:.{digits}f}"
    return f"{start} to {_decimal(high, digits)} %"


def _decimal(share: float, digits: int) -> str:
    """A percentage, never as minus zero."""
    text = f"{100 * share:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def in_words(names: Sequence[str], most: int = 5) -> str:
    """Format as ``a, b and 3 more``."""
    listed = ", ".join(names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"
