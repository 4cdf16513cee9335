"""A series of shares that drift, and scores of what is said of them."""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.smoothing import (
    Series,
)

SHARES = np.array([0.3, 0.2, 0.15, *([0.01] * 30), *([0.05 / 20] * 20)])


def a_series(
    rng: np.random.Generator,
    shares: np.ndarray,
    *,
    n: int = 2000,
    noise: float = 2.0,
    phases: bool = False,
) -> tuple[Series, np.ndarray]:
    """Windows of n people that draw from (T, S) shares, with normal noise; and the shares of these people."""
    own = rng.multinomial(n, shares) / n
    series = Series(
        raw=own + rng.normal(0, np.sqrt(noise / n), own.shape),
        variances=(noise + own * (1 - own)) / n,
        common=np.zeros(own.shape[1]),
        num_reports=np.full(len(own), n),
        steps=np.ones(len(own), dtype=np.int64),
        phases=np.arange(len(own)) % 7 if phases else None,
    )
    return series, own


def normalised(shares: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.maximum(shares, 0) / np.maximum(shares, 0).sum(axis=-1, keepdims=True)
    return found


def drifting(rng: np.random.Generator, windows: int = 60, drift: float = 0.0, nugget: float = 0.0) -> np.ndarray:
    size = (windows, len(SHARES))
    trend = SHARES + np.cumsum(rng.normal(0, np.sqrt(drift * SHARES), size), axis=0)
    return normalised(trend + rng.normal(0, np.sqrt(nugget * SHARES), size))


def scores(series: Series, drift: np.ndarray, nugget: np.ndarray, value: int) -> tuple[np.ndarray, np.ndarray]:
    """(T, T) inverse covariance of what one value's windows say, and (T,) that times what they say."""
    law = series.law()
    walk = np.cumsum(series.steps * drift[value] + np.eye(1, len(series.raw))[0])
    covariance = np.minimum.outer(walk, walk) + np.diag(law.noise[:, value] + law.people[:, value] + nugget[value])
    inverse = np.linalg.inv(covariance)
    return inverse, inverse @ series.raw[:, value]
