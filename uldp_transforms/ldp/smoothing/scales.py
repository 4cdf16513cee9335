"""A drift and a nugget for each value by empirical Bayes: shrunk towards the common ones of the collection."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import scipy

from uldp_transforms.ldp.smoothing.drift_fit import BEND, FITTED, in_units, log_likelihoods, of_values
from uldp_transforms.ldp.smoothing.series import Law, Series

_DRIFTS = np.arange(-2, 3), 8.0  # exponents and base of the grid of likelihoods, relative to the likely drift
_NUGGETS = np.arange(-3, 4), 4.0
_WIDTHS = np.array([0.1, 0.5, 1.0, 1.5]) * np.log(4)  # standard deviations of the logarithms over values
_ODD = 0.005  # prior probability of an outlying value
_LEAST_WEIGHT = 1e-4
_BLOCK = 1024  # values whose likelihoods are computed at once
_TILT = 0.25  # the prior density of the logarithm of the common nugget, a variance, is proportional to this power of it
_MEDIAN = 0.4549  # median of a squared standard normal variable


@dataclasses.dataclass(frozen=True, eq=False)
class Scales:
    """A grid of pairs of drift and nugget, and the prior probability of each pair.

    Attributes:
        centre: drift and nugget at the centre of the grid, relative to the share of a value.
        pairs: (G, 2) drift and nugget, on a finer grid.
        priors: (H, G) densities over pairs, one of which is that of the collection.
        weights: (H,) posterior probabilities of these densities.
        evidence: log marginal likelihood of the collection, up to a constant of the data.
    """

    centre: tuple[float, float]
    pairs: np.ndarray
    priors: np.ndarray
    weights: np.ndarray
    evidence: float = 0.0

    @property
    def common(self) -> tuple[float, float]:
        """The geometric means of drift and nugget over a collection."""
        drift, nugget = np.exp(np.log(self.pairs).T @ (self.weights @ self.priors)).tolist()
        return drift, nugget

    @property
    def least_drift(self) -> float:
        """The smallest drift of the grid, relative to the share of a value."""
        return float(self.pairs[:, 0].min())

    def likelihoods(self, series: Series, law: Law, shifts: np.ndarray | None = None, bend: float = BEND) -> np.ndarray:
        """(G, S) log likelihoods of the pairs, up to a constant of each value; interpolated by cubic splines."""
        axes = [middle * factor**steps for middle, (steps, factor) in zip(self.centre, (_DRIFTS, _NUGGETS))]
        drift, nugget = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
        parts = []
        for begin in range(0, len(law.shares), _BLOCK):
            here = np.arange(begin, min(begin + _BLOCK, len(law.shares)))
            moved = None if shifts is None else shifts[:, here]
            some, own, moved = in_units(of_values(series, here), law.values(here), moved)
            parts.append(log_likelihoods(some, own, drift, nugget, moved, bend))
        found: np.ndarray = _grid().between @ np.concatenate(parts, axis=1)
        return found

    def posterior(self, likelihoods: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(G, S) probabilities of the pairs of each value, and (S,) logarithms of its marginal likelihood."""
        most = likelihoods.max(axis=0)
        each = np.exp(likelihoods - most)
        marginal = self.priors @ each
        chances = (self.weights[:, np.newaxis] / marginal).T @ self.priors
        return chances.T * each, most + np.log(self.weights @ marginal)

    def means(self, posterior: np.ndarray, law: Law) -> tuple[np.ndarray, np.ndarray]:
        """(S,) drift and nugget of each value: squared posterior means of their standard deviations."""
        drift, nugget = ((posterior.T @ np.sqrt(part)) ** 2 * law.shares for part in self.pairs.T)
        return drift, nugget

    def likely(self, posterior: np.ndarray, law: Law) -> np.ndarray:
        """(2, S) posterior geometric means of drift and nugget."""
        found: np.ndarray = np.exp(np.log(self.pairs).T @ posterior) * law.shares
        return found


def scales_of(series: Series, law: Law) -> tuple[Scales, np.ndarray]:
    """The scales of a collection, and the log-likelihoods (G, S) of each value.

    The logarithms of the drifts of values are normal around a common mean, and so are those of their nuggets; one value
    in 200 is an outlier. The common means and the two widths are averaged over grids: the drift with a flat density of
    its logarithm, the nugget with one between that and a flat density of the standard deviation (Gelman 2006, "Prior
    distributions for variance parameters in hierarchical models"), so that a nugget below the noise is not estimated as
    zero. The 256 values with the largest shares are used.
    """
    grid, centre = _grid(), _likely(series, law)
    everything = Scales(centre, grid.factors * centre, grid.priors, grid.density)
    likelihoods = everything.likelihoods(series, law)
    few = likelihoods[:, np.argsort(-law.shares, kind="stable")[:FITTED]]
    most = few.max(axis=0)
    told = np.log(grid.priors @ np.exp(few - most)).sum(axis=1) + most.sum()
    evidence = told / series.copies + np.log(grid.density)
    weights = np.exp(evidence - evidence.max())
    whole, kept = weights.sum(), weights > _LEAST_WEIGHT * weights.sum()
    weights = weights[kept] / weights[kept].sum()
    found = float(evidence.max() + np.log(whole))
    return Scales(centre, everything.pairs, grid.priors[kept], weights, found), likelihoods


def _likely(series: Series, law: Law) -> tuple[float, float]:
    """Approximate drift and nugget, from medians of squared differences.

    Differences over k windows have the variance 2 W + k Q plus that of the noise. Both estimates have a lower bound
    below which they would be undetectable in the noise.
    """
    windows = len(series.raw)
    noise = (law.noise + law.people).mean(axis=0)
    least = float(np.median(noise / law.shares))
    floor = least / windows**2, least / windows / 4
    far = min(7, windows // 2)
    if far < 2:
        return floor
    weight = (law.shares / noise) ** 2
    excess = []
    for lag in (1, far):
        squares = (series.raw[lag:] - series.raw[:-lag]) ** 2
        seen = ~np.isnan(squares).all(axis=0)
        median = np.nanmedian if np.isnan(squares).any() else np.median  # the faster one
        variances = median(squares[:, seen], axis=0) / _MEDIAN - 2 * noise[seen]
        excess.append(float((weight[seen] * variances / law.shares[seen]).sum() / max(weight[seen].sum(), 1e-300)))
    drift = (excess[1] - excess[0]) / (far - 1)
    return max(drift, floor[0]), max((excess[0] - max(drift, 0)) / 2, floor[1])


@dataclasses.dataclass(frozen=True, eq=False)
class _Grid:
    """The parts of the grid that do not depend on a collection.

    Attributes:
        factors: (G, 2) factors of drift and nugget.
        between: (G, C) interpolation from likelihoods on the coarse grid to the fine one.
        priors: (H, G) densities over the fine grid: normal around each point of the coarse one, in four widths.
        density: (H,) prior probabilities of these densities.
    """

    factors: np.ndarray
    between: np.ndarray
    priors: np.ndarray
    density: np.ndarray


@functools.lru_cache(maxsize=1)
def _grid() -> _Grid:
    axes, between, kernels = [], [], []
    for steps, factor in (_DRIFTS, _NUGGETS):
        fine = np.arange(steps[0], steps[-1] + 0.25, 0.5)
        axes.append(factor**fine)
        between.append(scipy.interpolate.CubicSpline(steps, np.eye(len(steps)))(fine))
        away = np.log(factor) * (fine - steps[:, np.newaxis, np.newaxis]) / _WIDTHS[:, np.newaxis]
        densities = np.exp(-(away**2) / 2)
        kernels.append(densities / densities.sum(axis=-1, keepdims=True))
    factors = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    priors = np.einsum("avi,bwj->abvwij", *kernels).reshape(-1, len(factors))
    density = _NUGGETS[1] ** (_TILT * _NUGGETS[0])
    each = np.broadcast_to(density[:, np.newaxis, np.newaxis], (len(_DRIFTS[0]), len(density), *[len(_WIDTHS)] * 2))
    return _Grid(factors, np.kron(*between), (1 - _ODD) * priors + _ODD / len(factors), each.ravel() / each.sum())
