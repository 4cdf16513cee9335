"""Which frequencies are likely, given noisy ones: a prior that is fitted to all of them, and the posteriors under it.

The noisy frequencies y_s are normal with means p_s and one standard error. The p_s are drawn from a prior on a grid, of
which nothing is known but that its mean is at most a bound (Kiefer and Wolfowitz 1956; here the most likely prior
within the bound). Without the bound many small frequencies, each within the noise, would sum to far more than 1.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import sparse

_STEPS = 60  # of expectation maximisation; more change the posterior means by less than a hundredth of the error
_SMALL = 48  # points of the grid between 0 and where values stand out
_LARGE = 4.0  # standard errors above which a frequency stands out from noise, and is itself a likely one
_APART = 0.5  # standard errors between such frequencies: nearer ones cannot be told apart
_REACH = 8.0  # standard errors: normal densities beyond are below the precision of the weights
_EXACT = 2048  # frequencies up to which none are put together
_BIN = 0.05  # standard errors: width of the bins beyond; the error is of the order of its square
_BISECTIONS = 50


@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """The fitted prior and what follows for each frequency.

    Attributes:
        means, variances: (S,) of the posteriors.
        fitted: sum over all frequencies of the derivatives of the means by the noisy frequencies, the fit of the prior
            included: how many free parameters the means have used up, between 0 and S.
        atoms, weights: (A,) the prior.
    """

    means: np.ndarray
    variances: np.ndarray
    fitted: float
    atoms: np.ndarray
    weights: np.ndarray


def posterior(noisy: np.ndarray, error: float, bound: float) -> Posterior:
    """Posterior means and variances under the most likely prior whose mean is at most ``bound``.

    Args:
        noisy: (S,) unbiased frequencies.
        error: their standard error, above 0.
        bound: above 0, such as 1 / S.
    """
    points, counts, member = _binned(noisy, error)
    atoms, placed = _grid(points, error, bound)
    kernel = _kernel(points, atoms, error)
    weights, responsible = _most_likely(kernel, counts / counts.sum(), atoms, bound)
    means = responsible @ atoms
    variances = np.maximum(responsible @ atoms**2 - means**2, 0)
    members = np.maximum(responsible.T @ counts, 1.0)
    placing = responsible @ np.where(placed, 1 / members, 0.0)
    slopes = np.minimum(variances / error**2, 1)
    slopes += (1 - slopes) * np.minimum(placing, 1)
    fitted = float(counts @ slopes)
    if member is None:
        return Posterior(means, variances, fitted, atoms, weights)
    near = means[member] + (noisy - points[member]) * (variances / error**2)[member]  # the derivative is the slope
    return Posterior(np.maximum(near, 0), variances[member], fitted, atoms, weights)


def _binned(noisy: np.ndarray, error: float) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Points, how many frequencies each stands for, and which is that of each frequency (None: its own)."""
    if len(noisy) <= _EXACT:
        return noisy, np.ones(len(noisy)), None
    bins = np.floor(noisy / (_BIN * error)).astype(np.int64)
    _, member, counts = np.unique(bins, return_inverse=True, return_counts=True)
    return np.bincount(member, noisy) / counts, counts.astype(np.float64), member


def _grid(points: np.ndarray, error: float, bound: float) -> tuple[np.ndarray, np.ndarray]:
    """Atoms in ascending order; and which of them were placed where frequencies stand out."""
    small = np.geomspace(min(0.05 * error, 0.3 * bound), 5 * error, _SMALL)
    large = points[points > _LARGE * error]
    cells = np.floor(large / (_APART * error)).astype(np.int64)
    _, member, counts = np.unique(cells, return_inverse=True, return_counts=True)
    large = np.bincount(member, large) / counts if len(large) else large
    atoms = np.concatenate([[0.0], small, [bound], large])
    placed = np.arange(len(atoms)) >= len(atoms) - len(large)
    order = np.argsort(atoms, kind="stable")
    return atoms[order], placed[order]


def _kernel(points: np.ndarray, atoms: np.ndarray, error: float) -> sparse.csr_array:
    """(Y, A) normal densities of points under atoms, up to a factor for each point; 0 where an atom is out of reach.

    A point that no atom reaches, a large negative one, is given to the nearest: 0.
    """
    nearest = np.clip(points, atoms[0], atoms[-1])
    first = np.searchsorted(atoms, nearest - _REACH * error, "left")
    last = np.maximum(np.searchsorted(atoms, nearest + _REACH * error, "right"), first + 1)
    lengths = last - first
    starts = np.append(0, np.cumsum(lengths))
    columns = np.arange(starts[-1]) - np.repeat(starts[:-1] - first, lengths)
    distances = (np.repeat(points, lengths) - atoms[columns]) / error
    exponents = -(distances**2) / 2
    exponents -= np.repeat(np.maximum.reduceat(exponents, starts[:-1]), lengths)
    return sparse.csr_array((np.exp(exponents), columns, starts), shape=(len(points), len(atoms)))


def _most_likely(
    kernel: sparse.csr_array, shares: np.ndarray, atoms: np.ndarray, bound: float
) -> tuple[np.ndarray, sparse.csr_array]:
    """Weights (A,) of the prior, by expectation maximisation, and how responsible each atom is for each point."""
    weights = np.full(len(atoms), 1 / len(atoms))
    transposed = sparse.csr_array(kernel.T)
    for _ in range(_STEPS):
        weights = bounded_weights(weights * (transposed @ (shares / (kernel @ weights))), atoms, bound)
    rows = np.repeat(kernel @ weights, np.diff(kernel.indptr))
    data = kernel.data * weights[kernel.indices] / rows
    return weights, sparse.csr_array((data, kernel.indices, kernel.indptr), shape=kernel.shape)


def bounded_weights(shares: np.ndarray, atoms: np.ndarray, bound: float) -> np.ndarray:
    """The weights w with the largest sum_j N_j ln w_j whose mean is at most a bound.

    They are w_j = N_j / (1 + level (g_j - bound)), with level 0 if the mean of the shares is within the bound, else
    the one level in (0, 1 / bound] for which sum_j w_j g_j = bound; what that leaves over is the weight of 0.

    Args:
        shares: (A,) N_j, not negative, with sum 1.
        atoms: (A,) g_j: 0, then above 0.
        bound: above 0.
    """
    above = atoms - bound
    if shares @ above <= 0:
        return shares
    low, high = 0.0, 1 / bound
    for _ in range(_BISECTIONS):
        level = (low + high) / 2
        if shares @ (above / (1 + level * above)) > 0:
            low = level
        else:
            high = level
    weights: np.ndarray = np.append(0.0, shares[1:] / (1 + high * above[1:]))
    weights[0] = max(1 - weights.sum(), 0.0)
    return weights
