"""Time: durations, windows and their base period, the gate between them and the clock. No Beam."""

from __future__ import annotations

import dataclasses
import datetime
import math
import re

import numpy as np

from uldp_transforms.ldp.checks import describe, require_int
from uldp_transforms.ldp.errors import SpecError

MIN_EVENT_TIME = -2_208_988_800_000
"""1900-01-01T00:00:00Z in milliseconds since 1970."""

MAX_EVENT_TIME = 253_370_764_800_000
"""9999-01-01T00:00:00Z, a year (the longest window) before the last that has a name of four digits."""

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_MAX_DURATION = 36_525 * _UNITS["d"]
_MAX_SIZE = 365 * _UNITS["d"]


def parse_duration(text: str, where: str = "duration") -> int:
    """Milliseconds of a text such as ``90s``, ``15m``, ``1h`` or ``1d``.

    Raises:
        SpecError: for anything else; ``where`` names the field.
    """
    match = re.fullmatch(r"([0-9]{1,12})(ms|s|m|h|d)", text)
    if not match:
        raise SpecError(f"{where} must be a number with a unit such as 90s, 15m, 1h or 1d, got {describe(text)}")
    return int(match[1]) * _UNITS[match[2]]


def rfc3339(milliseconds: int) -> str:
    """``2001-01-31T00:00:00Z``; with milliseconds only if there are any."""
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds") + "Z"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
    """Fixed or sliding windows of event time, aligned at 1970-01-01T00:00:00Z.

    Reports are counted once, per *base period*; every window is a whole number of base periods. So a sliding window
    costs no more per report than a fixed one.

    Attributes:
        size: milliseconds, at most 365 days.
        slide: milliseconds between the starts of two windows; None: ``size``.
        allowed_lateness: milliseconds after the end of a base period during which its reports are still accepted.
        early_every: milliseconds (whole seconds) of processing time between early panes; None: no early panes.
        lateness_slack: milliseconds for which state is kept beyond ``allowed_lateness``. The gate refuses late
            reports (and counts them) by their arrival time; the runner drops them silently by its watermark. The
            slack keeps the gate first, and has to exceed the time by which the watermark can run ahead.
    """

    size: int
    slide: int | None = None
    allowed_lateness: int = 0
    early_every: int | None = None
    lateness_slack: int = 600_000

    def __post_init__(self) -> None:
        require_int("Windows.size", self.size, 1, _MAX_SIZE)
        if self.slide is not None:
            require_int("Windows.slide", self.slide, 1, self.size)
        require_int("Windows.allowed_lateness", self.allowed_lateness, 0, _MAX_DURATION)
        if self.early_every is not None:
            require_int("Windows.early_every", self.early_every, 1000, _MAX_DURATION)
            if self.early_every % 1000:
                raise SpecError(f"Windows.early_every must be whole seconds in milliseconds, got {self.early_every}")
        require_int("Windows.lateness_slack", self.lateness_slack, 1, 10 * _MAX_DURATION)

    @property
    def step(self) -> int:
        """Milliseconds between the starts of two windows."""
        return self.size if self.slide is None else self.slide

    @property
    def base(self) -> int:
        """Length of a base period: the largest that divides all windows."""
        return math.gcd(self.size, self.step)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimeGate:
    """Decides by arrival time whether a report comes too early or too late to be counted.

    A report is too old if its base period, plus the allowed lateness, was over when it arrived; so it is counted in
    all its windows or in none. The runner's own dropping of late data must never come first: it leaves no trace.

    Attributes:
        base: base period of the windows, milliseconds.
        allowed_lateness: milliseconds.
        future_skew: milliseconds by which the clock of a client may be ahead.
    """

    base: int
    allowed_lateness: int
    future_skew: int = 300_000

    def __post_init__(self) -> None:
        require_int("TimeGate.base", self.base, 1, _MAX_DURATION)
        require_int("TimeGate.allowed_lateness", self.allowed_lateness, 0, _MAX_DURATION)
        require_int("TimeGate.future_skew", self.future_skew, 0, _MAX_DURATION)

    def too_early(self, event_times: np.ndarray, received: np.ndarray) -> np.ndarray:
        """(n,) bool for (n,) event times and arrival times in milliseconds."""
        return event_times > received + self.future_skew

    def too_old(self, event_times: np.ndarray, received: np.ndarray) -> np.ndarray:
        """(n,) bool for (n,) event times and arrival times in milliseconds."""
        return received >= (event_times // self.base + 1) * self.base + self.allowed_lateness


def number_periods(event_times: np.ndarray, base: int | None) -> tuple[list[int], np.ndarray]:
    """The base periods in which reports fall, in order, and the position of each report's period among them.

    Args:
        event_times: (n,) int64 milliseconds, n >= 1.
        base: length of a base period; None: everything is in period 0.

    Returns:
        numbers of P periods, which start at number * base; (n,) int64 positions.
    """
    if base is None:
        return [0], np.zeros(len(event_times), dtype=np.int64)
    periods = event_times // base
    first, last = int(periods.min()), int(periods.max())
    if last - first < 4 * len(periods) + 1024:  # no sorting where a table of all periods is small
        seen = np.bincount(periods - first)
        present = np.flatnonzero(seen)
        position = np.cumsum(seen > 0) - 1
        return (present + first).tolist(), position[periods - first]
    unique, index = np.unique(periods, return_inverse=True)
    return unique.tolist(), index
