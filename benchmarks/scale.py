"""What large jobs meet: a thousand million reports, one hot window, bytes between workers, state of duplicates."""

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

from benchmarks.measure import DAY, collection, cpu_seconds, line, reports
from uldp_transforms import CountReports, DecodeReports, JobSpec, Windows
from uldp_transforms.count import SumCountsFn, count_periods
from uldp_transforms.deduplicate import merge, to_rows
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.runtime.coders import CohortCountsCoder

HOUR = DAY // 24


def volume() -> None:
    """A thousand million packed reports from messages to counts, by one thread, the same million again and again."""
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
    """What one bundle of 1,000,000 reports hands on: a sum for each window and cohort that it met, however hot."""
    spec = collection("krr", 16, 64)
    for name, days in (("one hour", 0), ("24 hours", 1), ("30 days of hours", 30)):
        batch = reports(spec, 1_000_000, days)
        counts = list(count_periods(spec, batch, HOUR))
        size = sum(len(CohortCountsCoder().encode(each)) for _, each in counts)
        seconds = cpu_seconds(lambda b=batch: list(count_periods(spec, b, HOUR)))
        line(f"  counting {name}: {len(counts)} sums, {size:,} bytes", len(batch), seconds)


def encoded_sums() -> None:
    """Bytes of one sum, which is what is shuffled for each bundle and window, and what state holds for each window."""
    for mechanism, symbols, cohorts in (("krr", 16, 64), ("krr", 1024, 64), ("rappor", 128, 64), ("rappor", 1024, 64)):
        spec = collection(mechanism, symbols, cohorts)
        sizes = []
        for number in (1, 1000, 100_000):
            [(_, counts)] = count_periods(spec, reports(spec, number), None)
            sizes.append(f"{number:,} reports {len(CohortCountsCoder().encode(counts)):,}")
        print(f"  {mechanism} K={symbols} C={cohorts}: {', '.join(sizes)}", flush=True)


def merging() -> None:
    """The sums of a hot window, one from each bundle of 1,000 reports, decoded and added by the one worker it has."""
    for mechanism, symbols in (("krr", 16), ("krr", 1024), ("rappor", 1024)):
        spec = collection(mechanism, symbols, 64)
        [(_, counts)] = count_periods(spec, reports(spec, 1000), None)
        coder, merger = CohortCountsCoder(), SumCountsFn()
        encoded = [coder.encode(counts)] * 500
        seconds = cpu_seconds(lambda c=coder, m=merger, e=encoded: m.merge_accumulators(map(c.decode, e)))
        line(
            f"  {mechanism} K={symbols} C=64: {len(encoded) / seconds:,.0f} sums a second", 1000 * len(encoded), seconds
        )


def deduplication() -> None:
    """One part of a base period: 1,000 reports more, by how many are known already; the whole part is written again."""
    spec = collection("krr", 16, 64)
    new = to_rows(reports(spec, 1000))
    rng = np.random.default_rng(3)
    for known in (0, 10_000, 100_000, 1_000_000):
        old = rng.integers(0, 256, (known, new.shape[1]), dtype=np.uint8)
        old = merge(old[:0], old)[0]
        seconds = cpu_seconds(lambda o=old: merge(o, new))
        state = (known + len(new)) * new.shape[1]
        line(f"  {known:,} known in the part: state {state / 1e6:.1f} MB", len(new), seconds)


def parts_of_state() -> None:
    """A stream of 200,000 packed reports of one hour in 20 bundles, by the parts in which it is held."""
    spec = collection("krr", 16, 64)
    batch = reports(spec, 200_000)
    moment = int(batch.event_times[0])
    batch = dataclasses.replace(batch, event_times=np.full(len(batch), moment))
    messages = [wire.encode_batch(batch[i : i + 1_000]) for i in range(0, len(batch), 1_000)]
    arrival = Timestamp(micros=1000 * moment)
    bundles = [[TimestampedValue(m, arrival) for m in messages[i : i + 10]] for i in range(0, len(messages), 10)]

    def run(**options: Any) -> None:
        stream = TestStream(coder=beam.coders.BytesCoder(), events=list(map(ElementEvent, bundles)), output_tags=[None])
        job = JobSpec(collections=(spec,), windows=Windows(size=HOUR), **options)
        with beam.Pipeline(options=PipelineOptions(["--runner=BundleBasedDirectRunner", "--streaming"])) as pipeline:
            decoded = pipeline | stream.with_output_types(bytes) | DecodeReports(job)
            _ = decoded.reports | CountReports(job)

    plain = cpu_seconds(run)
    for parts in (16, 64, 256, 1024):
        more = cpu_seconds(lambda p=parts: run(deduplicate=True, deduplicate_parts=p)) - plain
        each = 1000 * more / (len(bundles) * parts)
        line(f"  {parts} parts: {each:.2f} ms more a part and bundle", len(batch), more)


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
