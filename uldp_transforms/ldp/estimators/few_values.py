"""Estimates of up to 12 values, too few to fit a prior: similar values are shrunk together and projected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.estimators.estimator import Problem
from uldp_transforms.ldp.solvers.simplex import nearest_distribution, project_onto_simplex

FEW = 12
"""Maximum number of values for this method."""

_DIFFERENT = 2.0  # ratio of the squared distance to its expected noise, from which values count as different
_NOISIEST = 0.2  # expected squared error from which no values are shrunk
_SOMEBODY = 0.7  # minimum prior odds that the unlisted share is above 0
_NEAR_NOBODY = 0.18  # these odds times the standard error of that share, where it is small
_RESTS = 50  # number of unlisted shares in the grid
_TINY = 1e-300


def shares_of_few(problems: Sequence[Problem]) -> list[np.ndarray]:
    """The distributions nearest to the unbiased estimates after similar estimates are shrunk towards each other.

    In an open alphabet the unlisted values are one more share; if that share is within the noise, see
    ``shares_beside_noise``. Each result is the same, bit for bit, as alone.

    Args:
        problems: each of at most ``FEW`` unknowns, with the law of its noise and without blocks.

    Returns:
        (U,) for each, or (U + 1,) with the unlisted values last if the problem is open; they sum to 1.
    """
    alike: dict[tuple[bytes, bool, bool], list[int]] = {}
    for place, one in enumerate(problems):
        noise = one.open and one.linear.rest_is_noise
        alike.setdefault(((one.linear.null_errors == 0).tobytes(), one.open, noise), []).append(place)
    found: list[np.ndarray] = [np.zeros(0)] * len(problems)
    for (_, is_open, noise), places in alike.items():
        shares = _shares_of_alike([problems[place] for place in places], is_open, noise)
        for place, one in zip(places, shares):
            found[place] = one
    return found


def _shares_of_alike(problems: Sequence[Problem], is_open: bool, noise: bool) -> np.ndarray:
    """(W, U) or (W, U + 1): the shares of problems with the same values of which only holders are counted."""
    estimates = np.array([np.where(one.own, one.linear.joint, one.linear.raw) for one in problems])
    certain = problems[0].linear.null_errors == 0
    parts = [part for part in (certain, ~certain) if part.any()]
    variances = _variances_of_equal(problems, parts)
    for part in parts:
        own = variances.compress(part, axis=1).mean(axis=1)
        estimates[:, part] = drawn_together(estimates.compress(part, axis=1), own)
    if not is_open:
        return project_onto_simplex(estimates)
    if not noise:
        return project_onto_simplex(np.hstack([estimates, 1 - estimates.sum(axis=1, keepdims=True)]))
    shares = np.array([shares_beside_noise(*each) for each in zip(estimates, np.maximum(variances, _TINY))])
    return np.hstack([shares, np.maximum(1 - shares.sum(axis=1, keepdims=True), 0.0)])


def _variances_of_equal(problems: Sequence[Problem], parts: Sequence[np.ndarray]) -> np.ndarray:
    """(W, U) variances of differences between estimates if all values of a part, (U,) bool, had equal shares."""
    laws = [one.noisy for one in problems if one.noisy is not None]
    raw, null, slope = (np.array([getattr(one, name) for one in laws]) for name in ("estimates", "null", "slope"))
    share = np.zeros(raw.shape)
    for part in parts:
        share[:, part] = np.maximum(raw.compress(part, axis=1).mean(axis=1, keepdims=True), 0.0)
    variances: np.ndarray = null + slope * share
    return variances


def shares_beside_noise(estimates: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """(..., S) shares, averaged over the unlisted share where noise hides whether it is above 0.

    For each unlisted share r the nearest shares with the sum 1 - r are computed, in units of the noise. Their weight is
    their likelihood, exp(-distance^2 / 2), times the prior of r: a point mass at 0 and a uniform density on [0, 1].
    With s^2 the sum of the variances, the prior odds of the latter are max(0.7, 0.18 / s). docs/estimation.md gives the
    cost of this choice where r is 0 and where it is not, and bounds the possible gain.

    Args:
        estimates: (..., S), unbiased; each vector along the last axis is one list.
        variances: (S,), above 0.
    """
    odds = max(_SOMEBODY, _NEAR_NOBODY / float(np.sqrt(variances.sum())))
    listed = np.append(1.0, 1 - (np.arange(_RESTS) + 0.5) / _RESTS)[:, np.newaxis]
    estimates = estimates[..., np.newaxis, :]
    shares = listed * nearest_distribution(estimates / listed, variances)
    exponents = -((shares - estimates) ** 2 / variances).sum(axis=-1, keepdims=True) / 2
    weights = np.exp(exponents - exponents.max(axis=-2, keepdims=True))
    weights[..., 1:, :] *= odds / _RESTS
    means: np.ndarray = (weights * shares).sum(axis=-2) / weights.sum(axis=-2)
    return means


def drawn_together(estimates: np.ndarray, variance: np.ndarray | float) -> np.ndarray:
    """Estimates (..., S) of equal variance (...), shrunk towards their mean in proportion to their similarity.

    With d = S - 1 let Q be the sum of squared distances from the mean, in units of the variance; its expectation is d
    if all frequencies are equal. The shrinkage factor is min(1, (d - 2) / Q) (James and Stein 1961, positive part),
    which has a smaller expected error than the estimates themselves for all frequencies, if d >= 3. After projection
    this no longer holds near the corners of the simplex. So the factor decreases linearly to 0 as Q rises from d to 2
    d, and as the expected squared error d variance rises to 0.2, where even a value that everybody holds may look like
    the others.
    """
    degrees, variance = estimates.shape[-1] - 1, np.asarray(variance)
    if degrees < 3:
        return estimates
    centre, noisy = estimates.mean(axis=-1, keepdims=True), variance > 0
    away = estimates - centre
    ratio = (away**2).sum(axis=-1) / (np.where(noisy, variance, 1.0) * degrees)
    way = np.minimum(1.0, (1 - 2 / degrees) / np.maximum(ratio, _TINY))
    alike = np.minimum(np.maximum(_DIFFERENT - ratio, 0), 1)
    way = way * (alike * np.maximum(1 - degrees * variance / _NOISIEST, 0.0))
    drawn: np.ndarray = centre + (1 - way)[..., np.newaxis] * away
    return drawn if noisy.all() else np.where(noisy[..., np.newaxis], drawn, estimates)
