"""The main job: perturbed reports in, windowed distribution estimates out.

Reads Avro files or a Pub/Sub subscription, and writes estimates (JSON lines and Avro), refused reports (Avro) and the
ledger (JSON lines) into a directory, and optionally the estimates to a Pub/Sub topic.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from pipelines import cli
from pipelines.runners import check_options, choose_local_engine
from pipelines.sinks import PublishEstimates, WriteRowFiles
from uldp_transforms.count import CountReports
from uldp_transforms.decode import DecodeReports
from uldp_transforms.estimate import MIN_REPORTS, EstimateDistribution
from uldp_transforms.files import ReadReportFiles
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ledger import SummarizeLedger, rejected_row
from uldp_transforms.rows import ESTIMATE_SCHEMA, LEDGER_SCHEMA, REJECTED_SCHEMA
from uldp_transforms.windows import TimeGate, Windows


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that the pipeline needs to be built."""

    collections: list[Collection]
    input: str | None
    subscription: str | None
    output: str
    output_topic: str | None
    windows: Windows | None
    estimator: str
    candidates: list[str] | None
    min_reports: int
    options: PipelineOptions

    @property
    def unbounded(self) -> bool:
        return self.subscription is not None

    @property
    def gate(self) -> TimeGate | None:
        """Files have no arrival times: nothing in them is late."""
        if not self.unbounded or self.windows is None:
            return None
        return TimeGate(base=self.windows.base, allowed_lateness=self.windows.allowed_lateness)


def read_arguments(argv: Sequence[str]) -> Job:
    """The command line of ``pipelines.estimate``; raises SpecError or OSError."""
    parser = cli.Parser(
        prog="python -m pipelines.estimate",
        description=__doc__,
        epilog="All options of Apache Beam can be given too, for instance --runner DataflowRunner.",
    )
    add = parser.add_argument
    add("--collection", required=True, action="append", help="JSON file of a collection; may be given several times")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--input", help="Avro files of reports, a pattern such as 'reports-*.avro'")
    source.add_argument(
        "--subscription", type=cli.resource("subscriptions"), help="Pub/Sub subscription, projects/P/subscriptions/S"
    )
    add("--output", required=True, help="directory for the results")
    add(
        "--output_topic",
        type=cli.resource("topics"),
        help="Pub/Sub topic for the estimates, projects/P/topics/T (needs --subscription)",
    )
    add("--window", type=cli.duration("--window"), help="length of a window, such as 15m, 1h, 1d; none: all reports")
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
    args, beam_args = parser.parse_known_args(argv)
    check_options(beam_args)
    options = PipelineOptions(beam_args)
    streaming = args.subscription is not None
    if options.view_as(StandardOptions).streaming and not streaming:
        raise SpecError("--streaming needs --subscription, got --input")
    if streaming and args.window is None:
        raise SpecError("--subscription needs --window: an endless stream without windows has no estimate, got none")
    if args.output_topic is not None and not streaming:
        raise SpecError("--output_topic needs --subscription, got --input")
    if args.early_every is not None and not streaming:
        raise SpecError("--early_every needs --subscription, got --input")
    if args.window is None and args.slide is not None:
        raise SpecError("--slide needs --window, got none")
    if args.input is not None and os.path.isdir(args.input):
        raise SpecError(f"--input must be a pattern of file names, got the directory {args.input!r}")
    slack = choose_local_engine(options, streaming)
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
        collections=cli.read_collections(args.collection),
        input=args.input,
        subscription=args.subscription,
        output=args.output,
        output_topic=args.output_topic,
        windows=windows,
        estimator=args.estimator,
        candidates=None if args.candidates is None else cli.read_lines(args.candidates),
        min_reports=args.min_reports,
        options=options,
    )


def configure(argv: Sequence[str]) -> tuple[Job, beam.Pipeline]:
    """The job and its pipeline, ready to run; what is wrong shows here."""
    job = read_arguments(argv)
    try:
        pipeline = beam.Pipeline(options=job.options)
    except ImportError as error:
        raise SpecError(f"--runner must be one that Beam can load, got {error}") from None
    build(pipeline, job)
    if os.path.isfile(job.output):
        raise SpecError(f"--output must be a directory, got the file {job.output!r}")
    if not FileSystems.exists(job.output):
        FileSystems.mkdirs(job.output)
    return job, pipeline


def build(pipeline: beam.Pipeline, job: Job) -> None:
    """The job on one screen."""
    base = None if job.windows is None else job.windows.base
    refused = []
    if job.input is not None:
        messages, unreadable = pipeline | "ReadReportFiles" >> ReadReportFiles(job.input)
        refused.append(unreadable)
    else:
        messages = pipeline | "ReadPubSub" >> beam.io.ReadFromPubSub(subscription=job.subscription)

    decoded = messages | "DecodeReports" >> DecodeReports(job.collections, job.gate)
    counted = decoded.reports | "CountReports" >> CountReports(job.collections, job.windows, unbounded=job.unbounded)
    estimates = counted.counts | "EstimateDistribution" >> EstimateDistribution(
        job.collections, job.estimator, job.candidates, job.min_reports
    )
    rejections = [decoded.rejected, *refused] | "Refused" >> beam.Flatten()
    ledger = (counted.accepted, rejections) | "Ledger" >> SummarizeLedger(job.collections, job.windows, job.unbounded)

    rejected = rejections | "RejectedRows" >> beam.Map(rejected_row, base)
    for label, rows, name, form, schema in (
        ("WriteEstimatesJson", estimates, "estimates", "jsonl", ESTIMATE_SCHEMA),
        ("WriteEstimatesAvro", estimates, "estimates", "avro", ESTIMATE_SCHEMA),
        ("WriteRejected", rejected, "rejected", "avro", REJECTED_SCHEMA),
        ("WriteLedger", ledger, "ledger", "jsonl", LEDGER_SCHEMA),
    ):
        keyed = rows is not rejected
        _ = rows | label >> WriteRowFiles(job.output, name, form, schema, unbounded=job.unbounded, keyed=keyed)
    if job.output_topic is not None:
        _ = estimates | "PublishEstimates" >> PublishEstimates(job.output_topic)


def run(configured: tuple[Job, beam.Pipeline]) -> int:
    """Run the pipeline; a stream runs until it is told to stop (SIGTERM or Ctrl-C)."""
    job, pipeline = configured
    result = pipeline.run()
    if job.unbounded:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result.wait_until_finish()
    except KeyboardInterrupt:
        result.cancel()
    if not job.unbounded:
        print(f"estimate: {summary(job.output)}", file=sys.stderr)
    return cli.DONE


def summary(output: str) -> str:
    """What became of the reports of a bounded job, from its ledger."""
    with FileSystems.open(FileSystems.join(output, "ledger.jsonl")) as file:
        rows = [json.loads(line) for line in file.read().splitlines()]
    rejected = sum((collections.Counter(row["rejected"]) for row in rows), collections.Counter())
    reasons = ", ".join(f"{reason} {number}" for reason, number in sorted(rejected.items()))
    received, accepted = (sum(row[name] for row in rows) for name in ("received", "accepted"))
    return f"{received} received = {accepted} accepted + {rejected.total()} rejected{reasons and f' ({reasons})'}"


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("estimate", configure, run, argv)


if __name__ == "__main__":
    sys.exit(main())
