"""Long lists over hashed symbols: approximate message passing with a prior that is fitted during the iteration.

For the notation see ``observation``. No matrix is formed: a step is one pass over the table of buckets per direction.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.solvers.fitted_prior import posterior
from uldp_transforms.ldp.solvers.hash_chance import Chance
from uldp_transforms.ldp.solvers.observation import Observation, Solution, common_noise, own_noise, residual_law
from uldp_transforms.ldp.solvers.overfull import GAIN, centre, leave_out, lengths
from uldp_transforms.ldp.solvers.packed import PackedBuckets

_MOST_STEPS = 12


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class _State:
    """One step of the iteration: its estimates and their inputs.

    Attributes:
        kept: (C, k) 1 for cells in use, 0 for excluded ones, among them all cells of cohorts without reports.
        believed: (S,) current posterior means, whose contributions were subtracted from the cells.
        fitted: (C, k) their bucket frequencies.
        residuals: (C, k) remainder, with the memory (Onsager) term; 0 in excluded cells.
        raw: (S,) unbiased frequencies.
        error: their mean standard error without the sampling noise of the unknowns' own holders.
        weights: (C,) 1 / tau_c, 0 in cohorts without reports.
        common: the part of tau_c that does not decrease with reports: collisions and unlisted values.
        lengths: (S,) or (1,), sum_c w_c |J H_c e_s|^2 over the cells in use.
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
    """Unbiased frequencies of many unknowns, even of more unknowns than equations.

    Each step subtracts from every cell the believed contributions of the other unknowns, so that the noise from
    collisions depends on the uncertainty of these beliefs and no longer on their size. The memory term removes the
    correlation between the residual and the noise in the beliefs, which keeps the estimates unbiased and makes their
    error observable.

    Cells that a frequent unlisted text fills are excluded, see ``overfull``. A complete list has no such texts, and the
    differences between its buckets say nothing about the sum of the unknowns: each receives an equal part of what the
    known sum lacks.

    Args:
        given: a centred observation.
        summed: (..., S), weights of sums of interest, such as True and False.

    Source: Donoho, Maleki and Montanari 2009; Bayati and Montanari 2011. docs/estimation.md derives the noise level of
    each cohort, the fitted prior, the excluded cells and the variances.
    """
    buckets, here = given.buckets, given.num_reports > 0
    kept = np.repeat(here[:, np.newaxis], buckets.num_buckets, axis=1).astype(np.float64)
    zeros = np.zeros_like(kept)
    state = _converge(given, kept, np.zeros(buckets.num_unknowns), zeros, zeros)

    def again(rest: Observation[PackedBuckets], last: _State, kept: np.ndarray) -> _State:
        memory = last.residuals - centre(given.inverted - last.fitted, last.kept)
        return _converge(rest, kept, last.believed, last.fitted, memory)

    return _solution(given, _with_sum(given, state) if given.complete else leave_out(given, state, again), summed)


def _with_sum(given: Observation[PackedBuckets], state: _State) -> _State:
    """The state with estimates of a complete list that sum to the known total."""
    return dataclasses.replace(state, raw=state.raw + (given.total - state.raw.sum()) / len(state.raw))


def _converge(
    given: Observation[PackedBuckets],
    kept: np.ndarray,
    believed: np.ndarray,
    fitted: np.ndarray,
    memory: np.ndarray,
) -> _State:
    """Iterate until the error no longer decreases; returns the best step."""
    buckets = given.buckets
    rho = buckets.mean_length / (buckets.num_buckets - 1)
    bound = max(given.mass, 1e-12) / max(buckets.num_hashes * buckets.num_unknowns, 1)
    best: _State | None = None
    for _ in range(_MOST_STEPS):
        state = _step(given, kept, believed, fitted, centre(given.inverted - fitted + memory, kept))
        before, best = best, state if best is None or state.error < best.error else best
        if before is not None and state.error > GAIN * before.error:
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
    own = _lengths(buckets, weights, kept)
    raw = believed + buckets.collect(weights[:, np.newaxis] * residuals) / own
    return _State(
        kept=kept,
        believed=believed,
        fitted=fitted,
        residuals=residuals,
        raw=raw,
        error=float(np.mean(own) ** -0.5),
        weights=weights,
        common=common,
        lengths=own,
    )


def _lengths(buckets: PackedBuckets, weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """(S,) or (1,): sum_c w_c |J H_c e_s|^2 over the cells in use; J centres over these."""
    left = kept.sum(axis=1)
    if (left[weights > 0] == buckets.num_buckets).all():
        return buckets.lengths(weights)
    return lengths(buckets, weights, kept)


def _solution(given: Observation[PackedBuckets], state: _State, summed: np.ndarray) -> Solution:
    """Variances: the noise of each unknown's own buckets, larger in buckets of frequent values, and the common noise.

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
    thinned = np.sqrt(np.maximum(buckets.lengths(state.weights) / state.lengths, 1))  # effect of excluded cells
    own = own_noise(given, weights, n, np.broadcast_to(thinned, buckets.num_unknowns), b)
    share = 1 / buckets.num_unknowns  # of the total
    variances = variances / state.lengths**2 + given.variance_of_total(share, state.believed)
    own = own.through(state.believed, variances)
    rows = np.atleast_2d(summed).astype(np.float64)
    of_total = rows.mean(axis=-1)
    moved = rows - of_total[:, np.newaxis] if given.complete else rows
    of_sum, common_of_sum = np.zeros((2, len(rows)))
    for at, row in enumerate(moved / state.lengths):
        heaps = centre(buckets.forward(row), kept)[here]
        common_of_sum[at] = state.common * (weights**2 @ (heaps**2).sum(axis=1))
        of_sum[at] = squares @ ((heaps**2 * noise).sum(axis=1) - (heaps * deviations).sum(axis=1) ** 2)
    of_sum += given.variance_of_total(of_total, rows @ state.believed)
    shape = summed.shape[:-1]
    jump = given.jump * float(np.sqrt(squares.sum() / n.sum()) / weights.sum())
    return Solution(
        frequencies=state.raw,
        variances=own.at(np.maximum(state.raw, 0)) + jump**2,
        own=own,
        jump=jump,
        counted=given.counted,
        variance_of_sum=(of_sum + common_of_sum).reshape(shape),
        misfit=0.0,
        degrees=0.0,
        spare=float(len(n) * (k - 1)),
        common_of_sum=common_of_sum.reshape(shape),
        common=state.common * buckets.lengths(state.weights**2) / state.lengths**2 + np.zeros(buckets.num_unknowns),
        chance=None if given.complete else _chance(state),
    )


def _chance(state: _State) -> Chance:
    """Contribution of cells to the estimate of an unknown with randomly drawn buckets."""
    return Chance(state.weights[:, np.newaxis] * state.residuals / state.lengths.mean(), least=state.error)
