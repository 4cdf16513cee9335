"""Folded known lists: permutations, balanced buckets, values with symbols of their own, seeds that are no good."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from tests.support.cases import VALUES
from uldp_transforms.ldp.alphabets import Permuted, permuted
from uldp_transforms.ldp.errors import SpecError

MANY = tuple(f"value-{place}" for place in range(45))


def ranks(values: list[str], seed: int, number: int) -> dict[str, int]:
    """The place of each value among all, sorted by word ``number``; from the page hashing.md."""

    def word(value: str) -> int:
        text = b"uldp-hash-1\0" + seed.to_bytes(8, "little") + value.encode()
        stream = hashlib.shake_128(text).digest(8 * number + 8)
        return int.from_bytes(stream[8 * number :], "little")

    return {value: rank for rank, value in enumerate(sorted(values, key=word))}


@pytest.mark.parametrize("num_hashes", [1, 2, 3])
def test_function_j_of_cohort_c_ranks_by_word_c_h_plus_j(num_hashes):
    alphabet, num_cohorts = Permuted(values=MANY, num_buckets=7, seed=3, num_hashes=num_hashes), 9
    table = alphabet.symbol_table(MANY, num_cohorts).reshape(num_cohorts, len(MANY), num_hashes)
    for cohort in range(num_cohorts):
        for function in range(num_hashes):
            expected = ranks(list(MANY), 3, cohort * num_hashes + function)
            assert table[cohort, :, function].tolist() == [expected[value] % 7 for value in MANY]
    assert alphabet.symbol_rows(MANY[5:9], num_cohorts).tolist() == table[:, 5:9].swapaxes(0, 1).reshape(4, -1).tolist()


def test_only_sensitive_values_are_ranked_and_all_others_have_symbols_of_their_own():
    sensitive = ("fox", "ant", "cat", "bee")
    alphabet = Permuted(values=VALUES, num_buckets=3, seed=5, sensitive=sensitive)
    table = alphabet.symbol_table(VALUES, 6)
    assert (alphabet.folded, alphabet.clear_values) == (("ant", "bee", "cat", "fox"), ("dog", "émeu"))
    assert (alphabet.num_symbols, alphabet.num_sensitive) == (5, 3)
    assert alphabet.has_own_symbol(VALUES).tolist() == [False, False, False, True, True, False]
    for cohort in range(6):
        expected = ranks(["ant", "bee", "cat", "fox"], 5, cohort)
        assert {value: table[cohort, VALUES.index(value)] for value in expected} == {
            value: rank % 3 for value, rank in expected.items()
        }
    assert table[:, [3, 4]].tolist() == [[3, 4]] * 6
    assert alphabet.symbol_rows(("émeu",), 6).tolist() == [[4] * 6]


@pytest.mark.parametrize(("num_buckets", "num_hashes"), [(2, 1), (7, 1), (7, 2), (44, 1)])
def test_every_function_has_balanced_buckets(num_buckets, num_hashes):
    alphabet = Permuted(values=MANY, num_buckets=num_buckets, num_hashes=num_hashes)
    for column in alphabet.symbol_rows(MANY, 45).T:
        sizes = np.bincount(column, minlength=num_buckets)
        assert len(sizes) == num_buckets and sizes.max() - sizes.min() <= 1


def test_columns_are_ranked_in_blocks(monkeypatch):
    expected = Permuted(values=MANY, num_buckets=7, seed=11).symbol_rows(MANY, 13)
    monkeypatch.setattr(permuted, "_buckets", permuted._buckets.__wrapped__)  # without what it keeps
    for cells in (1, 100, 200):
        monkeypatch.setattr(permuted, "_RANKED_CELLS", cells)
        np.testing.assert_array_equal(Permuted(values=MANY, num_buckets=7, seed=11).symbol_rows(MANY, 13), expected)


def test_new_fields_leave_old_fingerprints_as_they_are():
    plain = {"id": "permuted", "values": list(VALUES), "num_buckets": 3, "seed": 5}
    assert Permuted(values=VALUES, num_buckets=3, seed=5).to_json() == plain
    assert Permuted(values=VALUES, num_buckets=3, seed=5, num_hashes=2).to_json() == plain | {"num_hashes": 2}
    partly = Permuted(values=VALUES, num_buckets=3, seed=5, sensitive=VALUES[:4])
    assert partly.to_json() == plain | {"sensitive": list(VALUES[:4])}
    assert partly.client_rule == {
        "rule": "permutation",
        "values": list(VALUES[:4]),
        "num_buckets": 3,
        "seed": "5",
        "listed": list(VALUES[4:]),
    }


def has_full_rank(alphabet: Permuted, num_cohorts: int) -> bool:
    """Whether the shares of the buckets and the known sum determine the shares of all values."""
    table = alphabet.symbol_table(alphabet.folded, num_cohorts).reshape(num_cohorts, len(alphabet.folded), -1)
    cells = [(row == bucket).any(axis=1) for row in table for bucket in range(alphabet.num_buckets)]
    sums = np.array(cells, dtype=float).reshape(num_cohorts, alphabet.num_buckets, -1)
    centred = (sums - sums.mean(axis=1, keepdims=True)).reshape(len(cells), -1)
    return bool(np.linalg.matrix_rank(np.vstack([centred, np.ones(len(alphabet.folded))])) == len(alphabet.folded))


@pytest.mark.parametrize(
    ("size", "num_buckets", "num_cohorts", "num_hashes", "both"),
    [(6, 6, 1, 1, False), (6, 4, 2, 1, True), (20, 11, 2, 1, True), (12, 5, 3, 1, True), (45, 16, 3, 1, True),
     (6, 2, 5, 2, True), (45, 4, 16, 1, False)],
)  # fmt: skip
def test_a_seed_that_leaves_shares_open_is_refused(size, num_buckets, num_cohorts, num_hashes, both):
    """Few cohorts are enough if their permutations happen to tell all values apart, from 1 cohort on."""
    seen = set()
    for seed in range(40):
        alphabet = Permuted(values=MANY[:size], num_buckets=num_buckets, seed=seed, num_hashes=num_hashes)
        seen.add(has_full_rank(alphabet, num_cohorts))
        if has_full_rank(alphabet, num_cohorts):
            alphabet.check_cohorts(num_cohorts)
        else:
            with pytest.raises(SpecError, match="must name permutations that tell"):
                alphabet.check_cohorts(num_cohorts)
    assert seen == ({True, False} if both else {True})


def test_of_a_long_list_no_two_values_may_share_all_buckets():
    """513 values in 2 x 256 buckets: two of them share both with probability .87."""
    values = tuple(f"v{place}" for place in range(513))
    taken = set()
    for seed in range(30):
        alphabet = Permuted(values=values, num_buckets=300, seed=seed)
        distinct = len(np.unique(alphabet.symbol_rows(values, 2), axis=0)) == 513
        taken.add(distinct)
        if distinct:
            alphabet.check_cohorts(2)
        else:
            with pytest.raises(SpecError, match="513 values apart in 2 cohorts"):
                alphabet.check_cohorts(2)
    assert taken == {True, False}
