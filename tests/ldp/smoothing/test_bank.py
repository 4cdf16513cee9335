"""The bank of laws of the alarm, law by law and value by value in 64 bits, and what is kept of it."""

from __future__ import annotations

import dataclasses
import itertools
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.alarm_memories import some_memory
from tests.support.tolerance import generator
from uldp_transforms.ldp.smoothing import Alarms, Past, Series, change_of, judge
from uldp_transforms.ldp.smoothing.alarm import lasting_evidence
from uldp_transforms.ldp.smoothing.variation import DRIFTS, EFFECTS, FIRST_WEIGHTS, Memory, Told, ahead

LAWS = [(0.0, 1.35 / 2**k) for k in range(11, -1, -1)] + [
    (rho, ratio * rho) for rho in (0.0025, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32) for ratio in (0.5, 4)
]
"""Drift and size of day effects, relative to a share."""

RHO, SIGMA = np.array(LAWS).T
FIRST = np.where(RHO > 0, 0.3, 1) / (SIGMA**2 + 4 * RHO**2) ** 0.25
FIRST *= 1e-7 / FIRST.sum()
FIRST[0] += 1 - 1e-7
OCTAVES = sum(np.abs(np.log2(x[:, np.newaxis] / x)) for x in (SIGMA, np.maximum(RHO, 0.0025 / 4)))


class Bank:
    """The filters of all laws, (26, S) each, in 64 bits."""

    def __init__(self, size: int):
        self.seen, self.windows, self.report = np.zeros((3, size))
        self.level, self.variance, self.odds = np.zeros((26, size)), np.ones((26, size)), np.ones((26, size))
        self.common = FIRST

    def expect(self, t: int, told: Told) -> dict[str, np.ndarray]:
        """What the window at position t is expected to say."""
        n = told.num_reports[t]
        least = max(told.jump, 1) * np.maximum(1e-5, 1 / (n * (self.windows + 1)))
        noise = np.maximum(np.where(self.windows > 0, self.report, told.report[t]), least) / n
        size = np.maximum(self.level * (1 - self.level), 0) + np.minimum(np.sqrt(self.variance), np.sqrt(noise))
        prior = self.variance + told.steps[t] * (RHO[:, np.newaxis] * size) ** 2
        weights = self.odds * self.common[:, np.newaxis]
        return {"weights": weights, "level": self.level, "variance": prior, "size": size, "noise": noise}

    def tell(self, t: int, told: Told, moved: np.ndarray) -> None:
        """The state after the window; values that moved begin anew in it."""
        expected, raw, seen = self.expect(t, told), np.nan_to_num(told.raw[t]), ~np.isnan(told.raw[t])
        size, noise, prior = (expected[name] for name in ("size", "noise", "variance"))
        total = (SIGMA[:, np.newaxis] * size) ** 2 + prior + noise
        logs = stats.norm.logpdf(raw, self.level, np.sqrt(total))
        likely = np.where(seen & (self.seen > 0) & ~moved, np.exp(logs - logs.max(axis=0)), 1)
        new = (self.windows == 0) | moved
        size = np.where(new, np.maximum(raw * (1 - raw), 0) + np.sqrt(noise), size)
        rest = (SIGMA[:, np.newaxis] * size) ** 2 + noise + np.where(seen, 0, 1e8)
        before = prior + moved
        gain = before / (before + rest)
        self.level, self.variance = self.level + gain * (raw - self.level), rest * gain
        self._weigh(likely)
        first = np.where(moved, 0, self.windows)
        self.windows = first + seen
        times = np.maximum(self.windows, 1)
        self.report = (self.report * first + np.where(seen, told.report[t], 0)) / times
        self.seen = self.seen + seen

    def _weigh(self, likely: np.ndarray) -> None:
        given = self.common[:, np.newaxis] * self.odds * likely
        given /= given.sum(axis=0)
        near = np.maximum(0.001**OCTAVES, 1e-12) * ~np.eye(26, dtype=bool)
        moves = near * np.minimum(1, self.common[:, np.newaxis] / self.common)
        moves += np.diag(1 - moves.sum(axis=0))
        odds = moves @ given / self.common[:, np.newaxis]
        self.common = (given.sum(axis=1) + 2 * FIRST) / (given.shape[1] + 2)
        self.odds = odds / (self.common @ odds)


def some_windows(seed: int, windows: int, jump: float) -> Told:
    """Four values: one that rises, one rarely seen, one first seen late, and one near 0 without noise of its own."""
    rng = np.random.default_rng([61, seed])
    raw = rng.normal([0.3, 0.1, 0.05, 0.0], [0.05, 0.02, 0.01, 0.001], (windows, 4))
    raw[:, 0] += 0.05 * np.arange(windows)
    raw[1::3, 1], raw[:3, 2] = np.nan, np.nan
    n, steps = rng.integers(200, 4000, windows), rng.integers(1, 4, windows)
    return Told(raw, rng.uniform(0.01, 1.5, (windows, 4)) * [1, 1, 1, 0], n, steps, jump)


def assert_same(found: Memory, bank: Bank) -> None:
    for field in dataclasses.fields(Memory):
        expected = getattr(bank, field.name)
        np.testing.assert_allclose(getattr(found, field.name), expected, rtol=2e-3, atol=1e-6, err_msg=field.name)


def test_the_grid_of_laws_and_their_first_weights_are_the_stated_ones() -> None:
    np.testing.assert_allclose(np.hstack([DRIFTS, EFFECTS]), LAWS, rtol=1e-6)
    np.testing.assert_allclose(FIRST_WEIGHTS, FIRST, rtol=1e-5)


@pytest.mark.parametrize("jump", [0.0, 30.0])
def test_the_bank_is_that_of_filters_one_by_one(jump: float) -> None:
    """Twelve windows together; then four more, in the first of which two values begin anew."""
    bank, memory, nothing = Bank(4), Memory.empty(4), np.zeros(4, dtype=bool)
    for seed, windows, moved in ((1, 12, nothing), (2, 4, np.array([True, False, False, True]))):
        told = some_windows(seed, windows, jump)
        memories, expectation = ahead(memory, told, moved)
        for t in range(windows):
            expected = bank.expect(t, told)
            for name in ("weights", "level", "variance", "size"):
                np.testing.assert_allclose(getattr(expectation, name)[t], expected[name], rtol=2e-3, atol=1e-6)
            np.testing.assert_allclose(expectation.noise[t, 0], expected["noise"], rtol=1e-4)
            bank.tell(t, told, moved if t == 0 else nothing)
            assert_same(memories.at(t + 1), bank)
        memory = memories.at(-1)


def test_both_values_of_a_question_say_the_same() -> None:
    """Shares of .9 and .1 that sum to 1 have numbers that differ by their sign; levels begin near 0, in both."""
    first = np.array([0.9, 0.91, 0.89, 0.905, 0.6, 0.97])
    told = Told(
        np.stack([first, 1 - first], axis=1), np.ones((6, 2)), np.full(6, 5000), np.ones(6, dtype=np.int64), 0.0
    )
    _, expectation = ahead(Memory.empty(2), told)
    numbers = expectation.scores(told.raw, 0.0)[2:, EFFECTS[:, 0] < 0.3]
    assert np.abs(numbers).max() > 10
    np.testing.assert_allclose(numbers[..., 0], -numbers[..., 1], rtol=0.05, atol=0.01)


# ------------------------------------------------------------------------------------------------ evidence


def test_lasting_evidence_is_the_ratio_of_likelihoods_in_which_laws_are_integrated_over() -> None:
    """Two laws that may change, by enumeration of the laws of all windows and of all beginnings of a change."""
    rng, windows = np.random.default_rng(83), 4
    u, likely, sizes = rng.normal(size=(windows, 2)), rng.uniform(0.2, 1, (windows, 2)), [2.0, -2.0, 6.0, -6.0]
    common = np.array([0.7, 0.3])
    moves = np.array([[0.95, 0.2], [0.05, 0.8]])
    judged = np.array([True, True, False, True])
    posterior, before = np.empty((windows, 2, 1)), common
    for t in range(windows):
        posterior[t, :, 0] = before * likely[t] / (before @ likely[t])
        before = moves @ posterior[t, :, 0]
    each, _ = lasting_evidence(np.zeros((4, 2, 1)), u[..., np.newaxis], judged[:, np.newaxis], posterior, [moves] * 4)
    found = np.einsum("tdgs,tgs->td", each, posterior)
    for end, (at, size) in itertools.product(range(1, windows + 1), enumerate(sizes)):
        nothing = changed = 0.0
        for laws in itertools.product((0, 1), repeat=end):
            path = common[laws[0]] * np.prod([moves[later, earlier] for earlier, later in itertools.pairwise(laws)])
            path *= np.prod([likely[t, laws[t]] for t in range(end)])
            ratios = [np.exp(size * u[t, laws[t]] - size**2 / 2) if judged[t] else 1.0 for t in range(end)]
            nothing += path
            changed += path * sum(np.prod(ratios[begin:]) for begin in range(end) if judged[begin])
        assert found[end - 1, at] == pytest.approx(changed / nothing, rel=1e-4), (end, size)
    far, _ = lasting_evidence(
        np.zeros((4, 1, 1)), np.full((9, 1, 1), 40.0), np.ones((9, 1), dtype=bool), np.ones((9, 1, 1)), [np.eye(1)] * 9
    )
    assert np.isfinite(far).all() and far.max() > 1e15


# ------------------------------------------------------------------------------------------------ blocks and state


def a_stream(raw: np.ndarray, **fields: Any) -> Series:
    """Windows of 500 reports of variance 1/2."""
    known: dict[str, Any] = {"variances": np.full(raw.shape, 0.001), "common": np.zeros(raw.shape[1]), "jump": 2.0}
    known |= {"num_reports": np.full(len(raw), 500), "steps": np.ones(len(raw), dtype=np.int64)}
    return Series(raw=raw, **known | fields)


def test_noise_of_other_people_leaves_jumps_alone_to_ring() -> None:
    """A lasting rise by 4 standard errors rings; not if other people can explain it, and a jump still does."""
    rng = np.random.default_rng(71)
    raw = 0.2 + rng.normal(0, np.sqrt(0.001), (60, 3))
    raw[40:, 1] += 4 * np.sqrt(0.001)
    assert judge(a_stream(raw), 200).moved[40:, 1].any()
    few = {"turnover": np.full(3, 1e-12)}
    alone, all_jumps = judge(a_stream(raw, **few), 200), judge(a_stream(raw), 200, sudden=1.0)
    assert (alone.moved == all_jumps.moved).all()
    np.testing.assert_allclose(alone.p_value, all_jumps.p_value, rtol=1e-4)
    noisy = judge(a_stream(raw, turnover=np.full(3, 0.01)), 200)
    np.testing.assert_allclose((noisy.change_error**2 - alone.change_error**2)[:40], 0.01, rtol=1e-3)


def test_the_state_is_written_little_endian_and_read_again() -> None:
    memory = some_memory(6)
    past = Past(memory=memory, evidence=np.arange(312, dtype=np.float32).reshape(4, 26, 3))
    encoded = past.to_bytes()
    numbers = [*range(312), *memory.seen.tolist(), *memory.windows.tolist()]
    assert encoded[: 4 * 318] == struct.pack("<318f", *numbers)
    again = Past.from_bytes(encoded, 3)
    assert (again.evidence == past.evidence).all() and again.evidence.dtype == past.evidence.dtype
    for field in dataclasses.fields(Memory):
        old, new = (getattr(each.memory, field.name) for each in (past, again))
        assert (old == new).all() and old.dtype == new.dtype and old.shape == new.shape, field.name


# ------------------------------------------------------------------------------------------------ sizes of changes


def test_a_change_begins_where_it_is_most_significant() -> None:
    """Each possible beginning by itself: seen, after the last change before, and with an expectation before it."""
    rng, t, size = np.random.default_rng(79), 9, (10, 4)
    raw, expected = rng.normal(0.3, 0.05, size), rng.normal(0.2, 0.05, size)
    raw[2, 0], raw[5, 0], raw[7, 1] = np.nan, np.nan, np.nan
    known, noise, step = rng.uniform(0.001, 0.01, size), rng.uniform(0.001, 0.01, size), rng.uniform(0, 0.003, size)
    expected[4, 0], known[4, 0] = -9.0, 0.5  # it is as good as unknown
    moved = np.zeros(size, dtype=bool)
    moved[3, 1] = moved[6, 1] = moved[8, 2] = moved[9] = True
    expected[:, 3] = raw[:, 3] - 1e-4  # no beginning is significant
    moved[7, 3] = True
    alarms = Alarms(
        moved=moved,
        seen=np.zeros(size),
        p_value=np.zeros(10),
        expected=expected,
        expected_variance=known,
        change=raw - expected,
        change_error=np.sqrt(known + noise),
        step=step,
        past=Past.empty(4),
    )
    found = change_of(a_stream(raw), alarms, t, np.arange(4))
    for value, last in enumerate((-1, 6, 8, 7)):
        each = []
        for begin in range(last + 1, t + 1):
            if np.isnan(raw[begin, value]) or known[begin, value] >= 0.5:
                continue
            inside = [u for u in range(begin, t + 1) if not np.isnan(raw[u, value])]
            k = len(inside)
            change = raw[inside, value].mean() - expected[begin, value]
            walk = step[begin, value] * sum((i / k) ** 2 for i in range(1, k))
            variance = known[begin, value] + noise[inside, value].sum() / k**2 + walk
            each.append((abs(change) / np.sqrt(variance), change, np.sqrt(variance), k))
        _, change, error, k = max(each)
        assert (found.windows[value], found.looks[value]) == (k, len(each))
        assert (found.size[value], found.error[value]) == pytest.approx((change, error))


_PRODUCTS = """
import sys
import numpy as np
from uldp_transforms.ldp.smoothing.variation import mixed
moves, laws = np.load(sys.argv[1])["moves"], np.load(sys.argv[1])["laws"]
np.savez(sys.argv[2], each=mixed(moves, laws), mean=mixed(moves[0], laws[0]))
"""


def test_products_of_many_values_do_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    """The same bits with one thread and with two; apart from 64 bits, 26 terms lose at most 26 roundings each."""
    rng = generator("products")
    moves, laws = rng.random((26, 26), dtype=np.float32), rng.random((4, 26, 1000), dtype=np.float32)
    np.savez(tmp_path / "given.npz", moves=moves, laws=laws)
    found = []
    for threads in ("1", "2"):
        command = [sys.executable, "-c", _PRODUCTS, str(tmp_path / "given.npz"), str(tmp_path / f"{threads}.npz")]
        subprocess.run(command, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": threads})
        found.append(dict(np.load(tmp_path / f"{threads}.npz")))
    one, two = found
    exact = moves.astype(float) @ laws
    for name, expected in (("each", exact), ("mean", exact[0, 0])):
        assert one[name].tobytes() == two[name].tobytes()
        assert one[name] == pytest.approx(expected, rel=26 * float(np.finfo(np.float32).eps))
