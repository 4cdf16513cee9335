"""Ids as fingerprints: a set of ids, whatever the runs; how often a new id is taken for a known one; what is stored."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support import replay
from tests.support.beam.repeated_reports import (
    ALL,
    JOB,
    PERIOD,
    WINDOWS,
    arrivals,
    as_list,
    as_messages,
    at,
    check,
    counts_of,
    late,
    of_files,
    of_stream,
    reports_in_order,
    several_bundles,
    some_reports,
)
from tests.support.messages_cases import KRR
from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms.beam.runtime.worker_memory import Held
from uldp_transforms.beam.transforms import deduplicate
from uldp_transforms.collector import known_ids
from uldp_transforms.collector.known_ids import SECRET_BYTES, KnownIds, lost_reports, merge_into
from uldp_transforms.messages import wire
from uldp_transforms.windows import rfc3339

SECRET = bytes(range(SECRET_BYTES))
FINGERPRINTS: dict[str, Any] = JOB | {"deduplicate_by": "fingerprints"}


def rows_of(ids: np.ndarray) -> np.ndarray:
    """Rows with these small numbers as ids, and different payloads."""
    rows = np.zeros((len(ids), 20), np.uint8)
    rows[:, :8] = ids.astype("<u8")[:, np.newaxis].view(np.uint8)
    rows[:, 16:] = np.arange(len(ids), dtype="<u4")[:, np.newaxis].view(np.uint8)
    return rows


# ---------------------------------------------------------------------- the set


@pytest.mark.parametrize("at_once", [1, 7, 500])
def test_the_first_row_of_each_id_counts_however_rows_are_portioned(at_once: int) -> None:
    rng = generator("known ids", at_once)
    rows = rows_of(rng.integers(0, 900, 2_000))
    known, seen, copies = KnownIds(SECRET), dict[bytes, bytes](), 0
    for start in range(0, len(rows), at_once):
        new = [row for row in as_list(rows[start : start + at_once]) if row[:16] not in seen]
        first = {row[:16]: row for row in reversed(new)}
        removed, added, duplicates = known.add(rows[start : start + at_once])
        assert sorted(as_list(added)) == sorted(first.values())
        assert len(removed) == 0
        assert known.stored(added) == known.fingerprints(added[:, :16]).tobytes()
        seen |= first
        copies += duplicates
    assert len(known) == len(seen)
    assert copies == len(rows) - len(seen)


def test_rows_are_added_in_their_order() -> None:
    """So that of equal ids of a bundle the first one counts."""
    rows = rows_of(np.array([5, 3, 5, 9, 3, 1]))
    assert as_list(KnownIds(SECRET).add(rows).added) == as_list(rows[[0, 1, 3, 5]])


@pytest.mark.parametrize("sizes", [(1, 1), (5, 1), (1, 5), (1_000, 300), (64, 64), (4_096, 1)])
@pytest.mark.parametrize("at_once", [1, 16, 1 << 16])
def test_merged_runs_are_sorted_in_the_first_ones_memory(
    sizes: tuple[int, int], at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_ids, "_MERGED_AT_ONCE", at_once)
    numbers = generator("merged", *sizes, at_once).permutation(2 * sum(sizes)).astype(np.uint64)
    longer, shorter = (np.sort(part) for part in (numbers[: sizes[0]], numbers[sizes[0] : sum(sizes)]))
    expected = np.sort(np.concatenate((longer, shorter)))
    merged = merge_into(longer, shorter)
    assert merged is longer
    assert merged.tolist() == expected.tolist()


@pytest.mark.parametrize("end", ["before", "after", "between"])
def test_runs_that_do_not_overlap_are_merged_too(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_ids, "_MERGED_AT_ONCE", 3)
    longer = np.array([10, 20, 30, 40, 50, 60, 70], np.uint64)
    shorter = np.array({"before": [1, 2, 3], "after": [81, 82], "between": [41, 42, 43, 44]}[end], np.uint64)
    expected = sorted([*longer.tolist(), *shorter.tolist()])
    assert merge_into(longer, shorter).tolist() == expected


def test_an_id_takes_eight_bytes_in_few_runs() -> None:
    known, rng = KnownIds(SECRET), generator("eight bytes")
    for _ in range(300):
        known.add(rng.integers(0, 256, (100, 17), dtype=np.uint8))
    assert len(known) == 30_000
    assert known.num_bytes == 8 * 30_000
    assert len(known._runs) <= 6
    assert all(len(longer) > 4 * len(shorter) for longer, shorter in itertools.pairwise(known._runs))


def test_what_is_stored_in_any_blocks_is_the_same_set_and_twice_is_once() -> None:
    rows = rows_of(generator("stored").permutation(3_000))
    known, again, other = KnownIds(SECRET), KnownIds(SECRET), KnownIds(bytes(16))
    stored = known.stored(known.add(rows).added)
    assert len(stored) == 8 * 3_000
    for block in (stored[16_000:], stored[:16_000], stored[8_000:], b""):
        again.read(block)
        other.read(block)
    assert len(again) == 3_000
    assert again.add(rows).duplicates == 3_000
    assert other.add(rows).duplicates == 0, "another secret gives other fingerprints"


# ---------------------------------------------------------------------- fingerprints


def test_fingerprints_are_the_sums_that_their_definition_says() -> None:
    known = KnownIds(SECRET)
    ids = generator("sums").integers(0, 256, (50, 16), dtype=np.uint8)
    keys = [[int(key) for key in half] for half in known._keys]
    for row, found in zip(ids, known.fingerprints(ids).tolist()):
        words = [int.from_bytes(row[4 * place : 4 * place + 4].tobytes(), "little") for place in range(4)]
        halves = [(half[0] + sum(map(int.__mul__, half[1:], words))) % (1 << 64) >> 32 for half in keys]
        assert found == halves[0] << 32 | halves[1]


@pytest.mark.parametrize("difference", [1, 1 << 31, 1 << 64, (1 << 127) + 1])
def test_similar_ids_differ_in_every_bit_of_their_fingerprints_for_half_of_all_secrets(difference: int) -> None:
    """Two ids of a sender's choice, and many secrets: each bit of the difference is as good as a coin."""
    pair = np.array([list(number.to_bytes(16, "little")) for number in (7, 7 + difference)], np.uint8)
    differ = [
        int(np.bitwise_xor.reduce(KnownIds(number.to_bytes(16, "big")).fingerprints(pair))) for number in range(2_000)
    ]
    ones = np.array([sum(one >> bit & 1 for one in differ) for bit in range(64)])
    assert within(ones, binomial_limits(2_000, np.full(64, 0.5))).all()


class Short(KnownIds):
    """Fingerprints of few bits, the upper ones of each half, so that many are equal."""

    bits = 20

    def fingerprints(self, ids: np.ndarray) -> np.ndarray:
        full, half = super().fingerprints(ids), self.bits // 2
        upper, lower = full >> np.uint64(64 - half), full << np.uint64(32) >> np.uint64(64 - half)
        return upper << np.uint64(half) | lower


@pytest.mark.parametrize("difference", [1, 1 << 31, 1 << 64, (1 << 127) + 1])
def test_any_two_ids_have_the_same_fingerprint_as_rarely_as_random_ones(difference: int) -> None:
    """With 8 bits, for one of 256 secrets."""
    pair = np.array([list(number.to_bytes(16, "little")) for number in (7, 7 + difference)], np.uint8)
    rows = np.hstack([pair, pair[:, :4]])
    equal = 0
    for number in range(2_000):
        known = Short(generator("secret", difference, number).bytes(16))
        known.bits = 8
        equal += known.add(rows).duplicates
    assert within(np.array([equal]), binomial_limits(np.array([2_000]), np.array([1 / 256]))).all()


def test_new_ids_are_lost_as_often_as_the_bound_says() -> None:
    """Random ids, as clients draw them: with 20 bits 8,000 of them fall into as many of 2**20 places as a Poisson
    process would fill."""
    n, known = 8_000, Short(SECRET)
    lost = sum(
        known.add(generator("lost", part).integers(0, 256, (n // 8, 20), dtype=np.uint8)).duplicates
        for part in range(8)
    )
    bound = lost_reports(n, bits=20)
    assert bound == pytest.approx(n * (n - 1) / 2 / 2**20)
    low, high = stats.poisson.ppf([1e-9, 1 - 1e-9], bound)
    assert low <= lost <= high
    assert lost_reports(n, 4, bits=20) == pytest.approx(n * (n / 4 - 1) / 2 / 2**20)
    assert lost_reports(1e9, 16) < 0.002


def test_an_id_with_the_fingerprint_of_another_one_is_in_the_ledger_as_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal fingerprints by construction: what is lost is counted as a copy, and the ledger balances."""
    monkeypatch.setattr(deduplicate, "KnownIds", Short)
    monkeypatch.setattr(Short, "bits", 4)
    batch = at(some_reports(KRR, 300, "sixteen places"), 0)
    events = [replay.arrive(PERIOD, [wire.encode_batch(batch)])]
    rows = replay.replay(replay.streaming_job(ALL, WINDOWS, **FINGERPRINTS | {"deduplicate_parts": 1}), events)
    assert not replay.unbalanced(rows["ledger"])
    sums = sum(replay.sum_ledger(rows["ledger"]).values(), Counter())
    assert sums["accepted"] <= 16
    assert sums["accepted"] + sums["duplicates"] == sums["received"] == 300
    assert counts_of(rows["counts"])[KRR.fingerprint.hex(), rfc3339(0)].total == sums["accepted"]


# ---------------------------------------------------------------------- the job


@pytest.mark.parametrize("run", [of_files, of_stream])
def test_everything_twice_is_everything_once(run: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without conflicts it counts what exact deduplication counts."""
    monkeypatch.setitem(JOB, "deduplicate_by", "fingerprints")
    batches = [some_reports(of, 40) for of in ALL]
    sent = [*batches, *(batch[::-1] for batch in batches)]
    check(run(sent, tmp_path), sent)


@pytest.mark.parametrize("block", [pytest.param(-1, marks=pytest.mark.slow), 100, 1 << 15])
def test_a_worker_that_holds_nothing_counts_the_same(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restarts: all is in state, also the secret."""
    monkeypatch.setattr(deduplicate, "_BLOCK", block)
    monkeypatch.setattr(deduplicate, "_HELD", Held(seconds=-1))
    sent = [part for number, part in enumerate(several_bundles()) if number % 3 < 2]  # no conflicts
    job = replay.streaming_job(ALL, WINDOWS, **FINGERPRINTS | {"deduplicate_parts": 2})
    check(replay.replay(job, arrivals(sent)), sent)


def test_what_was_written_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    held: Held[Any] = Held()
    read = deduplicate.read_again
    monkeypatch.setattr(deduplicate, "read_again", lambda *given: (found.append(1), read(*given))[1])
    monkeypatch.setattr(deduplicate, "_HELD", held)
    sent = [some_reports(KRR, 60, number) for number in range(6)]
    job = replay.streaming_job(ALL, WINDOWS, **FINGERPRINTS | {"deduplicate_parts": 2})
    check(replay.replay(job, arrivals(sent)), sent)
    assert len(found) == 6, "three base periods in two parts"
    assert len(held) == 0, "at the end of the stream all is forgotten"


def test_of_reports_in_conflict_the_first_counts_and_a_late_one_makes_no_pane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(JOB, "deduplicate_by", "fingerprints")
    smaller, larger = reports_in_order()
    events = [replay.arrive(0, wire.encode_reports(larger)), replay.watermark(2 * PERIOD)]
    events += [replay.arrive(2 * PERIOD, wire.encode_reports(smaller))]
    rows = replay.replay(replay.streaming_job(ALL, WINDOWS, **JOB), events)
    assert [(row.pane_index, row.pane_timing) for row in rows["counts"]] == [(0, "ON_TIME")]
    assert counts_of(rows["counts"])[KRR.fingerprint.hex(), rfc3339(0)] == KRR.count(larger)
    sums = sum(replay.sum_ledger(rows["ledger"]).values(), Counter())
    assert sums == Counter(received=2, accepted=1, duplicates=1)


def test_a_late_copy_makes_no_pane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(JOB, "deduplicate_by", "fingerprints")
    report, _ = reports_in_order()
    assert len(late(report, report)) == 1


def test_a_bundle_that_is_tried_again_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker held fingerprints of another secret than the engine's state has, which never had one."""
    sent = [at(some_reports(KRR, 40, number), 7) for number in range(3)]
    count, calls = deduplicate._CountOnceFn._count, itertools.count(1)

    def fails_in_the_first_bundle(step: Any, *given: Any) -> Any:
        if next(calls) == 1:
            raise RuntimeError("tried again")
        return count(step, *given)

    monkeypatch.setattr(deduplicate._CountOnceFn, "_count", fails_in_the_first_bundle)
    events = [replay.arrive(PERIOD, as_messages(batch)) for batch in [*sent, sent[1]]]
    rows = replay.replay(replay.streaming_job(ALL, WINDOWS, **FINGERPRINTS | {"deduplicate_parts": 1}), events)
    check(rows, [*sent, sent[1]])


def test_each_state_has_its_own_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn once for each part of a base period, and kept."""
    secrets: list[bytes] = []
    monkeypatch.setattr(deduplicate, "_HELD", Held(seconds=-1))
    monkeypatch.setattr(deduplicate, "KnownIds", lambda secret: (secrets.append(secret), KnownIds(secret))[1])
    sent = [some_reports(KRR, 60, number) for number in range(3)]
    job = replay.streaming_job(ALL, WINDOWS, **FINGERPRINTS | {"deduplicate_parts": 2})
    check(replay.replay(job, arrivals(sent)), sent)
    assert len(set(secrets)) == 6, "three base periods in two parts"
    assert len(secrets) >= 18, "it is read again for each bundle"
