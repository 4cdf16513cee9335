"""Known reports are a dictionary from ids to the smallest row, however rows come and wherever their slots are."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.messages_cases import KRR, URAP, collection, numbered
from tests.support.tolerance import generator
from uldp_transforms.collector import known_reports
from uldp_transforms.collector.known_reports import HEAD, KnownReports, to_rows
from uldp_transforms.ldp import Collection

WIDE = collection("wide", numbered(2_000), "rappor")  # 250 bytes a report

IDS = (bytes(16), bytes(15) + b"\1", b"\1" + bytes(15), b"\x80" * 16, b"\xff" * 16)
TAILS = [bytes(tail) for tail in itertools.product((0, 1, 127, 128, 255), repeat=2)]
some_rows = st.lists(st.builds(bytes.__add__, st.sampled_from(IDS), st.sampled_from(TAILS)), max_size=12)
seeds = st.integers(0, (1 << 128) - 1)


def as_array(rows: Sequence[bytes], width: int = 18) -> np.ndarray:
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(-1, width)


def as_list(rows: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in rows]


def smallest(rows: Sequence[bytes]) -> dict[bytes, bytes]:
    """The row that counts, by id, in the order of the ids; Python compares bytes one by one, the first one first."""
    kept: dict[bytes, bytes] = {}
    for row in rows:
        kept[row[:16]] = min(row, kept.get(row[:16], row))
    return kept


@settings(max_examples=100)
@given(st.lists(some_rows, max_size=4), seeds)
def test_known_reports_are_a_dictionary(parts: list[list[bytes]], seed: int) -> None:
    """After each part, and in what changed and how many were there already."""
    known = KnownReports(18, seed)
    seen: list[bytes] = []
    for part in parts:
        old, new = as_list(known.rows), as_array(part)
        before = len(smallest(seen))
        removed, added, duplicates = known.add(new)
        seen += part
        assert sorted(as_list(known.rows)) == sorted(smallest(seen).values())
        assert len(known) == len(smallest(seen))
        assert Counter(old) - Counter(as_list(removed)) + Counter(as_list(added)) == Counter(as_list(known.rows))
        assert set(as_list(removed)) <= set(old) and set(as_list(added)) <= set(part)
        assert not set(as_list(removed)) & set(as_list(added)), "nothing is taken back only to be added again"
        assert duplicates == len(part) - (len(smallest(seen)) - before)
        assert as_list(new) == part, "the input is not changed"


@settings(max_examples=100)
@given(some_rows, st.randoms(use_true_random=False))
def test_any_order_and_any_cut_keep_the_same(rows: list[bytes], rng: Any) -> None:
    for _ in range(3):
        known = KnownReports(18)
        order = rng.sample(rows, len(rows))
        cut = rng.randint(0, len(rows))
        duplicates = known.add(as_array(order[:cut])).duplicates + known.add(as_array(order[cut:])).duplicates
        assert sorted(as_list(known.rows)) == sorted(smallest(rows).values())
        assert duplicates == len(rows) - len(smallest(rows))


@pytest.mark.parametrize("of", [KRR, URAP, WIDE], ids=lambda of: of.id)
def test_rows_hold_the_whole_report(of: Collection) -> None:
    """Reports that differ anywhere are different rows, which begin with the id."""
    day = 86_400_000
    batch = of.perturb(["0"] * 9, generator("rows", of.id), np.arange(9) * day - day)
    rows = to_rows(batch)
    assert rows.shape == (9, 26 + of.mechanism.payload_size)
    assert as_list(rows[:, :16]) == as_list(batch.report_ids)
    assert rows[:, 16:24].copy().view("<i8")[:, 0].tolist() == batch.event_times.tolist()
    assert rows[:, 24:HEAD].copy().view("<u2")[:, 0].tolist() == batch.cohorts.tolist()
    assert as_list(rows[:, HEAD:]) == as_list(batch.payloads)


@pytest.mark.parametrize("part", [1, 7, 400, 100_000])
def test_a_growing_number_is_known(part: int) -> None:
    """Tables that are made anew know what the old ones knew, and later rows replace what came before."""
    rng = generator("growing", part)
    rows = rng.integers(0, 256, (min(200_000, 2_000 * part), 20), dtype=np.uint8)
    known = KnownReports(20)
    for first in range(0, len(rows), part):
        assert known.add(rows[first : first + part])[2] == 0
    assert np.array_equal(np.sort(known.rows.view("S20")[:, 0]), np.sort(rows.view("S20")[:, 0]))
    smaller = rows.copy()
    smaller[:, 16:] = 0
    removed, added, duplicates = known.add(smaller)
    changed = rows[:, 16:].any(axis=1).sum()
    assert (len(removed), len(added), duplicates) == (changed, changed, len(rows))
    assert known.add(rows)[2] == len(rows)
    assert known.num_bytes <= (1.25 * 20 + 16) * len(rows) + (1 << 12), "a quarter more rows, and four slots for each"


def test_all_slots_may_be_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only slower: the answer does not depend on where the slots are, nor on the end of the table being met."""
    monkeypatch.setattr(KnownReports, "_first_slots", lambda self, ids: np.full(len(ids), len(self._slots) - 2))
    rows = generator("same slots").integers(0, 256, (700, 18), dtype=np.uint8)
    known = KnownReports(18)
    assert [known.add(part)[2] for part in (rows[:300], rows[200:500], rows)] == [0, 100, 500]
    assert sorted(as_list(known.rows)) == sorted(as_list(rows))


def numbers(shift: int, word: int) -> np.ndarray:
    """Ids (16,384, 2): numbers somewhere in 16 bytes."""
    ids = np.zeros((1 << 14, 2), np.uint64)
    ids[:, word] = np.arange(len(ids), dtype=np.uint64) << np.uint64(shift)
    return ids


def undone() -> np.ndarray:
    """Ids (16,384, 2) whose second half undoes what a product and a shift make of the first one, whatever the seed."""
    high = np.arange(1 << 7, dtype=np.uint64) << np.uint64(57)
    return np.stack([np.repeat(high, 1 << 7), np.tile(high ^ (high >> np.uint64(32)), 1 << 7)], axis=1)


CHOSEN = {f"{shift} {word}": numbers(shift, word) for shift in (0, 20, 50) for word in (0, 1)} | {"undone": undone()}


@pytest.mark.parametrize("ids", CHOSEN.values(), ids=CHOSEN)
def test_ids_that_somebody_chose_are_spread_like_random_ones(ids: np.ndarray) -> None:
    """No 256 slots in a row are filled, if ids are numbers somewhere in 16 bytes, or fit each other.

    16,384 ids in 32,768 random slots: n slots in a row get n ids or more with a probability of at most (e / 4)^(n / 2)
    (Chernoff), 3e-22 for n = 256; with 32,768 first slots, 4 seeds and 7 kinds of ids the false-alarm rate is 3e-16.
    """
    rows = np.concatenate([ids.view(np.uint8), np.zeros((len(ids), 1), np.uint8)], axis=1)
    for seed in range(4):
        known = KnownReports(17, int.from_bytes(generator("slots", seed).bytes(16), "big"))
        known.add(rows)
        free = np.flatnonzero(known._slots == -1)
        assert len(free) == 1 << 14
        assert np.diff(free).max() <= 256


def test_the_seed_of_a_process_is_random() -> None:
    """128 bits; fewer than 64 of them count with a chance of 2^-64."""
    assert known_reports.SEED.bit_length() > 64
