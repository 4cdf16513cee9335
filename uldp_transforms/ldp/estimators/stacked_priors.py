"""Posterior means of many short lists of frequencies, each under a prior of its own: all lists of one shape at once.

The result of a list is the same, bit for bit, whichever lists are solved with it, so that rows do not depend on how an
engine forms its bundles. ``fitted_prior`` defines the priors.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from scipy import special

from uldp_transforms.ldp.solvers.fitted_prior import (
    APART,
    EXACT,
    LEAST,
    NEAR,
    SAME,
    SMALL,
    STEPS,
    TRIES,
    Noisy,
    binomial_logs,
    checked,
    fit_prior,
    level_of,
)

SHORT = EXACT
"""Maximum length of a list that is solved together with others; longer lists are binned, and solved one by one."""

_FEW = 3  # number of lists up to which one after the other is faster
_ROUND = 8  # numbers of atoms are rounded up to a multiple of this, so that more lists have the same shape
_TOGETHER = 131_072  # maximum size of the kernels that are solved at once: they fit into the cache


@dataclasses.dataclass(frozen=True, eq=False)
class Frequencies:
    """One list of frequencies to estimate.

    Attributes:
        noisy: the S unbiased estimates and their distribution, binomial.
        bound: upper bound of the mean of the prior, above 0.
        sums_up: whether the frequencies sum to S times the bound, see ``Prior.means_given_the_sum``.
    """

    noisy: Noisy
    bound: float
    sums_up: bool


def posterior_means(lists: Sequence[Frequencies]) -> list[np.ndarray]:
    """The posterior means (S,) of each list, under priors that are fitted and ``checked``."""
    means: list[np.ndarray] = [np.zeros(0)] * len(lists)
    shapes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, one in enumerate(lists):
        size = len(one.noisy.estimates)
        if size > SHORT:
            prior = checked(fit_prior(one.noisy, one.bound))
            means[place] = prior.means_given_the_sum() if one.sums_up else prior.means()
        else:
            shapes[size, _num_atoms(one.noisy)].append(place)
    for (size, atoms), places in shapes.items():
        step = max(_TOGETHER // (size * atoms), 1)
        for begin in range(0, len(places), step):
            chosen = places[begin : begin + step]
            for place, solved in zip(chosen, _solve([lists[place] for place in chosen], atoms)):
                means[place] = solved
    return means


def _num_atoms(noisy: Noisy) -> int:
    """Number of atoms of the prior, rounded up."""
    cells = np.floor(noisy.distances[noisy.stand_out] / APART)
    return -(-(SMALL + 2 + len(set(cells.tolist()))) // _ROUND) * _ROUND


def _solve(lists: Sequence[Frequencies], num_atoms: int) -> np.ndarray:
    """(W, S) posterior means of W lists with the same rounded number of atoms."""
    estimates, null, slope = (
        np.stack([getattr(one.noisy, name) for one in lists]) for name in ("estimates", "null", "slope")
    )
    trials = np.stack([np.broadcast_to(one.noisy.trials, null.shape[1:]) for one in lists])
    noisy = Noisy(estimates, null, slope, trials)
    bound = np.array([[one.bound] for one in lists])
    atoms, placed = _grid(noisy, bound, num_atoms)
    exponents, real = _exponents(noisy, atoms), np.isfinite(atoms)
    atoms, kernel = np.where(real, atoms, 0.0), np.exp(exponents)
    weights = _most_likely(kernel, real, np.where(real, atoms - bound, 0.0), bound)
    means = _trusted_means(noisy, exponents, weights, atoms, placed)
    sums_up = np.array([[one.sums_up] for one in lists])
    if sums_up.any():
        equal = np.take_along_axis(kernel, np.argmax(atoms == bound, axis=1)[:, np.newaxis, np.newaxis], 2)[..., 0]
        of_prior = np.matmul(kernel, weights[..., np.newaxis])[..., 0]
        logs = np.log(np.maximum(equal, LEAST)) - np.log(np.maximum(of_prior, LEAST))
        alike = special.expit(logs.sum(axis=1, keepdims=True))
        means = np.where(sums_up, means + alike * (bound - means), means)
    return means


def _grid(noisy: Noisy, bound: np.ndarray, num_atoms: int) -> tuple[np.ndarray, np.ndarray]:
    """(W, A) atoms in ascending order, then infinity; and a mask of those placed at estimates that stand out."""
    smallest, distances, above = noisy.smallest, noisy.distances, noisy.stand_out
    least = np.minimum(0.05 * smallest.min(axis=1), 0.3 * bound[:, 0])
    small = np.geomspace(least, 5 * smallest.max(axis=1), SMALL, axis=1)
    owner = np.nonzero(above)[0]
    cells = np.floor(distances[above] / APART)
    num_cells = cells.max(initial=0) + 1
    keys, member, counts = np.unique(owner * num_cells + cells, return_inverse=True, return_counts=True)
    owners = (keys // num_cells).astype(np.int64)
    large = np.full((len(bound), num_atoms - SMALL - 2), np.inf)
    rank = np.arange(len(owners)) - np.searchsorted(owners, owners)
    large[owners, rank] = np.bincount(member, noisy.estimates[above], len(owners)) / counts
    atoms = np.concatenate([np.zeros_like(bound), small, bound, large], axis=1)
    order = np.argsort(atoms, axis=1, kind="stable")
    atoms = np.take_along_axis(atoms, order, 1)
    return atoms, (order >= SMALL + 2) & np.isfinite(atoms)


def _exponents(noisy: Noisy, atoms: np.ndarray) -> np.ndarray:
    """(W, S, A) log-likelihoods of atoms, 0 for the best of each estimate; minus infinity where negligible."""
    num_atoms = np.isfinite(atoms).sum(axis=1, keepdims=True)
    highest = np.take_along_axis(atoms, num_atoms - 1, 1)
    low, high = noisy.reach(np.clip(noisy.estimates, atoms[:, :1], highest))
    each = atoms[:, np.newaxis, :]
    first = np.minimum((each < low[..., np.newaxis]).sum(axis=2), num_atoms - 1)
    last = np.maximum((each <= high[..., np.newaxis]).sum(axis=2), first + 1)
    column = np.arange(atoms.shape[1])
    used = (column >= first[..., np.newaxis]) & (column < last[..., np.newaxis])
    *law, successes = noisy.binomial
    scale, share = (_one_if_equal(part)[..., np.newaxis] for part in law)
    rates = share + np.where(np.isfinite(each), each, 0.0) / scale
    logs = binomial_logs(successes[..., np.newaxis], noisy.trials[..., np.newaxis], rates)
    exponents = np.where(used, logs, -np.inf)
    exponents -= exponents.max(axis=2, keepdims=True)
    return exponents


def _one_if_equal(law: np.ndarray) -> np.ndarray:
    """(W, 1) if all entries of each row of (W, S) are equal, so that functions of them are computed once."""
    return law[:, :1] if (law == law[:, :1]).all() else law


def _most_likely(kernel: np.ndarray, real: np.ndarray, above: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """(W, A) weights of the priors, by expectation maximisation; each step begins with the level of the one before.

    Args:
        kernel: (W, S, A).
        real: (W, A) bool, whether the entry is an atom.
        above: (W, A) atoms less the bound; 0 where there is no atom.
        bound: (W, 1).
    """
    if len(kernel) <= _FEW:
        return np.stack([_most_likely_alone(*one) for one in zip(kernel, real, above, bound[:, 0].tolist())])
    weights: np.ndarray = real / real.sum(axis=1, keepdims=True)
    level, share, transposed = np.zeros_like(bound), 1 / kernel.shape[1], np.ascontiguousarray(kernel.swapaxes(1, 2))
    for _ in range(STEPS):
        ratios = share / np.matmul(kernel, weights[..., np.newaxis])
        joint = weights * np.matmul(transposed, ratios)[..., 0]
        level = _levels(joint, above, 1 / bound, level)
        weights = joint / (1 + level * above)
        weights[:, :1] = np.where(level > 0, np.maximum(1 - weights[:, 1:].sum(axis=1, keepdims=True), 0), joint[:, :1])
    return weights


def _most_likely_alone(kernel: np.ndarray, real: np.ndarray, above: np.ndarray, bound: float) -> np.ndarray:
    """The same operations for one list, (S, A), (A,), (A,) -> (A,), with numbers instead of arrays of length 1."""
    weights: np.ndarray = real / real.sum()
    level, shares, transposed = 0.0, np.full(len(kernel), 1 / len(kernel)), np.ascontiguousarray(kernel.T)
    for _ in range(STEPS):
        joint = weights * transposed.dot(shares / kernel.dot(weights))
        level = level_of(joint, above, 1 / bound, level)
        weights = joint / (1 + level * above) if level else joint
        if level:
            weights[0] = max(1 - float(weights[1:].sum()), 0.0)
    return weights


def _levels(shares: np.ndarray, above: np.ndarray, most: np.ndarray, level: np.ndarray) -> np.ndarray:
    """(W, 1) levels of ``bounded_weights``, by Newton's method from ``level``; each list stops by itself."""
    exceeds = np.vecdot(shares, above)[:, np.newaxis] > 0
    low, high, unfinished = np.zeros_like(most), most, exceeds
    for _ in range(TRIES):
        terms = above / (1 + level * above)
        weighted = shares * terms
        excess = weighted.sum(axis=1, keepdims=True)
        low, high = np.where(excess > 0, level, low), np.where(excess > 0, high, level)
        step = level + excess / (weighted * terms).sum(axis=1, keepdims=True)
        moved = np.abs(step - level)
        unfinished = unfinished & (moved > SAME * level) & (high - low > SAME * high)
        far = unfinished & (moved > NEAR * np.minimum(level, most - level))
        level = np.where(unfinished, np.where((low < step) & (step < high), step, (low + high) / 2), level)
        unfinished = far
        if not unfinished.any():
            break
    return np.where(exceeds, level, 0.0)


def _trusted_means(
    noisy: Noisy, exponents: np.ndarray, weights: np.ndarray, atoms: np.ndarray, placed: np.ndarray
) -> np.ndarray:
    """(W, S) posterior means with the shrinkage of ``fitted_prior.checked``."""
    with np.errstate(divide="ignore"):
        logs = exponents + np.log(weights)[:, np.newaxis]
    responsible = np.exp(logs - logs.max(axis=2, keepdims=True))
    responsible /= responsible.sum(axis=2, keepdims=True)
    moments = np.matmul(responsible, np.stack([atoms, atoms**2], axis=2))
    means: np.ndarray = moments[..., 0]
    out = noisy.stand_out
    slopes = np.minimum(np.maximum(moments[..., 1] - means**2, 0) / noisy.law, 1)
    members = np.maximum(np.ascontiguousarray(responsible.swapaxes(1, 2)).sum(axis=2), 1.0)
    placing = np.matmul(responsible, np.where(placed, 1 / members, 0.0)[..., np.newaxis])[..., 0]
    used = slopes + (1 - slopes) * np.minimum(placing, 1)
    num, parameters = out.sum(axis=1, keepdims=True), np.where(out, used, 0.0).sum(axis=1, keepdims=True)
    trust = (num + np.sqrt(2 * num) - np.maximum(2 * parameters - 1, 0)) / np.maximum(num - parameters, LEAST)
    trust = np.where(num > 0, np.clip(trust, 0, 1), 1.0)
    highest = np.where(out, 0.0, noisy.far(means)).max(axis=1, keepdims=True, initial=0)
    mixed = np.maximum(trust * means + (1 - trust) * noisy.estimates, noisy.at(highest))
    trusted: np.ndarray = np.where(out & (trust < 1), mixed, means)
    return trusted
