"""From a track to the shares of the people of each window: by the windows before it, or by all of them."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.smoothing.kalman_filter import Track
from uldp_transforms.ldp.smoothing.series import Law, Series


@dataclasses.dataclass(frozen=True, eq=False)
class Shares:
    """The shares of the people of each window, (T, S): estimates, and the variances of their errors.

    NaN where the window itself says nothing.
    """

    means: np.ndarray
    variances: np.ndarray


def filtered(series: Series, law: Law, nugget: float, course: Track) -> Shares:
    """What windows up to each one say."""
    return _own_shares(series, law, nugget, course.level, course.variance)


def smoothed(series: Series, law: Law, nugget: float, course: Track) -> Shares:
    """What all windows say of each one."""
    means, variances = course.level.copy(), course.variance.copy()
    for t in range(len(means) - 2, -1, -1):
        gain = course.variance[t] / course.expected_variance[t + 1]
        means[t] += gain * (means[t + 1] - course.expected[t + 1])
        variances[t] += gain**2 * (variances[t + 1] - course.expected_variance[t + 1])
    return _own_shares(series, law, nugget, means, variances)


def _own_shares(series: Series, law: Law, nugget: float, level: np.ndarray, variance: np.ndarray) -> Shares:
    """From the drifting share s to the people's own: given s, f = s + h (y - s) + N(0, h R), h = W / (W + R).

    ``level`` knows y already; that is no double use, for it is the mean of s given all data, y among them.
    """
    own = nugget * law.shares + law.people
    weight = own / (own + law.noise)
    means = level + weight * (series.raw - level)
    variances = (1 - weight) ** 2 * variance + weight * law.noise + series.common
    return Shares(means, np.where(series.seen, variances, np.nan))
