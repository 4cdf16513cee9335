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
    most_likely,
    small_atoms,
)

SHORT = EXACT
"""Maximum length of a list that is solved together with others; longer lists are binned, and solved one by one."""

_FEW = 7  # number of lists up to which one after the other is faster
_ROUND = 8  # numbers of atoms are rounded up to a multiple of this, so that more lists have the same shape
_LOWEST = -500.0  # logarithm of the least likelihood: products of it stay normal in floating point, thus fast
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
    return -(-(SMALL + 2 + len(noisy.outstanding)) // _ROUND) * _ROUND


def _solve(lists: Sequence[Frequencies], num_atoms: int) -> np.ndarray:
    """(W, S) posterior means of W lists with the same rounded number of atoms."""
    noisy, bound = _stacked([one.noisy for one in lists]), np.array([[one.bound] for one in lists])
    places = [one.noisy.outstanding for one in lists]
    atoms = _atoms(noisy, bound, places, num_atoms)
    number, column = np.array([[SMALL + 2 + len(each)] for each in places]), np.arange(num_atoms)
    kernel, real = _kernel(noisy, atoms), column < number
    weights = _most_likely(kernel, real / number, atoms - bound, bound)
    of_prior = _times(kernel, weights)
    means = _trusted_means(noisy, kernel, weights, of_prior, atoms, real & (column >= SMALL + 2))
    sums_up = np.array([[one.sums_up] for one in lists])
    if sums_up.any():
        logs = np.log(np.maximum(kernel[..., SMALL + 1], LEAST)) - np.log(np.maximum(of_prior, LEAST))
        alike = special.expit(logs.sum(axis=1, keepdims=True))
        means = np.where(sums_up, means + alike * (bound - means), means)
    return means


def _stacked(lists: Sequence[Noisy]) -> Noisy:
    """Lists of S estimates as one of (W, S)."""
    size, names = len(lists[0].estimates), ("estimates", "null", "slope")
    estimates, null, slope = (np.array([getattr(one, name) for one in lists]) for name in names)
    stacked = Noisy(estimates, null, slope, np.array([np.full(size, one.trials) for one in lists]))
    vars(stacked)["stand_out"] = np.array([one.stand_out for one in lists])  # cached: they know it already
    return stacked


def _atoms(noisy: Noisy, bound: np.ndarray, places: Sequence[np.ndarray], num_atoms: int) -> np.ndarray:
    """(W, A) atoms: 0, small ones, the bound, the places of estimates that stand out, then the bound again."""
    large = np.repeat(bound, num_atoms - SMALL - 2, axis=1)
    for row, own in zip(large, places):
        row[: len(own)] = own
    return np.concatenate([np.zeros_like(bound), small_atoms(noisy, bound), bound, large], axis=1)


def _kernel(noisy: Noisy, atoms: np.ndarray) -> np.ndarray:
    """(W, S, A) likelihoods of atoms, 1 for the most likely one of each estimate; negligible above its reach."""
    _, high = noisy.reach(np.clip(noisy.estimates, 0, atoms.max(axis=1, keepdims=True)))
    each, (*law, successes) = atoms[:, np.newaxis], noisy.binomial
    scale, share = (_one_if_equal(part)[..., np.newaxis] for part in law)
    logs = binomial_logs(successes[..., np.newaxis], noisy.trials[..., np.newaxis], share + each / scale)
    logs = np.where(each <= high[..., np.newaxis], logs, -np.inf)
    kernel: np.ndarray = np.exp(np.maximum(logs - logs.max(axis=2, keepdims=True), _LOWEST))
    return kernel


def _times(kernel: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(W, S) products of (W, S, A) and (W, A)."""
    products: np.ndarray = np.matmul(kernel, vectors[..., np.newaxis])[..., 0]
    return products


def _one_if_equal(law: np.ndarray) -> np.ndarray:
    """(W, 1) if all entries of each row of (W, S) are equal, so that functions of them are computed once."""
    return law[:, :1] if (law == law[:, :1]).all() else law


def _most_likely(kernel: np.ndarray, weights: np.ndarray, above: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """(W, A) weights of the priors, by the steps of ``fitted_prior.most_likely``.

    Args:
        kernel: (W, S, A).
        weights: (W, A) at the beginning; 0 where there is no atom.
        above: (W, A) atoms less the bound.
        bound: (W, 1).
    """
    level, share, transposed = np.zeros_like(bound), 1 / kernel.shape[1], np.ascontiguousarray(kernel.swapaxes(1, 2))
    if len(kernel) <= _FEW:
        shares = np.full(kernel.shape[1], share)
        each = zip(kernel, transposed, weights, above, bound[:, 0].tolist())
        return np.array([most_likely(one, turned, shares, *rest) for one, turned, *rest in each])
    for _ in range(STEPS):
        joint = weights * _times(transposed, share / _times(kernel, weights))
        level = _levels(joint, above, 1 / bound, level)
        others = joint[:, 1:] / (1 + level * above[:, 1:])
        zero = np.where(level > 0, np.maximum(1 - others.sum(axis=1, keepdims=True), 0), joint[:, :1])
        weights = np.concatenate([zero, others], axis=1)
    return weights


def _levels(shares: np.ndarray, above: np.ndarray, most: np.ndarray, level: np.ndarray) -> np.ndarray:
    """(W, 1) levels of ``bounded_weights``, by Newton's method from ``level``; each list stops by itself."""
    exceeds = np.vecdot(shares, above)[:, np.newaxis] > 0
    low, high, unfinished = np.zeros_like(most), most, exceeds
    for _ in range(TRIES):
        terms = above / (1 + level * above)
        weighted = shares * terms
        excess = np.vecdot(shares, terms)[:, np.newaxis]
        low, high = np.where(excess > 0, level, low), np.where(excess > 0, high, level)
        step = level + excess / np.vecdot(weighted, terms)[:, np.newaxis]
        moved = np.abs(step - level)
        unfinished = unfinished & (moved > SAME * level) & (high - low > SAME * high)
        far = unfinished & (moved > NEAR * np.minimum(level, most - level))
        level = np.where(unfinished, np.where((low < step) & (step < high), step, (low + high) / 2), level)
        unfinished = far
        if not unfinished.any():
            break
    return np.where(exceeds, level, 0.0)


def _trusted_means(
    noisy: Noisy, kernel: np.ndarray, weights: np.ndarray, of_prior: np.ndarray, atoms: np.ndarray, placed: np.ndarray
) -> np.ndarray:
    """(W, S) posterior means with the shrinkage of ``fitted_prior.checked``; ``of_prior`` is kernel times weights."""
    means: np.ndarray = _times(kernel, weights * atoms) / of_prior
    variances = np.maximum(_times(kernel, weights * atoms**2) / of_prior - means**2, 0)
    out = noisy.stand_out
    slopes = np.minimum(variances / noisy.law, 1)
    members = np.maximum(weights * _times(kernel.swapaxes(1, 2), 1 / of_prior), 1.0)
    placing = _times(kernel, np.where(placed, weights / members, 0.0)) / of_prior
    used = slopes + (1 - slopes) * np.minimum(placing, 1)
    num, parameters = out.sum(axis=1, keepdims=True), np.where(out, used, 0.0).sum(axis=1, keepdims=True)
    trust = (num + np.sqrt(2 * num) - np.maximum(2 * parameters - 1, 0)) / np.maximum(num - parameters, LEAST)
    trust = np.where(num > 0, np.clip(trust, 0, 1), 1.0)
    highest = np.where(out, 0.0, noisy.far(means)).max(axis=1, keepdims=True, initial=0)
    mixed = np.maximum(trust * means + (1 - trust) * noisy.estimates, noisy.at(highest))
    trusted: np.ndarray = np.where(out & (trust < 1), mixed, means)
    return trusted
