"""Breaks in the course of a value, their uncertainty, and intervals that span both sides of a break."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import special

from uldp_transforms.ldp.mechanisms.binomial_law import normal_quantile
from uldp_transforms.ldp.smoothing.course import Course, course_of
from uldp_transforms.ldp.smoothing.drift_fit import of_values
from uldp_transforms.ldp.smoothing.scales import Scales
from uldp_transforms.ldp.smoothing.series import Law, Series

_CHANCE = 0.2  # prior mean number of lasting changes in the series of a value, and of single-window changes
_WIDTH = 16.0  # prior variance of a change, in units of the variance of a single window
_ODDS = 20.0  # minimum odds for accepting one more change
_MOST = 8  # maximum number of changes of a value
_SHIFT = 2.75  # minimum standard deviations of a lasting change for a value to be examined
_PULSE = 0.05  # probability that an honest value is examined because of one window
_BRANCHES = 48  # maximum number of possible changes of a value that are compared


@dataclasses.dataclass(frozen=True, eq=False)
class Broken:
    """M values whose courses may break.

    Attributes:
        series, law: of these values.
        drift, nugget: (M,) of each value, without the detected changes.
        shifts, pulses: (T, M) variances of the detected lasting and single-window changes; 0 elsewhere.
        course: the course with these changes.
    """

    series: Series
    law: Law
    drift: np.ndarray
    nugget: np.ndarray
    shifts: np.ndarray
    pulses: np.ndarray
    course: Course

    @classmethod
    def of(
        cls,
        series: Series,
        law: Law,
        drift: np.ndarray,
        nugget: np.ndarray,
        shifts: np.ndarray,
        pulses: np.ndarray,
    ) -> Broken:
        """Values with these changes; computes their course."""
        course = course_of(series, law, drift, nugget, shifts, pulses)
        return cls(series, law, drift, nugget, shifts, pulses, course)

    @classmethod
    def quiet(cls, series: Series, law: Law, drift: np.ndarray, nugget: np.ndarray, course: Course) -> Broken:
        """Values without changes."""
        nothing = np.zeros(series.raw.shape)
        return cls(series, law, drift, nugget, nothing, nothing, course)

    def values(self, places: np.ndarray) -> Broken:
        """A selection of these values, by their positions (N,) int64."""
        return Broken(
            of_values(self.series, places),
            self.law.values(places),
            self.drift[places],
            self.nugget[places],
            self.shifts[:, places],
            self.pulses[:, places],
            self.course.values(places),
        )

    @property
    def changed(self) -> np.ndarray:
        """(M,) bool, whether a value has changes."""
        found: np.ndarray = (self.shifts + self.pulses).max(axis=0) > 0
        return found

    def without(self) -> tuple[Broken, np.ndarray]:
        """For each lasting change, its value without that change; and the positions of these values, (N,)."""
        t, value = np.nonzero(self.shifts)
        if not len(t):
            return self.values(value), value
        shifts = self.shifts[:, value]
        shifts[t, np.arange(len(t))] = 0
        series, law = of_values(self.series, value), self.law.values(value)
        return Broken.of(series, law, self.drift[value], self.nugget[value], shifts, self.pulses[:, value]), value


def suspects(course: Course) -> np.ndarray:
    """(M,) int64 positions of values with a significant change of their course.

    One in 20 honest values is included because of a single window, and some more because of a lasting change, whose
    scores in neighbouring windows are highly correlated.
    """
    limit = special.ndtri(_PULSE / 2 / len(course.mean))
    lasts = (course.shift[1:] ** 2 > _SHIFT**2 * course.shift_information[1:]).any(axis=0)
    alone = (course.pulse**2 > limit**2 * course.pulse_information).any(axis=0)
    found: np.ndarray = np.flatnonzero(lasts | alone)
    return found


def breaks_of(common: Broken, own: Broken, scales: Scales) -> Broken:
    """Values with the changes that explain their windows better than their own drifts do.

    Changes are searched for under the common drift and nugget, under which they are visible. They are kept if they
    raise the marginal likelihood of the value, over all drifts and nuggets, by more than the cost of their prior.

    Args:
        common, own: M values without changes, with the common scales and with each value's own.
        scales: scales of the collection.
    """
    shifts, pulses = _found(common)
    some = np.flatnonzero(shifts.any(axis=0) | pulses.any(axis=0))
    if not len(some):
        return own
    part, shifts, pulses = own.values(some), shifts[:, some], pulses[:, some]
    changed = Law(part.law.shares, part.law.noise, part.law.people + pulses)
    _, before = scales.posterior(scales.likelihoods(part.series, part.law, bend=np.inf))
    chances, after = scales.posterior(scales.likelihoods(part.series, changed, shifts, np.inf))
    number = (shifts > 0).sum(axis=0) + (pulses > 0).sum(axis=0)
    better = after + number * np.log(_CHANCE / len(shifts)) > before
    drift, nugget = (
        np.where(better, *pair) for pair in zip(scales.means(chances, part.law), (part.drift, part.nugget))
    )
    parts = {name: getattr(own, name).copy() for name in ("drift", "nugget", "shifts", "pulses")}
    parts["drift"][some], parts["nugget"][some] = drift, nugget
    parts["shifts"][:, some], parts["pulses"][:, some] = shifts * better, pulses * better
    return Broken.of(own.series, own.law, **parts)


def _found(values: Broken) -> tuple[np.ndarray, np.ndarray]:
    """(T, M) variances of changes, found greedily: the likeliest of each value, as long as one is likely."""
    width = _WIDTH * (values.law.noise + values.law.people + values.nugget).mean(axis=0)
    for _ in range(_MOST):
        chances, course = _log_odds(values), values.course
        lasts, alone = special.logsumexp(chances, axis=1)
        likely = np.logaddexp(lasts, alone) > np.log(_ODDS)
        if not likely.any():
            break
        changes = values.shifts.copy(), values.pulses.copy()
        lasting = lasts > alone
        for found, chance, score, information, chosen in (
            (changes[0], chances[0], course.shift, course.shift_information, likely & lasting),
            (changes[1], chances[1], course.pulse, course.pulse_information, likely & ~lasting),
        ):
            places = np.flatnonzero(chosen)
            t = chance[:, places].argmax(axis=0)
            found[t, places] = np.maximum(width[places], (score[t, places] / information[t, places]) ** 2)
        values = Broken.of(values.series, values.law, values.drift, values.nugget, *changes)
    return values.shifts, values.pulses


def _log_odds(values: Broken) -> np.ndarray:
    """(2, T, M) log odds of one more change in each window against none: a lasting and a single-window change.

    A change is normal with mean 0 and 16 times the variance of a single window, so that its Bayes factor is exp(z^2 / 2
    k / (1 + k)) / sqrt(1 + k), with z its score in standard deviations and k its information times that variance.
    """
    course, law = values.course, values.law
    width = _WIDTH * (law.noise + law.people + values.nugget).mean(axis=0)
    odds = np.empty((2, *course.mean.shape))
    parts = (
        (course.shift, course.shift_information, values.shifts),
        (course.pulse, course.pulse_information, values.pulses),
    )
    for own, (score, information, found) in zip(odds, parts):
        ratio = width * information
        own[:] = score**2 * width / (1 + ratio) / 2 - np.log1p(ratio) / 2 + np.log(_CHANCE / len(own))
        own[~values.series.seen | (found > 0)] = -np.inf
    odds[0, 0] = -np.inf
    return odds


def branches(values: Broken, confidence: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimates and intervals of the people's shares, allowing for one more change anywhere.

    Args:
        values: M values.
        confidence: of the intervals, and of the set of changes.

    Returns:
        (T, M) means over one more change or none; and the lowest and highest interval ends over a set of changes,
        possibly none, that contains the true one with this probability.
    """
    odds, windows = _log_odds(values), len(values.shifts)
    flat = odds.reshape(2 * windows, -1)
    order = np.argsort(-flat, axis=0, kind="stable")[:_BRANCHES]
    logs = np.concatenate([np.zeros((1, flat.shape[1])), np.take_along_axis(flat, order, axis=0)])
    chances = np.exp(logs - logs.max(axis=0))
    chances /= chances.sum(axis=0)
    ranks = np.argsort(-chances, axis=0, kind="stable")
    before = np.cumsum(np.take_along_axis(chances, ranks, axis=0), axis=0)
    inside = np.ones(chances.shape, dtype=bool)
    np.put_along_axis(inside, ranks[1:], before[:-1] < confidence, axis=0)
    most = 1 + int(np.flatnonzero(inside.any(axis=1)).max(initial=0))  # few branches where the change is certain
    order, chances, inside = order[: most - 1], chances[:most] / chances[:most].sum(axis=0), inside[:most, np.newaxis]
    means, variances = _each_branch(values, order % windows, order < windows)
    half = normal_quantile(confidence) * np.sqrt(variances)
    low = np.where(inside, means - half, np.inf).min(axis=0)
    high = np.where(inside, means + half, -np.inf).max(axis=0)
    return np.einsum("ktm,km->tm", means, chances), low, high


def _each_branch(values: Broken, t: np.ndarray, lasts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(1 + C, T, M) means and variances of the people's shares: without a change, and with each of (C, M) changes."""
    course, law, raw = values.course, values.law, values.series.raw
    size = np.where(lasts, _at(course.shift, t), _at(course.pulse, t))
    information = np.where(lasts, _at(course.shift_information, t), _at(course.pulse_information, t))[:, np.newaxis]
    response = _responses(course, t, lasts)
    level = np.concatenate([course.mean[np.newaxis], course.mean + size[:, np.newaxis] / information * response])
    spread = np.concatenate([course.variance[np.newaxis], course.variance + response**2 / information])
    weight = course.own / (course.own + law.noise)
    means = level + weight * (raw - level)
    variances = (1 - weight) ** 2 * spread + weight * law.noise + values.series.common
    alone = ~lasts[:, np.newaxis] & (np.arange(len(raw))[:, np.newaxis] == t[:, np.newaxis])
    means[1:] = np.where(alone, raw, means[1:])
    variances[1:] = np.where(alone, law.noise + values.series.common, variances[1:])
    return means, variances


def _responses(course: Course, t: np.ndarray, lasts: np.ndarray) -> np.ndarray:
    """(C, T, M) increase of the mean of each window per unit of a change in window t, (C, M), if it is allowed for.

    An error decays by the factor 1 - gain from window to window. With P, N and L(a, b) the prior variance, the
    information of a lasting change, and the product of 1 - gain of the windows from a to b - 1, a lasting change at t
    raises the mean of window u by L(t, u) (1 - P_u N_u) if u >= t, and by - P_u L(u, t) N_t before.
    """
    u, when, lasting = np.arange(len(course.mean))[:, np.newaxis], t[:, np.newaxis], lasts[:, np.newaxis]
    fades, information = course.fades, course.shift_information
    later = np.concatenate([information[1:], np.zeros((1, information.shape[1]))])
    own = course.precision - course.gain * (1 - course.gain) * later
    start = np.where(lasts, _at(fades, t), _at(fades, t + 1))[:, np.newaxis]
    before = -course.prior * np.exp(np.minimum(_at(fades, t)[:, np.newaxis] - fades[:-1], 0))
    before *= np.where(lasts, _at(information, t), _at(own, t))[:, np.newaxis]
    after = np.exp(np.minimum(fades[:-1] - start, 0)) * (1 - course.prior * information)
    after *= np.where(lasts, 1, -_at(course.gain, t))[:, np.newaxis]
    found: np.ndarray = np.where(u < when + ~lasting, before, after)
    return found


def _at(cells: np.ndarray, t: np.ndarray) -> np.ndarray:
    """(C, M) entries of the cells (T, M) at the times (C, M)."""
    found: np.ndarray = np.take_along_axis(cells, t, axis=0)
    return found
