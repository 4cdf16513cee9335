"""How much each group borrows: the weights with the smallest expected squared error, learned from all groups.

With the weight w, the expected squared error of a group is C + (1 - w)^2 gain + w^2 cost. ``gain`` is what borrowing
saves, ``cost`` what it adds because the group differs from all; both together are ``distance``, which is observed. So
w = gain / (gain + cost), for their posterior means.

What one group says of its cost is mostly noise. Costs are therefore taken as draws of one log-normal law, whose
logarithmic mean is flat and whose spread is one of ``_SPREADS`` (0: the same cost for all). The product q of a group is
a multiple of a chi-square variable with the mean expected + cost; ``degrees`` are those for which its variance is
``noise`` where the cost is 0. Groups that say much thereby tell those that say little how much groups differ.

Two estimates of the gain are weighted by their precision: the group's own one, and the distance less the cost. The
variance of the own one is at least ``noise``: its derivative is 0 where the noise happens to be.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import special

_MOST = 2.0  # squared distance of two distributions
_LEAST = 0.01  # smallest cost, in standard deviations of the product of the most precise group
_STEPS = 20  # costs that are tried for each factor of 10
_SPREADS = ((0.0, 0.0), (0.5, -2.0), (1.0, -2.0), (2.0, -2.0))
"""Standard deviations of the logarithm of the cost, and the logarithms of their prior weights."""
_TINY = 1e-30


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What the reports of each group say; all (G,).

    Attributes:
        distance: squared distance of the group's shares from those of all reports.
        gain: unbiased estimate of what borrowing saves, by Stein's lemma.
        gain_variance: its variance, by the delta method.
        product: (u - t) . (a - t), of the group's unbiased and shown shares and those of all reports.
        expected: mean of the product if the group is like all.
        noise: variance of the product if the group is like all.
    """

    distance: np.ndarray
    gain: np.ndarray
    gain_variance: np.ndarray
    product: np.ndarray
    expected: np.ndarray
    noise: np.ndarray


def weights_of(evidence: Evidence) -> np.ndarray:
    """(G,) weights of the shares of all reports, in [0, 1]."""
    if not len(evidence.distance):
        return np.zeros(0)
    expected = np.maximum(evidence.expected, _TINY)
    degrees = np.maximum(2 * expected**2 / np.maximum(evidence.noise, _TINY**2), 1)
    cost, cost_variance = _costs(np.maximum(evidence.product, _TINY), expected, degrees)
    own_variance = np.maximum(evidence.gain_variance, 2 * expected**2 / degrees)
    trust = own_variance / np.maximum(own_variance + cost_variance, _TINY**2)
    gain = trust * np.maximum(evidence.distance - cost, 0) + (1 - trust) * evidence.gain
    gain = np.maximum(gain, 0)
    weights: np.ndarray = gain / np.maximum(gain + cost, _TINY)
    return weights


def _costs(product: np.ndarray, expected: np.ndarray, degrees: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means and variances of the costs: (G,), (G,)."""
    least = min(_LEAST * float((expected * np.sqrt(2 / degrees)).min()), _MOST / 10)
    costs = np.geomspace(least, _MOST, int(np.ceil(np.log10(_MOST / least) * _STEPS)) + 1)
    means = expected[:, np.newaxis] + costs
    logs = -degrees[:, np.newaxis] / 2 * (np.log(means) + product[:, np.newaxis] / means)
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True)).T
    evidence, firsts, seconds = [], [], []
    for spread, weight in _SPREADS:
        prior = _log_normal(np.log(costs), spread)
        total = np.maximum(prior @ likelihood, 1e-300)
        firsts.append(prior @ (costs[:, np.newaxis] * likelihood) / total)
        seconds.append(prior @ (costs[:, np.newaxis] ** 2 * likelihood) / total)
        evidence.append(weight + np.log(total).sum(axis=1))
    posterior = special.softmax(np.concatenate(evidence))
    mean, square = posterior @ np.concatenate(firsts), posterior @ np.concatenate(seconds)
    between = mean * (costs[1] / costs[0] - 1)  # costs are known up to a step
    return mean, np.maximum(square - mean**2, 0) + between**2


def _log_normal(logs: np.ndarray, spread: float) -> np.ndarray:
    """(M, M): the prior of the costs around each of them."""
    if spread == 0:
        return np.eye(len(logs))
    prior = np.exp(-(((logs[:, np.newaxis] - logs) / spread) ** 2) / 2)
    found: np.ndarray = prior / prior.sum(axis=1, keepdims=True)
    return found
