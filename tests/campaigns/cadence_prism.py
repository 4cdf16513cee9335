"""Rows and files of a quiet stream on Prism: ``python -m tests.campaigns.cadence_prism [--seconds 60] -- LATE FLUSH``.

The traffic of ``cadence``: 100 reports a second, each up to 20 s after its event time, in windows of 20 s with 30 s of
lateness. It is made on the engine, ten times a second of its own clock, because Prism reads no Pub/Sub. LATE and FLUSH
are ``--late_every`` and ``--flush_every`` in seconds. The exit code is 1 if a report is missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.periodicsequence import PeriodicImpulse

from tests.campaigns.cadence import ANIMALS, WINDOW, summary
from tests.rigs import prism
from tests.support import cases, live, replay
from uldp_transforms.jobs.estimate.run import build
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.jobs.sinks import RowFiles
from uldp_transforms.jobs.sources import Source
from uldp_transforms.messages import wire
from uldp_transforms.windows import Windows

RATE = 100


class Ticking(Source):
    """Reports of now, for some seconds."""

    option = "--ticking"
    bounded = False

    def __init__(self, seconds: int):
        self._seconds = seconds

    @classmethod
    def of(cls, args: Any, options: PipelineOptions) -> Ticking:
        return cls(args.ticking)

    def read(self, pipeline: beam.Pipeline) -> beam.PCollection[bytes]:
        begin = time.time()
        ticks = pipeline | PeriodicImpulse(begin, begin + self._seconds, 0.1, apply_windowing=False)
        return ticks | "Reports" >> beam.FlatMap(_reports).with_output_types(bytes)


def _reports(tick: Any, timestamp: Any = beam.DoFn.TimestampParam) -> Iterator[bytes]:
    """A tenth of the reports of a second, with event times up to 20 s before the tick; the same if it is repeated."""
    now = timestamp.micros // 1000
    rng = np.random.default_rng(now)
    times = now - rng.integers(0, 1000 * WINDOW, RATE // 10)
    yield from wire.encode_reports(ANIMALS.perturb(rng.choice(cases.VALUES, RATE // 10).tolist(), rng, times))


def run(output: Path, seconds: int, late_every: int, flush_every: int) -> None:
    """The main job on Prism over such a stream, which ends by itself."""
    options = PipelineOptions([*prism.options(), "--streaming"])
    fields = {"allowed_lateness": 30_000, "late_every": 1000 * late_every, "options": options}
    job = replay.streaming_job([ANIMALS], Windows(size=1000 * WINDOW), output=str(output), **fields)
    sink = RowFiles(str(output), unbounded=True, forms=RowForms(), flush_every=1000 * flush_every)
    pipeline = beam.Pipeline(options=options)
    build(pipeline, dataclasses.replace(job, source=Ticking(seconds), sinks=(sink,)))
    pipeline.run().wait_until_finish()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("every", type=int, nargs=2, metavar="SECONDS", help="late_every and flush_every")
    args = parser.parse_args(argv)
    prism.PRISM.fetch()
    with tempfile.TemporaryDirectory() as name:
        output = Path(name)
        run(output, args.seconds, *args.every)
        books = live.books(output)
        print(f"late_every and flush_every {args.every}", summary(output), dict(books), sep="\n")
    return int(books["received"] != args.seconds * RATE or live.balance(books) != 0)


if __name__ == "__main__":
    sys.exit(main())
