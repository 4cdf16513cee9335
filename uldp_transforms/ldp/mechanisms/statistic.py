"""The contribution of a report to unbiased frequencies, and its moments: the basis of inverses, variances, intervals.

Protected reports are of one or more *kinds*, such as sizes of sets. With c_kx reports of kind k that support a
sensitive symbol x, N_k reports of kind k, and R clear reports, the frequency of x is an affine function of

    X_x = sum_k (b_k c_kx + a_k N_k)

and of R. The estimates of non-sensitive symbols add the same number Z, with mean 0, to those from their own reports:

    Z = sum_k e_k N_k + e R,    e = sum_k o_k e_k.

Most mechanisms have one kind, b = 1 and a = e = 0: X_x is the number of reports that support x, and Z is 0.
"""

from __future__ import annotations

import dataclasses
import functools
from fractions import Fraction
from typing import NamedTuple

import numpy as np


class Moments(NamedTuple):
    """A mean over protected reports of a quantity that depends on a sensitive symbol.

    Attributes:
        noise: if the report is noise.
        other: if it is an informative report of another sensitive symbol.
        step: the increase over ``other`` if it is an informative report of the symbol itself.
    """

    noise: float
    other: float
    step: float


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Statistic:
    """Kinds of protected reports and their weights; all arrays are (Z,) float64, one number per kind.

    Attributes:
        noise: share g of the kind in noise.
        own: share o of the kind among reports given a supported symbol.
        sizes: number of symbols that a report of the kind supports; arbitrary if there is only one kind.
        single: phi, probability that noise of this kind supports a symbol.
        pair, triple: eta and eta3, probability that it then supports another symbol, and two others.
        apart: 1 - eta.
        weights: b.
        offsets: a.
        shifts: e.
    """

    noise: np.ndarray
    own: np.ndarray
    sizes: np.ndarray
    single: np.ndarray
    pair: np.ndarray
    apart: np.ndarray
    triple: np.ndarray
    weights: np.ndarray
    offsets: np.ndarray
    shifts: np.ndarray

    @classmethod
    def of_supports(cls, noise_rate: Fraction, pair_rate: Fraction, triple_rate: Fraction) -> Statistic:
        """The statistic for one kind of report, whose supports are counted."""
        one, nothing = np.ones(1), np.zeros(1)
        return cls(
            noise=one,
            own=one,
            sizes=one,
            single=np.array([float(noise_rate)]),
            pair=np.array([float(pair_rate)]),
            apart=np.array([float(1 - pair_rate)]),
            triple=np.array([float(triple_rate)]),
            weights=one,
            offsets=nothing,
            shifts=nothing,
        )

    def sums(self, cells: np.ndarray, num_symbols: int, num_sensitive: int) -> tuple[np.ndarray, np.ndarray]:
        """X and Z from counts.

        Args:
            cells: (C, M): supports in reports of all kinds and clear reports, K of them; then, for each kind except the
                first, the v supports in reports of that kind.
            num_symbols, num_sensitive: K and v.

        Returns:
            X (C, v), Z (C, 1).
        """
        if self.counts_supports:
            return cells[:, :num_sensitive].astype(np.float64), np.zeros((len(cells), 1))
        supports = cells[:, np.newaxis, :num_sensitive]
        if cells.shape[1] > num_symbols:
            later = cells[:, num_symbols:].reshape(len(cells), -1, num_sensitive)
            supports = np.concatenate([supports - later.sum(axis=1, keepdims=True), later], axis=1)
        reports = supports.sum(axis=2) / self.sizes
        revealed = cells[:, num_sensitive:num_symbols].sum(axis=1)
        counted = (self.weights[:, np.newaxis] * supports).sum(axis=1) + (reports @ self.offsets)[:, np.newaxis]
        return counted, (reports @ self.shifts + self.clear_shift * revealed)[:, np.newaxis]

    @functools.cached_property
    def counts_supports(self) -> bool:
        """Whether X_x is the number of reports that support x, and Z is 0."""
        return len(self.sizes) == 1 and bool(
            (self.weights == 1).all() and not (self.offsets.any() or self.shifts.any())
        )

    @functools.cached_property
    def clear_shift(self) -> float:
        """Contribution of a clear report to Z."""
        return float(self.own @ self.shifts)

    @functools.cached_property
    def jump(self) -> float:
        """Contribution of one more report that supports a symbol to X, averaged over the noise in the variance."""
        supports = self.noise * self.single * self.weights
        return float(supports @ self.weights / supports.sum())

    @functools.cached_property
    def mean(self) -> Moments:
        """E[X_x]."""
        return self._of(self.weights, self.offsets)

    @functools.cached_property
    def square(self) -> Moments:
        """E[X_x^2]."""
        b, a = self.weights, self.offsets
        return self._of(b**2 + 2 * a * b, a**2)

    @functools.cached_property
    def product(self) -> Moments:
        """E[X_x X_u] of two symbols; ``step`` if it is an informative report of one of them."""
        b, a = self.weights, self.offsets
        noise = self.noise @ (b**2 * self.single * self.pair + 2 * a * b * self.single + a**2)
        other = self.own @ (b**2 * self.triple + 2 * a * b * self.pair + a**2)
        step = self.own @ (b**2 * (self.pair - self.triple) + a * b * self.apart)
        return Moments(float(noise), float(other), float(step))

    @functools.cached_property
    def shifted(self) -> Moments:
        """E[X_x Z] over protected reports."""
        return self._of(self.weights * self.shifts, self.offsets * self.shifts)

    @functools.cached_property
    def shift(self) -> Moments:
        """E[Z^2] over protected reports; it does not depend on the symbol."""
        return self._of(np.zeros_like(self.shifts), self.shifts**2)

    def _of(self, if_supported: np.ndarray, always: np.ndarray) -> Moments:
        """Moments of the contributions of each kind of report: ``always``, and ``if_supported`` if it supports the
        symbol."""
        noise = self.noise @ (if_supported * self.single + always)
        other = self.own @ (if_supported * self.pair + always)
        return Moments(float(noise), float(other), float(self.own @ (if_supported * self.apart)))
