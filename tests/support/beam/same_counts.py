"""Random reports, counted by a pipeline and by numpy."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.testing.test_stream import Event
from apache_beam.transforms.window import GlobalWindow

from tests.support import cases, replay
from uldp_transforms.beam.transforms.count_reports import CountedReports, CountReports
from uldp_transforms.beam.transforms.decode_reports import DecodeReports
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import Windows

MINUTE = 60_000
DAY = 1440 * MINUTE
COLLECTIONS = [
    Collection.from_json(cases.COLLECTIONS[name].to_json() | {"id": name})
    for name in ("closed-sensitive-urr", "permuted-urap", "hashed-rappor")
]
WINDOWS = {
    "none": None,
    "fixed": Windows(size=10 * MINUTE),
    "sliding": Windows(size=30 * MINUTE, slide=10 * MINUTE),
    "uneven": Windows(size=15 * MINUTE, slide=10 * MINUTE),
    "fixed, offset": Windows(size=10 * MINUTE, offset=7 * MINUTE + 1),
    "uneven, offset": Windows(size=15 * MINUTE, slide=10 * MINUTE, offset=8 * MINUTE),
}
Key = tuple[bytes, int | None]
"""Fingerprint and start of the window."""


def random_reports(rng: np.random.Generator, middle: int) -> list[ReportBatch]:
    """Reports of each collection around a time, many of them on the edges of windows."""
    batches = []
    for collection in COLLECTIONS:
        n = int(rng.integers(1, 200))
        times = rng.integers(-60 * MINUTE, 60 * MINUTE, n)
        times = np.where(rng.random(n) < 0.3, times // (5 * MINUTE) * 5 * MINUTE - rng.integers(0, 2, n), times)
        batches.append(collection.perturb(rng.choice(cases.VALUES, n).tolist(), rng, middle + times))
    return batches


def counts_of_numpy(batches: Sequence[ReportBatch], windows: Windows | None) -> dict[Key, CohortCounts]:
    """Each window that has reports, and their counts, one window after the other."""
    counts: dict[Key, CohortCounts] = {}
    for collection, batch in zip(COLLECTIONS, batches):
        if windows is None:
            counts[collection.fingerprint, None] = collection.count(batch)
            continue
        times = batch.event_times
        first = (int(times.min()) - windows.size - windows.offset) // windows.step * windows.step + windows.offset
        for start in range(first, int(times.max()) + 1, windows.step):
            inside = (start <= times) & (times < start + windows.size)
            if inside.any():
                counts[collection.fingerprint, start] = collection.count(batch[inside])
    return counts


def as_messages(batches: Sequence[ReportBatch], packing: str, rng: np.random.Generator) -> list[bytes]:
    """The reports in random order, in messages of one report, of many, or of both kinds."""
    messages = []
    for batch in batches:
        shuffled = batch[rng.permutation(len(batch))]
        cuts = np.sort(rng.integers(0, len(batch) + 1, {"single": 1, "packed": 4, "mixed": 8}[packing]))
        for part, (start, stop) in enumerate(itertools.pairwise([0, *cuts.tolist(), len(batch)])):
            reports = shuffled[start:stop]
            if packing == "single" or (packing == "mixed" and part % 2):
                messages += wire.encode_reports(reports, single_object=bool(part % 3))
            elif len(reports):
                messages.append(wire.encode_batch(reports, single_object=bool(part % 3)))
    return [messages[index] for index in rng.permutation(len(messages))]


def specification(windows: Windows | None, **fields: Any) -> JobSpec:
    """Of a job that accepts reports for a day after the end of their base period."""
    return replay.spec(COLLECTIONS, windows, allowed_lateness=DAY, **fields)


def count(messages: beam.PCollection[bytes], spec: JobSpec) -> CountedReports:
    """The part of the main job that counts."""
    decoded = messages | DecodeReports(spec)
    return decoded.reports | CountReports(spec)


def final_panes(panes: list[Any]) -> dict[Key, CohortCounts]:
    """Of each window the pane with the highest index."""
    final: dict[Key, tuple[int, CohortCounts]] = {}
    for (fingerprint, counts), window, pane in panes:
        key = (fingerprint, None if window == GlobalWindow() else window.start.micros // 1000)
        assert key not in final or final[key][0] != pane.index, "two panes with one index"
        final[key] = max(final.get(key, (-2, counts)), (pane.index, counts), key=lambda numbered: numbered[0])
    return {key: counts for key, (_, counts) in final.items()}


def sent_twice(batches: Sequence[ReportBatch], rng: np.random.Generator) -> list[ReportBatch]:
    """The same batches, some reports of which stand there twice or more often."""
    return [batch[rng.integers(0, len(batch), 2 * len(batch))] for batch in batches]


def different(batches: Sequence[ReportBatch]) -> list[ReportBatch]:
    """The reports of batches without copies; ids are random, so equal ids are copies."""
    return [batch[np.sort(np.unique(batch.report_ids, axis=0, return_index=True)[1])] for batch in batches]


def check(panes: list[Any], ledger: list[Any], sent: Sequence[ReportBatch], windows: Windows | None) -> None:
    """Panes, and numbers of accepted reports and of copies, are those of numpy."""
    once = different(sent)
    assert final_panes(panes) == counts_of_numpy(once, windows)
    base_periods = None if windows is None else Windows(size=windows.base, offset=windows.periods.phase)
    totals, unique = (counts_of_numpy(batches, base_periods) for batches in (sent, once))
    sums: dict[str, Counter[Key]] = {"accepted": Counter(), "duplicates": Counter()}
    for entry, _, _ in ledger:
        sums[entry.bin][entry.fingerprint, entry.period_start] += entry.num_reports
    assert +sums["accepted"] == {key: counts.total for key, counts in unique.items()}
    assert +sums["duplicates"] == +Counter({key: totals[key].total - unique[key].total for key in unique})


def random_events(messages: list[bytes], rng: np.random.Generator, middle: int) -> Iterator[Event]:
    """Messages in some bundles, all within the allowed lateness; the watermark follows the arrivals at random."""
    at = middle - 60 * MINUTE
    arrival = middle + 60 * MINUTE
    for bundle in np.array_split(np.array(messages, dtype=object), rng.integers(2, 9)):
        yield replay.arrive(arrival, bundle.tolist())
        if rng.random() < 0.5:
            at += int(rng.integers(1, arrival - at))
            yield replay.watermark(at)
        if rng.random() < 0.5:
            yield replay.clock(int(rng.integers(1, 3 * MINUTE)))
        arrival += int(rng.integers(1, 60 * MINUTE))
