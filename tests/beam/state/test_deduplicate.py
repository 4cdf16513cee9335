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
from tests.support.beam.repeated_reports import (
    ALL,
    DAY,
    JOB,
    MINUTE,
    PERIOD,
    WINDOWS,
    arrivals,
    as_messages,
    at,
    by_dictionary,
    check,
    counts_of,
    in_conflict,
    late,
    of_files,
    of_stream,
    reports_in_order,
    several_bundles,
    some_reports,
    with_id,
)
from tests.support.messages_cases import KRR, URAP
from tests.support.tolerance import generator
from uldp_transforms.beam.runtime.worker_memory import Held
from uldp_transforms.beam.transforms import deduplicate
from uldp_transforms.beam.transforms.count_reports import CountReports
from uldp_transforms.beam.transforms.decode_reports import DecodeReports
from uldp_transforms.beam.transforms.deduplicate import CountNewReports, _split
from uldp_transforms.collector.known_ids import KnownIds
from uldp_transforms.collector.known_reports import KnownReports
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.windows import BasePeriods, rfc3339

# ---------------------------------------------------------------------- the job, by the same dictionary


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
    assert [item.total for item in counts_of(rows["counts"]).values()] == [1]
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
    job = replay.streaming_job(ALL, WINDOWS, **JOB | {"deduplicate_parts": num_parts})
    check(replay.replay(job, events), sent)


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


@pytest.mark.parametrize("block", [pytest.param(-1, marks=pytest.mark.slow), 100, 1 << 15])
def test_a_worker_that_holds_nothing_counts_the_same(
    block: int, readings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is in state: what was written to the log, in blocks of any size, and what waits for it."""
    monkeypatch.setattr(deduplicate, "_BLOCK", block)
    monkeypatch.setattr(deduplicate, "_HELD", Held(seconds=-1))
    sent = several_bundles()
    check(replay.replay(replay.streaming_job(ALL, WINDOWS, **JOB | {"deduplicate_parts": 2}), arrivals(sent)), sent)
    assert len(readings) > 50
    assert (max(readings) > 10) == (block < 1_000), "the log has several blocks, or none"


def test_what_was_written_is_not_read_again(readings: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part of a base period is read once: when there is nothing."""
    monkeypatch.setattr(deduplicate, "_BLOCK", 100)
    held: Held[KnownReports] = Held()
    monkeypatch.setattr(deduplicate, "_HELD", held)
    sent = several_bundles()
    job = replay.streaming_job(ALL, WINDOWS, **JOB | {"deduplicate_parts": 2})
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
    rows = replay.replay(replay.streaming_job(ALL, WINDOWS, **JOB | {"deduplicate_parts": 1}), events)
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
