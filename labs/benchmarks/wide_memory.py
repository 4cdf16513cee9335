"""Memory of a process that counts a collection with millions of counters in several windows at once."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions

from labs.benchmarks.measure import DAY, collection
from uldp_transforms import CountReports, DecodeReports, JobSpec, Windows
from uldp_transforms.messages import wire

_HOUR = DAY // 24
_MESSAGES = 20


class _Repeat(beam.DoFn):
    def process(self, message: bytes) -> Iterator[bytes]:
        for _ in range(_MESSAGES):
            yield message


def _grown(num_windows: int, each: int) -> float:
    """MiB by which this process grows while it counts."""
    spec = collection("rappor", 4096, 1024)
    times = np.arange(each) % num_windows * _HOUR
    message = wire.encode_batch(spec.perturb(["a", "b"] * (each // 2), np.random.default_rng(1), times))
    job, before = JobSpec(collections=(spec,), windows=Windows(size=_HOUR)), _most()
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        messages = pipeline | beam.Create([message]) | beam.ParDo(_Repeat()).with_output_types(bytes)
        _ = (messages | DecodeReports(job)).reports | CountReports(job)
    return _most() - before


def _most() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    print(f"memory of a process, rappor, K = 4,096, C = 1,024, {_MESSAGES} messages (local engine)")
    for each in (1000, 2000):
        for num_windows in (1, 24):
            code = f"from labs.benchmarks import wide_memory; print(wide_memory._grown({num_windows}, {each}))"
            out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
            print(f"  {each:,} reports each, {num_windows} windows: {float(out.split()[-1]):,.0f} MiB more", flush=True)
