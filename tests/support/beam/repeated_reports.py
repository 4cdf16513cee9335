"""Reports that come twice or in conflict, and what a dictionary counts of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from apache_beam.testing.test_stream import Event

from tests.support import replay
from tests.support.messages_cases import BATCH, KRR, REPORT, URAP, collection, container, numbered
from tests.support.tolerance import generator
from uldp_transforms.collector.known_reports import to_rows
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.windows import Windows, rfc3339

MINUTE = 60_000
PERIOD = 10 * MINUTE
DAY = 1440 * MINUTE
WINDOWS = Windows(size=PERIOD)
JOB: dict[str, Any] = {
    "allowed_lateness": DAY,
    "deduplicate": True,
    "deduplicate_parts": 4,
    "write_counts": True,
    "min_reports": 1_000,
}
"""Windows have fewer reports: nothing is estimated, which takes longer than counting, and so do many parts."""

WIDE = collection("wide", numbered(2_000), "rappor")  # 250 bytes a report
ALL = [KRR, URAP, WIDE]
BY_FINGERPRINT = {of.fingerprint.hex(): of for of in ALL}


def as_list(rows: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in rows]


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


def several_bundles() -> list[ReportBatch]:
    """New reports, copies and conflicts, some of them after the on-time panes."""
    batches = [some_reports(KRR, 60, number) for number in range(8)]
    return [part for batch in batches for part in (batch, batch[::3], in_conflict(batch[::5]))]


def arrivals(sent: Sequence[ReportBatch]) -> list[Event]:
    return [replay.arrive((3 + number) * PERIOD, as_messages(part)) for number, part in enumerate(sent)]


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
