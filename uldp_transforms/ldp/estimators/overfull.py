"""Cells that heavy unlisted texts fill: which ones stand out from everything that was fitted, and doing without them.

Letters as in ``observation``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from scipy import special

from uldp_transforms.ldp.estimators.observation import B, Observation

GAIN = 0.995
"""The error has to fall by more than half a per cent in a step, or it is the last."""

ROUNDS = 4
"""Rounds of leaving cells out."""

FALSELY = 0.05
"""Cells of all that are expected to be left out for noise alone."""

ENOUGH_COHORTS = 32
"""Cohorts with reports from which on a candidate can miss the cells of some."""

_ENOUGH_KEPT = 0.5  # of its weight that a candidate has to keep


class Fit(Protocol):
    """What was fitted to the cells that are kept."""

    @property
    def kept(self) -> np.ndarray:
        """(C, k) 1 for cells that are used, 0 for those that are left out, of cohorts without reports all."""

    @property
    def fitted(self) -> np.ndarray:
        """(C, k) bucket frequencies."""

    @property
    def residuals(self) -> np.ndarray:
        """(C, k) what is left; 0 where nothing is kept."""

    @property
    def weights(self) -> np.ndarray:
        """(C,) of the cohorts."""

    @property
    def common(self) -> float:
        """The variance of a cell that does not fall with reports."""

    @property
    def error(self) -> float:
        """The mean standard error of the unknowns, without what own people add."""


F = TypeVar("F", bound=Fit)


def leave_out(given: Observation[B], fit: F, again: Callable[[F, np.ndarray], F | None]) -> F:
    """Fit again without the cells that hold too much, as long as that makes the error smaller.

    Each round lowers the noise level, so that smaller heaps stand out in the next. A candidate that collides with a
    heavy text misses one cohort of many. With several hash functions, and in few cohorts, nothing is left out.

    Args:
        given: a centred observation of an open list.
        fit: to all cells.
        again: the last fit and cells to keep (C, k) -> a fit to these; None if there is none.
    """
    if given.buckets.num_hashes > 1 or np.count_nonzero(given.num_reports) < ENOUGH_COHORTS:
        return fit
    full = 1 - 1 / given.buckets.num_buckets
    for _ in range(ROUNDS):
        kept = fit.kept * ~overfull(given, fit)
        if (kept == fit.kept).all():
            break
        without = again(fit, kept)
        if without is None or without.error > GAIN * fit.error:
            break
        if lengths(given.buckets, without.weights, kept).min() < _ENOUGH_KEPT * full * without.weights.sum():
            break
        fit = without
    return fit


def overfull(given: Observation[B], fit: Fit) -> np.ndarray:
    """(C, k) bool: cells that hold more than was fitted, by more than noise does in any cell of nearly all windows.

    The quantile of a count's noise (Cornish and Fisher): z standard deviations, and (z^2 - 1) / 6 reports for its skew.
    """
    here = given.num_reports > 0
    n = given.num_reports[here, np.newaxis]
    variances = given.noise(given.plausible(fit.fitted[here])) / n + fit.common
    z = float(special.ndtri(1 - FALSELY / variances.size))
    found = np.zeros(fit.kept.shape, dtype=bool)
    found[here] = fit.residuals[here] > z * np.sqrt(variances) + (z**2 - 1) / 6 * given.jump / n
    return found


def centre(cells: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """(C, k) less their mean over what is kept of each cohort; 0 elsewhere."""
    means = (cells * kept).sum(axis=1) / np.maximum(kept.sum(axis=1), 1)
    centred: np.ndarray = (cells - means[:, np.newaxis]) * kept
    return centred


def lengths(buckets: B, weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """(S,): sum_c w_c |J H_c e_s|^2 over the cells that are kept, J centring these, with one hash function."""
    left = np.maximum(kept.sum(axis=1), 1)
    return buckets.collect((weights * (1 - 1 / left))[:, np.newaxis] * kept)
