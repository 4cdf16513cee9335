"""Detection and exclusion of cells that are filled by frequent unlisted texts.

A text that stands out in an empty cell may be hidden in a full one, which is noisier. Excluding only the cells that
stand out would keep the text in exactly those cells that candidates fill, and add it to their estimates.

For the notation see ``observation``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np
from scipy import special

from uldp_transforms.ldp.solvers.observation import B, Observation

GAIN = 0.995
"""Relative decrease of the error (half a per cent) below which the iteration stops."""

ROUNDS = 4
"""Number of rounds in which cells are excluded."""

FALSELY = 0.05
"""Expected number of cells that are excluded falsely, because of noise alone."""

ENOUGH_COHORTS = 32
"""Minimum number of reporting cohorts for which a candidate may lose some of its cells."""

_ENOUGH_KEPT = 0.5  # minimum share of its weight that a candidate keeps
_ENOUGH_SEEN = 0.5  # minimum share of cohorts in which a cell stands out
_STEPS = 4  # iterations for the share of a partly observed text; each moves it by less
_TINY = 1e-300


class Fit(Protocol):
    """A fit to the cells that are in use."""

    @property
    def kept(self) -> np.ndarray:
        """(C, k) 1 for cells in use, 0 for excluded ones, among them all cells of cohorts without reports."""

    @property
    def fitted(self) -> np.ndarray:
        """(C, k) fitted bucket frequencies."""

    @property
    def residuals(self) -> np.ndarray:
        """(C, k) residuals; 0 in excluded cells."""

    @property
    def weights(self) -> np.ndarray:
        """(C,) weights of the cohorts."""

    @property
    def common(self) -> float:
        """The part of a cell's variance that does not decrease with the number of reports."""

    @property
    def error(self) -> float:
        """The mean standard error of the unknowns, without the sampling noise of their own holders."""


F = TypeVar("F", bound=Fit)


def leave_out(given: Observation[B], fit: F, again: Callable[[Observation[B], F, np.ndarray], F | None]) -> F:
    """Fit again without overfull cells as long as that decreases the error.

    Each round lowers the noise level, so that smaller excesses stand out in the next. A candidate that collides with a
    frequent text loses one cohort of many. With several hash functions, or in few cohorts, no cells are excluded.

    Args:
        given: a centred observation of an open list.
        fit: the fit to all cells.
        again: function that takes the observation, the last fit and a mask (C, k) of cells, and returns a fit to these
            cells, or None if there is none.
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
    """(C, k) probable contribution of a text that stands out in the other cohorts to the cells of ``unseen`` ones,
    (C,).

    The text is in one cell of each cohort, with equal probabilities, and has a normally distributed content that is
    observed if it exceeds the cell's limit. Its share is chosen so that the expected observed content equals the mean
    of the observed contents (a truncated normal distribution).
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
    """(C, k) bool: cells that exceed the fit by more than noise does in any cell of nearly all windows.

    Quantile of the noise of a count (Cornish and Fisher): z standard deviations, and (z^2 - 1) / 6 reports for its
    skew.
    """
    here = given.num_reports > 0
    found = np.zeros(fit.kept.shape, dtype=bool)
    found[here] = fit.residuals[here] > _limits(given, fit)[0]
    return found


def _limits(given: Observation[B], fit: Fit) -> tuple[np.ndarray, np.ndarray]:
    """Upper limits of the noise in the cells of cohorts with reports, and its variances there; same shape."""
    here = given.num_reports > 0
    n = given.num_reports[here, np.newaxis]
    variances = given.noise(given.plausible(fit.fitted[here])) / n + fit.common
    z = float(special.ndtri(1 - FALSELY / variances.size))
    return z * np.sqrt(variances) + (z**2 - 1) / 6 * given.jump / n, variances


def centre(cells: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """(C, k) cells less the mean over the cells in use of each cohort; 0 in excluded cells."""
    means = (cells * kept).sum(axis=1) / np.maximum(kept.sum(axis=1), 1)
    centred: np.ndarray = (cells - means[:, np.newaxis]) * kept
    return centred


def lengths(buckets: B, weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """(S,): sum_c w_c |J H_c e_s|^2 over the cells in use; J centres over these; for one hash function."""
    left = np.maximum(kept.sum(axis=1), 1)
    return buckets.collect((weights * (1 - 1 / left))[:, np.newaxis] * kept)
