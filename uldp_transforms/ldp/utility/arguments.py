"""Checks of arguments that several functions of this package share. The first argument of each is ``function.name``."""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.checks import is_number, require_int, require_number
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON, Mechanism

MAX_REPORTS = 1 << 62


def require_epsilon(where: str, value: object) -> None:
    """A number in the range that mechanisms take."""
    ok = is_number(value) and 0 < value <= MAX_EPSILON  # type: ignore[operator]  # a number
    require_number(where, value, f"a number in (0, {MAX_EPSILON:g}]", ok)


def require_share(where: str, value: object) -> None:
    """A number in [0, 1]."""
    require_number(where, value, "a number in [0, 1]", is_number(value) and 0 <= value <= 1)  # type: ignore[operator]


def require_reports(where: str, value: object) -> None:
    """A number of reports."""
    require_int(where, value, 1, MAX_REPORTS)


def require_distribution(where: str, values: np.ndarray, num_symbols: int | None = None) -> np.ndarray:
    """(..., K) float64, if each last axis is a distribution (to nine digits); None: K of any size."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or num_symbols not in (None, array.shape[-1]):
        wanted = "one or more" if num_symbols is None else num_symbols
        raise SpecError(f"{where} must have {wanted} entries in its last axis, got the shape {array.shape}")
    if not (array >= 0).all() or not np.allclose(array.sum(axis=-1), 1, rtol=0, atol=1e-9):
        raise SpecError(f"{where} must be shares of at least 0 that sum to 1, got others")
    return array


def require_one_symbol(where: str, mechanism: Mechanism) -> None:
    """A mechanism whose values have one symbol each: with more, symbol frequencies are no distribution."""
    if mechanism.num_hashes > 1:
        raise SpecError(f"{where} must give every value one symbol, got {mechanism.num_hashes} hash functions")
