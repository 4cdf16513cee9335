"""Checks of arguments, shared by the functions of this package. The first argument is ``function.name``."""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.checks import is_number, require_int, require_number
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON, Mechanism

MAX_REPORTS = 1 << 62

LEAST_EPSILON = 1e-6
"""Smallest epsilon of a forecast: with smaller ones, 64-bit weights have no signal over many symbols."""


def require_epsilon(where: str, value: object) -> None:
    """Require an epsilon in the range that mechanisms accept."""
    ok = is_number(value) and 0 < value <= MAX_EPSILON
    require_number(where, value, f"a number in (0, {MAX_EPSILON:g}]", ok)


def require_signal(where: str, epsilon: float) -> None:
    """Require an epsilon that is large enough for forecasts of all mechanisms."""
    if not epsilon >= LEAST_EPSILON:
        raise SpecError(f"{where} must be at least {LEAST_EPSILON:f}, got {epsilon:g}")


def require_share(where: str, value: object) -> None:
    """Require a number in [0, 1]."""
    require_number(where, value, "a number in [0, 1]", is_number(value) and 0 <= value <= 1)


def require_reports(where: str, value: object) -> None:
    """Require a valid number of reports."""
    require_int(where, value, 1, MAX_REPORTS)


def require_distribution(where: str, values: np.ndarray, num_symbols: int | None = None) -> np.ndarray:
    """Require distributions along the last axis (to nine digits); returns (..., K) float64. None: any K."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or num_symbols not in (None, array.shape[-1]):
        wanted = "one or more" if num_symbols is None else num_symbols
        raise SpecError(f"{where} must have {wanted} entries along its last axis, got the shape {array.shape}")
    if not (array >= 0).all() or not np.allclose(array.sum(axis=-1), 1, rtol=0, atol=1e-9):
        raise SpecError(f"{where} must be non-negative shares that sum to 1, got other numbers")
    return array


def require_one_symbol(where: str, mechanism: Mechanism) -> None:
    """Require one symbol per value: with more, symbol frequencies do not form a distribution."""
    if mechanism.num_hashes > 1:
        raise SpecError(f"{where} must give every value one symbol, got {mechanism.num_hashes} hash functions")
