"""The game of which the minimax loss is the value."""

from __future__ import annotations

import math

import numpy as np


def game(w: int, v: int, epsilon: float, share: float, sizes: np.ndarray) -> np.ndarray:
    """(v-1)/J1 + (w-v-1)/J2 + 1/J3 as printed, for rows of weights of the sizes 1..v and a share below 1."""
    gain, d = math.expm1(epsilon), np.arange(1, v + 1)
    plain, mixed = d * gain + v, share * d * gain + v
    j1 = v * gain**2 / (v - 1) * (sizes @ (d * (v - d) / (mixed * plain)))
    j2 = (w - v) * gain / (1 - share) * (sizes @ (d / plain))
    j3 = v * (w - v) * gain / (w * (1 - share)) * (sizes @ (d / mixed))
    return (v - 1) / j1 + (w - v - 1) / j2 + 1 / j3
