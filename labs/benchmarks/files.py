"""Single reports of an Avro file on Beam's local engine, handed on one by one and in groups, with numpy and with the
compiled part if it is installed; nothing else differs."""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
from pathlib import Path
from unittest import mock

import apache_beam as beam
import fastavro
from apache_beam.options.pipeline_options import PipelineOptions

from labs.benchmarks import measure
from labs.benchmarks.measure import cpu_seconds, reports
from uldp_transforms import CountReports, DecodeReports, JobSpec, ReadReportFiles
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import native_module, wire

_NUMBER = 400_000


def run(collection: Collection, path: Path, grouped: bool) -> None:
    """Read, decode and count the reports of a file."""
    spec = JobSpec(collections=(collection,))
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        messages = (pipeline | ReadReportFiles(str(path), grouped=grouped)).messages
        _ = (messages | DecodeReports(spec)).reports | CountReports(spec)


def main() -> None:
    collection = measure.collection("krr", 16, 64)
    how = f"pipeline; load average {os.getloadavg()[0]:.1f}"
    print(f"one Avro file of {_NUMBER:,} single reports, decode and count k-RR, K=16, C=64 ({how})")
    parts = {"numpy": None} | ({} if native_module.native() is None else {"compiled": native_module.native()})
    with tempfile.TemporaryDirectory() as directory:
        few, many = Path(directory, "few.avro"), Path(directory, "many.avro")
        for path, number in ((few, 100), (many, _NUMBER)):
            with path.open("wb") as out:
                fastavro.writer(out, wire.REPORT_SCHEMA, wire.report_records(reports(collection, number)))
        for (name, part), grouped in itertools.product(parts.items(), (False, True)):
            with mock.patch.object(native_module, "native", lambda part=part: part):
                seconds = [cpu_seconds(functools.partial(run, collection, path, grouped)) for path in (few, many)]
            way = "in groups" if grouped else "one by one"
            print(f"  {name:<9} {way:<11} {(seconds[1] - seconds[0]) / _NUMBER * 1e6:5.2f} us a report", flush=True)
