"""Means and quantiles of a number that is known in the clear, among the people who hold a private value.

Record i has a number t_i and a randomized answer. Its weight v_i is a function of the answer with E v_i = a_i if the
person holds the value, and E v_i = 0 otherwise; a_i > 0 depends on the randomizer only. Then sum v_i (t_i - m) has the
mean 0 where m is the mean of the holders, and likewise sum v_i (1[t_i <= m] - q) for their quantile q. An interval
consists of all m for which this sum is within z standard deviations of 0 (Fieller 1954; for quantiles Woodruff 1952).

With the same a_i = 1 for all records the result is that of the population from which the records come, whatever their
randomizers. With larger weights for records of less noise it is that of another population: of those people whose
randomizers add little noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.errors import SpecError


class Bounded(NamedTuple):
    """A number with an interval; an end is infinite if the noise leaves it open, and ``value`` then may be nan."""

    value: float
    low: float
    high: float


UNKNOWN = Bounded(np.nan, -np.inf, np.inf)


MOST_OUTSIDE = 4.0
"""An unbiased share this many standard errors outside of [0, 1] is no chance: honest answers at the declared rates give
one in fewer than 1 of 30,000 estimates, even if the true share is 0 or 1."""

_LEAST_EXPECTED = 20.0
"""Expected number of the rarer answer of a rate below which the chi-square test does not take it on its own."""

_STEPS = 5  # of the common share and its variances, each computed from the other


class RateAgreement(NamedTuple):
    """Chi-square test of whether the answers of all rates come from the same share of holders.

    Attributes:
        p_value: probability of such differences, or larger ones, by chance.
        num_rates: compared rates; rates with too few answers are compared together, as one.
    """

    p_value: float
    num_rates: int


def two_answer_weights(held: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Weights for the holders of one of two values, if each record's randomizer has its own replacement rate.

    With the rate r the answer is drawn at random from the two values. R is 1 if the answer is this value, else 0. The
    weight of the W3C's rule, w = (R - r/2) / (1 - r), has the mean 1 for holders and 0 for others. So each record
    counts once, whatever its rate. Weights such as (1 - r) (R - r/2) have less noise but describe mainly the records of
    low rates, which differ from the others if people with other browsers do.

    Args:
        held: (n,) bool, whether the answer is the value.
        rates: (n,) float64 in [0, 1).

    Returns:
        (n,) float64; its square is the weight plus ``answer_noise``.

    Raises:
        SpecError: for rates outside [0, 1), or arrays of different shapes.
    """
    if held.shape != rates.shape or held.ndim != 1:
        raise SpecError(f"held and rates must have the same shape (n,), got {held.shape} and {rates.shape}")
    if not ((rates >= 0) & (rates < 1)).all():
        raise SpecError("rates must be numbers in [0, 1), got other values")
    weights: np.ndarray = (held - rates / 2) / (1 - rates)
    return weights


def answer_noise(rates: np.ndarray) -> np.ndarray:
    """The variance that replacement adds to each weight: r/2 (1 - r/2) / (1 - r)^2, for rates (n,) in [0, 1)."""
    noise: np.ndarray = rates / 2 * (1 - rates / 2) / (1 - rates) ** 2
    return noise


def share_of(held: np.ndarray, rates: np.ndarray, confidence: float = CONFIDENCE) -> tuple[Bounded, float]:
    """The unbiased share of holders and its score interval (Wilson 1927) cut to [0, 1], and its standard error.

    A record is drawn from a population, with its value and its rate, which may depend on each other. Its weight w has
    w^2 = w + c, where c is ``answer_noise``. So the variance of the mean of n weights is (p (1 - p) + mean c) / n, in
    which p is the share of holders, whatever the shares among people of each rate. For one rate the interval is
    Wilson's, mapped by the inverse of the channel. An unbiased share outside of [0, 1] has the interval of the nearest
    end, because it says no more than that one.

    Arguments and errors as for ``two_answer_weights``; SpecError also if there are no records.
    """
    weights = two_answer_weights(held, rates)
    if not len(weights):
        raise SpecError("held must have at least one record, got none")
    n, noise = len(weights), float(answer_noise(rates).mean())
    share = float(weights.mean())
    plausible = min(max(share, 0.0), 1.0)
    z2 = float(special.ndtri(0.5 + confidence / 2)) ** 2
    # all p with (plausible - p)^2 <= z^2 (p (1 - p) + noise) / n
    middle, width = (plausible + z2 / (2 * n)) / (1 + z2 / n), 1 + z2 / n
    reach = np.sqrt(max(middle**2 - (plausible**2 - z2 * noise / n) / width, 0.0))
    low, high = np.clip([middle - reach, middle + reach], 0, 1).tolist()
    error = float(np.sqrt((plausible * (1 - plausible) + noise) / n))
    return Bounded(share, low, high), error


def outside(share: float, error: float) -> float:
    """How many standard errors an unbiased share lies below 0 (negative) or above 1; 0 between them.

    Args:
        share: the unbiased share.
        error: its standard error, above 0 if the share is not in [0, 1].
    """
    distance = min(share, 0.0) + max(share - 1, 0.0)
    return distance / error if distance else 0.0


def agreement_of(held: np.ndarray, rates: np.ndarray) -> RateAgreement | None:
    """Test whether the shares of holders among the records of each rate are equal.

    Each share is compared with their most precise common mean. Rates whose rarer answer is expected fewer than 20 times
    are compared together, and not at all if they are too few together.

    Arguments and errors as for ``two_answer_weights``; None if there are not two rates to compare.
    """
    weights = two_answer_weights(held, rates)
    if not len(weights):
        return None
    known, place = np.unique(rates, return_inverse=True)
    numbers = np.bincount(place)
    shares, noise = np.bincount(place, weights) / numbers, answer_noise(known)
    common = _common_share(shares, noise, numbers)
    often = known / 2 + (1 - known) * min(max(common, 0.0), 1.0)
    expected = numbers * np.minimum(often, 1 - often)
    cells = np.where(expected >= _LEAST_EXPECTED, np.arange(len(known)), len(known))
    kept = np.flatnonzero(np.bincount(cells, expected) >= _LEAST_EXPECTED)
    if len(kept) < 2:
        return None
    sizes, sums, noises = (np.bincount(cells, each)[kept] for each in (numbers, numbers * shares, numbers * noise))
    shares, noise = sums / sizes, noises / sizes
    common = _common_share(shares, noise, sizes)
    statistic = float(((shares - common) ** 2 / _variances(common, noise, sizes)).sum())
    return RateAgreement(float(special.chdtrc(len(kept) - 1, statistic)), len(kept))


def _common_share(shares: np.ndarray, noise: np.ndarray, sizes: np.ndarray) -> float:
    """The mean of unbiased shares by their precisions, which may lie outside of [0, 1]."""
    common = float(sizes @ shares / sizes.sum())
    for _ in range(_STEPS):
        variances = _variances(common, noise, sizes)
        if not (variances > 0).all():  # no rate replaces answers, and all answers are equal
            return common
        common = float((shares / variances).sum() / (1 / variances).sum())
    return common


def _variances(share: float, noise: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    plausible = min(max(share, 0.0), 1.0)
    variances: np.ndarray = (plausible * (1 - plausible) + noise) / sizes
    return variances


def mean_of(weights: np.ndarray, numbers: np.ndarray, confidence: float = CONFIDENCE) -> Bounded:
    """The mean of the holders' numbers, with Fieller's interval.

    Args:
        weights: (n,) float64.
        numbers: (n,) float64.
        confidence: level of the interval.

    Returns:
        ``UNKNOWN`` if the share of holders cannot be told from 0 at this level. If all numbers are equal, both ends are
        open: records without any spread do not say how far their mean lies from the population's.

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
    if not t.any():
        return UNKNOWN._replace(value=centre)
    reach = np.sqrt(max(b * b - a * c, 0.0))
    return Bounded(centre + sum_t / total, centre + float(b - reach) / a, centre + float(b + reach) / a)


def quantile_of(weights: np.ndarray, numbers: np.ndarray, q: float, confidence: float = CONFIDENCE) -> Bounded:
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
