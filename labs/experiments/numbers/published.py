"""The published decoders of the square wave: expectation maximisation, with and without smoothing.

Source: Li, Wang, Li, Lopuhaä-Zwakenberg and Škorić 2020, section 5.5. With smoothing, after each step of EM every
frequency is replaced by the binomial average (1, 2, 1) / 4 of itself and its neighbours, and the iteration ends when
the log-likelihood changes by less than 0.001. Without it, it ends at e^epsilon times this.
"""

from __future__ import annotations

import numpy as np

TOLERANCE = 1e-3
MOST_STEPS = 10_000


def em_with_smoothing(channel: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """(R, K) shares.

    Args:
        channel: (M, K), probability of each output under each bin.
        cells: (R, M) counts of R runs.
    """
    return _iterated(channel, cells, TOLERANCE, smooth=True)


def em(channel: np.ndarray, cells: np.ndarray, epsilon: float) -> np.ndarray:
    """(R, K) shares without smoothing, for arguments as above."""
    return _iterated(channel, cells, TOLERANCE * np.exp(epsilon), smooth=False)


def _iterated(channel: np.ndarray, cells: np.ndarray, tolerance: float, smooth: bool) -> np.ndarray:
    """The shares of each run at the step after which its log-likelihood changes by less than the tolerance."""
    found = np.full((len(cells), channel.shape[1]), 1 / channel.shape[1])
    running, before = np.arange(len(cells)), np.full(len(cells), -np.inf)
    expected = found @ channel.T
    for _ in range(MOST_STEPS):
        shares = found[running] * ((cells[running] / expected) @ channel)
        shares = _averaged(shares) if smooth else shares / shares.sum(axis=1, keepdims=True)
        expected = shares @ channel.T
        likelihood = (cells[running] * np.log(expected)).sum(axis=1)
        found[running] = shares
        goes_on = np.abs(likelihood - before) >= tolerance
        running, expected, before = running[goes_on], expected[goes_on], likelihood[goes_on]
        if not len(running):
            break
    return found


def _averaged(shares: np.ndarray) -> np.ndarray:
    """(R, K): binomial averages of three neighbours, of two at the ends, scaled to sum to 1."""
    averages = shares / 2
    averages[:, 1:] += shares[:, :-1] / 4
    averages[:, :-1] += shares[:, 1:] / 4
    averages[:, [0, -1]] *= 4 / 3
    smooth: np.ndarray = averages / averages.sum(axis=1, keepdims=True)
    return smooth
