"""The distributions with the largest errors of a mechanism that treats the symbols of each kind alike.

Kinds are, for instance, the sensitive symbols and the others, in blocks of each size; or the symbols of each level.
Both losses are concave in p and unchanged if two symbols of a kind exchange their frequencies, so their maximum has
equal frequencies within each kind (see ``worst_case``, which has closed forms for two kinds). With s the shares of G
kinds, which have k_g symbols each,

    n l2 = sum_g s_g L_g - sum_g s_g^2 / k_g,    L_g = sum of the mean squares E[V_j^2] over all j if everybody is in g,

which is largest at s_g = k_g max(L_g - mu, 0) / 2, with the number mu for which they have the right sum. l1 has no
closed form.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import scipy

from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms_planner.utility.worst_case import concave_maximum

_FINE = {"ftol": 1e-12, "maxiter": 500}
_INSIDE = 1e-6  # share of the uniform distribution in the start of the search for l1, where slopes must be finite


@dataclasses.dataclass(frozen=True, eq=False)
class AlikeSymbols:
    """Errors as functions of the shares of G kinds of symbols.

    Attributes:
        sizes: (G,) number of symbols of each kind.
        squares: (G, G), row g: E[(contribution of one report to the estimate of a symbol)**2], for a symbol of each
            kind, if everybody is in kind g.
        sensitive: (G,) bool, whether the kind is sensitive.
        sensitive_share: share of people with sensitive symbols; None: any.
    """

    sizes: np.ndarray
    squares: np.ndarray
    sensitive: np.ndarray
    sensitive_share: float | None = None

    @classmethod
    def of(
        cls, mechanism: Mechanism, kinds: np.ndarray, num_sensitive: int, sensitive_share: float | None = None
    ) -> AlikeSymbols:
        """The errors of a mechanism with one symbol per value.

        Args:
            mechanism: the mechanism.
            kinds: (K,) int64 in [0, G), the kind of each symbol; a kind is sensitive as a whole or not at all.
            num_sensitive: number of symbols, the first ones, whose values are sensitive.
            sensitive_share: share of people with these; None: any.
        """
        _, first, sizes = np.unique(kinds, return_index=True, return_counts=True)
        ends = (kinds == np.arange(len(sizes))[:, np.newaxis]) / sizes[:, np.newaxis]
        squares = (mechanism.variances(ends) + ends**2)[:, first]
        return cls(sizes.astype(np.float64), squares, first < num_sensitive, sensitive_share)

    def variances(self, shares: np.ndarray) -> np.ndarray:
        """(G,): n times the variance of the estimate of a symbol of each kind."""
        variances: np.ndarray = np.maximum(shares @ self.squares - (shares / self.sizes) ** 2, 0.0)
        return variances

    def l1(self, shares: np.ndarray) -> float:
        """sqrt(n) times the expected sum of absolute errors, by the normal approximation."""
        return math.sqrt(2 / math.pi) * float(self.sizes @ np.sqrt(self.variances(shares)))

    def l2(self, shares: np.ndarray) -> float:
        """n times the expected sum of squared errors."""
        return float(self.sizes @ self.variances(shares))

    def spread(self, shares: np.ndarray, kinds: np.ndarray) -> np.ndarray:
        """(K,) frequencies with these shares of the kinds (K,)."""
        frequencies: np.ndarray = (shares / self.sizes)[kinds]
        return frequencies

    @property
    def _fixed(self) -> list[tuple[np.ndarray, float]]:
        """Kinds whose shares have a given sum."""
        if self.sensitive_share is None or self.sensitive.all():
            return [(np.ones(len(self.sizes), dtype=bool), 1.0)]
        return [(self.sensitive, self.sensitive_share), (~self.sensitive, 1 - self.sensitive_share)]

    @functools.cached_property
    def worst_of_l2(self) -> np.ndarray:
        """(G,) shares with the largest l2; exact."""
        slopes, shares = self.squares @ self.sizes, np.zeros(len(self.sizes))
        for among, total in self._fixed:
            shares[among] = _largest_parabola(slopes[among], self.sizes[among], total)
        return shares

    @functools.cached_property
    def worst_of_l1(self) -> np.ndarray:
        """(G,) shares with the largest l1, found numerically."""
        even = np.zeros(len(self.sizes))
        for among, total in self._fixed:
            even[among] = total * self.sizes[among] / self.sizes[among].sum()
        if len(even) == len(self._fixed):  # nothing is free
            return even
        if len(even) == 2:
            share = concave_maximum(lambda share: self.l1(np.array([share, 1 - share])))
            return np.array([share, 1 - share])
        start = (1 - _INSIDE) * self.worst_of_l2 + _INSIDE * even
        limits = [{"type": "eq", "fun": lambda s, at=among, of=total: s[at].sum() - of} for among, total in self._fixed]
        found = scipy.optimize.minimize(
            lambda shares: -self.l1(shares),
            start,
            jac=lambda shares: -self._slopes_of_l1(shares),
            bounds=[(0, 1)] * len(start),
            constraints=limits,
            method="SLSQP",
            options=_FINE,
        )
        return max((start, np.clip(found.x, 0, 1)), key=self.l1)

    def _slopes_of_l1(self, shares: np.ndarray) -> np.ndarray:
        weights = self.sizes / np.sqrt(np.maximum(self.variances(shares), 1e-300)) / math.sqrt(2 * math.pi)
        slopes: np.ndarray = self.squares @ weights - 2 * shares / self.sizes**2 * weights
        return slopes


def _largest_parabola(slopes: np.ndarray, sizes: np.ndarray, total: float) -> np.ndarray:
    """The shares, not below 0 and with this sum, that maximise sum(shares * slopes - shares**2 / sizes).

    They are positive for the kinds with the largest slopes, as many as keep them positive.
    """
    order = np.argsort(-slopes)
    held, above = np.cumsum(sizes[order]), np.cumsum((sizes * slopes)[order])
    levels = (above - 2 * total) / held
    used = np.flatnonzero(slopes[order] > levels)
    level = levels[used[-1]] if len(used) else levels[0]
    shares: np.ndarray = sizes * np.maximum(slopes - level, 0) / 2
    return shares
