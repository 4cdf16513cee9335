"""The transforms on Beam's local engine for bounded input, one worker."""

from __future__ import annotations

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions

from labs.benchmarks import measure
from labs.benchmarks.measure import DAY, cpu_seconds, line, reports
from uldp_transforms import CountReports, DecodeReports, JobSpec, Windows
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

_MESSAGES: dict[str, list[bytes]] = {}


class _Repeat(beam.DoFn):
    """Emits the messages of a name; they are made once, outside what is timed."""

    def process(self, name):
        yield from _MESSAGES[name]


def run(collection: Collection, name: str, repeats: int, windows: Windows | None) -> None:
    """Decode and count the named messages, several times over."""
    spec = JobSpec(collections=(collection,), windows=windows)
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        messages = pipeline | beam.Create([name] * repeats) | beam.ParDo(_Repeat()).with_output_types(bytes)
        decoded = messages | DecodeReports(spec)
        _ = decoded.reports | CountReports(spec)


def seconds_of(collection: Collection, name: str, repeats: int, windows: Windows | None) -> float:
    """CPU time of ``repeats`` rounds of messages, without what an almost empty pipeline takes."""
    empty = cpu_seconds(lambda: run(collection, name, 1, windows))
    full = cpu_seconds(lambda: run(collection, name, 1 + repeats, windows))
    return full - empty


def main() -> None:
    collection = measure.collection("krr", 16, 64)
    minute = DAY // 1440
    fixed, sliding = Windows(size=60 * minute), Windows(size=60 * minute, slide=10 * minute)
    batch = reports(collection, 400_000, days=1)
    _MESSAGES["packed 1000"] = [wire.encode_batch(batch[i : i + 1000]) for i in range(0, len(batch), 1000)]
    _MESSAGES["packed 10000"] = [wire.encode_batch(batch[i : i + 10_000]) for i in range(0, len(batch), 10_000)]
    mixed = batch[np.random.default_rng(1).permutation(len(batch))]
    _MESSAGES["packed 1000, any hour in each"] = [
        wire.encode_batch(mixed[i : i + 1000]) for i in range(0, len(batch), 1000)
    ]
    _MESSAGES["single"] = wire.encode_reports(batch[:50_000])

    index = (batch.cohorts.astype(np.int64) * 16 + batch.payloads[:, 0]).repeat(10)
    limit = cpu_seconds(lambda: np.bincount(index, minlength=1024)) / len(index)
    print("decode and count k-RR, K=16, C=64 (pipeline)")
    for name, repeats in (
        ("packed 1000", 30),
        ("packed 10000", 30),
        ("packed 1000, any hour in each", 15),
        ("single", 8),
    ):
        n = repeats * (50_000 if name == "single" else len(batch))
        by_windows = {}
        for label, windows in (("global window", None), ("fixed 60 min", fixed), ("sliding 60/10 min", sliding)):
            by_windows[label] = seconds_of(collection, name, repeats, windows)
            line(f"  {name}, {label}", n, by_windows[label], limit * n)
        ratio = by_windows["sliding 60/10 min"] / by_windows["fixed 60 min"]
        print(f"  {name}: sliding costs {ratio:.2f} x fixed")
