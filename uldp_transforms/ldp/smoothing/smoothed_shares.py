"""The shares of the people of each window, from the windows up to it (filtered) or from all windows (smoothed)."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import special

from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.mechanisms.binomial_law import normal_quantile
from uldp_transforms.ldp.smoothing.breaks import Broken, branches, breaks_of, suspects
from uldp_transforms.ldp.smoothing.course import Course, course_of, own_shares
from uldp_transforms.ldp.smoothing.drift_fit import of_values
from uldp_transforms.ldp.smoothing.scales import Scales, scales_of
from uldp_transforms.ldp.smoothing.season import Season, season_of
from uldp_transforms.ldp.smoothing.series import Law, Series
from uldp_transforms.ldp.solvers.intervals import reaching

_BESIDE = 1.2  # standard deviations from its neighbours at which it begins to extend; beyond them at twice that
_POWERS = (1.0, 1.5, 2.0)  # powers of shares to which drifts and nuggets, which are variances, are proportional
_BLOCK = 1024  # values that are smoothed at once
_FEW = 4  # values of a series whose common drift one change determines
_TINY = 1e-300
_ROUNDS = 2  # of fitting a season and the scales of the residuals


@dataclasses.dataclass(frozen=True, eq=False)
class Shares:
    """Shares of the people of each window, (T, S): estimates with intervals that contain them.

    NaN where the window has no estimate.
    """

    means: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class _Fitted:
    """A series without its season, and the fitted model.

    Attributes:
        series, law: T windows, S values.
        scales: distribution of drifts and nuggets.
        own: (2, S) drift and nugget of each value, from means of standard deviations, for intervals.
        likely: (2, S) geometric means of drift and nugget, for estimates.
        season: the season; None if there is none.
    """

    series: Series
    law: Law
    scales: Scales
    own: np.ndarray
    likely: np.ndarray
    season: Season | None

    @property
    def searched(self) -> tuple[float, float]:
        """Drift and nugget, relative to the shares, under which changes are searched for: the common ones.

        If one of few values changes, the common drift becomes so large that the change passes for drift. The drift is
        then the smallest of the grid. Values that say nearly the same, such as shares below edges, are few.
        """
        drift, nugget = self.scales.common
        is_few = len(self.law.shares) <= _FEW * self.series.copies
        return (self.scales.least_drift if is_few else drift), nugget


def filtered(series: Series, t: int, confidence: float = CONFIDENCE) -> Shares:
    """Shares in the window at position t from the windows up to it; (1, S)."""
    known = smoothed(series.until(t + 1), confidence)
    return Shares(known.means[-1:], known.low[-1:], known.high[-1:])


def smoothed(series: Series, confidence: float = CONFIDENCE) -> Shares:
    """Shares in each window from all windows. Estimates do not depend on the confidence of the intervals.

    If the window contradicts all others by 1.2 standard deviations or more, the interval is extended to the window's
    own estimate and beyond, at 2.4 to the far end of its one-sided interval: the other end is near the other windows.
    It also contains the intervals of the courses before and after a break, at every plausible position of the break.
    """
    model = _fitted(series)
    means, low, high = _of_all(model, CONFIDENCE)
    means = np.clip(means, low, high)
    if confidence != CONFIDENCE:
        _, low, high = _of_all(model, confidence)
        low, high = reaching(low, high, means)
    if model.season is not None:
        means, low, high = (part + model.season.effects for part in (means, low, high))
    return Shares(means, low, high)


def _fitted(series: Series) -> _Fitted:
    """The model fitted to a series; if it has a season, the scales are those of the residuals."""
    law = series.law()
    model = _scaled(series, law, None)
    season = season_of(series, law, *model.own)
    if season is None:
        return model
    for _ in range(_ROUNDS):
        found = season_of(series, law, *_scaled(series, law, season).own)
        season = season if found is None else found
    return _scaled(series, law, season)


def _scaled(series: Series, law: Law, season: Season | None) -> _Fitted:
    """Scales averaged over the powers of shares by their likelihoods; breaks use the likeliest power."""
    left = series if season is None else dataclasses.replace(series, raw=series.raw - season.effects)
    unfitted = series if season is None else season.residuals(series)
    fits = [_of_power(left, unfitted, law.relative_to(power), season) for power in _POWERS]
    evidence = np.array([one.scales.evidence for one in fits])
    weights = special.softmax(evidence)
    own = np.tensordot(weights, np.sqrt([one.own for one in fits]), 1) ** 2
    likely = np.exp(np.tensordot(weights, np.log([one.likely for one in fits]), 1))
    return dataclasses.replace(fits[int(evidence.argmax())], own=own, likely=likely)


def _of_power(left: Series, unfitted: Series, law: Law, season: Season | None) -> _Fitted:
    """The fit for one power, which the law contains."""
    scales, likelihoods = scales_of(unfitted, law)
    posterior, _ = scales.posterior(likelihoods)
    return _Fitted(left, law, scales, np.stack(scales.means(posterior, law)), scales.likely(posterior, law), season)


def _of_all(model: _Fitted, confidence: float) -> np.ndarray:
    """(3, T, S) means and interval ends of all values, without their seasonal effects."""
    size = len(model.series.common)
    found = np.empty((3, *model.series.raw.shape))
    for begin in range(0, size, _BLOCK):
        here = np.arange(begin, min(begin + _BLOCK, size))
        found[:, :, here] = _of_values(model, here, confidence)
    return found


def _of_values(model: _Fitted, here: np.ndarray, confidence: float) -> np.ndarray:
    """(3, T, M) means and interval ends of some values, without their seasonal effects."""
    series, law, number = of_values(model.series, here), model.law.values(here), len(here)
    own, usual = model.own[:, here], np.outer(model.searched, law.shares)
    thrice, each = np.tile(np.arange(number), 3), np.arange(number)
    parts = np.concatenate([own, model.likely[:, here], usual], axis=1)
    courses = course_of(of_values(series, thrice), law.values(thrice), *parts)  # one call: loops over windows are slow
    course, likely, common = (courses.values(each + first) for first in (0, number, 2 * number))
    extra = np.zeros(series.raw.shape)
    if model.season is not None:
        extra = model.season.values(here).uncertainty(series, law, *own)
    _, low, high = _around(series, law, course, extra, confidence)
    means, _ = own_shares(series, law, likely)
    places = suspects(common)
    if len(places):
        some, few = of_values(series, places), law.values(places)
        first = Broken.quiet(some, few, usual[0, places], usual[1, places], common.values(places))
        second = Broken.quiet(some, few, own[0, places], own[1, places], course.values(places))
        broken = breaks_of(first, second, model.scales)
        across, low[:, places], high[:, places] = _across(broken, extra[:, places], confidence)
        means[:, places] = np.where(broken.changed, across, means[:, places])
    return np.stack([means, low, high])


def _around(
    series: Series, law: Law, course: Course, extra: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(T, S) means and interval ends, extended to the window's own interval where it contradicts all others."""
    means, variances = own_shares(series, law, course)
    half = normal_quantile(confidence) * np.sqrt(variances + extra)
    apart = np.abs(course.pulse) / np.sqrt(np.maximum(course.pulse_information, _TINY)) / _BESIDE - 1
    alone = max(float(special.ndtri(confidence)), 0.0)  # standard errors beyond the window's own estimate, at most
    own = alone * np.clip(apart, 0, 1) * np.sqrt(law.noise + series.common)
    low = np.where(apart > 0, np.minimum(means - half, series.raw - own), means - half)
    high = np.where(apart > 0, np.maximum(means + half, series.raw + own), means + half)
    return means, low, high


def _across(values: Broken, extra: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means and interval ends for values that may break: with one more change or none, and other places of breaks."""
    means, low, high = _around(values.series, values.law, values.course, extra, confidence)
    _, lowest, highest = branches(values, confidence)
    low, high = np.minimum(low, lowest), np.maximum(high, highest)
    moved, value = values.without()
    if len(value):
        average, lowest, highest = branches(moved, confidence)
        rows = np.arange(len(means))[:, np.newaxis]
        np.add.at(means, (rows, value), average - means[:, value])
        np.minimum.at(low, (rows, value), lowest)
        np.maximum.at(high, (rows, value), highest)
    return means, low, high
