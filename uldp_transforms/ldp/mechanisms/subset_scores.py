"""Weights for sets of several sizes: of a support in a set of each size, and of the sizes themselves.

The optimal estimate at given frequencies is the score of the likelihood there. If a share alpha of people hold
sensitive symbols, all with equal frequencies, the probability of a set y of d of the v sensitive symbols is
proportional to 1 + gain alpha d / v, with gain = E - 1. So a support in it has the weight

    b_d = 1 / (1 + gain alpha d / v),

and the numbers N_d of sets of each size correct the share of sensitive symbols, as estimated from clear reports, by

    sum_d D_d N_d / n + (sum_d o_d D_d) R / n,    D_d = (tau / kappa) (d b_d / v - mean),
    tau = (1 - alpha) gain / (1 + (1 - alpha) gain sum_d o_d d b_d / v),

o_d being the share of a size among sets with a known member, and ``mean`` that over the sets of people with sensitive
symbols. The estimates are unbiased for every alpha and every population. The chosen alpha is the least favourable one
for the mixture of sizes: it minimises the worst squared error over all estimates from these reports.

Source: Yoon, Park, Nam and Lee 2025.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy

_DIGITS = 4  # decimal digits of alpha: the error is flat there, and rounding makes platforms agree


class Scores(NamedTuple):
    """Weights for sets of each size.

    Attributes:
        weights: (Z,) b of the module, weight of a support.
        correction: tau.
    """

    weights: np.ndarray
    correction: float


def scores_of(
    num_symbols: int, num_sensitive: int, gain: float, sizes: np.ndarray, shares: np.ndarray, own: np.ndarray
) -> Scores:
    """The weights at the least favourable share.

    Args:
        num_symbols, num_sensitive, gain, sizes, shares: as in ``least_favourable_share``.
        own: (Z,) o of the module.
    """
    share = least_favourable_share(num_symbols, num_sensitive, gain, sizes, shares)
    weights = 1 / (1 + gain * share * sizes / num_sensitive)
    clear = (1 - share) * gain
    return Scores(weights, clear / (1 + clear * float(own @ (weights * sizes)) / num_sensitive))


def risk_terms(
    num_symbols: int, num_sensitive: int, gain: float, sizes: np.ndarray, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """The terms of n times the least squared error at a share alpha < 1 of the sensitive symbols.

    The error is sum_i weights_i / (rates_i . t) for sets with shares t of sizes among people with sensitive symbols;
    the terms are differences between sensitive symbols, differences between the others, and the share itself.

    Args:
        num_symbols, num_sensitive: w and v.
        gain: E - 1.
        sizes: (Z,) d.
        share: alpha.

    Returns:
        Weights (3,), rates (3, Z).
    """
    w, v, d = num_symbols, num_sensitive, sizes
    mixed, plain = share * d * gain + v, d * gain + v
    rates = np.stack([d * (v - d) / (mixed * plain), d / plain, d / mixed])
    clear = (1 - share) / ((w - v) * gain)
    return np.array([(v - 1) ** 2 / (v * gain**2), (w - v - 1) * clear, w * clear / v]), rates


def least_favourable_share(
    num_symbols: int, num_sensitive: int, gain: float, sizes: np.ndarray, shares: np.ndarray
) -> float:
    """alpha, to four digits: the share with the largest least squared error for these sizes; 1 if all is sensitive.

    Args:
        num_symbols, num_sensitive, gain, sizes: as in ``risk_terms``.
        shares: (Z,) t.
    """
    if num_sensitive == num_symbols:
        return 1.0

    def gained(share: float) -> float:
        weights, rates = risk_terms(num_symbols, num_sensitive, gain, sizes, share)
        asked = weights > 0  # with one sensitive symbol, there are no differences between sensitive symbols
        return -float((weights[asked] / (rates[asked] @ shares)).sum())

    found = scipy.optimize.minimize_scalar(
        gained, bounds=(0, 1), method="bounded", options={"xatol": 10.0 ** -(_DIGITS + 2)}
    )
    best: float = min((0.0, 1.0, float(found.x)), key=gained)
    return round(best, _DIGITS)
