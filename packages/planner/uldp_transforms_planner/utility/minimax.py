"""Lower bounds for all mechanisms: the exact asymptotic minimax constants of the squared loss.

For a given guarantee, the smallest possible value of (largest n E l2 over all distributions), as n grows. It is
attained by ``uss``: reports are random subsets of the sensitive symbols (block designs), of one size or of two adjacent
ones (``larger_share``).

Source: Yoon, Park, Nam and Lee 2025 (utility-optimised LDP); Ye and Barg 2018 (LDP). That the best mixture has at most
two, adjacent sizes and that the outer problem is concave are used here and checked in the tests, not proved.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.mechanisms.mechanism import MAX_SYMBOLS
from uldp_transforms.ldp.mechanisms.subset_scores import risk_terms
from uldp_transforms_planner.utility.arguments import require_epsilon, require_reports
from uldp_transforms_planner.utility.worst_case import concave_maximum

_HALVINGS = 60


@dataclasses.dataclass(frozen=True, kw_only=True)
class Minimax:
    """The minimax squared error, and the distribution and subset sizes that attain it.

    Attributes:
        risk: M = lim n E l2; divide by the number of reports.
        sensitive_share: share of the sensitive symbols in the least favourable distribution.
        subset_sizes: sizes of the reported subsets and their weights, summing to 1.
    """

    risk: float
    sensitive_share: float
    subset_sizes: dict[int, float]


def uldp_minimax(num_values: int, num_sensitive: int, epsilon: float) -> Minimax:
    """Minimax error over all mechanisms that protect the sensitive values (utility-optimised LDP).

    Args:
        num_values: w.
        num_sensitive: v in [1, w]; v = w is LDP.
        epsilon: in (0, 16].

    Raises:
        SpecError: if an argument is out of range.

    Source: Yoon, Park, Nam and Lee 2025.
    """
    require_int("uldp_minimax.num_values", num_values, 2, MAX_SYMBOLS)
    require_int("uldp_minimax.num_sensitive", num_sensitive, 1, num_values)
    require_epsilon("uldp_minimax.epsilon", epsilon)
    if num_sensitive == num_values:
        return ldp_minimax(num_values, epsilon)
    inner = _Inner(num_values, num_sensitive, math.expm1(epsilon))
    share = concave_maximum(lambda share: inner.solve(share)[0])
    risk, sizes = inner.solve(share)
    return Minimax(risk=risk, sensitive_share=share, subset_sizes=sizes)


def ldp_minimax(num_values: int, epsilon: float) -> Minimax:
    """Minimax error over all epsilon-LDP mechanisms: subset selection with the best size d, at equal frequencies.

        M = (k - 1)**2 (d E + k - d)**2 / (k d (k - d) (E - 1)**2)

    Args:
        num_values: k.
        epsilon: in (0, 16].

    Raises:
        SpecError: if an argument is out of range.

    Source: Ye and Barg 2018.
    """
    require_int("ldp_minimax.num_values", num_values, 2, MAX_SYMBOLS)
    require_epsilon("ldp_minimax.epsilon", epsilon)
    k, gain = num_values, math.expm1(epsilon)
    d = np.arange(1, k)
    risks = ((k - 1) * (d * gain + k)) ** 2.0 / (k * d * (k - d) * gain**2)
    best = int(np.argmin(risks))
    return Minimax(risk=float(risks[best]), sensitive_share=1.0, subset_sizes={best + 1: 1.0})


def l2_minimax_without_privacy(num_values: int, num_reports: int) -> float:
    """Minimax squared error if people revealed their values: (1 - 1/k) / (sqrt(n) + 1)**2.

    Exact for every n; attained by (sqrt(n) / k + count) / (n + sqrt(n)).

    Source: Steinhaus 1957; quoted by Kairouz, Bonawitz and Ramage 2016.
    """
    require_int("l2_minimax_without_privacy.num_values", num_values, 2, MAX_SYMBOLS)
    require_reports("l2_minimax_without_privacy.num_reports", num_reports)
    return (1 - 1 / num_values) / (math.sqrt(num_reports) + 1) ** 2


class _Inner:
    """The inner problem for a share alpha of the sensitive symbols: minimise over mixtures t of sizes d = 1..v

        (v-1)/J1 + (w-v-1)/J2 + 1/J3,   J1, J2, J3 linear in t.

    With a rate per size for each of the three terms, ``rates[i, d - 1]``, this is sum_i weights_i / (rates_i . t).
    """

    def __init__(self, num_values: int, num_sensitive: int, gain: float):
        self.w, self.v, self.gain = num_values, num_sensitive, gain
        self.sizes = np.arange(1.0, num_sensitive + 1)

    def terms(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """weights (3,) and rates (3, v)."""
        return risk_terms(self.w, self.v, self.gain, self.sizes, share)

    def solve(self, share: float) -> tuple[float, dict[int, float]]:
        """The least risk and the mixture that attains it: a single size, or two adjacent sizes."""
        weights, rates = self.terms(share)
        with np.errstate(divide="ignore"):
            terms = np.divide(weights[:, np.newaxis], rates, out=np.zeros_like(rates), where=weights[:, np.newaxis] > 0)
        single = terms.sum(axis=0)
        best = int(np.argmin(single))
        low = np.array([d for d in (best - 1, best) if 0 <= d < self.v - 1], dtype=np.int64)
        if not len(low):
            return float(single[best]), {best + 1: 1.0}
        first, step = rates[:, low], rates[:, low + 1] - rates[:, low]
        at = self._stationary(weights[:, np.newaxis], first, step)
        mixed = first + at * step
        with np.errstate(divide="ignore", invalid="ignore"):
            risks = np.where(weights[:, np.newaxis] > 0, weights[:, np.newaxis] / mixed, 0).sum(axis=0)
        pair = int(np.argmin(risks))
        if single[best] <= risks[pair]:
            return float(single[best]), {best + 1: 1.0}
        d, second = int(low[pair]) + 1, float(at[pair])
        return float(risks[pair]), {d: 1 - second, d + 1: second}

    @staticmethod
    def _stationary(weights: np.ndarray, first: np.ndarray, step: np.ndarray) -> np.ndarray:
        """The point in [0, 1] at which the convex function sum_i weights_i / (first_i + t step_i) has slope 0;
        bisection."""
        low, high = np.zeros(first.shape[1]), np.ones(first.shape[1])
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            falling = (weights * step / (first + middle * step) ** 2).sum(axis=0) > 0
            low, high = np.where(falling, middle, low), np.where(falling, high, middle)
        return (low + high) / 2
