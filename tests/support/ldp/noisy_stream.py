"""Counts of windows whose shares are known."""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.smoothing import (
    Series,
)

SHARES = np.array([0.3, 0.2, 0.15, *([0.01] * 30), *([0.05 / 20] * 20)])


def noisy_stream(
    rng: np.random.Generator,
    *,
    windows: int = 60,
    n: int = 2000,
    noise: float = 2.0,
    drift: float = 0.0,
    nugget: float = 0.0,
    weekly: float = 0.0,
) -> tuple[Series, np.ndarray]:
    """A series, and the shares of the people of each window.

    Args:
        rng: of everything.
        windows: T.
        n: people of a window.
        noise: variance of one report.
        drift, nugget: q and w of the truth.
        weekly: size of a pattern of seven windows, relative to each share.
    """
    size = (windows, len(SHARES))
    trend = SHARES + np.cumsum(rng.normal(0, np.sqrt(drift * SHARES), size), axis=0)
    pattern = weekly * rng.choice([-1, 1], len(SHARES)) * np.isin(np.arange(windows) % 7, (5, 6))[:, np.newaxis]
    truth = np.maximum(trend * (1 + pattern) + rng.normal(0, np.sqrt(nugget * SHARES), size), 0)
    own = rng.multinomial(n, truth / truth.sum(axis=1, keepdims=True)) / n
    raw = own + rng.normal(0, np.sqrt(noise / n), size)
    series = Series(
        raw=raw,
        variances=(noise + own * (1 - own)) / n,
        common=np.zeros(size[1]),
        num_reports=np.full(windows, n),
        steps=np.ones(windows, dtype=np.int64),
    )
    return series, own
