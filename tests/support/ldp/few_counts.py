"""Few reports of a collection with many cells."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.counts.sparse_table import PAYS, counts_at


@st.composite
def few(draw: st.DrawFn, shape: tuple[int, int] = (8, 60), num_patterns: int = 3) -> CohortCounts:
    """Between none and twice as many numbers as pay, small or not, also negative: in places of any order, repeated."""
    length = shape[0] * (1 + shape[1])
    number = st.integers(-3, 3) | st.integers(-(1 << 62), 1 << 62)
    found = draw(st.lists(st.tuples(st.integers(0, length - 1), number), max_size=2 * length // PAYS))
    places, numbers = np.array(found, np.int64).reshape(-1, 2).T
    patterns = draw(st.lists(st.integers(-9, 9), min_size=num_patterns, max_size=num_patterns))
    return counts_at(shape, places, numbers, np.array(patterns, np.int64))


def in_full(counts: CohortCounts) -> CohortCounts:
    return CohortCounts(counts.num_reports.copy(), counts.cells.copy(), counts.patterns.copy())


@st.composite
def in_either_form(draw: st.DrawFn) -> CohortCounts:
    """Sparse or full, the latter also in Fortran order or with read-only arrays."""
    counts = draw(few())
    form = draw(st.sampled_from(["as it is", "full", "fortran", "read-only"]))
    if form == "as it is":
        return counts
    full = in_full(counts)
    if form == "fortran":
        full = CohortCounts(full.num_reports, np.asfortranarray(full.cells), full.patterns)
    for array in (full.num_reports, full.cells, full.patterns) if form == "read-only" else ():
        array.flags.writeable = False
    return full
