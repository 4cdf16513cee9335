"""Long lists over hashed symbols: approximate message passing with a prior that is fitted on the way.

Letters as in ``observation``. No matrix is formed: a step is one pass over the table of buckets in each direction.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import special

from uldp_transforms.ldp.estimators.empirical_bayes import posterior
from uldp_transforms.ldp.estimators.observation import (
    Observation,
    Solution,
    common_noise,
    own_noise,
    residual_law,
)
from uldp_transforms.ldp.estimators.packed import PackedBuckets

_MOST_STEPS = 12
_GAIN = 0.995  # the error has to fall by more than half a per cent in a step, or it is the last
_ROUNDS = 4  # of leaving cells out
_FALSELY = 0.05  # cells of all that are expected to be left out for noise alone
_ENOUGH_COHORTS = 32  # from which on a candidate can miss the cells of some
_ENOUGH_KEPT = 0.5  # of its weight that a candidate has to keep


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class _State:
    """A step: the estimates it gives, and what they were made from.

    Attributes:
        kept: (C, k) 1 for cells that are used, 0 for those that are left out, of cohorts without reports all.
        believed: (S,) frequencies that were taken from the cells of the others.
        fitted: (C, k) their bucket frequencies.
        residuals: (C, k) what is left, with the memory term; 0 where nothing is kept.
        raw: (S,) unbiased frequencies.
        error: their mean standard error without what own people add.
        weights: (C,) 1 / tau_c, 0 in cohorts without reports.
        common: the part of tau_c that does not fall with reports: collisions and unlisted values.
        lengths: (S,) or (1,), sum_c w_c |J H_c e_s|^2 over the cells that are kept.
    """

    kept: np.ndarray
    believed: np.ndarray
    fitted: np.ndarray
    residuals: np.ndarray
    raw: np.ndarray
    error: float
    weights: np.ndarray
    common: float
    lengths: np.ndarray


def pass_messages(given: Observation[PackedBuckets], summed: np.ndarray) -> Solution:
    """Unbiased frequencies of many unknowns, more than there are equations if need be.

    Each step takes from every cell what the other unknowns are believed to have put into it, so that what collisions
    add is the uncertainty of these beliefs and no longer their size. The memory term keeps the residual from knowing
    the noise that the beliefs have already used, and so the estimates unbiased and their error readable from it.

    A heavy unlisted text fills one bucket of every cohort. Cells that hold far more than all beliefs and noise explain
    are left out, which costs each candidate that collides there one cohort of many.

    Args:
        given: a centred observation of an open list.
        summed: (S,) bool, the unknowns whose sum is of interest.

    Source: Donoho, Maleki and Montanari 2009; Bayati and Montanari 2011. A noise level for each cohort, the fitted
    prior, the cells that are left out and the variances are derived in docs/estimation.md.
    """
    buckets, here = given.buckets, given.num_reports > 0
    kept = np.repeat(here[:, np.newaxis], buckets.num_buckets, axis=1).astype(np.float64)
    zeros = np.zeros_like(kept)
    state = _converge(given, kept, np.zeros(buckets.num_unknowns), zeros, zeros)
    if buckets.num_hashes > 1 or np.count_nonzero(here) < _ENOUGH_COHORTS:
        return _solution(given, state, summed)
    for _ in range(_ROUNDS):
        kept = state.kept * ~_overfull(given, state)
        if (kept == state.kept).all():
            break
        memory = state.residuals - _centre(given.inverted - state.fitted, state.kept)
        without = _converge(given, kept, state.believed, state.fitted, memory)
        share = float(without.lengths.min() / buckets.lengths(without.weights)[0])
        if share < _ENOUGH_KEPT or without.error > _GAIN * state.error:
            break
        state = without
    return _solution(given, state, summed)


def _centre(cells: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """(C, k) less their mean over what is kept of each cohort; 0 elsewhere."""
    means = (cells * kept).sum(axis=1) / np.maximum(kept.sum(axis=1), 1)
    centred: np.ndarray = (cells - means[:, np.newaxis]) * kept
    return centred


def _converge(
    given: Observation[PackedBuckets],
    kept: np.ndarray,
    believed: np.ndarray,
    fitted: np.ndarray,
    memory: np.ndarray,
) -> _State:
    """Steps until the error no longer falls; the best one."""
    buckets = given.buckets
    rho = buckets.mean_length / (buckets.num_buckets - 1)
    bound = max(given.mass, 1e-12) / max(buckets.num_hashes * buckets.num_unknowns, 1)
    best: _State | None = None
    for _ in range(_MOST_STEPS):
        state = _step(given, kept, believed, fitted, _centre(given.inverted - fitted + memory, kept))
        before, best = best, state if best is None or state.error < best.error else best
        if before is not None and state.error > _GAIN * before.error:
            break
        belief = posterior(state.raw, state.error, bound)
        believed = belief.means
        fitted = buckets.forward(believed)
        memory = (rho * belief.fitted * state.error**2 * state.weights)[:, np.newaxis] * state.residuals
    assert best is not None
    return best


def _step(
    given: Observation[PackedBuckets], kept: np.ndarray, believed: np.ndarray, fitted: np.ndarray, residuals: np.ndarray
) -> _State:
    """Estimates (S,) from beliefs (S,), their bucket frequencies (C, k) and residuals (C, k) with memory."""
    buckets, here = given.buckets, given.num_reports > 0
    shares = given.plausible(fitted[here])
    privacy, _ = residual_law(given, shares, given.noise(shares))
    known = privacy / given.num_reports[here]
    free = float(np.maximum(kept[here].sum(axis=1) - 1, 0).sum())
    common = common_noise((residuals[here] ** 2).sum(axis=1), free, known)
    weights = np.zeros(len(here))
    weights[here] = 1 / (known + common)
    lengths = _lengths(buckets, weights, kept)
    raw = believed + buckets.collect(weights[:, np.newaxis] * residuals) / lengths
    return _State(
        kept=kept,
        believed=believed,
        fitted=fitted,
        residuals=residuals,
        raw=raw,
        error=float(np.mean(lengths) ** -0.5),
        weights=weights,
        common=common,
        lengths=lengths,
    )


def _lengths(buckets: PackedBuckets, weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """(S,) or (1,): sum_c w_c |J H_c e_s|^2 over the cells that are kept, J centring these."""
    left = kept.sum(axis=1)
    if (left[weights > 0] == buckets.num_buckets).all():
        return buckets.lengths(weights)
    return buckets.collect((weights * (1 - 1 / np.maximum(left, 1)))[:, np.newaxis] * kept)


def _overfull(given: Observation[PackedBuckets], state: _State) -> np.ndarray:
    """(C, k) bool: cells that hold more than the beliefs, by more than noise does in any cell of nearly all windows.

    The quantile of a count's noise (Cornish and Fisher): z standard deviations, and (z^2 - 1) / 6 reports for its skew.
    """
    here = given.num_reports > 0
    n = given.num_reports[here, np.newaxis]
    variances = given.noise(given.plausible(state.fitted[here])) / n + state.common
    z = float(special.ndtri(1 - _FALSELY / variances.size))
    overfull = np.zeros(state.kept.shape, dtype=bool)
    overfull[here] = state.residuals[here] > z * np.sqrt(variances) + (z**2 - 1) / 6 * given.jump / n
    return overfull


def _solution(given: Observation[PackedBuckets], state: _State, summed: np.ndarray) -> Solution:
    """Variances: the noise of each unknown's own buckets, which are fuller where a heavy value is, and the common one.

    With weights l_c = w_c J H_c e_s / lengths the estimate has the variance
    sum_c l_c^T (diag D_c - P_c P_c^T) l_c / n_c + common |l_c|^2.
    """
    buckets, here, kept = given.buckets, given.num_reports > 0, state.kept
    k, b, n = buckets.num_buckets, buckets.mean_buckets, given.num_reports[here]
    shares = given.plausible(state.fitted[here])
    noise, deviations = given.noise(shares), given.centre(shares)
    weights, squares = state.weights[here], state.weights[here] ** 2 / n
    cells = np.zeros_like(state.fitted)
    cells[here] = squares[:, np.newaxis] * (noise * (1 - 2 * b / k) - deviations**2) * kept[here]
    everywhere = float(squares @ (noise * kept[here]).sum(axis=1)) * (b / k) ** 2
    variances = buckets.collect(cells) + everywhere + state.common * _lengths(buckets, state.weights**2, kept)
    thinned = np.sqrt(np.maximum(buckets.lengths(state.weights) / state.lengths, 1))  # by cells that are left out
    own = own_noise(given, weights, n, np.broadcast_to(thinned, buckets.num_unknowns), b)
    own = own.through(state.believed, variances / state.lengths**2)
    heaps = _centre(buckets.forward(summed / state.lengths), kept)[here]
    of_sum = squares @ ((heaps**2 * noise).sum(axis=1) - (heaps * deviations).sum(axis=1) ** 2)
    of_sum += state.common * (weights**2 @ (heaps**2).sum(axis=1))
    jump = given.jump * float(np.sqrt(squares.sum() / n.sum()) / weights.sum())
    return Solution(
        frequencies=state.raw,
        variances=own.at(np.maximum(state.raw, 0)) + jump**2,
        own=own,
        jump=jump,
        counted=given.counted,
        variance_of_sum=float(of_sum),
        misfit=0.0,
        degrees=0.0,
        spare=float(len(n) * (k - 1)),
        common=state.common * buckets.lengths(state.weights**2) / state.lengths**2 + np.zeros(buckets.num_unknowns),
    )
