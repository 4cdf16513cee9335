"""Scores of prefixes: sums of one cell of each cohort, however many prefixes are looked up together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.alphabets.prefixes import END, Prefixes
from uldp_transforms.ldp.discovery.level import Level
from uldp_transforms.ldp.solvers.question import ask


def a_level(number: int, cohorts: int, num_buckets: int) -> Level:
    """Of a collection of three levels, with 1,500 people."""
    alphabet = {"id": "prefixes", "num_buckets": num_buckets, "tokens": list("abcdefgh"), "lengths": [2, 3, None]}
    item = made(alphabet, {"id": "krr", "epsilon": 3.0}, num_cohorts=cohorts, id="words")
    texts = ["abcd"] * 700 + ["badge"] * 500 + ["cafe"] * 300
    counts = item.count(item.perturb(texts, generator("a level", number, cohorts)))
    counts = CohortCounts(counts.num_reports * (np.arange(cohorts) != 4), counts.cells)
    counts.cells[4] = 0
    assert isinstance(item.alphabet, Prefixes)
    return Level(ask(item, counts, ("",)), item.alphabet, number, counts)


@pytest.mark.parametrize("last", [False, True])
def test_a_score_is_the_sum_of_the_cells_of_a_prefix(last: bool) -> None:
    """At the last level whole texts end behind each token; more parents than are looked up at a time."""
    number = 2 if last else 1
    level = a_level(number, 24, 8)
    alphabet, fit = level._alphabet, level.peel([(1, 2, 3, 4, END) if last else (1, 2, 3)])
    parents = [(a, b, c)[: 2 + last] for a in range(1, 9) for b in range(1, 9) for c in range(1, 9 if last else 2)][
        :140
    ]
    parents += [] if last else parents[:70] * 2
    blocks = list(level.scores(fit, parents, last))
    assert [(start, len(scores)) for start, scores in blocks] == [(0, 128), (128, len(parents) - 128)]
    found = np.concatenate([scores for _, scores in blocks])
    for row, token in ((0, 3), (5, END), (130, 8), (len(parents) - 1, 1)):
        whole = (*parents[row], token, *([END] if last and token != END else []))
        own = alphabet.buckets(alphabet.sums([whole], 24, number))[0][level._here]
        expected = fit.cells[np.arange(len(own)), own].sum() / np.sqrt(fit.norm)
        assert found[row, token] == pytest.approx(expected, rel=1e-4, abs=1e-5)


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
