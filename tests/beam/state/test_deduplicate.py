"""Counting each id once: what counts is a dictionary from ids to the smallest report, however the reports arrive."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.test_stream import Event

from tests.support import replay
from tests.support.messages_cases import BATCH, KRR, REPORT, URAP, collection, container, numbered
from tests.support.tolerance import generator
from uldp_transforms.beam.runtime.worker_memory import Held
from uldp_transforms.beam.transforms import deduplicate
from uldp_transforms.beam.transforms.count_reports import CountReports
from uldp_transforms.beam.transforms.decode_reports import DecodeReports
from uldp_transforms.beam.transforms.deduplicate import CountNewReports, _split
from uldp_transforms.collector.known_ids import KnownIds
from uldp_transforms.collector.known_reports import KnownReports, to_rows
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.windows import BasePeriods, Windows, rfc3339

MINUTE = 60_000
PERIOD = 10 * MINUTE
DAY = 1440 * MINUTE
WINDOWS = Windows(size=PERIOD)
JOB: dict[str, Any] = {"allowed_lateness": DAY, "deduplicate": True, "write_counts": True}

WIDE = collection("wide", numbered(2_000), "rappor")  # 250 bytes a report
ALL = [KRR, URAP, WIDE]
BY_FINGERPRINT = {of.fingerprint.hex(): of for of in ALL}


def as_list(rows: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in rows]


# ---------------------------------------------------------------------- the job, by the same dictionary


def some_reports(of: Collection, n: int, *seed: object, first: int = 0) -> ReportBatch:
    """Reports in some periods after a moment."""
    rng = generator("deduplicate", of.id, *seed)
    return of.perturb(rng.choice(["0", "1", "2"], n).tolist(), rng, first + rng.integers(0, 3 * PERIOD, n))


def with_id(batch: ReportBatch, report_id: bytes) -> ReportBatch:
    ids = np.frombuffer(report_id * len(batch), np.uint8).reshape(-1, 16)
    return dataclasses.replace(batch, report_ids=ids)


def at(batch: ReportBatch, moment: int) -> ReportBatch:
    return dataclasses.replace(batch, event_times=np.full(len(batch), moment, np.int64))


def in_conflict(batch: ReportBatch, *seed: object) -> ReportBatch:
    """Other reports with the same ids, in the same periods."""
    of = BY_FINGERPRINT[batch.fingerprint.hex()]
    moments = batch.event_times // PERIOD * PERIOD + 7
    other = of.perturb(["1"] * len(batch), generator("conflict", of.id, *seed), moments)
    return dataclasses.replace(other, report_ids=batch.report_ids)


Key = tuple[str, str]
"""Fingerprint and start of the window, as rows name them."""


def by_dictionary(sent: Sequence[ReportBatch]) -> tuple[dict[Key, CohortCounts], Counter[Key]]:
    """Counts of the smallest report of each id in each period, and the number of all other reports."""
    kept: dict[tuple[Key, bytes], tuple[bytes, ReportBatch]] = {}
    number: Counter[Key] = Counter()
    for batch in sent:
        for i, row in enumerate(as_list(to_rows(batch))):
            key = (batch.fingerprint.hex(), rfc3339(int(batch.event_times[i]) // PERIOD * PERIOD))
            number[key] += 1
            name = (key, row[:16])
            if name not in kept or row < kept[name][0]:
                kept[name] = row, batch[i : i + 1]
    counts: dict[Key, CohortCounts] = {}
    for (key, _), (_, report) in kept.items():
        of = BY_FINGERPRINT[key[0]]
        counts[key] = counts.get(key, of.count(report[:0])) + of.count(report)
    number.subtract({key: item.total for key, item in counts.items()})
    return counts, +number


def counts_of(rows: Sequence[Any]) -> dict[Key, CohortCounts]:
    """The last pane of each window, of rows of counts."""
    last: dict[Key, Any] = {}
    for row in sorted(rows, key=lambda row: row.pane_index):
        last[row.fingerprint, row.window_start] = row
    return {
        key: CohortCounts(np.array(row.num_reports), np.array(row.cells).reshape(len(row.num_reports), -1))
        for key, row in last.items()
    }


def check(rows: dict[str, list[Any]], sent: Sequence[ReportBatch]) -> None:
    """Counts and ledger are those of the dictionary."""
    counts, copies = by_dictionary(sent)
    assert counts_of(rows["counts"]) == counts
    assert not replay.unbalanced(rows["ledger"])
    sums = replay.sum_ledger(rows["ledger"])
    assert {key: bins["accepted"] for key, bins in sums.items()} == {key: item.total for key, item in counts.items()}
    assert {key: bins["duplicates"] for key, bins in sums.items() if bins["duplicates"]} == copies


def as_messages(batch: ReportBatch) -> list[bytes]:
    """Half of the reports alone, if they have ids, the others together."""
    alone = len(batch.report_ids) // 2
    return [*wire.encode_reports(batch[:alone]), wire.encode_batch(batch[alone:])]


def of_files(sent: Sequence[ReportBatch], folder: Path) -> dict[str, list[Any]]:
    """The rows of the job when reports stand in files, a file of single ones and one of packed ones for each batch."""
    for number, batch in enumerate(sent):
        messages = as_messages(batch)
        for form, schema in ((b"\x02", REPORT), (b"\x04", BATCH)):
            blocks = [(1, message) for message in messages if message[:1] == form]
            (folder / f"{number}-{form.hex()}.avro").write_bytes(container(blocks, schema))
    job = replay.file_job(ALL, WINDOWS, f"{folder}/*.avro", **JOB)
    return replay.replay(job)


def of_stream(sent: Sequence[ReportBatch], folder: Path) -> dict[str, list[Any]]:
    """The rows of the job when batches arrive one after the other, the second half after the on-time panes."""
    events: list[Event] = []
    for number, batch in enumerate(sent):
        if number == len(sent) // 2:
            events.append(replay.watermark(5 * PERIOD))
        events.append(replay.arrive((3 + number) * PERIOD, as_messages(batch)))
    return replay.replay(replay.streaming_job(ALL, WINDOWS, **JOB), events)


either_way = pytest.mark.parametrize("run", [of_files, of_stream])
Run = Callable[[Sequence[ReportBatch], Path], dict[str, list[Any]]]


@either_way
def test_everything_twice_is_everything_once(run: Run, tmp_path: Path) -> None:
    batches = [some_reports(of, 40) for of in ALL]
    rows = run([*batches, *(batch[::-1] for batch in batches)], tmp_path)
    check(rows, batches + batches)
    assert sum(row.duplicates for row in rows["ledger"]) == 40 * len(ALL)
    expected = {}
    for of, batch in zip(ALL, batches):
        by_period = batch.event_times // PERIOD * PERIOD
        for start in set(by_period.tolist()):
            expected[of.fingerprint.hex(), rfc3339(start)] = of.count(batch[by_period == start])
    assert counts_of(rows["counts"]) == expected


@either_way
def test_of_reports_in_conflict_the_smallest_counts(run: Run, tmp_path: Path) -> None:
    """Before and after the on-time pane; half of the corrections take a report back."""
    sent = []
    for of in ALL:
        batch = some_reports(of, 30)
        sent.append([batch[:20], in_conflict(batch), batch[10:], in_conflict(batch, "again")])
    rounds = [batch for batches in zip(*sent) for batch in batches]
    check(run(rounds, tmp_path), rounds)


@either_way
def test_one_id_ten_thousand_times_is_one_report(run: Run, tmp_path: Path) -> None:
    report = some_reports(KRR, 1)
    many = report[np.zeros(5_000, np.int64)]
    rows = run([many, many], tmp_path)
    check(rows, [many, many])
    assert [row.num_reports for row in rows["estimates"]] == [1]
    assert sum(row.duplicates for row in rows["ledger"]) == 9_999


@either_way
def test_ids_are_of_one_collection_and_period(run: Run, tmp_path: Path) -> None:
    """The same id in another is another report."""
    sent = [with_id(at(some_reports(of, 3, start), start), bytes(16)) for of in ALL for start in (0, PERIOD)]
    rows = run(sent, tmp_path)
    check(rows, sent)
    assert [item.total for item in counts_of(rows["counts"]).values()] == [1] * 6


@either_way
def test_reports_without_ids_are_refused(run: Run, tmp_path: Path) -> None:
    """Packed ones: a single report always has an id."""
    nameless = dataclasses.replace(some_reports(KRR, 8), report_ids=np.zeros((0, 16), np.uint8))
    named = some_reports(KRR, 8, "named")
    rows = run([named, nameless], tmp_path)
    assert counts_of(rows["counts"]) == by_dictionary([named])[0]
    assert not replay.unbalanced(rows["ledger"])
    assert sum((replay.sum_ledger(rows["ledger"]).values()), Counter()) == Counter(
        received=16, accepted=8, no_report_id=8
    )
    assert [(row.reason, row.num_reports) for row in rows["rejected"]] == [("no_report_id", 8)]


@pytest.mark.parametrize("num_parts", [1, 3, 256, 1 << 32])
def test_in_how_many_parts_reports_are_held_changes_nothing(num_parts: int) -> None:
    """Also if ids differ in their first bytes only."""
    batch = some_reports(KRR, 50)
    ids = np.zeros((50, 16), np.uint8)
    ids[:, :4] = generator("parts").integers(0, 256, (50, 4))
    sent = [batch, dataclasses.replace(batch, report_ids=ids), in_conflict(batch), batch]
    events = [replay.arrive((3 + number) * PERIOD, as_messages(part)) for number, part in enumerate(sent)]
    job = replay.streaming_job(ALL, WINDOWS, deduplicate_parts=num_parts, **JOB)
    check(replay.replay(job, events), sent)


def several_bundles() -> list[ReportBatch]:
    """New reports, copies and conflicts, some of them after the on-time panes."""
    batches = [some_reports(KRR, 60, number) for number in range(8)]
    return [part for batch in batches for part in (batch, batch[::3], in_conflict(batch[::5]))]


def arrivals(sent: Sequence[ReportBatch]) -> list[Event]:
    return [replay.arrive((3 + number) * PERIOD, as_messages(part)) for number, part in enumerate(sent)]


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of blocks of state, whenever a worker reads what it does not hold."""
    found: list[int] = []
    read = deduplicate.read_again

    def reads(blocks: Iterable[bytes], width: int, secret: bytes) -> KnownReports | KnownIds:
        blocks = list(blocks)
        found.append(len(blocks))
        return read(blocks, width, secret)

    monkeypatch.setattr(deduplicate, "read_again", reads)
    return found


@pytest.mark.parametrize("block", [-1, 100, 1 << 15])
def test_a_worker_that_holds_nothing_counts_the_same(
    block: int, readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is in state: what was written to the log, in blocks of any size, and what waits for it."""
    monkeypatch.setattr(deduplicate, "_BLOCK", block)
    monkeypatch.setattr(deduplicate, "_HELD", Held(seconds=-1))
    sent = several_bundles()
    check(replay.replay(replay.streaming_job(ALL, WINDOWS, deduplicate_parts=2, **JOB), arrivals(sent)), sent)
    assert len(readings) > 50
    assert (max(readings) > 10) == (block < 1_000), "the log has several blocks, or none"


def test_what_was_written_is_not_read_again(readings: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of a base period is read once: when there is nothing."""
    monkeypatch.setattr(deduplicate, "_BLOCK", 100)
    held: Held[KnownReports] = Held()
    monkeypatch.setattr(deduplicate, "_HELD", held)
    sent = several_bundles()
    job = replay.streaming_job(ALL, WINDOWS, deduplicate_parts=2, **JOB)
    check(replay.replay(job, arrivals(sent)), sent)
    assert readings == [0] * 6, "three base periods in two parts"
    assert len(held) == 0, "at the end of the stream all is forgotten"


def test_a_bundle_that_is_tried_again_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker had written state and held it when the bundle failed; the engine took back what it wrote."""
    sent = [at(some_reports(KRR, 40, number), 7) for number in range(3)]
    count, calls = deduplicate._CountOnceFn._count, itertools.count(1)

    def fails_in_the_second_bundle(step: Any, of: Collection, rows: np.ndarray) -> CohortCounts:
        if next(calls) == 2:
            raise RuntimeError("tried again")
        return count(step, of, rows)

    monkeypatch.setattr(deduplicate._CountOnceFn, "_count", fails_in_the_second_bundle)
    events = [replay.arrive(PERIOD, [wire.encode_batch(batch)]) for batch in [*sent, sent[1]]]
    rows = replay.replay(replay.streaming_job(ALL, WINDOWS, deduplicate_parts=1, **JOB), events)
    check(rows, [*sent, sent[1]])
    assert next(calls) == 6, "four bundles, one of them twice"


def test_copies_write_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither do reports that do not count: the version stays."""
    versions: list[bytes] = []
    draw = deduplicate.new_version
    monkeypatch.setattr(deduplicate, "new_version", lambda: versions.append(draw()) or versions[-1])
    smaller, larger = reports_in_order()
    sent = [smaller, smaller, larger, smaller]
    check(replay.replay(replay.streaming_job(ALL, WINDOWS, **JOB), arrivals(sent)), sent)
    assert len(versions) == 1


def test_ids_are_spread_over_all_parts() -> None:
    batch = at(some_reports(KRR, 6_000), 0)
    for num_parts in (1, 16, 200):
        keys = [key for key, _ in _split(batch, BasePeriods(PERIOD), num_parts)]
        assert len(keys) == len(set(keys)) == num_parts  # one of 200 parts is empty with a chance of 2e-11


def random_arrivals(batch: ReportBatch, other: ReportBatch, rng: np.random.Generator) -> list[ReportBatch]:
    """Both batches, which have the same ids, in random order, cut into three parts."""
    everything = ReportBatch.concatenate([batch, other, batch[:10]])
    order = everything[rng.permutation(len(everything))]
    cuts = np.sort(rng.integers(0, len(order) + 1, 2)).tolist()
    return [order[start:stop] for start, stop in itertools.pairwise([0, *cuts, len(order)])]


def test_thirty_orders_of_arrival_have_one_result() -> None:
    """Each in a period of its own: some of its reports before the on-time pane, the others after it, in two parts."""
    rng = generator("thirty orders")
    batch = at(some_reports(URAP, 30), 7)
    other = in_conflict(batch)  # the same moment: which report is the smaller one does not depend on the period
    parts: list[list[ReportBatch]] = [[], [], []]
    for period in range(30):
        for bundle, part in zip(parts, random_arrivals(batch, other, rng)):
            bundle.append(at(part, period * PERIOD + 7))
    arrival = 30 * PERIOD
    events = []
    for bundle in parts:
        messages = [wire.encode_batch(part) for part in bundle if len(part)]
        events += [replay.arrive(arrival, messages), replay.watermark(arrival)]
        arrival += PERIOD
    rows = replay.replay(replay.streaming_job(ALL, WINDOWS, **JOB), events)
    check(rows, [part for bundle in parts for part in bundle if len(part)])
    results = list(counts_of(rows["counts"]).values())
    assert len(results) == 30
    assert all(result == results[0] for result in results)
    assert len(rows["counts"]) > 60, "most windows were corrected, and more than once"


# ---------------------------------------------------------------------- after the on-time pane


def late(first: ReportBatch, second: ReportBatch) -> list[Any]:
    """Rows of counts if the second one comes after the on-time pane, in order."""
    events = [replay.arrive(0, wire.encode_reports(first)), replay.watermark(2 * PERIOD)]
    events += [replay.arrive(2 * PERIOD, wire.encode_reports(second))]
    rows: dict[str, list[Any]] = replay.replay(replay.streaming_job(ALL, WINDOWS, **JOB), events)
    check(rows, [first, second])
    return sorted(rows["counts"], key=lambda row: row.pane_index)


def reports_in_order() -> tuple[ReportBatch, ReportBatch]:
    """Two reports with one id, of different values, the smaller one first."""
    batch = with_id(at(KRR.perturb(["0"] * 50, generator("in order")), 0), b"0123456789abcdef")
    rows = as_list(to_rows(batch))
    order = sorted(range(50), key=rows.__getitem__)
    assert rows[order[0]][26:] != rows[order[-1]][26:]
    return batch[order[:1]], batch[order[-1:]]


def test_a_late_copy_makes_no_pane() -> None:
    report, _ = reports_in_order()
    assert len(late(report, report)) == 1


def test_a_late_report_that_does_not_count_makes_no_pane() -> None:
    smaller, larger = reports_in_order()
    assert len(late(smaller, larger)) == 1


def test_a_late_report_that_counts_instead_corrects_the_pane() -> None:
    smaller, larger = reports_in_order()
    panes = late(larger, smaller)
    assert [(pane.pane_index, pane.pane_timing) for pane in panes] == [(0, "ON_TIME"), (1, "LATE")]
    assert [counts_of([pane])[KRR.fingerprint.hex(), rfc3339(0)] for pane in panes] == [
        KRR.count(larger),
        KRR.count(smaller),
    ]


# ---------------------------------------------------------------------- what is remembered, and for how long


def in_ledger(events: list[Event], **fields: Any) -> list[tuple[str, int]]:
    """Entries of the ledger in the order in which they were made; no report is refused for its age."""
    spec = replay.spec([KRR], WINDOWS, **{"deduplicate": True, "bounded": False} | fields)
    patient = dataclasses.replace(spec, allowed_lateness=60 * DAY, bounded=False)
    with replay.collector() as (collect, entries):
        with beam.Pipeline(options=replay.stream_options()) as pipeline:
            decoded = pipeline | replay.stream(events) | DecodeReports(patient)
            new = decoded.reports | CountNewReports(spec)
            _ = new.ledger | collect
        return [(entry.bin, entry.num_reports) for entry, _, _ in entries]


@pytest.mark.parametrize("start", [0, -PERIOD, 1_000 * PERIOD])
def test_reports_are_remembered_until_nothing_of_their_period_can_come(start: int) -> None:
    """The state of a part of a period is cleared by the watermark, to the millisecond: a copy is then a new report."""
    forgotten = start + PERIOD + 6 * MINUTE
    message = wire.encode_reports(at(some_reports(KRR, 1), start + PERIOD - 1))
    events = [
        replay.arrive(start + PERIOD, message),
        replay.arrive(start + PERIOD, message),
        replay.watermark(forgotten - 1),
        replay.arrive(forgotten - 1, message),
        replay.watermark(forgotten),
        replay.arrive(forgotten, message),
    ]
    found = in_ledger(events, allowed_lateness=5 * MINUTE, lateness_slack=MINUTE)
    assert found == [("accepted", 1), ("duplicates", 1), ("duplicates", 1), ("accepted", 1)]


def test_periods_are_forgotten_one_by_one() -> None:
    first, second = (wire.encode_reports(at(some_reports(KRR, 1), moment)) for moment in (0, PERIOD))
    events = [replay.arrive(PERIOD, first), replay.arrive(PERIOD, second)]
    events += [replay.watermark(PERIOD + 2 * MINUTE)]
    events += [replay.arrive(2 * PERIOD, first), replay.arrive(2 * PERIOD, second)]
    found = in_ledger(events, allowed_lateness=MINUTE, lateness_slack=MINUTE)
    assert found == [("accepted", 1), ("accepted", 1), ("accepted", 1), ("duplicates", 1)]


def test_files_are_never_forgotten_on_the_way() -> None:
    """A bounded input has no order: the watermark says nothing about what is still to come."""
    message = wire.encode_reports(at(some_reports(KRR, 1), 0))
    events = [replay.arrive(0, message), replay.watermark(50 * DAY), replay.arrive(50 * DAY, message)]
    assert in_ledger(events, bounded=True) == [("accepted", 1), ("duplicates", 1)]


def test_the_step_refuses_reports_without_ids() -> None:
    """One alone would vanish otherwise: arrays of one element fit any other."""
    nameless = dataclasses.replace(some_reports(KRR, 1), report_ids=np.zeros((0, 16), np.uint8))
    sentence = "CountReports needs reports with ids where JobSpec.deduplicate is true, got some without"
    with pytest.raises(Exception, match=re.escape(sentence)):  # noqa: SIM117  # raised as the pipeline ends
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            _ = pipeline | beam.Create([nameless]) | CountReports(replay.spec([KRR], None, deduplicate=True))
