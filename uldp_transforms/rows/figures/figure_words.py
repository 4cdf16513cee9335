"""Figures as text: digits from the lengths of intervals, shares in percent, open ends and bounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

from uldp_transforms.ldp.estimators.display import one_sided
from uldp_transforms.rows.figures.figure import Figure, Trend

_UNKNOWN = "\N{EN DASH}"
_NOTHING = 1e-6  # percent
_SHARE_DIGITS, _NUMBER_DIGITS = (1, 4, 1), (0, 6, 3)  # fewest, most, without intervals


def digits_of(halves: Iterable[float | None], is_share: bool) -> int:
    """Number of decimals with which the shortest interval shows two digits of half its length.

    Args:
        halves: half lengths of the intervals; unknown ones and zeros do not count.
        is_share: whether they are of shares, which are written in percent.

    Returns:
        from 1 to 4 for shares, from 0 to 6 for other numbers.
    """
    fewest, most, none = _SHARE_DIGITS if is_share else _NUMBER_DIGITS
    known = np.array([np.nan if half is None else half for half in halves], dtype=float)
    known = known[np.isfinite(known) & (known > 0)]
    if not len(known):
        return none
    shortest = float(known.min()) * (100 if is_share else 1)
    return min(max(1 - math.floor(math.log10(shortest)), fewest), most)


@dataclasses.dataclass(frozen=True)
class NumberFormat:
    """How shares, or other numbers, are written.

    Attributes:
        is_share: whether numbers are shares, which are written in percent.
        digits: number of decimals; None: one, and more for small shares, as in a sentence.
        unit: unit of numbers in a sentence; may be empty.
    """

    is_share: bool = True
    digits: int | None = None
    unit: str = ""

    def text(self, number: float | None) -> str:
        """``3.10 %``, or ``1,234.50``; a dash if unknown."""
        plain = self._plain(number)
        return _UNKNOWN if plain is None else f"{plain}{self._sign}"

    def span(self, low: float | None, high: float | None, value: float | None = None) -> str:
        """``2.90 to 5.80 %``; ``<0.01 to 5.80 %`` if it begins just above 0; ``below 5.80 %`` or ``from 2.90 %`` if an
        end is open; beside a share ``value``, ``below 1.80 %`` or ``above 98.20 %`` if an end is 0 or 1."""
        bound = None if value is None else self._bound(low, high, 0.0) or self._bound(low, high, 1.0)
        text = bound or _between(self._start(low), self._plain(high))
        return text if bound or text == _UNKNOWN else f"{text}{self._sign}"

    def words(self, value: float | None, low: float | None, high: float | None) -> str:
        """``3.1 % (2.9 to 5.8 %)``; ``below 1.8 %`` where a share is 0; ``12 min (10 to 15)``."""
        after = f" {self.unit}" if self.unit else ""
        return self._bound(low, high, value) or f"{self.text(value)}{after} ({self.span(low, high, value)})"

    def signed(self, difference: float | None) -> str:
        """``+3.10``, of shares in percentage points; a dash if unknown; zero without a sign."""
        if difference is None or math.isnan(difference):
            return _UNKNOWN
        text = f"{self._scaled(difference):+,.{self._decimals}f}"
        return text[1:] if not text.strip("+-0.,") else text

    def signed_span(self, low: float | None, high: float | None) -> str:
        """``-2.9 to +5.8``; ``below +5.8`` or ``from -2.9`` if an end is open.

        An end beside 0 keeps its sign, such as ``+0.0``: it says on which side of 0 the interval is.
        """
        return _between(*(None if end is None else self._signed_end(end) for end in (low, high)))

    def _signed_end(self, end: float) -> str:
        return self.signed(end) if math.isnan(end) or end == 0 else f"{self._scaled(end):+,.{self._decimals}f}"

    @property
    def _sign(self) -> str:
        return " %" if self.is_share else ""

    @property
    def _decimals(self) -> int:
        return 1 if self.digits is None else self.digits

    def _scaled(self, number: float) -> float:
        return 100 * number if self.is_share else number

    def _plain(self, number: float | None) -> str | None:
        """Without a sign of percent, and never minus zero; None if unknown."""
        if number is None or math.isnan(number):
            return None
        scaled, digits = self._scaled(number), self._decimals
        if self.digits is None and abs(scaled) > _NOTHING:
            digits = max(digits, -math.floor(math.log10(abs(scaled))))
        text = f"{scaled:,.{digits}f}"
        return text if text.strip("-0.,") else text.removeprefix("-")

    def _start(self, low: float | None) -> str | None:
        """The lower end, which is not written as 0 if a share is above it."""
        text = self._plain(low)
        is_hidden = self.is_share and self.digits is not None and low is not None and low > 0
        return f"<{10**-self._decimals:.{self._decimals}f}" if text and is_hidden and not text.strip("0.") else text

    def _bound(self, low: float | None, high: float | None, value: float | None) -> str | None:
        """An interval that begins or ends at a share of 0 or 1, by its other end, which is neither 0 nor 100."""
        bound = None if low is None or high is None or not self.is_share else one_sided(value, low, high)
        if bound is None:
            return None
        word, end = bound
        needed = math.ceil(-math.log10(100 * min(end, 1 - end)) - _NOTHING)
        return f"{word} {100 * end:.{max(self._decimals, needed)}f} %"


def _between(low: str | None, high: str | None) -> str:
    """Two ends as text; None where an end is open or unknown."""
    if low is None:
        return _UNKNOWN if high is None else f"below {high}"
    return f"from {low}" if high is None else f"{low} to {high}"


def percent(share: float | None) -> str:
    """A share in a sentence, such as ``3.1 %``."""
    return NumberFormat().text(share)


def format_of(*figures: Figure) -> NumberFormat:
    """The format of a table of figures that are all shares, or all numbers of one kind."""
    is_share, unit = (figures[0].is_share, figures[0].unit) if figures else (True, "")
    return NumberFormat(is_share, digits_of((half for one in figures for half in one.halves), is_share), unit)


def format_of_trend(trend: Trend, first: int) -> NumberFormat:
    """The format of a table of a trend: of shares from the windows since ``first``, of numbers from the latest one."""
    if not trend.figure.is_share:
        return format_of(trend.figure)
    return NumberFormat(True, digits_of(((trend.high - trend.low)[first:] / 2).tolist(), True))


def words_of(figure: Figure) -> str:
    """A figure in a sentence, with its interval."""
    form = NumberFormat() if figure.is_share else format_of(figure)
    return form.words(figure.value, figure.low, figure.high)


def said_of(figure: Figure) -> str:
    """``the mean is``, or such as ``10 % are below``: how a sentence begins that ends with the figure."""
    if figure.name.startswith("p"):
        return f"{figure.name[1:]} % are below"
    return f"the {figure.name} is"


ENOUGH_REPORTS = 10_000
"""Minimum number of reports for which the coverage of smooth intervals has been measured; see docs/numbers.md."""

FEW_REPORTS = (
    f"Fewer than {ENOUGH_REPORTS:,} reports cannot show whether neighbouring bins are alike, which smooth intervals "
    "take for granted: rely on the intervals without smoothness, and declare numbers that many people have as atoms."
)


def advice_on_few_reports(num_reports: int | None, is_smooth: bool) -> str:
    """The advice for a number of reports; empty for enough of them, an unknown number, or without smooth intervals."""
    few = num_reports is not None and num_reports < ENOUGH_REPORTS
    return FEW_REPORTS if is_smooth and few else ""
