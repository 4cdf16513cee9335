"""What an alarm remembers after some windows."""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.smoothing.variation import (
    Expectation,
    Memory,
    Told,
    ahead,
)


def after(
    memory: Memory, raw: np.ndarray, report: np.ndarray, n: int = 1000, steps: int = 1, jump: float = 0.0
) -> tuple[Memory, Expectation]:
    """The memory after one window, and what was expected of it."""
    told = Told(raw[np.newaxis], report[np.newaxis], np.array([n]), np.array([steps]), jump)
    memories, expected = ahead(memory, told)
    return memories.at(-1), expected


def some_memory(seed: int, values: int = 3) -> Memory:
    """Of a few windows of values of different sizes."""
    memory, rng = Memory.empty(values), np.random.default_rng(seed)
    shares = rng.uniform(0.01, 0.4, values)
    for _ in range(12):
        report = rng.uniform(0.5, 1.5, values)
        memory, _ = after(memory, shares + rng.normal(0, np.sqrt(report / 1000)), report, jump=1.5)
    return memory
