"""Single reports of an Avro file on Beam's local engine, handed on one by one and in groups, with numpy and with the
compiled part if it is installed; nothing else differs. Then reports of Parquet files by the reader alone, beside what
Arrow takes to read the same columns, and DuckDB, if it is installed, to count them by hour."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import tempfile
from pathlib import Path
from unittest import mock

import apache_beam as beam
import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet
from apache_beam.options.pipeline_options import PipelineOptions

from labs.benchmarks import measure
from labs.benchmarks.measure import cpu_seconds, reports
from uldp_transforms import CountReports, DecodeReports, JobSpec, ReadReportFiles
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import native_module, wire
from uldp_transforms.messages.report_tables import read_table

_NUMBER, _PARQUET_NUMBER = 400_000, 2_000_000


def run(collection: Collection, path: Path, grouped: bool) -> None:
    """Read, decode and count the reports of a file."""
    spec = JobSpec(collections=(collection,))
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        messages = (pipeline | ReadReportFiles(str(path), grouped=grouped)).messages
        _ = (messages | DecodeReports(spec)).reports | CountReports(spec)


def parquet_file(collection: Collection, path: Path, ids: pa.DataType | None) -> None:
    """Single reports as rows, with ids of this type or without."""
    batch = reports(collection, _PARQUET_NUMBER)
    bytes_of = {"report_id": batch.report_ids, "payload": batch.payloads}
    columns = {
        name: pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(cells.shape[1]), len(batch), [None, pa.py_buffer(np.ascontiguousarray(cells))]
        )
        for name, cells in bytes_of.items()
    }
    columns |= {"event_time": pa.array(batch.event_times), "cohort": pa.array(batch.cohorts)}
    columns["collection"] = pa.array([batch.fingerprint[:8]]).take(pa.array(np.zeros(len(batch), np.int32)))
    columns["payload"] = columns["payload"].cast(pa.binary())
    ids_column = columns.pop("report_id")
    if ids is not None:
        columns["report_id"] = ids_column.cast(ids)
    pyarrow.parquet.write_table(pa.table(columns), path)


def _read(path: Path) -> None:
    with path.open("rb") as file:
        for _ in read_table(file, path.name):
            pass


def _arrow(path: Path) -> None:
    table = pyarrow.parquet.ParquetFile(path, read_dictionary=["collection", "payload"])
    for _ in table.iter_batches(1 << 16):
        pass


def _duckdb(path: Path) -> None:
    import duckdb  # noqa: PLC0415  # not everywhere

    connection = duckdb.connect()
    connection.execute("set threads = 1")
    columns = "collection, cohort, payload, event_time // 3600000"
    connection.execute(f"select {columns}, count(*) from '{path}' group by all").fetchall()


def parquet_rates(collection: Collection, folder: Path) -> None:
    """Reports per second of CPU time, with ids of both types and without."""
    readers = {"Arrow alone": _arrow} | ({"DuckDB, without ids": _duckdb} if importlib.util.find_spec("duckdb") else {})
    for name, ids in (("no ids", None), ("ids of 16 bytes", pa.binary(16)), ("ids as bytes", pa.binary())):
        path = folder / "reports.parquet"
        parquet_file(collection, path, ids)
        seconds = cpu_seconds(functools.partial(_read, path))
        others = {reader: cpu_seconds(functools.partial(read, path)) for reader, read in readers.items()}
        beside = "; ".join(f"{reader} {_PARQUET_NUMBER / time / 1e6:5.1f}" for reader, time in others.items())
        print(f"  Parquet, {name:<16} {_PARQUET_NUMBER / seconds / 1e6:5.1f} M reports/s; {beside}", flush=True)


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
        parquet_rates(collection, Path(directory))
