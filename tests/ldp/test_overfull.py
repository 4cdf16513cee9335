"""Heavy unlisted texts: the cells that they fill are left out, and who collides with them is estimated as well."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import stats

from tests.support.tolerance import RATE, generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate
from uldp_transforms.ldp.estimators import message_passing

SIZE, BUCKETS, PEOPLE, WINDOWS = 1200, 512, 10**6, 16
VALUES = tuple(f"value {i}" for i in range(SIZE))
SMALL = tuple(f"unlisted {i}" for i in range(2000))
ZIPF = 0.85 / np.arange(1, SIZE + 1) / (1 / np.arange(1, SIZE + 1)).sum()


def window(
    seed: int, heavy: float, num_cohorts: int, rng: np.random.Generator
) -> tuple[Collection, CohortCounts, np.ndarray]:
    """15 % hold unlisted values, a share of all one of them; also how often a candidate collides with that one."""
    alphabet = {"id": "hashed", "num_buckets": BUCKETS, "seed": seed}
    spec = {"id": "c", "version": 1, "alphabet": alphabet, "num_cohorts": num_cohorts}
    item = Collection.from_json(spec | {"mechanism": {"id": "krr", "epsilon": 8.0}})
    law = np.concatenate([ZIPF, np.full(len(SMALL), (0.15 - heavy) / len(SMALL)), [heavy]])
    table = item.alphabet.symbol_table((*VALUES, *SMALL, "heavy"), num_cohorts)
    sizes = rng.multinomial(PEOPLE, np.full(num_cohorts, 1 / num_cohorts))
    cells = np.empty((num_cohorts, BUCKETS), dtype=np.int64)
    for cohort, row in enumerate(table):
        rates = item.mechanism.response(np.bincount(row, law, BUCKETS))
        cells[cohort] = rng.multinomial(sizes[cohort], rates / rates.sum())
    return item, CohortCounts(sizes, cells), (table[:, :SIZE] == table[:, -1:]).sum(axis=0)


@functools.cache
def estimates(heavy: float, num_cohorts: int, leave_out: bool) -> list[tuple[Estimate, np.ndarray]]:
    rng, found = generator("heavy", heavy, num_cohorts), []
    with pytest.MonkeyPatch.context() as patch:
        if not leave_out:
            patch.setattr(message_passing, "_ROUNDS", 0)
        for seed in range(WINDOWS):
            item, counts, collisions = window(seed, heavy, num_cohorts, rng)
            found.append((item.estimate(counts, candidates=VALUES), collisions))
    return found


def squares(found: list[tuple[Estimate, np.ndarray]]) -> float:
    return float(sum(((estimate.raw_frequencies - ZIPF) ** 2).sum() for estimate, _ in found))


def coverage(found: list[tuple[Estimate, np.ndarray]], least: int) -> tuple[float, float]:
    """Of the candidates that collide so often at least, and how far away from its mean it may be."""
    held, among = np.zeros((2, len(found)))
    for i, (estimate, collisions) in enumerate(found):
        chosen = collisions >= least
        covered = (estimate.ci_low <= ZIPF) & (estimate.ci_high >= ZIPF)
        held[i], among[i] = covered[chosen].sum(), chosen.sum()
    share = held.sum() / among.sum()
    error = np.sqrt(((held - share * among) ** 2).sum() * WINDOWS / (WINDOWS - 1)) / among.sum()
    return share, stats.t.isf(RATE, WINDOWS - 1) * max(error, np.sqrt(0.95 * 0.05 / among.sum()))


@pytest.mark.parametrize("num_cohorts", [32, 64])
def test_candidates_that_collide_with_a_heavy_unlisted_text_are_covered(num_cohorts):
    """In 12 of 100 candidates' buckets, of some cohort; without leaving cells out hardly any of them is covered."""
    for least in (0, 1):
        share, slack = coverage(estimates(0.03, num_cohorts, leave_out=True), least)
        assert abs(share - 0.95) <= 0.01 + slack
    share, slack = coverage(estimates(0.03, num_cohorts, leave_out=False), 1)
    assert share <= 0.6 - slack


def test_errors_fall_to_less_than_half():
    """In length; the ratio is between sums over the same windows."""
    assert squares(estimates(0.03, 64, leave_out=True)) < 0.5**2 * squares(estimates(0.03, 64, leave_out=False))


def test_without_a_heavy_text_hardly_anything_is_lost():
    with_it, without = (squares(estimates(0.0, 64, leave_out=leave_out)) for leave_out in (True, False))
    assert with_it < 1.02**2 * without


@pytest.mark.parametrize("heavy", [0.0, 0.03])
def test_the_rest_stays_unbiased(heavy):
    found = [estimate for estimate, _ in estimates(heavy, 64, leave_out=True)]
    errors = np.array([estimate.raw_unexplained_mass - (1 - ZIPF.sum()) for estimate in found])
    reported = np.array([estimate.unexplained_standard_error for estimate in found])
    assert abs(errors.sum()) <= stats.norm.isf(RATE / 2) * np.sqrt((reported**2).sum())
    assert (errors**2 / reported**2).sum() <= stats.chi2.isf(RATE, len(errors))


def test_a_heavy_candidate_is_no_reason_to_leave_its_cells_out():
    found = [estimate for estimate, _ in estimates(0.0, 64, leave_out=True)]
    errors = np.array([(estimate.raw_frequencies - ZIPF)[:20] / estimate.standard_errors[:20] for estimate in found])
    assert abs(errors.sum(axis=0)).max() <= stats.norm.isf(RATE / 40) * np.sqrt(WINDOWS)


def test_few_cohorts_keep_all_cells():
    """Of which a candidate could lose too many."""
    found, plain = (estimates(0.03, 24, leave_out=leave_out)[0][0] for leave_out in (True, False))
    np.testing.assert_array_equal(found.raw_frequencies, plain.raw_frequencies)
