"""Numbers of symbols whose values lie in public blocks.

The sensitive symbols of all blocks come first, block by block, and then all others, block by block. So the first v of
the K symbols are sensitive, as everywhere.
"""

from __future__ import annotations

import numpy as np

Sizes = tuple[tuple[int, int], ...]
"""(K_b, v_b) of each block: its symbols, and how many of them are sensitive."""


def symbols_of_blocks(sizes: Sizes) -> list[np.ndarray]:
    """The symbols (K_b,) int64 of each block: its sensitive ones, then its others."""
    table, sensitive, clear = [], 0, sum(own for _, own in sizes)
    for size, own in sizes:
        table.append(np.concatenate([sensitive + np.arange(own), clear + np.arange(size - own)]))
        sensitive, clear = sensitive + own, clear + size - own
    return table
