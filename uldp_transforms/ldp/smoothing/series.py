"""Estimates of values in windows, as a filter takes them, and the law of their noise."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

LEAST_SHARE = 1e-5
"""The share from which a value's drift and nugget are scaled, if it has less."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Series:
    """Unbiased estimates of S values in T windows, in order of time.

    Attributes:
        raw: (T, S) shares; NaN where a window does not say.
        variances: (T, S) of ``raw`` as estimates of the shares of a population, without ``common``.
        common: (S,) variance of what is the same in all windows, such as the noise of hash functions.
        turnover: (S,) variance of what ``common`` may differ by between two windows, because other people are in them;
            0 where it is the same whoever is. Alarms allow for it.
        num_reports: (T,) n_t, at least 1.
        steps: (T,) int64 windows from the one before to this one, at least 1; more where some are missing.
        jump: n times what one more counted report adds to an estimate.
        level, spread: (S,) mean and variance of the drifting share just before the first window, from windows that
            are no longer here. By default nothing is known: 0 and 1.
        phases: (T,) int64 where in a season each window is, such as its weekday; None: seasons are not looked for.
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

    @property
    def seen(self) -> np.ndarray:
        """(T, S) bool: where there is an estimate."""
        seen: np.ndarray = ~np.isnan(self.raw)
        return seen

    def until(self, end: int) -> Series:
        """The windows before the one with the place ``end``."""
        names = ("raw", "variances", "num_reports", "steps", "phases")
        parts: dict[str, Any] = {name: None if (part := getattr(self, name)) is None else part[:end] for name in names}
        return dataclasses.replace(self, **parts)

    def law(self) -> Law:
        """What is known of the noise."""
        seen = self.seen
        times = np.maximum(seen.sum(axis=0), 1)
        raw, variances = np.where(seen, self.raw, 0), np.where(seen, self.variances, 0)
        n = self.num_reports[:, np.newaxis]
        shares = np.clip(raw.sum(axis=0) / times, LEAST_SHARE, 1)
        each = (variances * n).sum(axis=0) / times  # of one report
        people = (raw - raw**2 + variances).sum(axis=0) / times  # raw^2 is too large by its variance
        people = np.clip(people, LEAST_SHARE, 1 / 4)
        least = self.jump * shares / max(float(self.num_reports.sum()), 1.0)
        return Law(shares, np.maximum(each - people, least) / n, people / n)


@dataclasses.dataclass(frozen=True, eq=False)
class Law:
    """The noise of a series.

    Attributes:
        shares: (S,) p, at least LEAST_SHARE; or what else drifts and nuggets are relative to, see ``relative_to``.
        noise: (T, S) R. The variance of a report, the mean of all windows, by the number of reports: what a single
            window says of its own variance depends on its own estimate, and would weight small estimates more.
        people: (T, S) the mean of p (1 - p) over windows, by n: what people differ from the population by.
    """

    shares: np.ndarray
    noise: np.ndarray
    people: np.ndarray

    def values(self, places: np.ndarray) -> Law:
        """That of some values, (M,) int64 places."""
        return Law(self.shares[places], self.noise[:, places], self.people[:, places])

    def relative_to(self, power: float) -> Law:
        """The same with drifts and nuggets relative to p to that power; for the largest p nothing changes."""
        largest = float(self.shares.max(initial=LEAST_SHARE))
        return dataclasses.replace(self, shares=largest * (self.shares / largest) ** power)
