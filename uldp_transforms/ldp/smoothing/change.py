"""Estimated size of detected changes."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.smoothing.alarm import Alarms
from uldp_transforms.ldp.smoothing.series import Series


@dataclasses.dataclass(frozen=True, eq=False)
class Change:
    """Sizes of the changes of M values; all (M,).

    Attributes:
        size: mean of the windows since the change began, less the expectation before it.
        error: standard deviation of ``size``.
        windows: int64, number of windows since the change began, including the current one.
        looks: int64, number of possible beginnings that were compared.
    """

    size: np.ndarray
    error: np.ndarray
    windows: np.ndarray
    looks: np.ndarray


def change_of(series: Series, alarms: Alarms, t: int, values: np.ndarray) -> Change:
    """Size of the changes up to window t, from the beginning for which the change is most significant.

    Args:
        series, alarms: T windows.
        t: the window in which the changes were detected.
        values: (M,) int64, positions of the values.
    """
    raw, seen = series.raw[: t + 1, values], series.seen[: t + 1, values]
    before = alarms.moved[:t, values][::-1]
    since = np.where(before.any(axis=0), before.argmax(axis=0), t)  # number of earlier windows that may be included
    number, total = _summed(seen), _summed(np.where(seen, raw, 0))
    known = alarms.expected_variance[: t + 1, values]
    noise = _summed(np.where(seen, alarms.change_error[: t + 1, values] ** 2 - known, 0))
    k = np.maximum(number, 1)
    size = total / k - alarms.expected[: t + 1, values]
    variance = known + noise / k**2 + alarms.step[: t + 1, values] * (k - 1) * (2 * k - 1) / (6 * k)
    possible = seen & (known < 1 / 2) & (np.arange(t, -1, -1)[:, np.newaxis] <= since)
    z = np.where(possible, np.abs(size) / np.sqrt(variance), -1)
    best = z.argmax(axis=0), np.arange(len(values))
    return Change(size[best], np.sqrt(variance[best]), number[best], possible.sum(axis=0))


def _summed(cells: np.ndarray) -> np.ndarray:
    """(T, M) sums from each window to the last one."""
    sums: np.ndarray = np.cumsum(cells[::-1], axis=0)[::-1]
    return sums
