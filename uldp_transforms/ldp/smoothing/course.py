"""Smoother for values with individual drifts, and scores that locate breaks of a course."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.smoothing.series import Law, Series

_LEAST_KEPT = 1e-12


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Course:
    """Estimates of the drifting share from all windows, all (T, S).

    Attributes:
        mean, variance: of the drifting share.
        prior: variance of the drifting share given the windows before.
        gain: of the Kalman filter; 0 where a window has no estimate.
        precision: 1 / variance of the innovations; 0 where a window has no estimate.
        own: variance of the people's shares around the drifting share.
        shift, shift_information: score and information of an additional lasting change of the drifting share that
            begins in the window; shift / shift_information is its estimate, with variance 1 / shift_information.
        pulse, pulse_information: the same for a change of this window alone. Its estimate is the window's own estimate
            less the prediction from all other windows.
    """

    mean: np.ndarray
    variance: np.ndarray
    prior: np.ndarray
    gain: np.ndarray
    precision: np.ndarray
    own: np.ndarray
    shift: np.ndarray
    shift_information: np.ndarray
    pulse: np.ndarray
    pulse_information: np.ndarray

    def values(self, places: np.ndarray) -> Course:
        """The courses of some values, at positions (M,) int64."""
        return Course(**{field.name: getattr(self, field.name)[:, places] for field in dataclasses.fields(self)})

    @property
    def fades(self) -> np.ndarray:
        """(T + 1, S) sums of log(1 - gain) over the windows before each one: errors decay by their exponentials."""
        kept = np.log(np.maximum(1 - self.gain, _LEAST_KEPT))
        return np.concatenate([np.zeros((1, kept.shape[1])), np.cumsum(kept, axis=0)])


def course_of(
    series: Series,
    law: Law,
    drift: np.ndarray,
    nugget: np.ndarray,
    shifts: np.ndarray | None = None,
    pulses: np.ndarray | None = None,
) -> Course:
    """Kalman filter and disturbance smoother (de Jong and Penzer 1998, "Diagnosing shocks in time series").

    Args:
        series, law: T windows, S values.
        drift: (S,) variance of a step of the drifting share.
        nugget: (S,) variance of a window's shares around the drifting share, without that of sampling people.
        shifts: (T, S) variance added to the step into a window; None: none.
        pulses: (T, S) variance added to the nugget of a window; None: none.
    """
    size, seen = series.raw.shape, series.seen
    own = np.broadcast_to(nugget + law.people + (0 if pulses is None else pulses), size)
    noise, raw = np.where(seen, own + law.noise, np.inf), np.nan_to_num(series.raw)
    added = np.outer(series.steps, drift) + (0 if shifts is None else shifts)
    prior, gain, ahead = np.empty((3, *size))
    mean, variance = np.zeros(size[1]) + series.level, np.zeros(size[1]) + series.spread
    kept = np.empty(size[1])
    for t in range(size[0]):
        np.add(variance, added[t], out=prior[t])
        np.add(prior[t], noise[t], out=kept)
        np.divide(prior[t], kept, out=gain[t])
        ahead[t] = mean
        np.subtract(1, gain[t], out=kept)
        np.multiply(prior[t], kept, out=variance)
        mean += np.multiply(gain[t], np.subtract(raw[t], mean, out=kept), out=kept)
    precision, left = 1 / (prior + noise), 1 - gain
    here, fading = precision * (raw - ahead), left**2
    shift, shift_information = np.empty((2, size[0] + 1, size[1]))
    shift[-1], shift_information[-1] = 0, 0
    for t in range(size[0] - 1, -1, -1):
        np.add(here[t], np.multiply(left[t], shift[t + 1], out=kept), out=shift[t])
        np.add(precision[t], np.multiply(fading[t], shift_information[t + 1], out=kept), out=shift_information[t])
    pulse, pulse_information = here - gain * shift[1:], precision + gain**2 * shift_information[1:]
    shift, shift_information = shift[:-1], shift_information[:-1]
    return Course(
        mean=ahead + prior * shift,
        variance=prior - prior**2 * shift_information,
        prior=prior,
        gain=gain,
        precision=precision,
        own=own,
        shift=shift,
        shift_information=shift_information,
        pulse=pulse,
        pulse_information=pulse_information,
    )


def gains_of(series: Series, law: Law, drift: np.ndarray, nugget: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(T, S) gains and precisions of a course, which do not depend on the estimates."""
    noise = np.where(series.seen, nugget + law.people + law.noise, np.inf)
    prior, gain = np.empty((2, *noise.shape))
    variance = np.zeros(len(drift)) + series.spread
    for t, step in enumerate(series.steps.tolist()):
        np.add(variance, step * drift, out=prior[t])
        np.divide(prior[t], prior[t] + noise[t], out=gain[t])
        np.multiply(prior[t], 1 - gain[t], out=variance)
    return gain, 1 / (prior + noise)


def own_shares(series: Series, law: Law, course: Course) -> tuple[np.ndarray, np.ndarray]:
    """(T, S) means and variances of the shares of the people who report in each window.

    Given the drifting share s, f = s + h (y - s) + N(0, h R), h = W / (W + R). The mean of the course is that of s
    given all data including y, so y is not used twice.
    """
    weight = course.own / (course.own + law.noise)
    means = course.mean + weight * (series.raw - course.mean)
    return means, (1 - weight) ** 2 * course.variance + weight * law.noise + series.common
