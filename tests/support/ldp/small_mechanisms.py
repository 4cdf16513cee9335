"""Mechanisms by name and size, and shares that fall as in language."""

from __future__ import annotations

from typing import Any

import numpy as np

from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism

SIX_DIGITS = 5.1e-6
"""Relative: golden numbers have six significant digits."""


def make(name: str, num_symbols: int, num_sensitive: int, **fields: Any) -> Mechanism:
    return MECHANISMS[name](num_symbols=num_symbols, num_sensitive=num_sensitive, **fields)


def zipf(size: int) -> np.ndarray:
    p = 1 / np.arange(1, size + 1)
    return p / p.sum()
