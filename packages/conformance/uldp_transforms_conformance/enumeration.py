"""Enumeration of the reports of a small mechanism."""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms import Mechanism


def as_array(payloads: list[bytes]) -> np.ndarray:
    """The payloads as an array (Y, W) uint8."""
    return np.frombuffer(b"".join(payloads), dtype=np.uint8).reshape(len(payloads), -1)


def enumerated(mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """All payloads (Y, W) uint8 and their probabilities (Y, K) under each symbol."""
    payloads, rows = mechanism.channel()
    return as_array(payloads), np.array([[float(share) for share in row] for row in rows])


def single_counts(mechanism: Mechanism, codes: np.ndarray) -> CohortCounts:
    """The counts of each payload (Y, W) as the only report of its cohort."""
    size = len(codes)
    return CohortCounts(np.ones(size, dtype=np.int64), mechanism.count(codes, np.arange(size), size))


def distributions(num_symbols: int) -> np.ndarray:
    """(K + 1, K): the point mass of every symbol, and shares proportional to 1 / rank."""
    zipf = 1 / np.arange(1, num_symbols + 1)
    return np.vstack([np.eye(num_symbols), zipf / zipf.sum()])
