"""The published decoder of the square wave: expectation maximisation with smoothing.

Source: Li, Wang, Li, Lopuhaä-Zwakenberg and Škorić 2020, section 5.5: after each step of EM every frequency is replaced
by the binomial average (1, 2, 1) / 4 of itself and its neighbours; the iteration ends when the log-likelihood changes
by less than 0.001.
"""

from __future__ import annotations

import numpy as np

TOLERANCE = 1e-3
MOST_STEPS = 10_000


def em_with_smoothing(channel: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(K,) shares.

    Args:
        channel: (M, K), probability of each output under each bin.
        cells: (M,) counts.
    """
    shares = np.full(channel.shape[1], 1 / channel.shape[1])
    expected, before = channel @ shares, -np.inf
    for _ in range(MOST_STEPS):
        shares = _averaged(shares * (channel.T @ (cells / expected)))
        expected = channel @ shares
        likelihood = float(cells @ np.log(expected))
        if abs(likelihood - before) < TOLERANCE:
            break
        before = likelihood
    return shares


def _averaged(shares: np.ndarray) -> np.ndarray:
    """Binomial averages of three neighbours, of two at the ends, scaled to sum to 1."""
    averages = np.convolve(shares, np.array([1, 2, 1]) / 4, "same")
    averages[[0, -1]] *= 4 / 3
    smooth: np.ndarray = averages / averages.sum()
    return smooth
