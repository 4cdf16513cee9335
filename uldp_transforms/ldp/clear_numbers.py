"""Means and quantiles of a number that is known in the clear, among the people who hold a private value.

Record i has a number t_i and a randomized answer. Its weight v_i is a function of the answer with E v_i = a_i if the
person holds the value, and E v_i = 0 otherwise; a_i > 0 depends on the randomizer only. Then sum v_i (t_i - m) has the
mean 0 where m is the mean of the holders, and likewise sum v_i (1[t_i <= m] - q) for their quantile q. An interval
consists of all m for which this sum is within z standard deviations of 0 (Fieller 1954; for quantiles Woodruff 1952).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError


class Bounded(NamedTuple):
    """A number with an interval; an end is infinite if the noise leaves it open, and ``value`` then may be nan."""

    value: float
    low: float
    high: float


UNKNOWN = Bounded(np.nan, -np.inf, np.inf)


def two_answer_weights(held: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Weights for the holders of one of two values, if each record's randomizer has its own replacement rate.

    With the rate r the answer is drawn at random from the two values. The weight (1 - r) (R - r/2), where R is 1 if the
    answer is this value, has the mean (1 - r)^2 for holders. That is proportional to the information in the record, so
    records of different rates can be added up. For one rate, weighted means are those of the W3C's rule w = (R - r/2) /
    (1 - r).

    Args:
        held: (n,) bool, whether the answer is the value.
        rates: (n,) float64 in [0, 1).

    Returns:
        (n,) float64.

    Raises:
        SpecError: for rates outside [0, 1), or arrays of different shapes.
    """
    if held.shape != rates.shape or held.ndim != 1:
        raise SpecError(f"held and rates must have the same shape (n,), got {held.shape} and {rates.shape}")
    if not ((rates >= 0) & (rates < 1)).all():
        raise SpecError("rates must be numbers in [0, 1), got other values")
    weights: np.ndarray = (1 - rates) * (held - rates / 2)
    return weights


def share_of(held: np.ndarray, rates: np.ndarray, confidence: float = 0.95) -> tuple[Bounded, float]:
    """The unbiased share of holders and its score interval (Wilson 1927) cut to [0, 1], and its standard error.

    For one rate the interval is Wilson's, mapped by the inverse of the channel. Arguments and errors as for
    ``two_answer_weights``; SpecError also if there are no records.
    """
    weights = two_answer_weights(held, rates)
    if not len(weights):
        raise SpecError("held must have at least one record, got none")
    informative = (1 - rates) ** 2
    total = informative.sum()
    share = float(weights.sum() / total)
    # variance at p: sum (1 - r)^2 mu (1 - mu) / total^2 with mu = r/2 + (1 - r) p, as a polynomial in p
    even = rates / 2 * (1 - rates / 2)
    constant = float(informative @ even) / total**2
    slope = float(informative @ (1 - rates) ** 2) / total**2
    z2 = float(special.ndtri(0.5 + confidence / 2)) ** 2
    middle, width = (share + z2 * slope / 2) / (1 + z2 * slope), 1 + z2 * slope
    reach = np.sqrt(max(middle**2 - (share**2 - z2 * constant) / width, 0.0))
    low, high = np.clip([middle - reach, middle + reach], 0, 1).tolist()
    plausible = min(max(share, 0.0), 1.0)
    error = float(np.sqrt(constant + slope * plausible * (1 - plausible)))
    return Bounded(share, low, high), error


def mean_of(weights: np.ndarray, numbers: np.ndarray, confidence: float = 0.95) -> Bounded:
    """The mean of the holders' numbers, with Fieller's interval.

    Args:
        weights: (n,) float64.
        numbers: (n,) float64.
        confidence: level of the interval.

    Returns:
        ``UNKNOWN`` if the share of holders cannot be told from 0 at this level.

    Raises:
        SpecError: for arrays of different shapes.
    """
    _check(weights, numbers)
    if not len(weights):
        return UNKNOWN
    centre = float(np.median(numbers))
    t, squares = numbers - centre, weights**2
    z2 = float(special.ndtri(0.5 + confidence / 2)) ** 2
    total, sum_t = float(weights.sum()), float(weights @ t)
    a = total**2 - z2 * float(squares.sum())
    b = total * sum_t - z2 * float(squares @ t)
    c = sum_t**2 - z2 * float(squares @ t**2)
    if total <= 0 or a <= 0:
        return UNKNOWN
    reach = np.sqrt(max(b * b - a * c, 0.0))
    return Bounded(centre + sum_t / total, centre + float(b - reach) / a, centre + float(b + reach) / a)


def quantile_of(weights: np.ndarray, numbers: np.ndarray, q: float, confidence: float = 0.95) -> Bounded:
    """A quantile of the numbers of the holders.

    The unbiased distribution function need not rise, because weights may be below 0; the value is where the mean of
    its running maximum and its running minimum from above reaches q.

    Args:
        weights: (n,) float64.
        numbers: (n,) float64.
        q: in (0, 1).
        confidence: level of the interval.

    Returns:
        ``UNKNOWN`` if the weights do not sum to more than 0; ends are infinite where the noise leaves them open.

    Raises:
        SpecError: for arrays of different shapes, or another q.
    """
    _check(weights, numbers)
    if not 0 < q < 1:
        raise SpecError(f"q must be a number between 0 and 1, got {describe(q)}")
    if not len(weights) or weights.sum() <= 0:
        return UNKNOWN
    points, place = np.unique(numbers, return_inverse=True)
    own = np.bincount(place, weights, len(points))
    squares = np.bincount(place, weights**2, len(points))
    at_most = np.concatenate([[0.0], np.cumsum(own)])  # before the first point, and at each point
    below = np.concatenate([[0.0], np.cumsum(squares)])
    excess = at_most - q * at_most[-1]
    z = float(special.ndtri(0.5 + confidence / 2))
    reach = z * np.sqrt(np.maximum((1 - q) ** 2 * below + q**2 * (below[-1] - below), 0.0))
    not_below, not_above = excess >= -reach, excess <= reach
    low = -np.inf if not_below[0] else float(points[np.argmax(not_below) - 1])
    last = len(not_above) - 1 - int(np.argmax(not_above[::-1]))  # after it, all points are too large
    high = np.inf if last == len(points) else float(points[last])
    rising = (np.maximum.accumulate(excess) + np.minimum.accumulate(excess[::-1])[::-1]) / 2
    value = float(points[np.argmax(rising[1:] >= 0)])
    return Bounded(value, low, high)


def _check(weights: np.ndarray, numbers: np.ndarray) -> None:
    if weights.shape != numbers.shape or weights.ndim != 1:
        raise SpecError(f"weights and numbers must have the same shape (n,), got {weights.shape} and {numbers.shape}")
