"""Scores of prefixes: sums of one cell of each cohort, however many prefixes are looked up together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.alphabets.prefixes import END, Prefixes
from uldp_transforms.ldp.discovery import level as module
from uldp_transforms.ldp.discovery.level import Level
from uldp_transforms.ldp.solvers.observation import common_noise, residual_law
from uldp_transforms.ldp.solvers.question import ask


def a_level(number: int, cohorts: int, num_buckets: int) -> Level:
    """Of a collection of three levels, with 1,500 people."""
    alphabet = {"id": "prefixes", "num_buckets": num_buckets, "tokens": list("abcdefgh"), "lengths": [2, 3, None]}
    spec = {"id": "words", "version": 1, "alphabet": alphabet, "num_cohorts": cohorts}
    item = Collection.from_json(spec | {"mechanism": {"id": "krr", "epsilon": 3.0}})
    texts = ["abcd"] * 700 + ["badge"] * 500 + ["cafe"] * 300
    counts = item.count(item.perturb(texts, generator("a level", number, cohorts)))
    counts = CohortCounts(counts.num_reports * (np.arange(cohorts) != 4), counts.cells)
    counts.cells[4] = 0
    assert isinstance(item.alphabet, Prefixes)
    return Level(ask(item, counts, ("",)), item.alphabet, number, counts)


def test_prefixes_are_peeled_by_least_squares_with_three_rounds_of_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a dense design; weights are inverse variances, of the reports and of all that else is hashed."""
    level, kept = a_level(1, 24, 8), []
    observe = module.observe
    monkeypatch.setattr(module, "observe", lambda *asked: kept.append(observe(*asked)) or kept[-1])
    peeled = [(1, 2, 3), (2, 1, 4), (3, 1, 6)]
    fit = level.peel(peeled)
    [given] = kept
    table, n = given.buckets.table, given.num_reports
    assert len(n) == 7 and level.degrees == 49 and level.most == 8
    design = (table[:, np.newaxis] == np.arange(8)[:, np.newaxis]).astype(float)
    design -= design.mean(axis=1, keepdims=True)
    target = given.inverted - given.inverted.mean(axis=1, keepdims=True)
    weights = n.astype(float)
    for again in (1, 1, 1, 0):
        gram = np.einsum("c,ckx,cky->xy", weights, design, design)
        found = np.linalg.solve(gram, np.einsum("c,ckx,ck->x", weights, design, target))
        residuals = target - design @ found
        if again:
            shares = given.plausible(given.buckets.forward(found))
            known = residual_law(given, shares, given.noise(shares))[0] / n
            weights = 1 / (known + common_noise((residuals**2).sum(axis=1), 49 - 3, known))
    np.testing.assert_allclose(fit.weights, weights, rtol=1e-7)
    np.testing.assert_allclose(fit.frequencies, found, rtol=1e-7)
    np.testing.assert_allclose(fit.scores, found / np.sqrt(np.diag(np.linalg.inv(gram))), rtol=1e-7)
    np.testing.assert_allclose(fit.cells, weights[:, np.newaxis] * residuals, rtol=1e-6, atol=1e-6)
    assert fit.spare == pytest.approx(46 / 49)
    assert fit.norm == pytest.approx(weights.sum() * (7 / 8) * 46 / 49)
    for position, frequency in enumerate(found):
        cells = fit.without(position)
        assert cells[np.arange(7), table[:, position]].sum() == pytest.approx(frequency, rel=1e-6)
        np.testing.assert_allclose(cells.sum(axis=1), 0, atol=1e-9)


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


def test_prefixes_with_the_same_buckets_are_peeled_together() -> None:
    """In one cohort of four buckets two of eight prefixes must collide: they share what the bucket has."""
    level = a_level(0, 6, 4)
    first, *others = [(number, 1) for number in range(1, 9)]
    table = {sequence: level.peel([sequence]).table[0].tolist() for sequence in (first, *others)}
    same = next(pair for pair in ((x, y) for x in table for y in table if x < y) if table[pair[0]] == table[pair[1]])
    both, alone = level.peel(list(same)).frequencies, level.peel([same[0]]).frequencies
    assert both[0] == pytest.approx(both[1], rel=1e-3, abs=1e-5)
    assert both.sum() == pytest.approx(alone[0], rel=1e-3, abs=1e-5)


@pytest.mark.parametrize(("rows", "columns", "looks_up"), [(63, 256, False), (64, 256, True), (128, 129, True)])
def test_buckets_are_computed_for_few_prefixes_and_looked_up_for_many(
    monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, looks_up: bool
) -> None:
    """From a fourth of all hash words on, a table of all words costs less."""
    alphabet, asked = Prefixes(num_buckets=5, tokens=("a",), lengths=(None,)), []
    plain = Prefixes.buckets
    monkeypatch.setattr(Prefixes, "buckets", lambda own, sums: asked.append(sums.shape) or plain(own, sums))
    level: Any = SimpleNamespace(_alphabet=alphabet)
    own, words = np.zeros((1, rows, 1), dtype=np.uint16), np.zeros((1, columns), dtype=np.uint16)
    Level._sums_of_cells(level, np.ones((1, 5), dtype=np.float32), own, words)
    assert asked == [(1 << 16,)] if looks_up else asked == [(1, rows, columns)]


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
