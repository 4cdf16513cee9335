"""Other ways to a distribution of numbers: EM without smoothing, k-ary randomized response, and a tree of these.

In the tree each person reports, with k-ary randomized response, the part that holds their bin at one of the levels,
which is drawn at random: of 4 parts, of 16, of 32.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from labs.experiments.numbers.published import em
from uldp_transforms.ldp.estimators.log_smooth import SCALES, Posterior, fit_scales, mixture, second_differences
from uldp_transforms.ldp.mechanisms import KaryRR, SquareWave

BRANCHES = 4
METHODS = ("sw, EM", "k-RR, EM", "k-RR, smooth", "tree of k-RR, EM", "tree of k-RR, smooth")


def estimates(
    shares: np.ndarray, epsilon: float, people: int, runs: int, rng: np.random.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    """Names of ``METHODS`` with (runs, K) estimated shares of bins, from reports of people with the shares (K,)."""
    for name, of in (("sw", wave), ("k-RR", krr), ("tree of k-RR", tree)):
        channel = of(len(shares), epsilon)
        cells = rng.multinomial(people, channel @ shares, size=runs)
        yield f"{name}, EM", em(channel, cells, epsilon)
        if of is not wave:
            yield f"{name}, smooth", np.array([smooth(channel, one) for one in cells])


def smooth(channel: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(K,): as ``fit_log_smooth``, for any channel (M, K)."""
    bins = channel.shape[1]
    every, inner = (second_differences(bins, bins, free) for free in (set(), {0, bins - 1}))
    return mixture(fit_scales(Posterior(channel, cells, inner, every[[0, -1]]), SCALES)).frequencies


@functools.cache
def wave(bins: int, epsilon: float) -> np.ndarray:
    """(M, K): the square wave with the published half width."""
    return SquareWave(num_symbols=bins, num_sensitive=bins, epsilon=epsilon).probabilities


@functools.cache
def krr(bins: int, epsilon: float) -> np.ndarray:
    """(K, K): k-ary randomized response."""
    return KaryRR(num_symbols=bins, num_sensitive=bins, epsilon=epsilon).response(np.eye(bins)).T


@functools.cache
def tree(bins: int, epsilon: float) -> np.ndarray:
    """(M, K): the levels below one another, each with the same chance."""
    sizes = [BRANCHES]
    while sizes[-1] < bins:
        sizes.append(min(sizes[-1] * BRANCHES, bins))
    parts = [krr(size, epsilon)[:, np.arange(bins) * size // bins] for size in sizes]
    return np.concatenate(parts) / len(sizes)
