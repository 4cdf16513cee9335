"""Sets of several sizes: how much more a support in a smaller set says, and what the sizes themselves say.

The optimal estimate at given frequencies is the score of the likelihood there. Where a share alpha of people hold
sensitive symbols, all equally often, the probability of a set y of d of the v sensitive symbols is proportional to
1 + gain alpha d / v, with gain = E - 1. So a support in it has the weight

    b_d = 1 / (1 + gain alpha d / v),

and sets of each size, N_d in number, correct the share of the sensitive symbols that clear reports show by

    sum_d D_d N_d / n + (sum_d o_d D_d) R / n,    D_d = (tau / kappa) (d b_d / v - mean),
    tau = (1 - alpha) gain / (1 + (1 - alpha) gain sum_d o_d d b_d / v),

o_d being the share of a size among sets of which a member is known, and ``mean`` that over the sets of people with
sensitive symbols. For every alpha the estimates are unbiased everywhere. The alpha chosen is the least favourable one
for the mixture of sizes: there the worst squared error is the least that estimates from these reports can have.

Source: Yoon, Park, Nam and Lee 2025.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import optimize

_DIGITS = 4  # of alpha: the error is flat there, and what platforms compute is then the same


class Scores(NamedTuple):
    """What sets of each size say.

    Attributes:
        weights: (Z,) b of the module, of a support.
        correction: tau.
    """

    weights: np.ndarray
    correction: float


def scores_of(
    num_symbols: int, num_sensitive: int, gain: float, sizes: np.ndarray, shares: np.ndarray, own: np.ndarray
) -> Scores:
    """The scores at the least favourable share.

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
    """n times the least squared error at a share alpha < 1 of the sensitive symbols, in its parts.

    It is sum_i weights_i / (rates_i . t) for sets with the shares t of sizes among people with sensitive symbols: of
    differences between sensitive symbols, of those between the others, and of the share itself.

    Args:
        num_symbols, num_sensitive: w and v.
        gain: E - 1.
        sizes: (Z,) d.
        share: alpha.

    Returns:
        weights (3,), rates (3, Z).
    """
    w, v, d = num_symbols, num_sensitive, sizes
    mixed, plain = share * d * gain + v, d * gain + v
    rates = np.stack([d * (v - d) / (mixed * plain), d / plain, d / mixed])
    clear = (1 - share) / ((w - v) * gain)
    return np.array([(v - 1) ** 2 / (v * gain**2), (w - v - 1) * clear, w * clear / v]), rates


def least_favourable_share(
    num_symbols: int, num_sensitive: int, gain: float, sizes: np.ndarray, shares: np.ndarray
) -> float:
    """alpha, to four digits: where the least squared error of sets with these sizes is largest; 1 if all is sensitive.

    Args:
        num_symbols, num_sensitive, gain, sizes: as in ``risk_terms``.
        shares: (Z,) t.
    """
    if num_sensitive == num_symbols:
        return 1.0

    def gained(share: float) -> float:
        weights, rates = risk_terms(num_symbols, num_sensitive, gain, sizes, share)
        asked = weights > 0  # not the differences between sensitive symbols, if there is one
        return -float((weights[asked] / (rates[asked] @ shares)).sum())

    found = optimize.minimize_scalar(gained, bounds=(0, 1), method="bounded", options={"xatol": 10.0 ** -(_DIGITS + 2)})
    best: float = min((0.0, 1.0, float(found.x)), key=gained)
    return round(best, _DIGITS)
