"""The main job: perturbed reports in, windowed distribution estimates out.

Reads Avro files, a Pub/Sub subscription or a Kafka topic, and writes estimates (JSON lines and Avro), refused reports
(Avro), the ledger and what sentinels say (JSON lines) into a directory, and if asked to BigQuery and Pub/Sub.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import (
    CrossLanguageOptions,
    GoogleCloudOptions,
    PipelineOptions,
    StandardOptions,
)
from apache_beam.utils.subprocess_server import JavaJarServer

from pipelines import cli
from pipelines.bigquery import INSERTS, LOADS, STORAGE_WRITE_API, UNDELIVERED_SCHEMA, WriteTable
from pipelines.kafka import CREATE_TIME, LOG_APPEND_TIME, ReadKafka
from pipelines.runners import (
    DATAFLOW,
    LOCAL_STREAMS,
    PRISM,
    check_exactly_once,
    check_options,
    choose_local_engine,
    is_only_launched,
    require_credentials,
    require_java_engine,
)
from pipelines.sinks import PublishRows, WriteRowFiles
from uldp_transforms.count import CountReports
from uldp_transforms.decode import DecodeReports
from uldp_transforms.deduplicate import PARTS
from uldp_transforms.estimate import MIN_REPORTS, CountsRows, EstimateDistribution
from uldp_transforms.files import ReadReportFiles
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ledger import SummarizeLedger, rejected_row
from uldp_transforms.release import ReleaseOnce
from uldp_transforms.rows import COUNTS_SCHEMA, ESTIMATE_SCHEMA, HEALTH_SCHEMA, LEDGER_SCHEMA, REJECTED_SCHEMA
from uldp_transforms.windows import TimeGate, Windows

CORRECTED, FINAL = "corrected", "final"
UNBALANCED = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that the pipeline needs to be built."""

    collections: list[Collection]
    input: str | None
    subscription: str | None
    kafka: ReadKafka | None = None
    output: str
    output_topic: str | None
    windows: Windows | None
    estimator: str
    candidates: list[str] | None
    min_reports: int
    deduplicate: bool = False
    deduplicate_parts: int = PARTS
    bit_patterns: bool = False
    release: str = CORRECTED
    write_counts: bool = False
    bigquery: str | None = None
    bigquery_method: str = LOADS
    rejected_topic: str | None = None
    options: PipelineOptions

    @property
    def unbounded(self) -> bool:
        return self.input is None

    @property
    def gate(self) -> TimeGate | None:
        """Files have no arrival times: nothing in them is late."""
        if not self.unbounded or self.windows is None:
            return None
        return TimeGate(base=self.windows.base, allowed_lateness=self.windows.allowed_lateness)


def command_line() -> cli.Parser:
    """The options of this program; those of Beam come on top."""
    parser = cli.Parser(
        prog="python -m pipelines.estimate",
        description=__doc__,
        epilog="All options of Apache Beam can be given too, for instance --runner DataflowRunner.",
    )
    add = parser.add_argument
    add(
        "--collection",
        required=True,
        action="append",
        help="JSON file of a collection, or a pattern for several; may be given several times",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--input", help="Avro files of reports, a pattern such as 'reports-*.avro'")
    source.add_argument(
        "--subscription", type=cli.resource("subscriptions"), help="Pub/Sub subscription, projects/P/subscriptions/S"
    )
    source.add_argument("--kafka_topic", help="Kafka topic (needs --bootstrap_servers and a runner that runs Java too)")
    add("--bootstrap_servers", help="HOST:PORT of Kafka's brokers, separated by commas")
    add(
        "--kafka_timestamps",
        choices=(CREATE_TIME, LOG_APPEND_TIME),
        help=f"message.timestamp.type of the topic, whose times are the arrival times; none: {CREATE_TIME}",
    )
    add(
        "--kafka_property",
        type=cli.name_and_value,
        action="append",
        help="NAME=VALUE, a setting of Kafka's consumer such as security.protocol=SASL_SSL; may be given several times",
    )
    add(
        "--expansion_service",
        help="HOST:PORT of a service that knows Beam's Java transforms for Kafka; none: Beam's own",
    )
    add("--output", required=True, help="directory for the results")
    add(
        "--output_topic",
        type=cli.resource("topics"),
        help="Pub/Sub topic for the estimates, projects/P/topics/T (needs --subscription)",
    )
    add(
        "--rejected_topic",
        type=cli.resource("topics"),
        help="Pub/Sub topic for what was refused, projects/P/topics/T (needs --subscription)",
    )
    add("--bigquery", type=cli.dataset, help="dataset PROJECT:DATASET for tables estimates, ledger, rejected, health")
    add(
        "--bigquery_method",
        choices=(STORAGE_WRITE_API,),
        help="none: load jobs for files, streaming inserts for a stream; storage_write_api needs Java",
    )
    add(
        "--window",
        type=cli.duration("--window"),
        help="length of a window, such as 15m, 1h, 1d, at most 365d; none: all",
    )
    add("--slide", type=cli.duration("--slide"), help="time between the starts of two windows; none: --window")
    add(
        "--allowed_lateness",
        type=cli.duration("--allowed_lateness"),
        default="1h",
        help="how long after the end of its base period, the greatest that divides window and slide, a report still "
        "counts (streams; files have no arrival times)",
    )
    add("--early_every", type=cli.duration("--early_every"), help="also estimate unfinished windows, this often")
    add("--estimator", default="projected", help=f"one of {', '.join(sorted(ESTIMATORS))}")
    add("--candidates", help="text file, one value a line: what to estimate in open alphabets")
    add("--min_reports", type=cli.positive(), default=MIN_REPORTS, help="fewer reports are suppressed")
    add("--deduplicate", **cli.SWITCH, help="count each report id once per base period; costs a shuffle and state")
    add(
        "--deduplicate_parts",
        type=cli.positive(),
        help=f"of a base period, each held and written whole; none: {PARTS}, for up to a million reports a base period",
    )
    add(
        "--bit_patterns",
        **cli.SWITCH,
        help="look inside the reports of rappor, urap and aoue, for two more sentinels; costs time per report",
    )
    add(
        "--release",
        choices=(CORRECTED, FINAL),
        default=CORRECTED,
        help="streams: rows when the watermark passes the end of a window and whenever late reports change it, or one "
        "row a window, after the allowed lateness",
    )
    add("--write_counts", **cli.SWITCH, help="also write the counts of each window, for pipelines.reestimate")
    return parser


def _check(args: Any, options: PipelineOptions, stream: bool) -> None:
    """Refuse what does not go together; raises SpecError."""
    topics = {"--output_topic": args.output_topic, "--rejected_topic": args.rejected_topic}
    only_of_kafka = {
        "--bootstrap_servers": args.bootstrap_servers,
        "--kafka_timestamps": args.kafka_timestamps,
        "--kafka_property": args.kafka_property,
        "--expansion_service": args.expansion_service,
    }
    source = "--input" if not stream else "--subscription" if args.kafka_topic is None else "--kafka_topic"
    streams = "--subscription or --kafka_topic"
    temporary = options.view_as(GoogleCloudOptions).temp_location
    loads = args.bigquery is not None and args.bigquery_method is None and not stream
    rules = [
        (options.view_as(StandardOptions).streaming and not stream, f"--streaming needs {streams}, got --input"),
        (args.early_every is not None and not stream, f"--early_every needs {streams}, got --input"),
        (
            stream and args.window is None,
            f"{source} needs --window: an endless stream without windows has no estimate, got none",
        ),
        *(
            (value is not None and args.subscription is None, f"{name} needs --subscription, got {source}")
            for name, value in topics.items()
        ),
        *(
            (value is not None and args.kafka_topic is None, f"{name} needs --kafka_topic, got {source}")
            for name, value in only_of_kafka.items()
        ),
        (
            args.kafka_topic is not None and args.bootstrap_servers is None,
            "--kafka_topic needs --bootstrap_servers, got none",
        ),
        (
            args.release == FINAL and not stream,
            f"--release final needs {streams}: files have one row a window anyway, got --input",
        ),
        (
            args.release == FINAL and options.view_as(StandardOptions).runner == PRISM,
            "--release final needs a runner that keeps windows for their lateness, got PrismRunner",
        ),
        (
            args.release == FINAL and args.early_every is not None,
            "--early_every cannot go with --release final, got both",
        ),
        (args.window is None and args.slide is not None, "--slide needs --window, got none"),
        (
            args.deduplicate_parts is not None and not args.deduplicate,
            "--deduplicate_parts needs --deduplicate, got none",
        ),
        (args.bigquery is None and args.bigquery_method is not None, "--bigquery_method needs --bigquery, got none"),
        (
            loads and not str(temporary).startswith("gs://"),
            f"--bigquery with --input needs --temp_location gs://BUCKET/FOLDER, got {temporary}",
        ),
        (
            not stream and os.path.isdir(args.input or ""),
            f"--input must be a pattern of file names, got the directory {args.input!r}",
        ),
    ]
    for wrong, sentence in rules:
        if wrong:
            raise SpecError(sentence)
    check_exactly_once(options)


def read_arguments(argv: Sequence[str]) -> Job:
    """The command line of ``pipelines.estimate``; raises SpecError or OSError."""
    args, beam_args = command_line().parse_known_args(argv)
    check_options(beam_args)
    options = PipelineOptions(beam_args)
    FileSystems.set_options(options)
    stream = args.input is None
    _check(args, options, stream)
    kafka, slack = None, None
    if args.kafka_topic is None:
        slack = choose_local_engine(options, stream)
    else:
        require_java_engine(options)
        timestamps = args.kafka_timestamps or CREATE_TIME
        properties = dict(args.kafka_property or ())
        kafka = ReadKafka(args.bootstrap_servers, args.kafka_topic, timestamps, args.expansion_service, properties)
    windows = None
    if args.window is not None:
        windows = Windows(
            size=args.window,
            slide=args.slide,
            allowed_lateness=args.allowed_lateness,
            early_every=args.early_every,
            **({} if slack is None else {"lateness_slack": slack}),
        )
    if args.input is not None and "://" not in args.input:
        args.input = os.path.abspath(args.input)  # Beam finds local files by absolute patterns only
    if args.input is not None and not FileSystems.match([args.input])[0].metadata_list:
        raise SpecError(f"--input must match at least one file, got {args.input!r}")
    return Job(
        collections=cli.read_collections(cli.matching("--collection", args.collection)),
        input=args.input,
        subscription=args.subscription,
        kafka=kafka,
        output=args.output,
        output_topic=args.output_topic,
        windows=windows,
        estimator=args.estimator,
        candidates=None if args.candidates is None else cli.read_lines(args.candidates),
        min_reports=args.min_reports,
        deduplicate=args.deduplicate,
        deduplicate_parts=args.deduplicate_parts or PARTS,
        bit_patterns=args.bit_patterns,
        release=args.release,
        write_counts=args.write_counts,
        bigquery=args.bigquery,
        bigquery_method=args.bigquery_method or (INSERTS if stream else LOADS),
        rejected_topic=args.rejected_topic,
        options=options,
    )


def configure(argv: Sequence[str]) -> tuple[Job, beam.Pipeline]:
    """The job and its pipeline, ready to run; what is wrong shows here."""
    job = read_arguments(argv)
    try:
        pipeline = beam.Pipeline(options=job.options)
    except ImportError as error:
        raise SpecError(f"--runner must be one that Beam can load, got {error}") from None
    services = job.options.view_as(CrossLanguageOptions).beam_services
    with JavaJarServer.beam_services(services):  # by itself Beam heeds this option in "with pipeline" only
        build(pipeline, job)
    if os.path.isfile(job.output):
        raise SpecError(f"--output must be a directory, got the file {job.output!r}")
    old_counts = FileSystems.join(job.output, "counts.avro")
    if not job.unbounded and not job.write_counts and FileSystems.exists(old_counts):
        raise SpecError(
            "--output has counts.avro of an earlier job, which would not belong to the new estimates: give "
            f"--write_counts or another directory, got {job.output!r}"
        )
    if not FileSystems.exists(job.output):
        FileSystems.mkdirs(job.output)
    return job, pipeline


def build(pipeline: beam.Pipeline, job: Job) -> None:
    """The job on one screen."""
    base = None if job.windows is None else job.windows.base
    refused, received = [], []
    if job.input is not None:
        files = pipeline | "ReadReportFiles" >> ReadReportFiles(job.input)
        messages = files.messages
        refused.append(files.rejected)
        received.append(files.received)
    elif job.kafka is not None:
        messages = pipeline | "ReadKafka" >> job.kafka
    else:
        messages = pipeline | "ReadPubSub" >> beam.io.ReadFromPubSub(subscription=job.subscription)

    decoded = messages | "DecodeReports" >> DecodeReports(job.collections, job.gate, job.windows, job.deduplicate)
    counted = decoded.reports | "CountReports" >> CountReports(
        job.collections,
        job.windows,
        unbounded=job.unbounded,
        deduplicate=job.deduplicate,
        deduplicate_parts=job.deduplicate_parts,
        bit_patterns=job.bit_patterns,
    )
    counts = counted.counts
    complete_after = 0 if job.unbounded else None
    if job.release == FINAL and job.windows is not None:
        release = ReleaseOnce(job.windows)
        counts, complete_after = counts | "ReleaseOnce" >> release, release.delay
    estimates, health = counts | "EstimateDistribution" >> EstimateDistribution(
        job.collections, job.estimator, job.candidates, job.min_reports, complete_after
    )
    rejections = [decoded.rejected, *refused] | "Refused" >> beam.Flatten()
    ledger = (decoded.received, *received, counted.ledger, rejections) | "Ledger" >> SummarizeLedger(
        job.collections, job.windows, job.unbounded
    )

    rejected = rejections | "RejectedRows" >> beam.Map(rejected_row, base)
    outputs = [
        ("WriteEstimatesJson", estimates, "estimates", "jsonl", ESTIMATE_SCHEMA),
        ("WriteEstimatesAvro", estimates, "estimates", "avro", ESTIMATE_SCHEMA),
        ("WriteRejected", rejected, "rejected", "avro", REJECTED_SCHEMA),
        ("WriteLedger", ledger, "ledger", "jsonl", LEDGER_SCHEMA),
        ("WriteHealth", health, "health", "jsonl", HEALTH_SCHEMA),
    ]
    if job.write_counts:
        kept = counts | "CountsRows" >> CountsRows(job.collections, complete_after)
        outputs.append(("WriteCounts", kept, "counts", "avro", COUNTS_SCHEMA))
    for label, rows, name, form, schema in outputs:
        keyed = rows is not rejected
        _ = rows | label >> WriteRowFiles(job.output, name, form, schema, unbounded=job.unbounded, keyed=keyed)
    if job.output_topic is not None:
        _ = estimates | "PublishEstimates" >> PublishRows(job.output_topic, ESTIMATE_SCHEMA)
    if job.rejected_topic is not None:
        _ = rejected | "PublishRejected" >> PublishRows(job.rejected_topic, REJECTED_SCHEMA)
    if job.bigquery is not None:
        tables = {name: (rows, schema) for _, rows, name, _, schema in outputs if name != "counts"}
        undelivered = [
            rows | f"Table_{name}" >> WriteTable(job.bigquery, name, schema, job.bigquery_method)
            for name, (rows, schema) in tables.items()
        ] | "Undelivered" >> beam.Flatten()
        _ = undelivered | "WriteUndelivered" >> WriteRowFiles(
            job.output, "undelivered", "jsonl", UNDELIVERED_SCHEMA, unbounded=job.unbounded, keyed=False
        )


def run(configured: tuple[Job, beam.Pipeline]) -> int:
    """Run the pipeline; a stream runs until it is told to stop (SIGTERM or Ctrl-C)."""
    job, pipeline = configured
    if job.subscription and job.options.view_as(StandardOptions).runner == LOCAL_STREAMS:
        require_credentials()
    result = pipeline.run()
    if is_only_launched(job.options):
        return cli.DONE
    if job.unbounded:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result.wait_until_finish()
    except KeyboardInterrupt:
        if str(job.options.view_as(StandardOptions).runner) == DATAFLOW:
            print("estimate: the job goes on; drain or cancel it on Dataflow", file=sys.stderr)
            return cli.DONE
        result.cancel()
    if job.unbounded:
        return cli.DONE
    with FileSystems.open(FileSystems.join(job.output, "ledger.jsonl")) as file:
        rows = [json.loads(line) for line in file.read().splitlines()]
    print(f"estimate: {summary(rows)}", file=sys.stderr)
    wrong = unbalanced(rows)
    for row in wrong:
        print(
            f"estimate: the ledger does not balance for collection {row['collection_id']!r}, window "
            f"{row['window_start']} to {row['window_end']}: do not use this output",
            file=sys.stderr,
        )
    return UNBALANCED if wrong else cli.DONE


def unbalanced(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a ledger in which received is not accepted + duplicates + rejected."""
    return [
        row for row in rows if row["received"] != row["accepted"] + row["duplicates"] + sum(row["rejected"].values())
    ]


def summary(rows: list[dict[str, Any]]) -> str:
    """What became of the reports of a bounded job, from the rows of its ledger."""
    rejected = sum((collections.Counter(row["rejected"]) for row in rows), collections.Counter())
    reasons = ", ".join(f"{reason} {number}" for reason, number in sorted(rejected.items()))
    received, accepted, duplicates = (sum(row[name] for row in rows) for name in ("received", "accepted", "duplicates"))
    parts = [f"{accepted} accepted", *([f"{duplicates} duplicates"] if duplicates else [])]
    parts.append(f"{rejected.total()} rejected{reasons and f' ({reasons})'}")
    return f"{received} received = {' + '.join(parts)}"


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("estimate", configure, run, argv)


if __name__ == "__main__":
    sys.exit(main())
