"""Empirical Bayes for noisy frequencies: a prior on a grid, fitted to all of them, and the posteriors under it.

The noisy frequencies y_s have the means p_s and a known distribution. The p_s are drawn from a prior on a grid, of
which only an upper bound of the mean is known (Kiefer and Wolfowitz 1956; here the most likely prior within the bound).
Without the bound many small frequencies, each within the noise, would sum to far more than 1.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
from scipy import sparse, special

STEPS = 60  # of expectation maximisation; further ones change the means by less than a hundredth of the error
SMALL = 48  # grid points between 0 and the frequencies that stand out
LARGE = 4.0  # standard errors above which a frequency stands out from the noise and becomes an atom itself
_STEPS_UP = np.linspace(0, 1, SMALL)  # exponents of the ratio of the last to the first of them
APART = 0.5  # minimum distance of such atoms in standard errors: nearer ones cannot be distinguished
_REACH = 8.0  # standard errors: densities beyond this are below the precision of the weights
EXACT = 96  # maximum number of frequencies that are not binned; lists of up to this length are solved together
_BIN = 0.05  # standard errors: width of the bins; the binning error is of the order of its square
_DENSE = 16_384  # maximum size of a kernel for which products with the full matrix are faster than with the sparse one
TRIES = 60  # steps of Newton's method, which needs about five; bisection where it fails
SAME = 1e-14
NEAR = 1e-5  # last step of Newton's method, in distances to 0 or to the pole; its square is left
LEAST = 1e-300


@dataclasses.dataclass(frozen=True, eq=False)
class Noisy:
    """Unbiased estimates of S frequencies, and their distribution.

    If the frequency is g the variance is null + slope g - g^2 / trials. A binomial count of ``trials`` trials with
    success probability share + g / scale has exactly this variance for one share and one scale, and is used as the
    distribution; for estimates that depend on their own count alone it is exact. With infinitely many trials it is
    normal.

    Several lists may be stacked along leading axes, except for ``exponents`` and ``binned``.

    Attributes:
        estimates: (..., S).
        null: (..., S), not negative.
        slope: (..., S); above 0 where null is 0.
        trials: above 0, one number, (..., 1) or (..., S); infinity for the normal law.
    """

    estimates: np.ndarray
    null: np.ndarray
    slope: np.ndarray
    trials: Any

    def scaled(self, factor: float, trials: float | None = None) -> Noisy:
        """The same of frequencies in other units, and with other trials, if they are given."""
        given = self.trials if trials is None else float(trials)
        return Noisy(factor * self.estimates, factor**2 * self.null, factor * self.slope, given)

    @functools.cached_property
    def smallest(self) -> np.ndarray:
        """(S,) smallest difference from 0 that can be resolved: a standard error, and at least one success."""
        smallest: np.ndarray = np.maximum(np.sqrt(self.null), self.slope)
        return smallest

    @functools.cached_property
    def distances(self) -> np.ndarray:
        """(S,) distances of the estimates from 0, see ``far``."""
        return self.far(self.estimates)

    @functools.cached_property
    def stand_out(self) -> np.ndarray:
        """(S,) bool: whether the estimate is too large to be noise."""
        found: np.ndarray = self.distances > LARGE
        return found

    @functools.cached_property
    def outstanding(self) -> np.ndarray:
        """(L,) places of atoms for estimates that stand out: their means within each cell of ``APART``, ascending."""
        out = self.stand_out
        cell = np.unique(np.floor(self.distances[out] / APART), return_inverse=True)[1]
        places: np.ndarray = np.bincount(cell, self.estimates[out]) / np.bincount(cell)
        return places

    @property
    def law(self) -> np.ndarray:
        """(S,) variances if the estimates were the frequencies."""
        return self.variances(np.maximum(self.estimates, 0))

    def far(self, frequencies: np.ndarray) -> np.ndarray:
        """(S,) distances of frequencies from 0 in standard errors, each with the standard error at its own place."""
        there = np.maximum(self.null + self.slope * np.maximum(frequencies, 0), 0)
        distances: np.ndarray = 2 * frequencies / np.maximum(np.sqrt(there) + np.sqrt(self.null), LEAST)
        return distances

    def at(self, distance: float | np.ndarray) -> np.ndarray:
        """(S,) frequencies at this distance from 0."""
        frequencies: np.ndarray = distance * np.sqrt(self.null) + distance**2 * self.slope / 4
        return frequencies

    def variances(self, frequencies: np.ndarray) -> np.ndarray:
        """(S,) variances of the estimates if these are the true frequencies."""
        variances = self.null + self.slope * frequencies - frequencies**2 / self.trials
        possible: np.ndarray = np.maximum(variances, LEAST)
        return possible

    def reach(self, nearest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(S,) ends of the range of frequencies with non-negligible likelihood if the estimates were ``nearest``."""
        square = _REACH**2
        spread, centre = 1 + square / self.trials, nearest + square * self.slope / 2
        half = np.sqrt(np.maximum(centre**2 - spread * (nearest**2 - square * self.smallest**2), 0))
        return (centre - half) / spread, (centre + half) / spread

    @property
    def binomial(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(S,) scale, share and number of successes of the binomial distributions."""
        n = self.trials
        scale = np.sqrt((self.slope * n) ** 2 + 4 * self.null * n)
        share = (1 - self.slope * n / scale) / 2
        return scale, share, np.clip(n * (share + self.estimates / scale), 0, n)

    def exponents(self, rows: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        """Log-likelihoods of frequencies for the estimates in these rows, up to a constant for each estimate."""
        if np.isinf(self.trials).all():
            normal: np.ndarray = -((self.estimates[rows] - frequencies) ** 2) / (2 * self.null[rows])
            return normal
        scale, share, successes = (law[rows] for law in self.binomial)
        return binomial_logs(successes, self.trials_of(rows), share + frequencies / scale)

    def trials_of(self, chosen: np.ndarray) -> Any:
        """The trials of some of S estimates; one number if it is that of all."""
        return self.trials[chosen] if np.ndim(self.trials) else np.asarray(self.trials)

    def binned(self) -> tuple[Noisy, np.ndarray, np.ndarray | None]:
        """Binned estimates, the size (P,) of each bin, and the bin of each estimate (S,) (None: no binning)."""
        if len(self.estimates) <= EXACT:
            return self, np.ones(len(self.estimates)), None
        kinds = [np.round(np.log(np.maximum(law, LEAST)) / (2 * _BIN)) for law in (self.null, self.slope)]
        keys = np.stack([np.floor(self.distances / _BIN), *kinds])
        numbers = np.zeros(len(self.estimates), dtype=np.int64)
        for key in keys:
            levels, level = np.unique(key, return_inverse=True)
            numbers = np.unique(numbers * len(levels) + level, return_inverse=True)[1]
        counts = np.bincount(numbers).astype(np.float64)
        columns = (self.estimates, self.null, self.slope, *([self.trials] if np.ndim(self.trials) else []))
        estimates, null, slope, *trials = (np.bincount(numbers, column) / counts for column in columns)
        return Noisy(estimates, null, slope, trials[0] if trials else self.trials), counts, numbers


def binomial_logs(successes: np.ndarray, trials: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Log-likelihoods of success probabilities, up to a constant for each number of successes."""
    rates = np.clip(rates, LEAST, 1 - 1e-16)
    logs: np.ndarray = successes * np.log(rates) + (trials - successes) * np.log1p(-rates)
    return logs


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """The fitted prior and the resulting posterior moments.

    Attributes:
        means, variances: (S,) of the posteriors.
        fitted: sum over all frequencies of the derivatives of the posterior means by the noisy frequencies, the fit of
            the prior included: the effective number of parameters, between 0 and S.
        atoms, weights: (A,) the prior.
    """

    means: np.ndarray
    variances: np.ndarray
    fitted: float
    atoms: np.ndarray
    weights: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Prior:
    """The most likely prior, and the estimates to which it was fitted.

    Attributes:
        noisy: all S estimates.
        points, counts, member: the binned estimates, see ``Noisy.binned``.
        atoms, weights: (A,).
        placed: (A,) bool, atoms at the places of estimates that stand out.
        kernel: (P, A) likelihoods.
        bound: upper bound of the mean; one of the atoms.
        trust: weight of the posterior mean for estimates that stand out, from 0 to 1; the remaining weight is that of a
            locally flat prior.
    """

    noisy: Noisy
    points: Noisy
    counts: np.ndarray
    member: np.ndarray | None
    atoms: np.ndarray
    weights: np.ndarray
    placed: np.ndarray
    kernel: sparse.csr_array
    bound: float
    trust: float = 1.0

    @functools.cached_property
    def responsible(self) -> sparse.csr_array:
        """(P, A) posterior probability of each atom at each point."""
        starts = self.kernel.indptr[:-1]
        with np.errstate(divide="ignore"):
            logs = np.log(self.kernel.data) + np.log(self.weights)[self.kernel.indices]
        lengths = np.diff(self.kernel.indptr)
        joint = np.exp(logs - np.repeat(np.maximum.reduceat(logs, starts), lengths))
        joint /= np.repeat(np.add.reduceat(joint, starts), lengths)
        return sparse.csr_array((joint, self.kernel.indices, self.kernel.indptr), shape=self.kernel.shape)

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Posterior means and variances (P,) of the points."""
        means = self.responsible @ self.atoms
        variances = np.maximum(self.responsible @ self.atoms**2 - means**2, 0)
        if self.trust == 1:
            return means, variances
        trust, out, law = self.trust, self.points.stand_out, self.points.law
        mixed = trust * means + (1 - trust) * self.points.estimates
        highest = float(self.points.far(means)[~out].max(initial=0))  # largest of the others, whose order is kept
        mixed = np.maximum(mixed, self.points.at(highest))
        return np.where(out, mixed, means), np.where(out, trust * variances + (1 - trust) * law, variances)

    def used_up(self) -> np.ndarray:
        """(P,) effective number of parameters of each posterior mean, 0 to 1, including the placing of atoms."""
        responsible = self.responsible
        slopes = np.minimum(self.moments()[1] / self.points.law, 1)
        members = np.maximum(responsible.T @ self.counts, 1.0)
        placing = responsible @ np.where(self.placed, 1 / members, 0.0)
        used: np.ndarray = slopes + (1 - slopes) * np.minimum(placing, 1)
        return used

    def means(self) -> np.ndarray:
        """(S,) posterior means; linear inside a bin, with the ratio of posterior to noise variance as slope."""
        means, variances = self.moments()
        if self.member is None:
            return means
        slopes = np.minimum(variances / self.points.variances(means), 1)
        near = means[self.member] + (self.noisy.estimates - self.points.estimates[self.member]) * slopes[self.member]
        positive: np.ndarray = np.maximum(near, 0)
        return positive

    @property
    def alike(self) -> float:
        """Posterior probability that all frequencies equal the bound, against frequencies drawn from this prior.

        Both hypotheses have prior probability 1/2. A fitted prior alone always finds some differences in the noise.
        """
        equal = np.zeros(len(self.atoms))
        equal[np.searchsorted(self.atoms, self.bound)] = 1
        logs = [np.log(np.maximum(self.kernel @ weights, LEAST)) for weights in (self.weights, equal)]
        return float(special.expit(self.counts @ (logs[1] - logs[0])))

    def means_given_the_sum(self) -> np.ndarray:
        """(S,) posterior means, given that the frequencies sum to S times the bound."""
        means: np.ndarray = self.means() + self.alike * (self.bound - self.means())
        return means


def posterior(noisy: np.ndarray, error: float, bound: float) -> Posterior:
    """Posterior means and variances of normal estimates (S,) with the same standard error, above 0."""
    alike = np.ones(len(noisy))
    prior = fit_prior(Noisy(noisy, error**2 * alike, 0 * alike, np.inf), bound)
    _, variances = prior.moments()
    fitted = float(prior.counts @ prior.used_up())
    if prior.member is not None:
        variances = variances[prior.member]
    return Posterior(prior.means(), variances, fitted, prior.atoms, prior.weights)


def fit_prior(noisy: Noisy, bound: float) -> Prior:
    """The most likely prior whose mean is at most ``bound``.

    Args:
        noisy: unbiased frequencies and their distribution.
        bound: upper bound of the prior mean, above 0, such as 1 / S.
    """
    points, counts, member = noisy.binned()
    atoms, placed = _grid(points, bound)
    kernel = _kernel(points, atoms)
    weights = _most_likely(kernel, counts / counts.sum(), atoms, bound)
    return Prior(noisy, points, counts, member, atoms, weights, placed, kernel, bound)


def checked(prior: Prior) -> Prior:
    """The prior, with its ``trust`` set to the shrinkage of estimates that stand out with the least estimated error.

    Atoms are placed at estimates. If n estimates have led to A atoms, the prior has 2 A - 1 parameters: A places and A
    - 1 weights. Estimates shrunk by the share t towards their posterior means have the squared error n - 2 t (n -
    parameters) + t^2 (n - A), in units of the noise, if the number of parameters were fixed in advance (Stein 1981).
    The minimum is at t = (n - parameters) / (n - A). The rule favours the prior by the uncertainty sqrt(2 n) of n,
    since few values cannot decide.
    """
    out = prior.points.stand_out
    if not out.any():
        return prior
    num = float(prior.counts[out].sum())
    atoms = float(prior.counts[out] @ prior.used_up()[out])
    trust = (num + np.sqrt(2 * num) - max(2 * atoms - 1, 0)) / max(num - atoms, LEAST)
    trusted = dataclasses.replace(prior, trust=float(np.clip(trust, 0, 1)))
    vars(trusted)["responsible"] = prior.responsible  # cached: it does not depend on the trust
    return trusted


def _grid(points: Noisy, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """Atoms in ascending order; and a mask of those placed at estimates that stand out."""
    atoms = np.concatenate([[0.0], small_atoms(points, bound), [bound], points.outstanding])
    placed = np.arange(len(atoms)) >= SMALL + 2
    order = np.argsort(atoms, kind="stable")
    return atoms[order], placed[order]


def small_atoms(points: Noisy, bound: float | np.ndarray) -> np.ndarray:
    """(..., SMALL) atoms from far below the noise to above it, in a geometric sequence; the bound may be (..., 1)."""
    smallest = points.smallest
    least = np.minimum(0.05 * smallest.min(axis=-1, keepdims=True), 0.3 * bound)
    atoms: np.ndarray = least * (5 * smallest.max(axis=-1, keepdims=True) / least) ** _STEPS_UP
    return atoms


def _kernel(points: Noisy, atoms: np.ndarray) -> sparse.csr_array:
    """(P, A) likelihoods of atoms, up to a factor for each point; 0 where the atom is negligible.

    A point outside the range of all atoms, a large negative one, is assigned to the nearest atom: 0.
    """
    low, high = points.reach(np.clip(points.estimates, atoms[0], atoms[-1]))
    first = np.minimum(np.searchsorted(atoms, low, "left"), len(atoms) - 1)
    last = np.maximum(np.searchsorted(atoms, high, "right"), first + 1)
    lengths = last - first
    starts = np.append(0, np.cumsum(lengths))
    columns = np.arange(starts[-1]) - np.repeat(starts[:-1] - first, lengths)
    exponents = points.exponents(np.repeat(np.arange(len(lengths)), lengths), atoms[columns])
    exponents -= np.repeat(np.maximum.reduceat(exponents, starts[:-1]), lengths)
    return sparse.csr_array((np.exp(exponents), columns, starts), shape=(len(lengths), len(atoms)))


def _most_likely(kernel: sparse.csr_array, shares: np.ndarray, atoms: np.ndarray, bound: float) -> np.ndarray:
    whole: Any = kernel.toarray() if math.prod(kernel.shape) <= _DENSE else kernel
    transposed = whole.T if isinstance(whole, np.ndarray) else sparse.csr_array(whole.T)
    return most_likely(whole, transposed, shares, np.full(len(atoms), 1 / len(atoms)), atoms - bound, bound)


def most_likely(
    kernel: Any, transposed: Any, shares: np.ndarray, weights: np.ndarray, above: np.ndarray, bound: float
) -> np.ndarray:
    """Weights (A,) of the prior, by expectation maximisation; each step begins with the level of the one before.

    Args:
        kernel, transposed: (P, A) and (A, P) likelihoods, dense or sparse.
        shares: (P,) of the points, with sum 1.
        weights: (A,) at the beginning.
        above: (A,) atoms less the bound.
        bound: above 0.
    """
    level = 0.0
    for _ in range(STEPS):
        joint = weights * transposed.dot(shares / kernel.dot(weights))
        weights, level = _within(joint, above, 1 / bound, level)
    return weights


def bounded_weights(shares: np.ndarray, atoms: np.ndarray, bound: float) -> np.ndarray:
    """The weights w with the largest sum_j N_j ln w_j and a mean of at most ``bound``.

    They are w_j = N_j / (1 + level (g_j - bound)), with level 0 if the mean of the shares is within the bound, else the
    unique level in (0, 1 / bound] for which sum_j w_j g_j = bound; the atom 0 receives the remaining weight.

    Args:
        shares: (A,) N_j, not negative, with sum 1.
        atoms: (A,) g_j: 0, then above 0.
        bound: above 0.
    """
    return _within(shares, atoms - bound, 1 / bound, 0.0)[0]


def _within(shares: np.ndarray, above: np.ndarray, most: float, level: float) -> tuple[np.ndarray, float]:
    """``bounded_weights`` and their level, at most ``most``, which is searched from ``level``."""
    if not shares.dot(above) > 0:
        return shares, 0.0
    level = _level(shares, above, most, level)
    weights = np.empty(len(shares))
    others = np.divide(shares[1:], 1 + level * above[1:], out=weights[1:])
    weights[0] = max(1 - float(others.sum()), 0.0)
    return weights, level


def _level(shares: np.ndarray, above: np.ndarray, most: float, level: float) -> float:
    """The level of shares with a mean above the bound, by Newton's method."""
    low, high = 0.0, most
    for _ in range(TRIES):
        terms = above / (1 + level * above)
        weighted = shares * terms
        excess = float(shares.dot(terms))
        low, high = (level, high) if excess > 0 else (low, level)
        step = level + excess / float(weighted.dot(terms))
        if abs(step - level) <= SAME * level or high - low <= SAME * high:
            break
        is_near = abs(step - level) <= NEAR * min(level, most - level)
        level = step if low < step < high else (low + high) / 2
        if is_near:
            break
    return level
