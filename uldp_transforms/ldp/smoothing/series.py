"""Estimates of values in windows, the input of the filters, and the variances of their noise."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

LEAST_SHARE = 1e-5
"""Minimum share that scales the drift and the nugget of a value."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Series:
    """Unbiased estimates of S values in T windows, in order of time.

    Attributes:
        raw: (T, S) shares; NaN where a window has no estimate.
        variances: (T, S) of ``raw`` as estimates of the shares of a population, without ``common``.
        common: (S,) variance of the error that all windows share, such as the noise of hash functions.
        turnover: (S,) variance by which the error of ``common`` can change between two windows when other people
            report; 0 if it does not depend on the people. Alarms allow for it.
        num_reports: (T,) n_t, at least 1.
        steps: (T,) int64 number of windows since the previous one, at least 1; more where some are missing.
        jump: n times the contribution of one more counted report to an estimate.
        level, spread: (S,) mean and variance of the drifting share just before the first window, from earlier windows
            that were forgotten. Default: 0 and 1, which is uninformative.
        phases: (T,) int64 phase of each window in a season, such as its weekday; None: no season is fitted.
        people: (T, S) part of ``variances`` that comes from sampling people, unbiased; NaN, or None for all, where an
            estimate is a share f, for which it is f (1 - f) / n.
        copies: number of values that say nearly the same, such as shares below neighbouring edges: evidence about the
            scales that values have in common is divided by it.
    """

    raw: np.ndarray
    variances: np.ndarray
    common: np.ndarray
    num_reports: np.ndarray
    steps: np.ndarray
    turnover: np.ndarray | float = 0.0
    jump: float = 0.0
    level: np.ndarray | float = 0.0
    spread: np.ndarray | float = 1.0
    phases: np.ndarray | None = None
    people: np.ndarray | None = None
    copies: float = 1.0

    @property
    def seen(self) -> np.ndarray:
        """(T, S) bool: where there is an estimate."""
        seen: np.ndarray = ~np.isnan(self.raw)
        return seen

    def until(self, end: int) -> Series:
        """The windows before position ``end``."""
        names = ("raw", "variances", "num_reports", "steps", "phases", "people")
        parts: dict[str, Any] = {name: None if (part := getattr(self, name)) is None else part[:end] for name in names}
        return dataclasses.replace(self, **parts)

    def law(self) -> Law:
        """The known variances of the noise."""
        seen = self.seen
        times = np.maximum(seen.sum(axis=0), 1)
        raw, variances = np.where(seen, self.raw, 0), np.where(seen, self.variances, 0)
        n = self.num_reports[:, np.newaxis]
        shares = np.clip(raw.sum(axis=0) / times, LEAST_SHARE, 1)
        each = (variances * n).sum(axis=0) / times  # variance per report
        people, most = raw - raw**2 + variances, np.full(shares.shape, 1 / 4)  # variances correct the bias of raw^2
        if self.people is not None:
            given = seen & ~np.isnan(self.people)
            people = np.where(given, self.people * n, people)
            most = np.where(given.any(axis=0), np.maximum(each, 1 / 4), most)  # fewer people than reports vary more
        people = np.clip(people.sum(axis=0) / times, LEAST_SHARE, most)
        least = self.jump * shares / max(float(self.num_reports.sum()), 1.0)
        return Law(shares, np.maximum(each - people, least) / n, people / n)


@dataclasses.dataclass(frozen=True, eq=False)
class Law:
    """The variances of the noise of a series.

    Attributes:
        shares: (S,) p, at least LEAST_SHARE; the scale of drifts and nuggets, which ``relative_to`` can change.
        noise: (T, S) R. The mean variance per report over all windows, divided by the number of reports: the variance
            from a single window depends on its own estimate, and would give small estimates more weight.
        people: (T, S) sampling variance of the people: the mean of p (1 - p) over windows, divided by n.
    """

    shares: np.ndarray
    noise: np.ndarray
    people: np.ndarray

    def values(self, places: np.ndarray) -> Law:
        """The variances of some values, at positions (M,) int64."""
        return Law(self.shares[places], self.noise[:, places], self.people[:, places])

    def relative_to(self, power: float) -> Law:
        """This law with drifts and nuggets proportional to this power of p; unchanged for the largest p."""
        largest = float(self.shares.max(initial=LEAST_SHARE))
        return dataclasses.replace(self, shares=largest * (self.shares / largest) ** power)
