"""The table of a long list: the same operator as ``Buckets``, made once in a process, and never sent anywhere."""

from __future__ import annotations

import os
import pickle
import threading

import numpy as np
import pytest

from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import Hashed
from uldp_transforms.ldp.sampling import small_integers, uniform_integers
from uldp_transforms.ldp.solvers import packed as module
from uldp_transforms.ldp.solvers.buckets import Buckets
from uldp_transforms.ldp.solvers.packed import PackedBuckets, packed_buckets

SHAPES = [  # C, S, k, h: several cohorts in a code and one, a last group that is not full, columns of several functions
    (1, 1, 2, 1),
    (7, 20, 2, 1),
    (17, 70_000, 2, 1),
    (11, 40_000, 8, 1),
    (5, 5000, 56, 1),
    (3, 300, 300, 1),
    (2, 40, 65_536, 1),
    (6, 500, 3, 2),
    (4, 300, 8, 3),
    (2, 30, 65_536, 2),
]


def values_of(size: int) -> tuple[str, ...]:
    return tuple(f"value {i}" for i in range(size))


@pytest.mark.parametrize(("num_cohorts", "size", "k", "h"), SHAPES)
def test_it_is_the_operator_of_buckets(num_cohorts, size, k, h):
    alphabet = Hashed(num_buckets=k, num_hashes=h, seed=3)
    table = PackedBuckets.of_values(alphabet, values_of(size), num_cohorts, k)
    dense = Buckets(alphabet.symbol_table(values_of(size), num_cohorts), k)
    rng = generator("packed", num_cohorts, size, k, h)
    frequencies, cells = rng.normal(size=size), rng.normal(size=(num_cohorts, k))
    np.testing.assert_allclose(table.forward(frequencies), dense.forward(frequencies), atol=1e-9)
    np.testing.assert_allclose(table.collect(cells), dense.gather(cells).sum(axis=0), atol=1e-9)
    weights = rng.exponential(size=num_cohorts)
    distinct = dense.gather(np.ones((num_cohorts, k)))
    lengths = weights @ (distinct - distinct**2 / k)
    np.testing.assert_allclose(np.broadcast_to(table.lengths(weights), size), lengths)
    assert table.mean_length == pytest.approx((distinct - distinct**2 / k).mean())
    assert table.mean_buckets - table.mean_buckets**2 / k == pytest.approx(table.mean_length)
    assert table.codes.nbytes <= 2 * num_cohorts * size * h or k == 65_536


@pytest.mark.parametrize("bound", [2, 3, 8, 56, 1000, 22_027, 65_535, 65_536])
def test_small_integers_are_those_of_all_bits(bound):
    """At random, and on both sides of the first word of each integer."""
    firsts = [-(-(number << 64) // bound) for number in range(1, bound, max(1, bound // 500))]
    edges = np.array([first + step for first in firsts for step in (-1, 0, 1)], dtype=np.uint64)
    random = generator("words", bound).integers(0, 1 << 64, 200_000, dtype=np.uint64)
    for words in (edges, random):
        found = small_integers(words, bound)
        assert found.dtype == np.uint16
        np.testing.assert_array_equal(found, uniform_integers(words, bound))


def test_a_large_table_lies_in_a_file_without_a_name(monkeypatch):
    alphabet = Hashed(num_buckets=8)
    expected = PackedBuckets.of_values(alphabet, values_of(900), 20, 8)
    monkeypatch.setattr(module, "_MAPPED_BYTES", 100)
    mapped = PackedBuckets.of_values(alphabet, values_of(900), 20, 8)
    assert isinstance(mapped.codes, np.memmap)
    np.testing.assert_array_equal(mapped.codes, expected.codes)


def test_a_full_disk_leaves_the_table_in_memory(monkeypatch):
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_MAPPED_BYTES", 100)
    monkeypatch.setattr(os, "posix_fallocate", full)
    table = PackedBuckets.of_values(Hashed(num_buckets=8), values_of(900), 20, 8)
    assert not isinstance(table.codes, np.memmap)


def test_a_list_is_hashed_once_whichever_thread_asks(monkeypatch):
    hashed, real = [], Hashed.symbol_rows

    def counted(self, values, num_cohorts):
        hashed.append(len(values))
        return real(self, values, num_cohorts)

    monkeypatch.setattr(Hashed, "symbol_rows", counted)
    found = []

    def ask() -> None:
        alphabet = Hashed(num_buckets=8, seed=77)  # equal, not the same
        found.append(packed_buckets(alphabet, values_of(3000), 20, 8))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(hashed) == 3000
    assert all(table is found[0] for table in found)


def test_lists_of_other_hash_functions_are_other_tables():
    for seed in (80, 81):
        alphabet = Hashed(num_buckets=8, seed=seed)
        expected = PackedBuckets.of_values(alphabet, values_of(90), 20, 8)
        np.testing.assert_array_equal(packed_buckets(alphabet, values_of(90), 20, 8).codes, expected.codes)


def test_the_lists_that_were_used_last_are_kept():
    alphabet = Hashed(num_buckets=8, seed=78)
    first = packed_buckets(alphabet, values_of(1), 2, 8)
    for size in range(2, 17):
        packed_buckets(alphabet, values_of(size), 2, 8)
        assert packed_buckets(alphabet, values_of(1), 2, 8) is first
    for size in range(17, 32):
        packed_buckets(alphabet, values_of(size), 2, 8)
    assert packed_buckets(alphabet, values_of(1), 2, 8) is first, "one of sixteen"
    for size in range(40, 56):
        packed_buckets(alphabet, values_of(size), 2, 8)
    assert packed_buckets(alphabet, values_of(1), 2, 8) is not first


def test_the_table_is_not_part_of_what_is_sent_to_workers():
    spec = {"id": "c", "version": 1, "alphabet": {"id": "hashed", "num_buckets": 16}, "num_cohorts": 64}
    item = Collection.from_json(spec | {"mechanism": {"id": "krr", "epsilon": 2.0}})
    before = len(pickle.dumps(item))
    item.estimate(item.count(item.perturb(["value 1"] * 500, generator("sent"))), candidates=values_of(600))
    assert len(pickle.dumps(item)) <= before + 2_000  # what a mechanism works out once; the table has 38,400 cells
