"""Intervals of frequencies that are estimated through a channel matrix, down to twenty reports.

The estimate of symbol j is the mean of B_jy over the reports. If people hold the shares p, one B_jy has the moments

    E[B_jy^2] = sum_x p_x N_jx,    E[B_jy^3] = sum_x p_x T_jx,    N = B**2 Q,    T = B**3 Q,

with powers entry by entry. An end t of the interval is tested: its variance and skewness are those of a population of
which the share t holds j. The other shares are unknown. They are the most likely ones given t, to first order,

    p_x + C_xj / C_jj (t - p_j),    C the covariance of the estimates,

cut at 0 and scaled to 1 - t. Without this step, columns that are nearly alike would have no noise where the estimate,
cut to [0, 1], is 1.

Notation: K symbols, M outputs, n reports; see ``matrix_channel``.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.mechanisms.binomial_law import Confidence, clopper_pearson_of_law, normal_quantile
from uldp_transforms.ldp.mechanisms.count_intervals import score_root

_STEPS = 3  # of the search for an end, each with the population of the last one
_NOT_ALL = 1 - 1e-9  # largest share at which the others are defined
_OF_A_REPORT = 0.25  # of the largest effect of a report: half-way between counting it half (mid-P) and in full
_LEAST = 1e-300


@dataclasses.dataclass(frozen=True, eq=False)
class ChannelIntervals:
    """What the intervals of some symbols need.

    Attributes:
        raw: (K,) unbiased frequencies.
        plausible: (K,) near them, at least 0, with the sum 1.
        covariance: (K, K) of one report's estimates at ``plausible``.
        squares, cubes: (K, K), N and T of the module.
        effects: (K,) largest absolute effect of a report, max_y |B_jy|.
        num_reports: n.
    """

    raw: np.ndarray
    plausible: np.ndarray
    covariance: np.ndarray
    squares: np.ndarray
    cubes: np.ndarray
    effects: np.ndarray
    num_reports: int

    def of(self, confidence: Confidence, strict: bool) -> tuple[np.ndarray, np.ndarray]:
        """Both ends, (K,), not cut to [0, 1]; see ``Mechanism.intervals``.

        Strict ends also contain those of the binomial distribution with the same variance as a function of t.
        """
        z = np.broadcast_to(normal_quantile(confidence), self.raw.shape)
        low, high = self._end(z, -1), self._end(z, 1)
        if strict:
            low = np.minimum(low, self._law_ends(low, z)[0])
            high = np.maximum(high, self._law_ends(high, z)[1])
        return low, high

    def _end(self, z: np.ndarray, sign: int) -> np.ndarray:
        """The ends below (sign -1) or above (1): the t with |raw - shift - t| = z sqrt(V(t) / n).

        They are never nearer than by the variance at the estimate, which is all that is known where no t solves this.
        """
        n, end = self.num_reports, self.plausible
        plain = np.sqrt(np.maximum(np.diag(self.covariance), 0) / n)
        for _ in range(_STEPS):
            null, slope, skew = self._law(end)
            shift = (z**2 - 1) / 6 * skew / n - sign * _OF_A_REPORT * self.effects / n
            near = self.raw - shift
            root = score_root(near, null / n, slope / n, 1 / n, z**2, sign)
            end = sign * np.maximum(sign * root, sign * near + z * plain)
        return end

    def _law_ends(self, end: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        null, slope, _ = self._law(end)
        n = self.num_reports
        return clopper_pearson_of_law(self.raw, null / n, slope / n, 1 / n, z)

    def _law(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The variance null + slope t - t^2 of one report near t, and its third moment over its variance; all (K,)."""
        share = np.clip(shares, 0, _NOT_ALL)
        others = self._others(share)
        null, own = (others * self.squares).sum(axis=1), np.diag(self.squares)
        square = share * own + (1 - share) * null
        cube = share * np.diag(self.cubes) + (1 - share) * (others * self.cubes).sum(axis=1)
        variance = np.maximum(square - share**2, 0)
        third = cube - 3 * share * square + 2 * share**3
        return null, own - null, np.where(variance > 0, third / np.maximum(variance, _LEAST), 0.0)

    def _others(self, shares: np.ndarray) -> np.ndarray:
        """(K, K): row j has the shares among people who do not hold j, if ``shares[j]`` of all people hold it."""
        own = np.diag(self.covariance)
        slopes = self.covariance / np.where(own > 0, own, 1)[:, np.newaxis]
        others = np.maximum(self.raw + slopes * (shares - self.raw)[:, np.newaxis], 0)
        np.fill_diagonal(others, 0)
        total = others.sum(axis=1, keepdims=True)
        even = (1 - np.eye(len(others))) / (len(others) - 1)
        scaled: np.ndarray = np.where(total > 0, others / np.maximum(total, _LEAST), even)
        return scaled
