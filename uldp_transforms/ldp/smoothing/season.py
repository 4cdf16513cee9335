"""Weekday effects, included if the likelihood supports them."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.smoothing.course import course_of, gains_of
from uldp_transforms.ldp.smoothing.drift_fit import FITTED, of_values
from uldp_transforms.ldp.smoothing.series import Law, Series

LEAST_SEASONS = 4
"""Minimum number of periods in a series for the detection of a season."""

_FACTORS = 4.0 ** np.arange(-2, 8)  # of the smallest variance in the search
_WIDTHS = np.array([0.1, 0.5, 1.0])  # standard deviations, over values, of its logarithm to base 4
_ODD = 0.02  # prior probability of an outlying value
_EVIDENCE = 3.0  # minimum gain of the log-likelihood for a season
_BLOCK = 1024  # values that are whitened at once


@dataclasses.dataclass(frozen=True, eq=False)
class Season:
    """The effects of the phases of a season on each value, normally distributed given all windows.

    Attributes:
        phases: (T,) int64, phase of each window.
        means: (K, S) means of the effects of the K phases.
        variances: (S, K, K) covariances of the effects.
        freedom: (S,) effective number of fitted parameters of each value, without its level.
    """

    phases: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    freedom: np.ndarray

    @property
    def effects(self) -> np.ndarray:
        """(T, S) effects in each window."""
        found: np.ndarray = self.means[self.phases]
        return found

    def residuals(self, series: Series) -> Series:
        """The series less the effects, rescaled around its mean to compensate for fitting them.

        Fitting removes the share ``freedom`` / T of white noise, so the scales of the residuals would be too small.
        """
        raw, seen = series.raw - self.effects, series.seen
        times = np.maximum(seen.sum(axis=0), 1)
        mean = np.where(seen, raw, 0).sum(axis=0) / times
        longer = np.sqrt(times / np.maximum(times - self.freedom, 1))
        return dataclasses.replace(series, raw=mean + longer * (raw - mean))

    def values(self, places: np.ndarray) -> Season:
        """The season of some values, at positions (M,) int64."""
        return Season(self.phases, self.means[:, places], self.variances[places], self.freedom[places])

    def uncertainty(self, series: Series, law: Law, drift: np.ndarray, nugget: np.ndarray) -> np.ndarray:
        """(T, S) contribution of the uncertain effects to the variance of the people's shares."""
        away = []
        for phase in range(len(self.means)):
            shape = (self.phases == phase).astype(float)[:, np.newaxis]
            alone = dataclasses.replace(series, raw=np.where(series.seen, shape, np.nan), level=0.0, spread=1.0)
            course = course_of(alone, law, drift, nugget)
            away.append(law.noise / (course.own + law.noise) * (shape - course.mean))
        found: np.ndarray = np.einsum("kts,skl,lts->ts", away, self.variances, away, optimize=True)
        return found


def season_of(series: Series, law: Law, drift: np.ndarray, nugget: np.ndarray) -> Season | None:
    """The season of a series; None if it has none, or too few periods to detect one.

    The effects of a value are independent and normal with the variance g p. Over values, g is log-normal around a
    common value, which is averaged over. The likelihood is that of the whole model: the filter whitens the indicators
    of the phases in the same way as the estimates (de Jong 1991, "The diffuse Kalman filter").

    Args:
        series, law: T windows, S values.
        drift, nugget: (S,) variances of each value.
    """
    if series.phases is None or len(series.raw) < LEAST_SEASONS * (number := int(series.phases.max()) + 1):
        return None
    parts = []
    for begin in range(0, len(law.shares), _BLOCK):
        here = np.arange(begin, min(begin + _BLOCK, len(law.shares)))
        parts.append(_whitened(of_values(series, here), law.values(here), drift[here], nugget[here], number))
    told, seen = map(np.concatenate, zip(*parts))
    information, axes = np.linalg.eigh(told)
    information, scores = np.maximum(information, 0), np.einsum("sji,sj->si", axes, seen)
    most = float(np.median(information[:, -1] * law.shares))
    if most <= 0:
        return None
    variances = np.concatenate([[0], _FACTORS / most])[:, np.newaxis, np.newaxis] * law.shares[:, np.newaxis]
    gains = ((scores**2 * variances / (1 + variances * information)) - np.log1p(variances * information)).sum(
        axis=2
    ) / 2
    chances, evidence = _chances(gains, np.argsort(-law.shares, kind="stable")[:FITTED])
    if evidence < _EVIDENCE:
        return None
    spread = np.einsum("gs,gsi->si", chances, variances / (1 + variances * information))
    return Season(
        phases=series.phases,
        means=np.einsum("sij,sj->is", axes, spread * scores),
        variances=np.einsum("sij,sj,skj->sik", axes, spread, axes),
        freedom=(spread * information).sum(axis=1),
    )


def _whitened(
    series: Series, law: Law, drift: np.ndarray, nugget: np.ndarray, number: int
) -> tuple[np.ndarray, np.ndarray]:
    """Information (S, K, K) and scores (S, K) of the effects."""
    windows, size = series.raw.shape
    innovations = np.empty((windows, number + 1, size))
    innovations[:, :-1] = np.eye(number)[series.phases][:, :, np.newaxis]
    innovations[:, -1] = np.nan_to_num(series.raw)
    gain, precision = gains_of(series, law, drift, nugget)
    level = np.zeros((number + 1, size))
    level[-1] = series.level
    for t in range(windows):
        innovations[t] -= level
        level += gain[t] * innovations[t]
    innovations *= np.sqrt(precision)[:, np.newaxis]
    white = innovations.transpose(2, 1, 0)
    total = white[:, :-1] @ white.transpose(0, 2, 1)
    return total[:, :, :-1], total[:, :, -1]


def _chances(gains: np.ndarray, largest: np.ndarray) -> tuple[np.ndarray, float]:
    """(G, S) probabilities of the variances of each value, from gains (G, S) of its likelihood; and the total gain."""
    steps = np.arange(len(gains))
    priors = np.exp(-(((steps - steps[:, np.newaxis]) / _WIDTHS[:, np.newaxis, np.newaxis]) ** 2) / 2)
    priors = (priors / priors.sum(axis=-1, keepdims=True)).reshape(-1, len(steps))
    priors = (1 - _ODD) * priors + _ODD / len(steps)
    most = gains.max(axis=0)
    each = np.exp(gains - most)
    marginal = priors @ each
    evidence = (np.log(marginal) + most)[:, largest].sum(axis=1)
    weights = np.exp(evidence - evidence.max())
    chances = ((weights / weights.sum())[:, np.newaxis] / marginal).T @ priors
    return chances.T * each, float(evidence.max())
