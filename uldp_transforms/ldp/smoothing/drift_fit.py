"""Kalman filter that restarts for values that changed, and the fit of its two parameters, drift and nugget."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np

from uldp_transforms.ldp.smoothing.series import Law, Series


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Track:
    """Estimates of the drifting share from the windows up to each one. All (T, S).

    Attributes:
        expected, expected_variance: before the window's estimate is used.
        level, variance: after the window's estimate is used.
        moved: bool, whether the value restarts in this window.
    """

    expected: np.ndarray
    expected_variance: np.ndarray
    level: np.ndarray
    variance: np.ndarray
    moved: np.ndarray


def track(series: Series, law: Law, drift: float, nugget: float, moved: np.ndarray | None = None) -> Track:
    """The Kalman filter.

    Args:
        series, law: T windows.
        drift, nugget: q and w.
        moved: (T, S) bool, values that restart in this window: a variance of 1 is added; None: nowhere.
    """
    seen, size = series.seen, series.raw.shape
    moved = np.zeros(size, dtype=bool) if moved is None else moved
    raw, step = np.nan_to_num(series.raw), drift * law.shares
    noise = np.where(
        seen, law.noise + law.people + nugget * law.shares, np.inf
    )  # windows without an estimate leave the state unchanged
    level, variance = np.zeros((2, size[0] + 1, size[1]))
    level[0], variance[0], prior = series.level, series.spread, np.zeros(size)
    for t in range(size[0]):
        np.add(variance[t], series.steps[t] * step, out=prior[t])
        prior[t] += moved[t]
        gain = prior[t] / (prior[t] + noise[t])
        np.multiply(prior[t], 1 - gain, out=variance[t + 1])
        gain *= raw[t] - level[t]
        np.add(level[t], gain, out=level[t + 1])
    return Track(expected=level[:-1], expected_variance=prior, level=level[1:], variance=variance[1:], moved=moved)


BEND = 3.0  # standard deviations beyond which the loss is linear (Huber), so that a jump is not fitted as drift
FITTED = 256  # maximum number of values used for the fit
_COARSE = np.array([0.0, *np.logspace(-8, 0, 5)])
_FINER = (10 ** np.linspace(-1, 1, 5), 10 ** np.linspace(-0.25, 0.25, 5))
_TOGETHER = 16  # windows whose likelihoods are computed at once
_FACTORS = 8  # variances whose product fits into a 64-bit float, which saves logarithms
_LEAST_UNIT = 1e-8  # minimum variance in the fit


def log_likelihood(
    series: Series,
    law: Law,
    drift: np.ndarray,
    nugget: np.ndarray,
    moved: np.ndarray | None = None,
    bend: float = np.inf,
) -> np.ndarray:
    """(G,) sums of ``log_likelihoods`` over values."""
    total: np.ndarray = log_likelihoods(series, law, drift, nugget, moved, bend).sum(axis=1)
    return total


def log_likelihoods(
    series: Series,
    law: Law,
    drift: np.ndarray,
    nugget: np.ndarray,
    moved: np.ndarray | None = None,
    bend: float = np.inf,
) -> np.ndarray:
    """Log-likelihoods of the innovations of each value, without the constant of 2 pi, for G parameter pairs at once.

    Args:
        series, law: T windows.
        drift, nugget: (G,) q and w.
        moved: (T, S) variance that is added where a value restarts, 1 or True; None: nowhere.
        bend: standard deviations beyond which a square is continued by its tangent.

    Computed in the precision of ``series.raw``, 64 or 32 bits; summed in 64 bits.

    Returns:
        (G, S).
    """
    kind = np.result_type(series.raw, law.noise)
    drift_of, nugget_of = ((part[:, np.newaxis] * law.shares).astype(kind) for part in (drift, nugget))
    mean, variance = ((np.zeros_like(drift_of) + start).astype(kind) for start in (series.level, series.spread))
    total, gain, seen = np.zeros(variance.shape), np.empty_like(variance), series.seen
    raw, fixed = np.nan_to_num(series.raw), law.noise + law.people
    steps, whole = series.steps.tolist(), set(np.flatnonzero(seen.all(axis=1)).tolist())
    anew = set() if moved is None else set(np.flatnonzero(moved.any(axis=1)).tolist())
    blocks = np.empty((3, min(_TOGETHER, len(raw)), *variance.shape), dtype=kind)
    for begin in range(0, len(raw), _TOGETHER):
        here = slice(begin, begin + _TOGETHER)
        noises, scales, innovations = blocks[:, : len(raw) - begin]
        np.add(nugget_of, fixed[here, np.newaxis], out=noises)
        innovations[:] = raw[here, np.newaxis]
        for t, noise, scale, innovation in zip(itertools.count(begin), noises, scales, innovations):
            variance += drift_of if steps[t] == 1 else kind.type(steps[t]) * drift_of
            if moved is not None and t in anew:
                variance += moved[t]
            np.add(variance, noise, out=scale)
            np.subtract(innovation, mean, out=innovation)
            np.divide(variance, scale, out=gain)
            if t in whole:
                np.multiply(noise, gain, out=variance)  # posterior variance, without a difference of large numbers
            else:
                gain *= seen[t]
                variance = np.where(seen[t], noise * gain, variance)
                scale[:, ~seen[t]], innovation[:, ~seen[t]] = 1, 0
            mean += np.multiply(gain, innovation, out=gain)
        innovations *= innovations
        innovations /= scales
        _bend(innovations.reshape(-1), bend)
        total += np.add.reduce(innovations)
        for at in range(0, len(scales), _FACTORS):
            total += np.log(np.multiply.reduce(scales[at : at + _FACTORS], dtype=np.float64))
    return -total / 2


def _bend(squares: np.ndarray, bend: float) -> None:
    """Continue squares (N,) beyond ``bend`` squared by their tangents, in place."""
    far = np.flatnonzero(squares > bend**2)
    squares[far] = 2 * bend * np.sqrt(squares[far]) - bend**2


def fit(series: Series, law: Law, moved: np.ndarray | None = None) -> tuple[float, float]:
    """Maximum-likelihood (q, w), by successively finer grids, from the at most 256 values with the largest shares."""
    if len(law.shares) > FITTED:
        chosen = np.argsort(-law.shares, kind="stable")[:FITTED]
        series, law = of_values(series, chosen), Law(law.shares[chosen], law.noise[:, chosen], law.people[:, chosen])
        moved = None if moved is None else moved[:, chosen]
    series, law, moved = in_units(series, law, moved)
    best = _best(series, law, _COARSE, _COARSE, moved)
    for factors in _FINER:
        best = _best(series, law, best[0] * factors, best[1] * factors, moved)
    return best


def in_units(series: Series, law: Law, moved: np.ndarray | None) -> tuple[Series, Law, np.ndarray | None]:
    """The series with each value in units of its noise: numbers near 1, for which 32 bits are sufficient.

    Likelihoods differ by a constant from those of the shares themselves.
    """
    unit = np.maximum((law.noise + law.people).mean(axis=0), _LEAST_UNIT)
    parts: dict[str, np.ndarray] = {
        "raw": series.raw / np.sqrt(unit),
        "level": series.level / np.sqrt(unit),
        "spread": series.spread / unit,
    }
    small: dict[str, Any] = {name: part.astype(np.float32) for name, part in parts.items()}
    own = Law(*((part / unit).astype(np.float32) for part in (law.shares, law.noise, law.people)))
    return dataclasses.replace(series, **small), own, None if moved is None else (moved / unit).astype(np.float32)


def _best(
    series: Series, law: Law, drifts: np.ndarray, nuggets: np.ndarray, moved: np.ndarray | None
) -> tuple[float, float]:
    """The pair of a grid with the highest likelihood."""
    drift, nugget = (grid.ravel() for grid in np.meshgrid(np.unique(drifts), np.unique(nuggets)))
    place = int(np.argmax(log_likelihood(series, law, drift, nugget, moved, BEND)))
    return float(drift[place]), float(nugget[place])


def of_values(series: Series, chosen: np.ndarray) -> Series:
    """The series of some values, at positions (M,) int64."""
    parts = {name: getattr(series, name) for name in ("common", "turnover", "level", "spread")}
    parts = {name: part[..., chosen] if np.ndim(part) else part for name, part in parts.items()}
    return dataclasses.replace(series, raw=series.raw[:, chosen], variances=series.variances[:, chosen], **parts)
