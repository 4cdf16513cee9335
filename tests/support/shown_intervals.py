"""Checks any row of any program: each number lies in the interval beside it, and no interval of a raw number is short.

Fields are recognised by their names: an interval is a pair ``X_low`` and ``X_high``, or ``low`` and ``high``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

NUMBERS = {
    "": ("difference", "value"),
    "ci_": ("frequency", "coefficient", "share"),
    "display_": ("display_value", "display_difference", "share", "frequency"),
    "smoothed_": ("smoothed_value", "smoothed_frequency"),
    "unexplained_": ("unexplained_mass",),
    "lift_": ("lift",),
    "selected_": ("difference",),
    "inattentive_ci_": ("inattentive_share",),
    "odds_ratio_": ("odds_ratio",),
}
"""Beginning of the names of an interval's ends -> names of the number that is shown with it."""

ERRORS = {"unexplained_": "unexplained_standard_error", "inattentive_ci_": "inattentive_standard_error"}
"""Beginning of the names of an interval's ends -> standard error of its unbiased number, if not ``standard_error``."""

WITHOUT_ERROR = {
    ("smoothed_", "smoothed_value"),
    ("smoothed_", "smoothed_frequency"),
    ("display_", "display_value"),
    ("display_", "display_difference"),
    ("display_", "share"),
    ("odds_ratio_", "odds_ratio"),
}
"""Intervals and numbers whose row has the standard error of another number: of an unbiased one, or of the log odds."""

_ROUNDING = 1e-9


class Shown(NamedTuple):
    """An interval of a row; ``low`` or ``high`` is None where it is open, ``number`` and ``error`` if there is none."""

    kind: str
    number: float | None
    low: float | None
    high: float | None
    error: float | None

    @property
    def fault(self) -> str | None:
        """What is wrong with it; None if nothing is.

        An interval of a share that is all of [0, 1] may be shorter than half a standard error: that one is above 2.
        """
        low, high = (
            (-float("inf") if self.low is None else self.low),
            (float("inf") if self.high is None else self.high),
        )
        if self.number is not None and not low - _ROUNDING <= self.number <= high + _ROUNDING:
            return "leaves out its number"
        is_all = low <= 0 and high >= 1
        return "is short" if self.error is not None and high - low < self.error / 2 and not is_all else None


def shown(row: Any) -> Iterator[Shown]:
    """All intervals of a row, as read from JSON."""
    if isinstance(row, Mapping):
        for end in row:
            kind = end.removesuffix("low")
            is_end = end == "low" or end.endswith("_low")
            if is_end and (kind or "share" not in row):  # ``low`` and ``high`` beside a share are edges of a bin
                [name, *_] = [name for name in NUMBERS[kind] if name in row]
                is_other = (kind, name) in WITHOUT_ERROR
                error = None if is_other else row.get(ERRORS.get(kind, "standard_error"))
                yield Shown(kind, row[name], row[f"{kind}low"], row[f"{kind}high"], error)
    for inner in row.values() if isinstance(row, Mapping) else row if isinstance(row, list) else ():
        yield from shown(inner)


def faults(rows: Sequence[Any]) -> list[Shown]:
    """The intervals of rows that leave out their number or are short."""
    return [each for row in rows for each in shown(row) if each.fault is not None]
