"""Scores of prefixes: sums of one cell of each cohort, however many prefixes are looked up together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.support.tolerance import generator
from uldp_transforms.ldp.alphabets.prefixes import Prefixes
from uldp_transforms.ldp.discovery.level import Level


def test_many_prefixes_and_few_have_the_same_sums() -> None:
    """Few compute their buckets, and many look them up; both are the sum in the order of the cohorts."""
    rng, alphabet = generator("level"), Prefixes(num_buckets=21, tokens=("a", "b"), lengths=(None,))
    level: Any = SimpleNamespace(_alphabet=alphabet)
    cells = rng.normal(size=(7, 21)).astype(np.float32)
    own = rng.integers(0, 1 << 16, (7, 96, 1), dtype=np.uint16)
    words = rng.integers(0, 1 << 16, (7, 180), dtype=np.uint16)
    many = Level._sums_of_cells(level, cells, own, words)
    few = [Level._sums_of_cells(level, cells, own[:, [row]], words)[0] for row in range(96)]
    assert many.dtype == few[0].dtype == np.float32
    assert (many == np.array(few)).all()
    expected = np.zeros_like(many)
    for cohort in range(7):
        sums = (own[cohort].astype(np.int64) + words[cohort]) % (1 << 16)
        expected += cells[cohort][sums * 21 >> 16]
    assert (many == expected).all()
