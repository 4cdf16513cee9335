"""Few values: no prior can be learned from them. What looks alike is drawn together, and the result is projected."""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.solvers.linear import LinearEstimate
from uldp_transforms.ldp.solvers.question import Question
from uldp_transforms.ldp.solvers.simplex import nearest_distribution, project_onto_simplex

FEW = 12
"""Largest number of values that are estimated in this way."""

_DIFFERENT = 2.0  # times the squared distance that noise explains, from which on values do not look alike
_NOISIEST = 0.2  # expected squared error of values from which on any of them may look alike
_SOMEBODY = 0.7  # odds that there is an unlisted share, at least
_NEAR_NOBODY = 0.18  # the same times the standard error of that share, where it is small
_RESTS = 50  # unlisted shares that are tried
_TINY = 1e-300


def shares_of_few(question: Question, linear: LinearEstimate, variances: np.ndarray) -> np.ndarray:
    """The nearest possible shares to unbiased estimates, after those that look alike have been drawn together.

    In an open alphabet the unlisted values are one more share; where it is noise, see ``shares_beside_noise``.

    Args:
        question: U unknowns, at most ``FEW``.
        linear: their unbiased estimates.
        variances: (U,) of these estimates, if all that have noise had equal shares, and all that have none.

    Returns:
        (U,), or (U + 1,) with the unlisted values last if the question is open; they sum to 1.
    """
    estimates = np.where(question.own, linear.joint, linear.raw)
    certain = linear.null_errors == 0
    for part in (certain, ~certain):
        estimates[part] = drawn_together(estimates[part], float(variances[part].mean()) if part.any() else 0.0)
    if not question.open:
        return project_onto_simplex(estimates)
    if not linear.rest_is_noise:
        return project_onto_simplex(np.append(estimates, 1 - estimates.sum()))
    shares = shares_beside_noise(estimates, np.maximum(variances, _TINY))
    return np.append(shares, max(1 - shares.sum(), 0.0))


def shares_beside_noise(estimates: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """(..., S) shares where noise hides whether anybody holds an unlisted value: a mean over what that share may be.

    For each unlisted share r the nearest shares with the sum 1 - r are taken, in units of the noise; they have the
    weight of their likelihood, exp(-distance^2 / 2), times that of r beforehand: 0, or anything from 0 to 1 alike.
    With s^2 the sum of the variances, the latter is max(0.7, 0.18 / s) times as likely as 0. docs/estimation.md says
    what that costs where r is 0 and where it is not, and how little could be gained.

    Args:
        estimates: (..., S), unbiased; each last axis is one list.
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


def drawn_together(estimates: np.ndarray, variance: float) -> np.ndarray:
    """Estimates (S,) of one variance, moved towards their mean as far as they look alike.

    With d = S - 1 let Q be the sum of squared distances from the mean, in units of the variance; if all frequencies are
    equal, d is expected. The way to the mean is min(1, (d - 2) / Q) (James and Stein 1961, positive part), which has a
    smaller expected error than the estimates themselves for all frequencies, if d >= 3. After projection that is not
    so near the corners of the simplex. So the way falls linearly to 0 as Q rises from d to 2 d, and as the expected
    squared error d variance rises to 0.2, where even a value that everybody holds may look like the others.
    """
    degrees = len(estimates) - 1
    if degrees < 3 or variance <= 0:
        return estimates
    centre = estimates.mean()
    ratio = float(((estimates - centre) ** 2).sum()) / (variance * degrees)
    way = min(1.0, (1 - 2 / degrees) / max(ratio, _TINY))
    way *= float(np.clip(_DIFFERENT - ratio, 0, 1)) * max(1 - degrees * variance / _NOISIEST, 0.0)
    drawn: np.ndarray = centre + (1 - way) * (estimates - centre)
    return drawn
