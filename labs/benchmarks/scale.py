"""Conditions of large jobs: a billion reports, one hot window, bytes between workers, deduplication state."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import ElementEvent, TestStream
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Timestamp

from labs.benchmarks.measure import DAY, collection, cpu_seconds, line, reports
from uldp_transforms import CountReports, DecodeReports, JobSpec, Windows
from uldp_transforms.beam.runtime.coders import CohortCountsCoder, RunningSumCoder
from uldp_transforms.beam.transforms.count_reports import SumCountsFn
from uldp_transforms.beam.transforms.deduplicate import read_again
from uldp_transforms.collector.known_reports import KnownReports, to_rows
from uldp_transforms.collector.period_counts import count_periods
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.running_sum import RunningSum
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import MessageDecoder

HOUR = DAY // 24


def volume() -> None:
    """Decode and count a billion packed reports in one thread, by repeating the same million."""
    spec = collection("krr", 16, 64)
    batch = reports(spec, 1_000_000)
    messages = [wire.encode_batch(batch[i : i + 10_000]) for i in range(0, len(batch), 10_000)]
    decoder = MessageDecoder(CollectionCatalog([spec]))
    totals: dict[int, CohortCounts] = {}
    begin = time.process_time()
    for _ in range(1000):
        for decoded in decoder.decode(messages)[0]:
            for period, counts in count_periods(spec, decoded, HOUR):
                totals[period] = totals[period] + counts if period in totals else counts
    seconds = time.process_time() - begin
    total = sum(counts.total for counts in totals.values())
    line(f"  decode and count {total:,} reports in {len(totals)} hours: {seconds:.1f} s", total, seconds)


def hot_window() -> None:
    """Output of one bundle of 1,000,000 reports: one sum for each window and cohort in it, however hot."""
    spec = collection("krr", 16, 64)
    for name, days in (("one hour", 0), ("24 hours", 1), ("30 days of hours", 30)):
        batch = reports(spec, 1_000_000, days)
        counts = list(count_periods(spec, batch, HOUR))
        size = sum(len(CohortCountsCoder().encode(each)) for _, each in counts)
        seconds = cpu_seconds(lambda b=batch: list(count_periods(spec, b, HOUR)))
        line(f"  counting {name}: {len(counts)} sums, {size:,} bytes", len(batch), seconds)


def encoded_sums() -> None:
    """Bytes of one sum, which is what is shuffled for each bundle and window, and what state holds for each window."""
    shapes = [("krr", 16, 64), ("krr", 1024, 64), ("rappor", 128, 64), ("rappor", 1024, 64), ("rappor", 4096, 1024)]
    for mechanism, symbols, cohorts in shapes:
        spec = collection(mechanism, symbols, cohorts)
        sizes = []
        for number in (1, 1000, 100_000 if cohorts == 64 else 10_000):
            [(_, counts)] = count_periods(spec, reports(spec, number), None)
            sizes.append(f"{number:,} reports {len(CohortCountsCoder().encode(counts)):,}")
        print(f"  {mechanism} K={symbols} C={cohorts}: {', '.join(sizes)}", flush=True)


def merging() -> None:
    """The sums of a hot window, one from each bundle of 1,000 reports, decoded and added by the one worker it has."""
    for mechanism, symbols in (("krr", 16), ("krr", 1024), ("rappor", 1024)):
        spec = collection(mechanism, symbols, 64)
        [(_, counts)] = count_periods(spec, reports(spec, 1000), None)
        coder, merger = RunningSumCoder(), SumCountsFn()
        encoded = [coder.encode(RunningSum(counts))] * 500
        seconds = cpu_seconds(lambda c=coder, m=merger, e=encoded: m.merge_accumulators(map(c.decode, e)))
        line(
            f"  {mechanism} K={symbols} C=64: {len(encoded) / seconds:,.0f} sums a second", 1000 * len(encoded), seconds
        )


def deduplication() -> None:
    """One shard of a base period: time for further reports by the number of known ones, then with state read back."""
    spec, rng = collection("krr", 16, 64), np.random.default_rng(3)
    width = to_rows(reports(spec, 1)).shape[1]
    known = KnownReports(width)
    for number in (10_000, 100_000, 1_000_000, 10_000_000):
        while len(known) < number:
            known.add(rng.integers(0, 256, (min(number - len(known), 1 << 20), width), dtype=np.uint8))
        for size, times in ((60, 300), (1_000, 100), (60_000, 3)):
            new = rng.integers(0, 256, (times, size, width), dtype=np.uint8)
            begin = time.process_time()
            for part in new:
                known.add(part)
            seconds = time.process_time() - begin
            held = f"{known.num_bytes / len(known):.0f} B a report"
            line(f"  {number:,} known, {held}: {size:,} more at a time", size * times, seconds)
    blocks = [part.tobytes() for part in np.array_split(known.rows, len(known) // 1_200)]
    begin = time.process_time()
    again = read_again(blocks, width)
    line(f"  read again: {len(blocks):,} blocks of state", len(again), time.process_time() - begin)


def parts_of_state() -> None:
    """A stream of 200,000 packed reports of one hour in 20 bundles, by the parts in which it is held."""
    arriving = bundles_of_one_hour(20)
    plain = cpu_seconds(lambda: count_one_hour(arriving))
    for parts in (16, 64, 256, 1024):
        more = cpu_seconds(lambda p=parts: count_one_hour(arriving, deduplicate=True, deduplicate_parts=p), 1) - plain
        each = 1000 * more / (len(arriving) * parts)
        line(f"  {parts} parts: {each:.2f} ms more a part and bundle", 200_000, more)


def filling() -> None:
    """Longer and longer streams in 16 shards, to see whether reports cost more as their hour fills."""
    arriving = bundles_of_one_hour(200)
    before, seconds = 0, 0.0
    for bundles in (25, 50, 100, 200):
        until = cpu_seconds(lambda b=bundles: count_one_hour(arriving[:b], deduplicate=True), 1)
        if before:
            known, new = 10_000 * before, 10_000 * (bundles - before)
            line(f"  {new:,} reports more where {known:,} are known", new, until - seconds)
        before, seconds = bundles, until


def bundles_of_one_hour(bundles: int) -> list[ElementEvent]:
    """10,000 packed reports of one hour in each bundle."""
    spec = collection("krr", 16, 64)
    batch = reports(spec, 10_000 * bundles)
    moment = int(batch.event_times[0])
    batch = dataclasses.replace(batch, event_times=np.full(len(batch), moment))
    messages = [wire.encode_batch(batch[i : i + 1_000]) for i in range(0, len(batch), 1_000)]
    arriving = [TimestampedValue(message, Timestamp(micros=1000 * moment)) for message in messages]
    return [ElementEvent(arriving[i : i + 10]) for i in range(0, len(arriving), 10)]


def count_one_hour(arriving: list[ElementEvent], **options: Any) -> None:
    """Decode and count them on the local engine for streams."""
    stream = TestStream(coder=beam.coders.BytesCoder(), events=arriving, output_tags=[None])
    job = JobSpec(collections=(collection("krr", 16, 64),), windows=Windows(size=HOUR), **options)
    with beam.Pipeline(options=PipelineOptions(["--runner=BundleBasedDirectRunner", "--streaming"])) as pipeline:
        decoded = pipeline | stream.with_output_types(bytes) | DecodeReports(job)
        _ = decoded.reports | CountReports(job)


def main() -> None:
    print("a thousand million reports (library, one thread)")
    volume()
    print("a hot window (library, one bundle of 1,000,000 reports)")
    hot_window()
    print("bytes of one sum of counts")
    encoded_sums()
    print("merging a hot window (library)")
    merging()
    print("deduplication (library)")
    deduplication()
    print("deduplication (local streaming engine, 20 bundles of 10,000 reports)")
    parts_of_state()
    print("deduplication (local streaming engine, bundles of 10,000 reports of one hour, 16 parts)")
    filling()
