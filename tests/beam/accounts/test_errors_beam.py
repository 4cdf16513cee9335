"""Every sentence with which the Beam layer and the programs refuse something."""

from __future__ import annotations

import argparse
import dataclasses
import io
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from apache_beam.io.filesystem import FileMetadata
from apache_beam.pvalue import PCollection
from google.api_core.exceptions import NotFound, RetryError

import uldp_transforms
from labs.demo import demo_command as demo
from tests.support.commands import last_of_each
from tests.support.messages_cases import KRR, collection, container, single, write_files
from tests.support.refusals import jobs as refusals_of_jobs
from tests.support.refusals import kafka_secrets, manifests
from tests.support.refusals.jobs.workers import ended_silently
from tests.support.refusals.raised import calls_of, check_sentence, refusals_of, without_a_row
from tests.support.refusals.tables import Refusal, rows_of, with_kinds
from uldp_transforms import (
    DecodeReports,
    EstimateDistribution,
    EstimateReports,
    JobSpec,
    ReadReportFiles,
    SummarizeLedger,
)
from uldp_transforms.beam.runtime.coders import CohortCountsCoder, MixedReportsCoder, ReportBatchCoder
from uldp_transforms.beam.runtime.inputs import NoOutputError
from uldp_transforms.beam.transforms.deduplicate import _split
from uldp_transforms.beam.transforms.gather_messages import GatheredCoder, _require_times
from uldp_transforms.beam.transforms.read_report_files import _ReadFn
from uldp_transforms.collector import row_bytes
from uldp_transforms.collector.rejected_share import RejectedShareError, Watch
from uldp_transforms.files.collection_files import read_collections
from uldp_transforms.files.folder_lock import lock_folder
from uldp_transforms.files.text_files import read_lines, read_text
from uldp_transforms.jobs import check, cli, pictures, sql, uldp
from uldp_transforms.jobs.engines import companion_engines, google_clients, runners
from uldp_transforms.jobs.engines.job_server import described_options
from uldp_transforms.jobs.estimate import run as estimate
from uldp_transforms.jobs.estimate.options import _run_that_goes_on
from uldp_transforms.jobs.pubsub import pubsub_access
from uldp_transforms.jobs.records import run_records as runs
from uldp_transforms.jobs.records import whole_period
from uldp_transforms.jobs.records.row_directory import RowDirectory
from uldp_transforms.jobs.records.run_accounts import read_accounts
from uldp_transforms.jobs.records.run_directory import RunDirectory
from uldp_transforms.jobs.reestimate import reestimate_command as reestimate
from uldp_transforms.jobs.reestimate.stored_counts import _check_no_copies
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.messages import report_tables
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.messages.manifest import ListedFile, files_of_manifest, manifest_of
from uldp_transforms.moved_modules import moved_names
from uldp_transforms.rows import entry_columns
from uldp_transforms.rows.entry_columns import unpacked
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.rows.row_identity import name_of, span_of
from uldp_transforms.rows.row_types import COUNTS_SCHEMA, DimensionValue, WindowCounts
from uldp_transforms.rows.window_history import Neighbours
from uldp_transforms.windows import parse_duration

FOLDER = Path(uldp_transforms.__file__).parent
SOURCES = {  # by name; those of ldp have a table of their own
    path.relative_to(FOLDER).as_posix(): path
    for path in sorted(FOLDER.rglob("*.py"))
    if "ldp" not in path.relative_to(FOLDER).parts
}


def parquet(**columns: list[Any]) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


COUNTED_ROW = {"collection": [b"krr"], "event_time": [0], "cohort": [0], "payload": [b"\0"]}
COUNTED_ROW |= {report_tables.NUMBER: [1], report_tables.PERIOD: [900_000]}
SHARED = {"id": "hashed", "num_buckets": 4, "num_clear_buckets": 4, "non_sensitive": [str(i) for i in range(8193)]}
OPEN = collection("open", {"id": "hashed", "num_buckets": 4}, "krr")
COUNTS = {"window_start": None, "window_end": None, "pane_index": 0, "pane_timing": "ON_TIME"}


def days_of(hour: int) -> WindowCounts:
    """Counts of the 24 hours from then on."""
    day = span_of(hour * 3_600_000, 86_400_000)
    return WindowCounts(**name_of(KRR), **COUNTS | day, complete=True, num_reports=[0] * 3, cells=[0] * 9)


FILES = {
    "krr.json": KRR,
    "set.json": KRR.to_json() | {"dimensions": [{"name": "country", "values": ["DE"], "set_by": "attribute"}]},
    "asked.json": dataclasses.replace(KRR, question="asked"),
    "few.avro": row_bytes.file_of(
        [WindowCounts(**name_of(KRR), **COUNTS, complete=True, num_reports=[1, 2], cells=[3])], "avro", COUNTS_SCHEMA
    ),
    "below.avro": row_bytes.file_of(
        [WindowCounts(**name_of(KRR), **COUNTS, complete=True, num_reports=[0] * 3, cells=[-1] * 9)],
        "avro",
        COUNTS_SCHEMA,
    ),
    "impossible.avro": row_bytes.file_of(
        [WindowCounts(**name_of(KRR), **COUNTS, complete=True, num_reports=[1] * 3, cells=[0] * 9)],
        "avro",
        COUNTS_SCHEMA,
    ),
    "all.avro": row_bytes.file_of(
        [WindowCounts(**name_of(KRR), **COUNTS, complete=True, num_reports=[0] * 3, cells=[0] * 9)],
        "avro",
        COUNTS_SCHEMA,
    ),
    "day.avro": row_bytes.file_of([days_of(0)], "avro", COUNTS_SCHEMA),
    "overlap.avro": row_bytes.file_of([days_of(0), days_of(12)], "avro", COUNTS_SCHEMA),
    "more.json": KRR.to_json() | {"more": 1},
    "latin.txt": b"\xe4",
    "two.txt": "a\nbb\n",
    "same.txt": "a\n a\n",
    "good.avro": container([(1, single())]),
    "other.csv": "values\n0\n",
    "other.csv.gz": "value\n",
    "counted.parquet": parquet(**COUNTED_ROW),
    "unread/rejected.avro": "5\n",
    "reported/estimates.jsonl": "{}\n",
    "listed/estimates.jsonl": "5\n",
    "file": "",
    "counted/counts.avro": "",
    **{
        f"listed{number}.json": manifest_of([ListedFile(name, size, "0" * 64, 1, 1)])
        for number, name, size in ((1, "gone.avro", 1), (2, "good.avro", 2), (3, "good.avro", 3))
    },
}


class Unreadable(io.BytesIO):
    """A file whose disk fails."""

    def read(self, size: int | None = -1) -> bytes:
        raise OSError("of this test")


def reading_from_a_disk_that_fails() -> None:
    """As a reader that hides why it could not read."""
    watched = report_tables._Watched(Unreadable())
    with watched.for_content():
        try:
            watched.read()
        except OSError:
            raise ValueError("no table") from None


def names(**fields: Any) -> PCollection[Any]:
    return PCollection(beam.Pipeline(), element_type=str, **fields)


ADDING = ("--allow_origin", "--collection", "--dimension", "--input", "--kafka_property", "--topic")
"""Options that may be given several times, and one of which a row says that it may not."""


def run(configure: Callable[[list[str]], Any], argv: str) -> Callable[[], Any]:
    """Reads a command line, in which the last value of an option counts."""
    return lambda: configure(last_of_each(shlex.split(argv), ADDING))


def with_output(name: str, content: str = "") -> Callable[[], Any]:
    """The job over files into a directory that has this file."""

    def call() -> None:
        path = Path(f"used-{name.partition('-')[0]}", name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        estimating(f"--output {path.parent}")()

    return call


def locked_by_a_link() -> None:
    Path("linked").mkdir(exist_ok=True)
    Path("linked/.lock").symlink_to("file")
    estimating("--output linked")()


def two_runs() -> None:
    first = RunDirectory("in-use", "20261122T081503Z-4f2a9c", bounded=True, launched=False)
    first.prepare()
    try:
        estimating("--output in-use")()
    finally:
        first.close()


def a_required_option_with_a_wrong_name() -> None:
    parser = cli.Parser()
    parser.add_argument("--values", required=True)
    parser.parse_args(["--value", "good.csv"])


def outputting(options: str) -> Callable[[], Any]:
    return run(estimate.configure, f"--collection krr.json --output out {options}")


def printing(options: str) -> Callable[[], Any]:
    return run(sql.configure, f"krr.json {options}")


def other_accounts() -> None:
    """Reads the accounts of a run from a file of other content."""
    Path("accounts-r.json").write_text("{}", encoding="utf-8")
    read_accounts(".", "r")


def a_laboratory_that_is_not_there() -> None:
    with mock.patch.dict(sys.modules, {"labs": None, "labs.reproduce": None}):
        uldp.main_of("reproduce")


def a_program_of_another_package_that_is_broken() -> None:
    entry = EntryPoint("other", "not_there:main", uldp.ENTRY_POINTS)
    with mock.patch.object(uldp, "programs_of_others", return_value={"other": entry}):
        uldp.main_of("other")


def locking_twice() -> None:
    first = lock_folder(Path.cwd(), "--spool", "own")
    try:
        lock_folder(Path.cwd(), "--spool", "own")
    finally:
        os.close(first)


def other_totals() -> None:
    Path("totals.jsonl").write_text('{"fingerprint": 1}\n', encoding="utf-8")
    whole_period._rows("totals.jsonl")


def estimating(options: str) -> Callable[[], Any]:
    return run(estimate.configure, f"--collection krr.json --input good.avro --output out {options}")


def asking_pubsub(answer: Exception) -> Callable[[], Any]:
    def ask() -> None:
        raise answer

    return lambda: pubsub_access._require("--topic", ask)


def streaming(options: str) -> Callable[[], Any]:
    source = "--collection krr.json --subscription projects/p/subscriptions/s"
    return run(estimate.configure, f"{source} --output out {options}")


def from_kafka(options: str) -> Callable[[], Any]:
    source = "--collection krr.json --kafka_topic t --bootstrap_servers localhost:9092"
    return run(estimate.configure, f"{source} --output out {options}")


def estimating_again(options: str) -> Callable[[], Any]:
    def call() -> None:
        counts = "" if ".avro" in options or "krr.json" in options else "few.avro"
        arguments = f"--collection krr.json --output out {counts} {options}"
        reestimate.job(reestimate.configure(last_of_each(shlex.split(arguments), ADDING)))

    return call


def smooth_row(start: str | None, end: str | None) -> Any:
    """A row of a window, as far as it is looked at before smoothing."""
    return SimpleNamespace(collection_id="c", window_start=start, window_end=end)


def without_google() -> None:
    """As on a machine where the extra is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(google_clients, "has_google_clients", lambda: False)
        google_clients.require_google_clients("--topic")


def without_java() -> None:
    def fail(*args: Any) -> None:
        raise FileNotFoundError("java")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam.io.WriteToBigQuery, "expand", fail)  # a machine with a network would download what it needs
        estimating("--bigquery p-1:d --bigquery_method storage_write_api")()


def windowed_messages() -> None:
    messages = beam.Pipeline(runner="FnApiRunner") | beam.Create([b""])
    _ = messages | beam.WindowInto(beam.window.FixedWindows(60)) | DecodeReports(JobSpec(collections=(KRR,)))


def estimator_for_nobody() -> None:
    spec = KRR.to_json() | {"mechanism": {"id": "rappor", "epsilon": 1.0}}
    JobSpec(collections=(Collection.from_json(spec),), estimator="em")


def a_name_that_its_module_does_not_have() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(uldp_transforms._HOMES, "Windows", "version")
        _ = uldp_transforms.Windows


def demo_without_charts() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "entry_points", lambda **_: ())
        demo.configure(["--output", "demo"])


def an_engine_that_is_not_installed() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(companion_engines, "entry_points", lambda **_: ())
        companion_engines.engine_of(["--follow"])


DURATION = "must be a number with a unit such as 90s, 15m, 1h or 1d, got"
GZIP = "must be a complete gzip file, got another format or a damaged file"
NAMES = ", ".join(uldp_transforms.__all__)
NEEDS = (
    "collection 'open' has an open alphabet and needs 1 to 1048576 candidate values (--candidates) "
    "or public values, got"
)
NOT_COUNTS = "must be a file that uldp estimate --write_counts wrote, got a different file"


# class of the error, call, and the sentence: whole, or its beginning up to a space where the rest is not ours to choose


def list_with(content: bytes) -> Callable[[], Any]:
    """A call that reads a list of values."""

    def call() -> None:
        Path("list").write_bytes(content)
        read_lines("list", most=9, longest=9)

    return call


def run_of(name: str) -> runs.RunRecord:
    source = {"option": "--x", "name": "x", "bounded": False, "resumes": True}
    return runs.RunRecord(run=name, started="2026-01-01T00:00:00Z", source=source, specification={}, launched=True)


def checking_texts() -> None:
    Path("texts").mkdir()
    Path("texts/estimates.jsonl").write_text('{"run": "a", "num_reports": "many"}\n', encoding="utf-8")
    check._rows("texts", "estimates", [run_of("a")])


OUTPUTS = "estimates, values, health, ledger, rejected, counts, discovered"


def outputs_of_estimates() -> Any:
    return beam.Pipeline() | beam.Create([b""]) | EstimateReports(collections=[KRR])


DIMENSION: Any = DimensionValue("arm", "new")

SENTENCES: list[Refusal] = [
    (AttributeError, lambda: uldp_transforms.Decode, f"module 'uldp_transforms' has the names {NAMES}, got 'Decode'"),
    (
        ImportError,
        a_name_that_its_module_does_not_have,
        "uldp_transforms.Windows cannot be imported: module 'uldp_transforms.version' has no attribute 'Windows'",
    ),
    (
        ImportError,
        lambda: moved_names("some.module", "absent_package.module")("name"),
        "some.module is now absent_package.module of the package absent-package, which is not installed",
    ),
    (
        AttributeError,
        lambda: moved_names("some.module", "absent_package.module")("__path__"),
        "module 'some.module' has no attribute '__path__'",
    ),
    # coders
    (
        ValueError,
        lambda: CohortCountsCoder().decode(b"\x04" * 20),
        "CohortCountsCoder reads versions 1 to 3, got version 4",
    ),
    (ValueError, lambda: Neighbours.from_bytes(b"\x01" * 9), "Neighbours reads versions 2 to 5, got version 1"),
    (ValueError, lambda: unpacked(b"\x09" * 50), f"unpacked reads version {entry_columns._VERSION}, got version 9"),
    (ValueError, lambda: ReportBatchCoder().decode(b"\x02" * 50), "ReportBatchCoder reads version 1, got version 2"),
    (ValueError, lambda: GatheredCoder().decode(b"\x03" * 6), "GatheredCoder reads versions 1 and 2, got version 3"),
    (
        ValueError,
        lambda: GatheredCoder().decode(b"\x02\x03"),
        "GatheredCoder reads whole groups of messages, got 2 bytes of one",
    ),
    (
        OSError,
        lambda: list(_ReadFn(None, grouped=False, numbers=None).process(FileMetadata("/proc/self/mem", 1))),
        "[Errno 5] Input/output error: '/proc/self/mem'",
    ),
    (lambda: as_dict(None), "as_dict, to_json and to_avro need a row, got NoneType"),  # type: ignore[arg-type]  # no row
    (lambda: DIMENSION["names"], "DimensionValue has the fields name, value, got ['names']"),
    (
        lambda: DIMENSION["name"],
        "DimensionValue has its fields as attributes, got ['name']; use: row.name, or as_dict(row)['name']",
    ),
    (
        NoOutputError,
        lambda: outputs_of_estimates().estimate,
        f"EstimateReports has its outputs as attributes ({OUTPUTS}), got .estimate; use: .estimates",
    ),
    (
        NoOutputError,
        lambda: outputs_of_estimates().element_type,
        f"EstimateReports has several outputs ({OUTPUTS}), got a step for all; use: estimated.values | step",
    ),
    (AttributeError, lambda: outputs_of_estimates()._element_type, "_element_type"),
    (ValueError, lambda: MixedReportsCoder().decode(b"\x02" * 5), "MixedReportsCoder reads version 1, got version 2"),
    # transforms
    (
        lambda: outputs_of_estimates().counts,
        "EstimateReports has no output counts unless it is asked for; use: with_counts=True",
    ),
    (
        lambda: outputs_of_estimates()["ledger"],
        f"EstimateReports has its outputs as attributes ({OUTPUTS}), got ['ledger']; use: .ledger",
    ),
    (
        lambda: outputs_of_estimates() | beam.Map(print),
        f"EstimateReports has several outputs ({OUTPUTS}), got a step for all; use: estimated.values | step",
    ),
    (
        lambda: _require_times([-(1 << 50)]),
        "messages of a stream must have their time of arrival as timestamp, got messages without a time; use, in a "
        "TestStream: stream.add_elements([TimestampedValue(message, time.time())])",
    ),
    (
        windowed_messages,
        "DecodeReports needs elements in the global window (reports carry their own time), got FixedWindows; use: "
        'elements | "Unwindowed" >> beam.WindowInto(beam.window.GlobalWindows())',
    ),
    (
        estimator_for_nobody,
        "estimator 'em' does not support collection 'krr': counts do not hold the likelihood of rappor; "
        "estimate_reports takes the reports",
    ),
    (lambda: EstimateDistribution(JobSpec(collections=(KRR, OPEN))), f"{NEEDS} 0"),
    (
        JobSpec(collections=(collection("shared", SHARED, "urr"),)).check_candidates,
        "collection 'shared' must have at most 8192 public values that share clear buckets, got 8193",
    ),
    (
        lambda: JobSpec(collections=(KRR,), min_reports=0),
        f"JobSpec.min_reports must be an integer in [1, {1 << 62}], got 0",
    ),
    (
        lambda: JobSpec(collections=(KRR,), estimator="best"),
        f"estimator.id must be one of {', '.join(sorted(ESTIMATORS))}, got 'best'",
    ),
    (
        lambda: list(_split(dataclasses.replace(KRR.perturb(["0"]), report_ids=np.zeros((0, 16), np.uint8)), None, 1)),
        "CountReports needs reports with ids where JobSpec.deduplicate is true, got some without",
    ),
    *(
        (make, "a job needs at least one collection, got none")
        for make in (
            lambda: CollectionCatalog([]),
            lambda: JobSpec(collections=()),
            lambda: JobSpec.of(collections=[]),
            lambda: JobSpec.from_json({"collections": []}),
            lambda: EstimateReports(collections=[]),
        )
    ),
    (
        lambda: SummarizeLedger(JobSpec(collections=(KRR,))).expand({}),
        "SummarizeLedger needs a tuple of PCollections of LedgerEntry and Rejection, got dict",
    ),
    (
        lambda: EstimateReports(JobSpec(collections=(KRR,)), window="1h", min_reports=5),
        "EstimateReports needs a JobSpec or plain values, got both (window, min_reports)",
    ),
    (
        estimating("--window 1d --slide 10s"),
        "Windows.size must be at most 1440 base periods (the longest time that divides size and slide), got 1d every "
        "10s, which is 8640 periods of 10s",
    ),
    (
        lambda: EstimateReports(JobSpec(collections=(KRR,)), with_counts="yes"),  # type: ignore[arg-type]
        "EstimateReports.with_counts must be true or false, got 'yes'",
    ),
    (
        lambda: EstimateReports(JobSpec(collections=(KRR,)), with_values=1),  # type: ignore[arg-type]  # no switch
        "EstimateReports.with_values must be true or false, got 1",
    ),
    (
        lambda: EstimateReports(JobSpec(collections=(KRR,)), columns=None),  # type: ignore[arg-type]  # no switch
        "EstimateReports.columns must be true or false, got None",
    ),
    (
        lambda: EstimateReports({"collections": []}),  # type: ignore[arg-type]
        "EstimateReports needs a JobSpec, got {'collections': []}; use: EstimateReports(collections=[...])",
    ),
    (
        lambda: CollectionCatalog([KRR, KRR]),
        "collections of one job must have different fingerprints, got 'krr' version 1 and 'krr' version 1 with the "
        "same one",
    ),
    (
        lambda: CollectionCatalog([KRR, collection("krr", {"id": "hashed", "num_buckets": 4}, "krr")]),
        "collections of one job must differ in id or version, got 'krr' version 1 twice",
    ),
    (lambda: parse_duration("5x", "--window"), f"--window {DURATION} '5x'"),
    # what the programs share
    (lambda: cli.Parser().parse_args(["--more"]), "unrecognized arguments: --more"),
    (a_required_option_with_a_wrong_name, "unrecognized arguments: --value; did you mean --values?"),
    (
        lambda: read_collections(["more.json"]),
        "more.json: Collection takes the keys id, version, alphabet, mechanism, num_cohorts, "
        "client_window, client_timezone, question, dimensions, noun, got 'more'",
    ),
    (lambda: read_collections(["latin.txt"]), "latin.txt must be a UTF-8 text file, got other bytes"),
    (lambda: read_text("latin.txt"), "latin.txt must be a UTF-8 text file, got other bytes"),
    (lambda: read_lines("latin.txt", most=9, longest=9), "latin.txt must be a UTF-8 text file, got other bytes"),
    (lambda: read_lines("two.txt", most=1, longest=9), "two.txt must have at most 1 values, got more"),
    (
        lambda: read_lines("two.txt", most=9, longest=1),
        "two.txt must have lines of at most 1 bytes, got a longer one at line 2",
    ),
    (
        lambda: read_lines("same.txt", most=9, longest=9),
        "same.txt must have different values (in Unicode NFC), got the same one in lines 1 and 2",
    ),
    (lambda: read_lines("other.csv.gz", most=9, longest=9), f"other.csv.gz {GZIP}"),
    (argparse.ArgumentTypeError, lambda: cli.duration("--window")("5x"), f"{DURATION} '5x'"),
    (
        argparse.ArgumentTypeError,
        lambda: cli.resource("topics")("t"),
        "must be projects/PROJECT/topics/NAME, got 't'",
    ),
    (argparse.ArgumentTypeError, lambda: cli.name_and_value("=secret"), "must be NAME=VALUE (the value is not shown)"),
    (
        argparse.ArgumentTypeError,
        lambda: cli.dimension_from("attribute")("Country=attribute:cc"),
        "must be NAME=attribute:KEY, such as country=attribute:cc, got 'Country=attribute:cc'",
    ),
    (
        argparse.ArgumentTypeError,
        lambda: cli.dimension_from("header")("country=header:X-Country:"),
        "must be NAME=header:KEY, such as country=header:cc, got 'country=header:X-Country:'",
    ),
    (argparse.ArgumentTypeError, lambda: cli.share("2"), "must be a number from 0 to 1, got '2'"),
    (
        argparse.ArgumentTypeError,
        lambda: cli.confidence("95"),
        "must be a number between 0 and 1, at most 0.999999, such as 0.95, got '95'",
    ),
    (argparse.ArgumentTypeError, lambda: cli.dataset("d"), "must be PROJECT:DATASET, got 'd'"),
    (argparse.ArgumentTypeError, lambda: cli.SWITCH["type"]("yes"), "must be true or false, got 'yes'"),
    (lambda: cli.matching("--collection", ["no*.json"]), "--collection must match at least one file, got 'no*.json'"),
    (argparse.ArgumentTypeError, lambda: cli.seed("x"), "must be a non-negative whole number, got 'x'"),
    (
        argparse.ArgumentTypeError,
        lambda: cli.seed(str(1 << 64)),
        f"must be an integer in [0, {(1 << 64) - 1}], got {1 << 64}",
    ),
    (argparse.ArgumentTypeError, lambda: cli.positive()("0"), "must be a whole number above 0, got '0'"),
    (argparse.ArgumentTypeError, lambda: cli.positive(float)("inf"), "must be a number above 0, got 'inf'"),
    (
        lambda: runners.check_options(["--more", "5"]),
        "unrecognized arguments: --more; options are those of --help all, of Apache Beam and of the job server at "
        "--job_endpoint",
    ),
    (
        lambda: JobSpec(collections=(KRR,), early_every=1500),
        "JobSpec.early_every must be a whole number of seconds, got 1500 ms",
    ),
    (
        outputting("--input good.avro --progress 1m --runner DataflowRunner"),
        "--progress needs an engine in this process, got another one, which shows its own metrics",
    ),
    (asking_pubsub(NotFound("none")), "--topic must exist, got a name that Google Cloud Pub/Sub does not know"),
    (
        asking_pubsub(RetryError("late", None)),
        "--topic needs Google Cloud Pub/Sub to answer within 15 s, got RetryError",
    ),
    # manifests, and what a pattern matches
    *((lambda content=content: files_of_manifest(content), said) for content, said in manifests.WRONG),
    (
        lambda: ListedFile("a/b", 1, "0" * 64, 1, 1),
        "ListedFile.name must be the name of a file without a folder, got 'a/b'",
    ),
    (
        lambda: ListedFile("a", 1, "00", 1, 1),
        "ListedFile.sha256 must be 64 hexadecimal digits (0-9, a-f), got '00'",
    ),
    (
        lambda: ReadReportFiles("good.avro", 3),  # type: ignore[arg-type]
        "ReadReportFiles.manifest must be a text or None, got 3",
    ),
    (
        lambda: ReadReportFiles("good.avro", "no*.json"),
        "ReadReportFiles.manifest must match at least one file, got 'no*.json'",
    ),
    (estimating("--num_reports ''"), "--num_reports must be the name of a column, got none"),
    (
        lambda: ReadReportFiles(manifest="listed2.json"),
        "ReadReportFiles.manifest needs ReadReportFiles.pattern, got none",
    ),
    (
        lambda: beam.Pipeline() | ReadReportFiles(),
        "ReadReportFiles needs ReadReportFiles.pattern or a PCollection of names, got neither",
    ),
    (
        lambda: names() | ReadReportFiles("good.avro"),
        "ReadReportFiles needs ReadReportFiles.pattern or a PCollection of names, got both",
    ),
    (
        lambda: names(is_bounded=False) | ReadReportFiles(),
        "ReadReportFiles needs a bounded PCollection of names of files, got an unbounded one",
    ),
    (OSError, reading_from_a_disk_that_fails, "of this test"),
    (
        lambda: list(check._rejected("unread")),
        "unread/rejected.avro must contain rows of uldp estimate (the content is not shown)",
    ),
    (estimating("--manifest no*.json"), "--manifest must match at least one file, got 'no*.json'"),
    (
        lambda: ReadReportFiles("good.avro", "listed1.json"),
        "HERE/listed1.json must list files that match 'HERE/good.avro', got 'gone.avro'",
    ),
    (
        lambda: ReadReportFiles("good.avro", "listed[23].json"),
        "HERE/listed3.json must agree with the other manifests, got a different entry for 'good.avro'",
    ),
    (
        lambda: ReadReportFiles("coun*"),
        "ReadReportFiles.pattern must match files that can be read, got the directory 'HERE/counted'",
    ),
    (
        lambda: ReadReportFiles("**/good.avro"),
        "ReadReportFiles.pattern must match all files that it seems to, but /**/ skips 'HERE/good.avro'; use "
        "'HERE/**good.avro' for all folders, or 'HERE/*/**good.avro' for those below only",
    ),
    (
        RejectedShareError,
        lambda: Watch(JobSpec(collections=(KRR,), max_rejected_share=0)).look(
            MessageDecoder(CollectionCatalog([KRR])).decode([b""] * 1000)
        ),
        "1000 of 1000 messages were rejected as malformed: see docs/reasons.md: do the clients and this job "
        "use the same collections?",
    ),
    # estimate
    (estimating("--max_rejected_share 2"), "--max_rejected_share must be a number from 0 to 1, got '2'"),
    (estimating("--output file"), "--output must be a directory, got the file 'file'"),
    (estimating("--output 'o[1]'"), "--output must be a path without the pattern characters * ? [ \\, got 'o[1]'"),
    (locked_by_a_link, "--output must not contain a .lock that is a symbolic link, got one at 'linked/.lock'"),
    (
        lambda: _run_that_goes_on("nowhere"),
        "--savepoint_path needs the --output directory of the run that made the savepoint, got 'nowhere', "
        "to which no run has written",
    ),
    (
        lambda: described_options("localhost:1", 0.2),
        "--job_endpoint must be HOST:PORT of a job server, got 'localhost:1': DEADLINE_EXCEEDED",
    ),
    (
        run(estimate.configure, "--collection krr.json --input good.avro --output out --window 1h --dry_run=True"),
        "--dry_run needs --runner DataflowRunner, got 'DirectRunner'",
    ),
    (
        estimating("--window 1h --runner DataflowRunner --dry_run=True"),
        "--dry_run needs --temp_location gs://BUCKET/FOLDER, got none",
    ),
    (
        estimating("--window 1h --runner DataflowRunner --temp_location gs://b/tmp"),
        "--temp_location must be gs://BUCKET/FOLDER, with a bucket of at least 3 of the characters a-z, 0-9, '-', '_' "
        "and '.', got 'gs://b/tmp'",
    ),
    (
        run(estimate.configure, "--collection asked.json --input good.avro --output out --runner PrismRunner"),
        "--runner must be an engine that pools questions of bounded sources, such as DirectRunner, got PrismRunner and "
        "the question 'asked'",
    ),
    (
        streaming("--window 1h --runner FlinkRunner"),
        "--subscription needs --runner DirectRunner or DataflowRunner, got 'FlinkRunner'",
    ),
    (
        from_kafka("--window 1h"),
        "--kafka_topic needs --kafka_until (a range is read on this machine), or --runner PrismRunner, "
        "FlinkRunner or another runner that reads streams, got 'DirectRunner'",
    ),
    (
        from_kafka("--window 1h --runner PortableRunner --expansion_service localhost:1"),
        "--kafka_topic needs Java and Beam's expansion service for Kafka, got ",
    ),
    (
        run(estimate.configure, "--collection krr.json --kafka_topic t --output out --window 1h"),
        "--kafka_topic needs --bootstrap_servers, got none",
    ),
    (
        run(
            estimate.configure,
            "--collection set.json --kafka_topic t --bootstrap_servers b:1 --kafka_reader java --output out "
            "--window 1h --dimension country=attribute:cc",
        ),
        "--dimension needs --kafka_reader python, got java",
    ),
    (
        run(
            estimate.configure,
            "--collection set.json --subscription projects/p/subscriptions/s --output out --window 1h",
        ),
        "--dimension must say what gives 'country' (set_by attribute), got none",
    ),
    (estimating("--dimension country=attribute:cc"), "--dimension needs --subscription or --kafka_topic, got --input"),
    *(
        (estimating(f"{option} {value}"), f"{option} needs --kafka_topic, got --input")
        for option, value in (
            ("--bootstrap_servers", "localhost:9092"),
            ("--kafka_timestamps", "CreateTime"),
            ("--kafka_property", "a=b"),
            ("--kafka_reader", "python"),
            ("--kafka_until", "now"),
            ("--expansion_service", "localhost:1"),
        )
    ),
    (estimating("--runner more.Runner"), "--runner must be a runner that Beam can load, got No module named 'more'"),
    (printing("--dialect oracle"), "--dialect must be one of duckdb, bigquery, snowflake, spark, got 'oracle'"),
    (printing("--dialect duckdb --period 0ms"), "--period must be from 1ms to 365d, got 0ms"),
    (uldp.Unavailable, lambda: uldp.main_of("xyzzy"), "PROGRAM must be one of "),
    (
        uldp.Unavailable,
        a_laboratory_that_is_not_there,
        "reproduce runs in a checkout of the repository, not from an installed package: python -m pipelines.reproduce "
        "in its folder",
    ),
    (
        uldp.Unavailable,
        a_program_of_another_package_that_is_broken,
        "program 'other' of the package unknown cannot be started: No module named 'not_there'",
    ),
    (locking_twice, "--spool must be a folder that no other gateway uses, got 'own', which another one has locked"),
    (other_accounts, "./accounts-r.json must be the accounts of a run (the content is not shown)"),
    (
        run(estimate.configure, "--collection krr.json --input counted.parquet --output out --window 10m"),
        "--window must consist of whole periods of 900000 ms, in which the rows of 'HERE/counted.parquet' were "
        "counted, as must --slide and --window_offset; count again with another --period of uldp sql",
    ),
    (other_totals, "totals.jsonl must contain rows of uldp reestimate --window all (the content is not shown)"),
    (
        estimating("--by Arm"),
        "JobSpec.by must name dimensions that a collection of the job has (none has any), got Arm",
    ),
    (estimating("--input other.avro"), "--input must have one value, got two different ones"),
    (estimating("--streaming"), "--streaming needs --subscription or --kafka_topic, got --input"),
    (streaming(""), "--subscription needs --window: an unbounded stream without windows has no estimate, got none"),
    (estimating("--early_every 1h"), "--early_every needs --subscription or --kafka_topic, got --input"),
    (estimating("--late_every 1h"), "--late_every needs --subscription or --kafka_topic, got --input"),
    (estimating("--flush_every 1h"), "--flush_every needs a source that does not end, got --input"),
    (streaming("--window 1h --flush_every 1h"), "--flush_every must be at most 10m, got 1h"),
    (
        streaming("--window 1h --release final --late_every 1m"),
        "--late_every cannot be combined with --release final, got both",
    ),
    (
        estimating("--release final"),
        "--release final needs --subscription or --kafka_topic, because files always give one row per "
        "window, got --input",
    ),
    (
        streaming("--window 1h --release final --early_every 1m"),
        "--early_every cannot be combined with --release final, got both",
    ),
    (
        from_kafka("--window 1h --kafka_property =secret"),
        "--kafka_property must be NAME=VALUE (the value is not shown)",
    ),
    (estimating("--deduplicate_parts 64"), "--deduplicate_parts needs --deduplicate, got none"),
    (
        estimating("--deduplicate --deduplicate_parts 4294967297"),
        "JobSpec.deduplicate_parts must be an integer in [1, 4294967296], got 4294967297",
    ),
    (
        estimating("--output counted"),
        "--output has counts.avro of an earlier job, which would not belong to the new estimates: give --write_counts "
        "or another directory, got 'counted'",
    ),
    (estimating("--deduplicate=yes"), "--deduplicate must be true or false, got 'yes'"),
    (estimating("--bigquery d"), "--bigquery must be PROJECT:DATASET, got 'd'"),
    (estimating("--bigquery_method storage_write_api"), "--bigquery_method needs --bigquery, got none"),
    (estimating("--bigquery p-1:d"), "--bigquery with --input needs --temp_location gs://BUCKET/FOLDER, got None"),
    (without_google, "--topic needs Google's client libraries; install the extra 'gcp': pip install '.[gcp]'"),
    (
        without_java,
        "--bigquery_method storage_write_api needs Java and Beam's expansion service for Google Cloud, got java",
    ),
    *(
        (
            streaming(f"--window 1h {option}=streaming_mode_at_least_once"),
            "Dataflow's streaming mode must be exactly-once, because reports would count twice, got "
            "streaming_mode_at_least_once",
        )
        for option in ("--dataflow_service_options", "--experiments")
    ),
    (outputting("--input ."), "--input must be a pattern of file names, got the directory '.'"),
    (estimating("--window 1h --release never"), "--release must be one of corrected, final, got 'never'"),
    (estimating("--slide 1h"), "--slide needs --window, got none"),
    (estimating("--smooth"), "--smooth needs --window, got none"),
    (
        estimating("--smooth --window 2h --slide 1h"),
        "--smooth cannot be combined with --slide, which makes windows overlap, got both",
    ),
    (estimating("--alarm_every 5 --window 1h"), "--alarm_every needs --smooth, got none"),
    (streaming("--window 1h --output_topic t"), "--output_topic must be projects/PROJECT/topics/NAME, got 't'"),
    (outputting("--input none.avro"), "--input must match at least one file, got 'HERE/none.avro'"),
    # reestimate
    (
        estimating_again("krr.json krr.json"),
        "DIR must name each file once, because its reports would count twice, got 'HERE/krr.json' 2 times",
    ),
    (
        lambda: _check_no_copies([{"run": "a", "counts": 5}], {"a": {"counts": 5}}),
        "DIR must name each count once, because its reports would count twice, got those of run a in two directories",
    ),
    (estimating_again("none"), "DIR must match at least one file, got 'none'"),
    (estimating_again("--output file"), "--output must be a directory, got the file 'file'"),
    (estimating_again("--window all --write_json"), "--write_json needs windows, got --window all"),
    (estimating_again("--window all --smooth"), "--smooth needs windows, got --window all"),
    (estimating_again("--totals t.jsonl"), "--totals needs --window all, got stored windows"),
    (
        lambda: reestimate.configure(["few.avro", "--collection", "krr.json"]),
        "--output must be given, except with --window all of one DIR, got none",
    ),
    (estimating_again("krr.json"), f"krr.json {NOT_COUNTS}"),
    (estimating_again(""), "few.avro: counts of collection 'krr' must have 3 cohorts and 9 cells, got 2 and 1"),
    (
        estimating_again("below.avro"),
        "below.avro: counts of collection 'krr' must be from 0 to 9007199254740992, got a number outside this range",
    ),
    (
        estimating_again("impossible.avro"),
        "impossible.avro: counts of collection 'krr' must have cells that sum to the reports of their "
        "cohort, got a violation in cohort 0",
    ),
    (
        estimating_again("all.avro --window 1d"),
        "--window needs counts that were stored by window, got counts of a single window that holds all reports",
    ),
    (
        estimating_again("day.avro --window 1h"),
        "--window must have base periods that consist of whole stored windows, got the stored window "
        "1970-01-01T00:00:00Z to 1970-01-02T00:00:00Z",
    ),
    (
        estimating_again("overlap.avro --window 1w"),
        "--window needs stored windows that do not overlap, got the stored window 1970-01-01T12:00:00Z to "
        "1970-01-02T12:00:00Z, which begins before another one ends",
    ),
    (estimating_again("--timezone UTC"), "--timezone needs --window, got none"),
    (estimating_again("--alarm_every 5"), "--alarm_every needs --smooth, got none"),
    (
        lambda: reestimate._check_windows([smooth_row(None, None)]),
        "--smooth needs counts in windows, got one for everything of 'c'",
    ),
    (
        lambda: reestimate._check_windows(
            [smooth_row("2026-01-01", "2026-01-03"), smooth_row("2026-01-02", "2026-01-04")]
        ),
        "--smooth needs windows that do not overlap, got overlapping windows of 'c'",
    ),
    # runs
    (
        with_output("estimates-1.jsonl"),
        "--output must be a directory of one kind of job, got 'used-estimates', with rows of a stream, and this job is "
        "over files",
    ),
    (with_output("run-1.json", "{}"), "used-run/run-1.json must be a run record (the content is not shown)"),
    (lambda: runs.read_lines(["good.avro"]), "good.avro must contain rows of uldp estimate (the content is not shown)"),
    (
        two_runs,
        "--output must be a directory that no other run is using, got 'in-use', in use by run 20261122T081503Z-4f2a9c",
    ),
    (run(check.configure, "none"), "DIR must be a directory, got 'none'"),
    (run(check.configure, ". --max_age 2"), f"--max_age {DURATION} '2'"),
    # demo
    (lambda: demo.configure(["--seed", "-1"]), "--seed must be a whole number from 0 to 2**63 - 1, got -1"),
    (
        demo_without_charts,
        "a report needs the package uldp-transforms-report; in a checkout: "
        "pip install . ./packages/tables ./packages/report",
    ),
    (
        an_engine_that_is_not_installed,
        "--follow needs the package uldp-transforms-follow, which is not installed "
        "(in a checkout: pip install ./packages/follow)",
    ),
    (argparse.ArgumentTypeError, lambda: cli.numbers("1,x"), "must be comma-separated numbers, got '1,x'"),
    *(
        (list_with(content), sentence)
        for content, sentence in (
            (
                b"value\n1\n2\n",
                "list must have one value per line without a header, got 'value' at line 1; if it is a value, "
                "move it to another line",
            ),
            (
                b'1\n"2"\n',
                "list must be a plain text file with one value per line, got a value in quotation marks at line 2",
            ),
            (b"1;\n2;\n", "list must have one value per line, got lines that all end with ';'"),
        )
    ),
    # check
    (
        lambda: check._acknowledge(".", "b", [run_of("a")]),
        "--acknowledge must name a killed run (there is none), got 'b'",
    ),
    (TypeError, checking_texts, "rows of estimates must have whole numbers as counts, got other values"),
    # read_rows
    (
        lambda: uldp_transforms.read_rows(".", "values"),
        "kind must be one of estimates, groups, windows, health, discovered, totals, comparisons, ledger, rejected, "
        "got 'values'",
    ),
    (lambda: uldp_transforms.read_rows(".", form="list"), "form must be one of pandas, arrow, polars, got 'list'"),
    (lambda: uldp_transforms.read_rows("."), ". must contain rows of uldp estimate, got none"),
    # rows of a directory
    (
        lambda: RowDirectory("reported").windows(),
        "reported/estimates.jsonl must contain rows of estimates, got a row without collection_id",
    ),
    (
        lambda: RowDirectory("listed").windows(),
        "listed/estimates.jsonl must contain rows of uldp estimate (the content is not shown)",
    ),
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all rows share: what is refused changes no file, and files of one row have names of their own."""
    folder = tmp_path_factory.mktemp("files")
    write_files(folder, FILES)
    return folder


@pytest.fixture
def folder(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)


ROWS = with_kinds([*SENTENCES, *rows_of(refusals_of_jobs)])


@pytest.mark.parametrize(("kind", "call", "sentence"), ROWS, ids=[row[2][:60] for row in ROWS])
@pytest.mark.usefixtures("folder")
def test_sentence(kind, call, sentence):
    check_sentence(kind, call, sentence, HERE=os.getcwd())


# ---------------------------------------------------------------------- the table is complete


def calls() -> Iterator[Callable[[], Any]]:
    """The calls of this table and of those of all subjects."""
    yield from calls_of([ROWS])
    for made, _ in kafka_secrets.WRONG:
        yield made(Path())
    yield ended_silently


@pytest.mark.usefixtures("folder")
def test_every_refusal_has_a_row():
    """The lines of all ``raise`` statements but interrupts, less those that the tables have come through."""
    refusals = refusals_of(SOURCES)
    assert len(set(refusals.values())) > 70
    assert {"beam", "jobs", "messages", "rows", "windows.py"} <= {name.partition("/")[0] for name in SOURCES}
    missing = without_a_row(refusals, calls())
    assert not missing, "\n".join(missing)
