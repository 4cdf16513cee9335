"""Heavy unlisted texts: the cells that they fill are left out, and who collides with them is estimated as well.

Lists of 300 candidates are solved exactly, of 1,200 by message passing.
"""

from __future__ import annotations

import functools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.made_collections import made
from tests.support.tolerance import RATE, generator, student_limit
from uldp_transforms.ldp import CohortCounts, Collection, Estimate
from uldp_transforms.ldp.sampling import SeededSource
from uldp_transforms.ldp.solvers import overfull

BUCKETS, PEOPLE = 512, 10**6
WINDOWS = {1200: 16, 300: 48}
SMALL = tuple(f"unlisted {i}" for i in range(2000))
both = pytest.mark.parametrize("size", WINDOWS)


def names(size: int) -> tuple[str, ...]:
    return tuple(f"value {i}" for i in range(size))


def zipf(size: int) -> np.ndarray:
    weights = 1 / np.arange(1, size + 1)
    return 0.85 * weights / weights.sum()


def window(
    size: int, seed: int, heavy: float, num_cohorts: int, rng: np.random.Generator
) -> tuple[Collection, CohortCounts, np.ndarray]:
    """15 % hold unlisted values, a share of all one of them; also how often a candidate collides with that one."""
    alphabet = {"id": "hashed", "num_buckets": BUCKETS, "seed": seed}
    item = made(alphabet, {"id": "krr", "epsilon": 8.0}, num_cohorts=num_cohorts)
    law = np.concatenate([zipf(size), np.full(len(SMALL), (0.15 - heavy) / len(SMALL)), [heavy]])
    table = item.alphabet.symbol_table((*names(size), *SMALL, "heavy"), num_cohorts)
    sizes = rng.multinomial(PEOPLE, np.full(num_cohorts, 1 / num_cohorts))
    cells = np.empty((num_cohorts, BUCKETS), dtype=np.int64)
    for cohort, row in enumerate(table):
        rates = item.mechanism.response(np.bincount(row, law, BUCKETS))
        cells[cohort] = rng.multinomial(sizes[cohort], rates / rates.sum())
    return item, CohortCounts(sizes, cells), (table[:, :size] == table[:, -1:]).sum(axis=0)


@pytest.mark.parametrize(
    ("num_buckets", "num_cohorts", "epsilon", "people"),
    [(64, 64, 8.0, 10**5), (64, 64, 8.0, 10**4), (16, 64, 3.0, 10**5), (512, 32, 8.0, 3000), (64, 32, 4.0, 1000)],
)
def test_noise_alone_is_left_out_in_one_window_of_twenty(num_buckets, num_cohorts, epsilon, people):
    """At most: 0.05 cells of a window are expected. 100 Zipf candidates, everybody holds one of them."""
    rng, found = generator("noise", num_buckets, num_cohorts, epsilon, people), []
    candidates, windows, whole = names(100), 200, zipf(100) / 0.85
    spec = {"id": "c", "version": 1, "num_cohorts": num_cohorts, "mechanism": {"id": "krr", "epsilon": epsilon}}

    def looked_at(given, fit):
        found.append(judge(given, fit))
        return found[-1]

    judge = overfull.overfull
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overfull, "overfull", looked_at)
        patch.setattr(overfull, "ROUNDS", 1)
        for seed in range(windows):
            alphabet = {"id": "hashed", "num_buckets": num_buckets, "seed": seed % 8}
            item = Collection.from_json(spec | {"alphabet": alphabet})
            held = rng.choice(100, people, p=whole)
            cohorts = rng.integers(num_cohorts, size=people)
            symbols = item.alphabet.symbol_table(candidates, num_cohorts)[cohorts, held]
            reports = item.mechanism.perturb(symbols, SeededSource(rng))
            item.estimate(item.count_groups(reports, cohorts, 1)[0], candidates=candidates)
    assert len(found) == windows
    assert sum(int(cells.sum()) for cells in found) <= stats.poisson.isf(RATE, 0.05 * windows)


@functools.cache
def estimates(size: int, heavy: float, num_cohorts: int, leave_out: bool = True) -> list[tuple[Estimate, np.ndarray]]:
    rng, found = generator("heavy", size, heavy, num_cohorts), []
    with pytest.MonkeyPatch.context() as patch:
        if not leave_out:
            patch.setattr(overfull, "ROUNDS", 0)
        for seed in range(WINDOWS[size]):
            item, counts, collisions = window(size, seed, heavy, num_cohorts, rng)
            found.append((item.estimate(counts, candidates=names(size)), collisions))
    return found


def squares(found: list[tuple[Estimate, np.ndarray]]) -> float:
    return float(sum(((estimate.raw_frequencies - zipf(len(estimate.values))) ** 2).sum() for estimate, _ in found))


def coverage(found: list[tuple[Estimate, np.ndarray]], least: int) -> tuple[float, float]:
    """Of the candidates that collide so often at least, and how far away from its mean it may be."""
    held, among = np.zeros((2, len(found)))
    for i, (estimate, collisions) in enumerate(found):
        chosen, truth = collisions >= least, zipf(len(collisions))
        covered = (estimate.ci_low <= truth) & (estimate.ci_high >= truth)
        held[i], among[i] = covered[chosen].sum(), chosen.sum()
    share, windows = held.sum() / among.sum(), len(found)
    error = np.sqrt(((held - share * among) ** 2).sum() * windows / (windows - 1)) / among.sum()
    return share, stats.t.isf(RATE, windows - 1) * max(error, np.sqrt(0.95 * 0.05 / among.sum()))


@both
@pytest.mark.parametrize("num_cohorts", [32, 64])
def test_candidates_that_collide_with_a_heavy_unlisted_text_are_covered(size, num_cohorts):
    """In 12 of 100 candidates' buckets, of some cohort; without leaving cells out hardly any of them is covered."""
    for least in (0, 1):
        share, slack = coverage(estimates(size, 0.03, num_cohorts), least)
        assert abs(share - 0.95) <= 0.01 + slack
    share, slack = coverage(estimates(size, 0.03, num_cohorts, leave_out=False), 1)
    assert share <= 0.6 - slack


@both
def test_errors_fall_to_less_than_half(size):
    """In length; the ratio is between sums over the same windows."""
    assert squares(estimates(size, 0.03, 64)) < 0.5**2 * squares(estimates(size, 0.03, 64, leave_out=False))


@both
def test_without_a_heavy_text_hardly_anything_is_lost(size):
    with_it, without = (squares(estimates(size, 0.0, 64, leave_out=leave_out)) for leave_out in (True, False))
    assert with_it < 1.02**2 * without


@both
@pytest.mark.parametrize("heavy", [0.0, 0.03])
def test_the_rest_stays_unbiased(size, heavy):
    found = [estimate for estimate, _ in estimates(size, heavy, 64)]
    errors = np.array([estimate.raw_unexplained_mass - (1 - zipf(size).sum()) for estimate in found])
    reported = np.array([estimate.unexplained_standard_error for estimate in found])
    assert abs(errors.sum()) <= stats.norm.isf(RATE / 2) * np.sqrt((reported**2).sum())
    assert (errors**2 / reported**2).sum() <= stats.chi2.isf(RATE, len(errors))


@both
def test_a_heavy_candidate_is_no_reason_to_leave_its_cells_out(size):
    found = [estimate for estimate, _ in estimates(size, 0.0, 64)]
    truth = zipf(size)
    errors = np.array([(estimate.raw_frequencies - truth)[:20] / estimate.standard_errors[:20] for estimate in found])
    assert abs(errors.sum(axis=0)).max() <= stats.norm.isf(RATE / 40) * np.sqrt(len(found))


@both
def test_few_cohorts_keep_all_cells(size):
    """Of which a candidate could lose too many."""
    found, plain = (estimates(size, 0.03, 24, leave_out=leave_out)[0][0] for leave_out in (True, False))
    np.testing.assert_array_equal(found.raw_frequencies, plain.raw_frequencies)


@pytest.mark.parametrize("spares", ["two cells", "no cell of a candidate", "a third of a candidate's cells"])
def test_if_too_little_would_be_left_all_cells_are_used(spares):
    """Fewer equations than unknowns, a candidate without any, or with fewer than half."""
    item, counts, _ = window(300, 0, 0.0, 32, generator("too little"))
    plain = item.estimate(counts, candidates=names(300))
    mask = np.zeros(counts.cells.shape, dtype=bool)
    if spares == "two cells":
        mask[:, 2:] = True
    else:
        cohorts = np.arange(32)[: 32 if spares == "no cell of a candidate" else 22]
        mask[cohorts, item.alphabet.symbol_table(names(300), 32)[cohorts, 0]] = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overfull, "overfull", lambda given, fit: mask)
        patch.setattr(overfull, "GAIN", np.inf)
        found = item.estimate(counts, candidates=names(300))
    np.testing.assert_array_equal(found.raw_frequencies, plain.raw_frequencies)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.018, 0.02, 0.025])
def test_a_text_that_is_seen_in_some_cohorts_is_expected_in_the_others(share):
    """It stands out in empty buckets and hides in full ones, where candidates are: the rest keeps its mean, and its
    interval the truth; without that a text of 2 % takes a tenth of a standard error and more off it in each window."""
    rng, values, errors, held = generator("half seen", share), names(50), [], []
    law = np.append((0.6 - share) * zipf(50) / 0.85, [0.1] * 4 + [share])
    listed = [f"listed {i}" for i in range(4)]
    for seed in range(160):
        alphabet = {"id": "hashed", "num_buckets": 64, "seed": seed, "non_sensitive": listed}
        item = made(alphabet, {"id": "urap", "epsilon": 8.0}, num_cohorts=64)
        table = item.alphabet.symbol_table((*values, *listed, "heavy"), 64)
        cohorts = rng.integers(64, size=10**5)
        symbols = table[cohorts, rng.choice(len(law), 10**5, p=law)]
        counts = item.count_groups(item.mechanism.perturb(symbols, SeededSource(rng)), cohorts, 1)[0]
        found = []
        for rounds in (overfull.ROUNDS, 0):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(overfull, "ROUNDS", rounds)
                found.append(item.estimate(counts, "empirical", (*values, *listed)))
        errors.append([estimate.raw_unexplained_mass - share for estimate in found])
        held.append(found[0].unexplained_low <= share <= found[0].unexplained_high)
    moved = np.diff(np.array(errors), axis=1)[:, 0]
    print(f"{share}: bias {np.mean(errors, axis=0)}, moved {moved.mean():.5f}, held {np.mean(held):.3f}")
    assert abs(moved.mean()) <= student_limit(160) * moved.std(ddof=1) / np.sqrt(160)
    assert np.mean(held) >= stats.binom.ppf(RATE, 160, 0.93) / 160


def test_limits_are_quantiles_of_the_noise_of_a_count():
    """Of all cells together; a count is skewed by the contribution of one report to a share."""
    given = SimpleNamespace(
        num_reports=np.array([100, 0, 400]), jump=2.0, plausible=lambda shares: shares, noise=lambda shares: shares + 1
    )
    limits, variances = overfull._limits(given, SimpleNamespace(fitted=np.zeros((3, 4)), common=0.01))
    z = stats.norm.isf(overfull.FALSELY / 8)
    for row, number in enumerate((100, 400)):
        assert variances[row] == pytest.approx(np.full(4, 1 / number + 0.01))
        assert limits[row] == pytest.approx(z * np.sqrt(variances[row]) + (z**2 - 1) / 6 * 2 / number)
