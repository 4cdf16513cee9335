"""Kalman filter that restarts for values that changed."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.smoothing.series import Law, Series


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Track:
    """Estimates of the drifting share from the windows up to each one. All (T, S).

    Attributes:
        expected, expected_variance: before the window's estimate is used.
        level, variance: after the window's estimate is used.
        moved: bool, whether the value restarts in this window.
    """

    expected: np.ndarray
    expected_variance: np.ndarray
    level: np.ndarray
    variance: np.ndarray
    moved: np.ndarray


def track(series: Series, law: Law, drift: float, nugget: float, moved: np.ndarray | None = None) -> Track:
    """The Kalman filter.

    Args:
        series, law: T windows.
        drift, nugget: q and w.
        moved: (T, S) bool, values that restart in this window: a variance of 1 is added; None: nowhere.
    """
    seen, size = series.seen, series.raw.shape
    moved = np.zeros(size, dtype=bool) if moved is None else moved
    raw, step = np.nan_to_num(series.raw), drift * law.shares
    noise = np.where(
        seen, law.noise + law.people + nugget * law.shares, np.inf
    )  # windows without an estimate leave the state unchanged
    level, variance = np.zeros((2, size[0] + 1, size[1]))
    level[0], variance[0], prior = series.level, series.spread, np.zeros(size)
    for t in range(size[0]):
        np.add(variance[t], series.steps[t] * step, out=prior[t])
        prior[t] += moved[t]
        gain = prior[t] / (prior[t] + noise[t])
        np.multiply(prior[t], 1 - gain, out=variance[t + 1])
        gain *= raw[t] - level[t]
        np.add(level[t], gain, out=level[t + 1])
    return Track(expected=level[:-1], expected_variance=prior, level=level[1:], variance=variance[1:], moved=moved)
