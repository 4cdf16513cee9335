"""Estimates of values that some cohorts hash as prefixes and others as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from uldp_transforms.ldp.alphabets.alphabet import Part
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.solvers.hash_chance import Chance, ChanceOfMeans
from uldp_transforms.ldp.solvers.observation import OwnNoise, Solution

_EQUATIONS = 2
"""Minimum number of equations per unknown for an optional part to be included."""


def solve_parts(
    parts: Sequence[Part],
    counts: CohortCounts,
    num_buckets: int,
    summed: np.ndarray,
    solve: Callable[[Part, np.ndarray, int], Solution],
) -> Solution:
    """Unbiased frequencies of values, each from the parts in which it is hashed as a whole.

    Where only a prefix of a value is hashed, everybody whose value begins with it adds to the bucket, listed or not.
    There the prefix is an unknown, which separates these people from the estimates of others but carries no information
    about the value itself. Each part is centred and unbiased by itself, and parts are of different people. So the mean
    with the fixed weights n_part, over the parts in which the value is hashed as a whole, is unbiased, and variances
    add up.

    Args:
        parts: of S values; the last part hashes all of them as a whole.
        counts: of all cohorts.
        num_buckets: k.
        summed: (..., S), weights of sums of interest, such as True and False.
        solve: function that takes a part, weights (..., U) of its unknowns in the sums of interest, and k, and returns
            the solution.

    Raises:
        EstimationError: if the last part cannot be solved; other parts are skipped if they have too few equations.
    """
    shares = _shares(parts, counts, num_buckets)
    found = [
        (part, share, solve(part, _members(part, share * summed), num_buckets))
        for part, share in zip(parts, shares)
        if share.any()
    ]
    return _mean(found, summed.shape[-1])


def _members(part: Part, weights: np.ndarray) -> np.ndarray:
    """(..., U) weights of the unknowns of a part, from those of the values (..., S)."""
    rows = [np.bincount(part.member, row, len(part.values)) for row in np.atleast_2d(weights)]
    return np.array(rows).reshape(*weights.shape[:-1], len(part.values))


def _shares(parts: Sequence[Part], counts: CohortCounts, num_buckets: int) -> np.ndarray:
    """(P, S) weights of the parts in the estimate of each value; they sum to 1 over the parts."""
    sizes = np.array(
        [_reports(part, counts, num_buckets) for part in parts[:-1]] + [1.0 * _of(parts[-1], counts).sum()]
    )
    shares = np.array([part.whole * size for part, size in zip(parts, sizes)])
    shares[-1] = np.maximum(shares[-1], 1e-300)
    shares /= shares.sum(axis=0)
    return shares


def _mean(found: Sequence[tuple[Part, np.ndarray, Solution]], size: int) -> Solution:
    """Weighted mean of the solutions of parts, for ``size`` values."""
    frequencies, variances, jumps, common = np.zeros((4, size))
    own = {name: np.zeros(size) for name in ("null", "slope", "curvature", "least")}
    for part, share, solution in found:
        frequencies += share * solution.frequencies[part.member]
        variances += share**2 * solution.variances[part.member]
        jumps = np.maximum(jumps, share * solution.jump)
        if solution.common is not None:
            common += share**2 * solution.common[part.member]
        assert solution.own is not None, "open alphabets are centred"
        for name in own:
            own[name] += share**2 * getattr(solution.own, name)[part.member]
    solutions = [solution for _, _, solution in found]
    chances = [solution.chance for solution in solutions if isinstance(solution.chance, Chance)]
    shares_found = np.array([share for _, share, _ in found])
    return Solution(
        frequencies=frequencies,
        variances=variances,
        own=OwnNoise(**own),
        jump=jumps,
        counted=solutions[-1].counted,
        common=common,
        variance_of_sum=sum(solution.variance_of_sum for solution in solutions),
        common_of_sum=sum((one.common_of_sum for one in solutions if one.common_of_sum is not None), np.zeros(())),
        misfit=sum(solution.misfit for solution in solutions),
        degrees=sum(solution.degrees for solution in solutions),
        spare=solutions[-1].spare,
        chance=ChanceOfMeans(chances, shares_found) if len(chances) == len(found) else None,
    )


def _of(part: Part, counts: CohortCounts) -> np.ndarray:
    numbers: np.ndarray = counts.num_reports[part.cohorts]
    return numbers


def _reports(part: Part, counts: CohortCounts, num_buckets: int) -> float:
    """Number of reports of a part; 0 if it has too few equations for its unknowns."""
    numbers = _of(part, counts)
    enough = np.count_nonzero(numbers) * (num_buckets - 1) >= _EQUATIONS * len(part.values)
    return float(numbers.sum()) if enough else 0.0
