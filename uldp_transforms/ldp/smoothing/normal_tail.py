"""The normal distribution function in 32 bits: faster than an exact one, and accurate to 3 in 100,000."""

from __future__ import annotations

import numpy as np

_SCALE = np.float32(0.36)
_LOGARITHM = np.array([-1.94091944, 1.00854329, 0.29521119, 0.36904743, -0.63539031, 0.21034036], dtype=np.float32)
_LEAST = np.float32(-80)  # of exponents, so that nothing underflows


def normal_tail(x: np.ndarray) -> np.ndarray:
    """float32 probabilities that a standard normal variable is at most x, for float32 ``x``; down to 1e-36.

    With t = 1 / (1 + 0.36 |x|) the logarithm of the probability of -|x| is log t - x^2 / 2 plus a polynomial of t. Its
    six coefficients minimise the maximum error in |x| < 40; they were found by weighted least squares.
    """
    t = np.abs(x)
    t *= _SCALE
    t += np.float32(1)
    np.reciprocal(t, out=t)
    logarithm = t * _LOGARITHM[-1]
    for coefficient in _LOGARITHM[-2:0:-1]:
        logarithm += coefficient
        logarithm *= t
    logarithm += _LOGARITHM[0]
    square = x * x
    square *= np.float32(0.5)
    logarithm -= square
    np.maximum(logarithm, _LEAST, out=logarithm)
    tail: np.ndarray = np.exp(logarithm, out=logarithm)
    tail *= t
    tail -= x > 0
    np.abs(tail, out=tail)  # 1 - tail above 0
    return tail
