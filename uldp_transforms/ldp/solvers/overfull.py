"""Cells that heavy unlisted texts fill: which ones stand out from everything that was fitted, and doing without them.

A text that stands out in an empty cell may hide in a full one, which is noisier. Leaving out only what stands out
would then keep the text exactly where candidates are, and add it to them.

Letters as in ``observation``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from scipy import special

from uldp_transforms.ldp.solvers.observation import B, Observation

GAIN = 0.995
"""The error has to fall by more than half a per cent in a step, or it is the last."""

ROUNDS = 4
"""Rounds of leaving cells out."""

FALSELY = 0.05
"""Cells of all that are expected to be left out for noise alone."""

ENOUGH_COHORTS = 32
"""Cohorts with reports from which on a candidate can miss the cells of some."""

_ENOUGH_KEPT = 0.5  # of its weight that a candidate has to keep
_ENOUGH_SEEN = 0.5  # of the cohorts in which something has to stand out
_STEPS = 4  # towards the share of a text that is seen in part; it moves by less each time
_TINY = 1e-300


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


def leave_out(given: Observation[B], fit: F, again: Callable[[Observation[B], F, np.ndarray], F | None]) -> F:
    """Fit again without the cells that hold too much, as long as that makes the error smaller.

    Each round lowers the noise level, so that smaller heaps stand out in the next. A candidate that collides with a
    heavy text misses one cohort of many. With several hash functions, and in few cohorts, nothing is left out.

    Args:
        given: a centred observation of an open list.
        fit: to all cells.
        again: the observation, the last fit and cells to keep (C, k) -> a fit to these; None if there is none.
    """
    if given.buckets.num_hashes > 1 or np.count_nonzero(given.num_reports) < ENOUGH_COHORTS:
        return fit
    full, whole = 1 - 1 / given.buckets.num_buckets, fit
    for _ in range(ROUNDS):
        kept = fit.kept * ~overfull(given, fit)
        if (kept == fit.kept).all():
            break
        without = again(given, fit, kept)
        if without is None or without.error > GAIN * fit.error:
            break
        if lengths(given.buckets, without.weights, kept).min() < _ENOUGH_KEPT * full * without.weights.sum():
            break
        fit = without
    unseen = (given.num_reports > 0) & (fit.kept == whole.kept).all(axis=1)
    if fit is whole or not unseen.any():
        return fit
    if unseen.sum() > (1 - _ENOUGH_SEEN) * np.count_nonzero(given.num_reports):
        return whole
    rest = dataclasses.replace(given, inverted=given.inverted - hidden(given, fit, unseen))
    return again(rest, fit, fit.kept) or fit


def hidden(given: Observation[B], fit: F, unseen: np.ndarray) -> np.ndarray:
    """(C, k) what a text that stands out in the other cohorts probably adds to the cells of ``unseen`` ones, (C,).

    It is in one cell of each cohort, each as likely, with a normal content that is seen above the cell's limit. Its
    share is the one for which what is seen has the mean that was found (a truncated normal law).
    """
    here = given.num_reports > 0
    excess = given.inverted - fit.fitted
    excess = excess - ((excess * fit.kept).sum(axis=1) / np.maximum(fit.kept.sum(axis=1), 1))[:, np.newaxis]
    share = seen = float(excess[(fit.kept == 0) & here[:, np.newaxis]].mean())
    limits, variances = _limits(given, fit)
    for _ in range(_STEPS):
        spread = np.sqrt(variances + share * given.noise_law[1] / given.num_reports[here, np.newaxis])
        below = (limits - share) / spread
        densities = np.exp(-(below**2) / 2) / np.sqrt(2 * np.pi)
        share = max(seen - float((spread * densities).sum() / special.ndtr(-below).sum()), 0.0)
    chances = special.ndtr(below)
    added = np.zeros(fit.kept.shape)
    added[here] = share * chances / np.maximum(chances.sum(axis=1, keepdims=True), _TINY)
    added[~unseen] = 0
    return added


def overfull(given: Observation[B], fit: Fit) -> np.ndarray:
    """(C, k) bool: cells that hold more than was fitted, by more than noise does in any cell of nearly all windows.

    The quantile of a count's noise (Cornish and Fisher): z standard deviations, and (z^2 - 1) / 6 reports for its skew.
    """
    here = given.num_reports > 0
    found = np.zeros(fit.kept.shape, dtype=bool)
    found[here] = fit.residuals[here] > _limits(given, fit)[0]
    return found


def _limits(given: Observation[B], fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """What noise does not exceed in the cells of cohorts with reports, and its variances there; same shape."""
    here = given.num_reports > 0
    n = given.num_reports[here, np.newaxis]
    variances = given.noise(given.plausible(fit.fitted[here])) / n + fit.common
    z = float(special.ndtri(1 - FALSELY / variances.size))
    return z * np.sqrt(variances) + (z**2 - 1) / 6 * given.jump / n, variances


def centre(cells: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """(C, k) less their mean over what is kept of each cohort; 0 elsewhere."""
    means = (cells * kept).sum(axis=1) / np.maximum(kept.sum(axis=1), 1)
    centred: np.ndarray = (cells - means[:, np.newaxis]) * kept
    return centred


def lengths(buckets: B, weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """(S,): sum_c w_c |J H_c e_s|^2 over the cells that are kept, J centring these, with one hash function."""
    left = np.maximum(kept.sum(axis=1), 1)
    return buckets.collect((weights * (1 - 1 / left))[:, np.newaxis] * kept)
