"""Refusals of the wiring of transforms: calls and their sentences."""

from __future__ import annotations

import dataclasses
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import FixedWindows, GlobalWindows, Sessions, SlidingWindows, WindowFn

from tests.support import replay
from tests.support.messages_cases import KRR, collection
from tests.support.refusals.tables import Refusal
from uldp_transforms import (
    CountReports,
    CountsRows,
    DecodeReports,
    EstimateDistribution,
    EstimateReports,
    JobSpec,
    ReadReportFiles,
    ReleaseOnce,
    SmoothEstimates,
    SummarizeLedger,
    Windows,
)
from uldp_transforms.beam.transforms.decode_reports import DecodedReports
from uldp_transforms.ldp import CohortCounts, ReportBatch
from uldp_transforms.spec.plain_values import SpecValues

FIXED = JobSpec(collections=(KRR,), windows=Windows(size=60_000))
SLIDING = JobSpec(collections=(KRR,), windows=Windows(size=60_000, slide=20_000, offset=7_000))
WHOLE = JobSpec(collections=(KRR,))
STREAM = dataclasses.replace(FIXED, bounded=False)
LATER = dataclasses.replace(STREAM, allowed_lateness=0)
FINALLY = dataclasses.replace(STREAM, allowed_lateness=0, release="final")
SMOOTH = dataclasses.replace(FIXED, smooth=True)
ONCE = dataclasses.replace(FIXED, deduplicate=True)
FEWER = dataclasses.replace(FIXED, min_reports=1)
OPEN = collection("open", {"id": "hashed", "num_buckets": 4}, "krr")
KEYS = ", ".join(SpecValues.__annotations__)
PAIRS = "Tuple[<class 'bytes'>, <class 'uldp_transforms.ldp.counts.cohort_counts.CohortCounts'>]"
ROWS = (
    "Tuple[<class 'bytes'>, Tuple[<class 'uldp_transforms.rows.row_types.WindowedEstimate'>, "
    "<class 'uldp_transforms.rows.row_types.WindowHealth'>]]"
)


def some(*elements: Any) -> beam.PCollection[Any]:
    """A bounded PCollection; one message if nothing is given."""
    return beam.Pipeline(options=PipelineOptions([])) | beam.Create(elements or (b"",))


def endless(*options: str, runner: str = "BundleBasedDirectRunner") -> beam.PCollection[bytes]:
    chosen = PipelineOptions([f"--runner={runner}", "--streaming", *options])
    return beam.Pipeline(options=chosen) | replay.stream([])


def decoded(spec: JobSpec) -> DecodedReports:
    return (some() if spec.bounded is None else endless()) | DecodeReports(spec)


def counted(spec: JobSpec) -> beam.PCollection[tuple[bytes, CohortCounts]]:
    return (decoded(spec).reports | CountReports(spec)).counts


def reports(spec: JobSpec, messages: beam.PCollection[bytes] | None = None) -> beam.PCollection[ReportBatch]:
    return ((some() if messages is None else messages) | DecodeReports(spec)).reports


def counts(
    spec: JobSpec, messages: beam.PCollection[bytes] | None = None
) -> beam.PCollection[tuple[bytes, CohortCounts]]:
    return (reports(spec, messages) | CountReports(spec)).counts


def ledger(*inputs: Any) -> Any:
    return SummarizeLedger(FIXED).expand(inputs)


def into(window_fn: WindowFn) -> beam.PTransform:
    return "Between" >> beam.WindowInto(window_fn)


UNWINDOWED = '; use: elements | "Unwindowed" >> beam.WindowInto(beam.window.GlobalWindows())'
GLOBAL = "in the global window (reports carry their own time)"
OURS = "in the windows of its specification,"
MINUTES = "Windows(size=60000, slide=None, offset=0)"
SLID = "Windows(size=60000, slide=20000, offset=7000)"
REFUSED: list[Refusal] = [
    # elements
    (
        lambda: some({"a": 1}) | DecodeReports(FIXED),
        "DecodeReports needs a PCollection of bytes, got one of Dict[<class 'str'>, <class 'int'>]; use: messages | "
        "beam.Map(lambda message: to_message(message)).with_output_types(bytes)",
    ),
    (
        lambda: some("text") | DecodeReports(FIXED),
        "DecodeReports needs a PCollection of bytes, got one of str; use, if they are names of files: "
        "names | ReadReportFiles()",
    ),
    (
        lambda: some(b"", 1) | DecodeReports(FIXED),
        "DecodeReports needs a PCollection of bytes, got one of Union[<class 'bytes'>, <class 'int'>]",
    ),
    (
        lambda: some({"a": 1}) | CountReports(FIXED),
        "CountReports needs a PCollection of ReportBatch, got one of Dict[<class 'str'>, <class 'int'>]",
    ),
    (lambda: some() | CountReports(FIXED), "CountReports needs a PCollection of ReportBatch, got one of bytes"),
    (
        lambda: some() | EstimateDistribution(WHOLE),
        f"EstimateDistribution needs a PCollection of {PAIRS}, got one of bytes",
    ),
    (lambda: some() | ReleaseOnce(WHOLE), f"ReleaseOnce needs a PCollection of {PAIRS}, got one of bytes"),
    (lambda: some() | SmoothEstimates(SMOOTH), f"SmoothEstimates needs a PCollection of {ROWS}, got one of bytes"),
    (lambda: SmoothEstimates(FIXED), "SmoothEstimates needs a JobSpec with smooth=True, got smooth=False"),
    (lambda: SmoothEstimates("smooth"), "SmoothEstimates needs a JobSpec, got 'smooth'"),
    (lambda: some() | CountsRows(WHOLE), f"CountsRows needs a PCollection of {PAIRS}, got one of bytes"),
    (
        lambda: reports(FIXED) | EstimateDistribution(FIXED),
        f"EstimateDistribution needs a PCollection of {PAIRS}, got one of ReportBatch",
    ),
    (
        lambda: some({"a": 1}) | EstimateReports(FIXED),
        "EstimateReports needs a PCollection of bytes, got one of Dict[<class 'str'>, <class 'int'>]; use: messages | "
        "beam.Map(lambda message: to_message(message)).with_output_types(bytes)",
    ),
    (
        lambda: (some() | DecodeReports(FIXED)) | EstimateReports(FIXED),
        "DecodeReports has several outputs (reports, rejected, ledger), got a step for all; use: "
        "decoded.reports | step",
    ),
    (lambda: beam.Pipeline() | DecodeReports(FIXED), "DecodeReports needs a PCollection of bytes, got PBegin"),
    (lambda: beam.Pipeline() | EstimateReports(FIXED), "EstimateReports needs a PCollection of bytes, got PBegin"),
    # the ledger
    (
        lambda: some() | SummarizeLedger(FIXED),
        "SummarizeLedger needs a tuple of PCollections of LedgerEntry and Rejection, got PCollection",
    ),
    (ledger, "SummarizeLedger needs a tuple of PCollections of LedgerEntry and Rejection, got none"),
    (
        lambda: ledger(some()),
        "SummarizeLedger needs a tuple of PCollections of LedgerEntry and Rejection, got one of bytes",
    ),
    (
        lambda: ledger(5),
        "SummarizeLedger needs a tuple of PCollections of LedgerEntry and Rejection, got int",
    ),
    (
        lambda: ((some() | DecodeReports(FIXED)).ledger | into(FixedWindows(60)),) | SummarizeLedger(FIXED),
        f"SummarizeLedger needs elements {GLOBAL}, got FixedWindows{UNWINDOWED}",
    ),
    # windows in between
    (
        lambda: some() | into(FixedWindows(60)) | DecodeReports(FIXED),
        f"DecodeReports needs elements {GLOBAL}, got FixedWindows{UNWINDOWED}",
    ),
    (
        lambda: some() | into(FixedWindows(60)) | EstimateReports(FIXED),
        f"EstimateReports needs elements {GLOBAL}, got FixedWindows{UNWINDOWED}",
    ),
    (
        lambda: reports(FIXED) | into(FixedWindows(60)) | CountReports(FIXED),
        f"CountReports needs elements {GLOBAL}, got FixedWindows{UNWINDOWED}",
    ),
    (
        lambda: reports(SLIDING) | into(SlidingWindows(60, 20)) | CountReports(SLIDING),
        f"CountReports needs elements {GLOBAL}, got SlidingWindows{UNWINDOWED}",
    ),
    (
        lambda: reports(FIXED) | into(Sessions(60)) | CountReports(FIXED),
        f"CountReports needs elements {GLOBAL}, got Sessions{UNWINDOWED}",
    ),
    (
        lambda: counts(FIXED) | into(GlobalWindows()) | EstimateDistribution(FIXED),
        f"EstimateDistribution needs elements {OURS} {MINUTES}, got GlobalWindows",
    ),
    (
        lambda: counts(FIXED) | into(FixedWindows(61)) | EstimateDistribution(FIXED),
        f"EstimateDistribution needs elements {OURS} {MINUTES}, got Windows(size=61000, slide=None, offset=0)",
    ),
    (
        lambda: counts(SLIDING) | into(SlidingWindows(60, 20)) | EstimateDistribution(SLIDING),  # without the offset
        f"EstimateDistribution needs elements {OURS} {SLID}, got Windows(size=60000, slide=20000, offset=0)",
    ),
    (
        lambda: counts(WHOLE) | into(FixedWindows(60)) | EstimateDistribution(WHOLE),
        f"EstimateDistribution needs elements {OURS} GlobalWindows, got {MINUTES}",
    ),
    (
        lambda: counts(FIXED) | into(GlobalWindows()) | ReleaseOnce(FIXED),
        f"ReleaseOnce needs elements {OURS} {MINUTES}, got GlobalWindows",
    ),
    (
        lambda: counts(FIXED) | into(Sessions(60)) | CountsRows(FIXED),
        f"CountsRows needs elements {OURS} {MINUTES}, got Sessions",
    ),
    (
        lambda: counts(FIXED) | EstimateDistribution(SLIDING),  # of another specification
        f"EstimateDistribution needs elements {OURS} {SLID}, got {MINUTES}",
    ),
    # input that ends, and input that does not
    (
        lambda: endless() | EstimateReports(WHOLE),
        "an unbounded input needs JobSpec.window: an unbounded stream without windows has no estimate, got none",
    ),
    (
        lambda: endless() | EstimateReports(collections=[KRR], window=GlobalWindows()),
        "an unbounded input needs JobSpec.window: an unbounded stream without windows has no estimate, got none",
    ),
    (
        lambda: endless() | DecodeReports(WHOLE),
        "an unbounded input needs JobSpec.window: an unbounded stream without windows has no estimate, got none",
    ),
    *[
        (
            lambda transform=transform: some() | transform(collections=[KRR], window="1m", bounded=False),
            "JobSpec.bounded must agree with the input, which is bounded, got False",
        )
        for transform in (EstimateReports, lambda **values: DecodeReports(JobSpec.of(**values)))
    ],
    *[
        (
            lambda transform=transform: endless() | transform(collections=[KRR], window="1m", bounded=True),
            "JobSpec.bounded must agree with the input, which is unbounded, got True",
        )
        for transform in (EstimateReports, lambda **values: DecodeReports(JobSpec.of(**values)))
    ],
    (
        lambda: reports(FIXED, endless()) | CountReports(FIXED.for_input(True)),
        "JobSpec.bounded must agree with the input, which is unbounded, got True",
    ),
    (
        lambda: counts(FIXED) | EstimateDistribution(FIXED.for_input(False)),
        "JobSpec.bounded must agree with the input, which is bounded, got False",
    ),
    (
        lambda: counts(FIXED) | ReleaseOnce(FIXED.for_input(False)),
        "JobSpec.bounded must agree with the input, which is bounded, got False",
    ),
    # what EstimateReports is given
    (lambda: EstimateReports(FIXED, window="1h"), "EstimateReports needs a JobSpec or plain values, got both (window)"),
    (
        lambda: EstimateReports(FIXED, collections=[KRR], min_reports=5),
        "EstimateReports needs a JobSpec or plain values, got both (collections, min_reports)",
    ),
    # specifications
    *[
        (lambda transform=transform: transform(5), f"{transform.__name__} needs a JobSpec, got 5")
        for transform in (
            *(DecodeReports, CountReports, ReleaseOnce, EstimateDistribution, CountsRows, SummarizeLedger),
            EstimateReports,
        )
    ],
    (lambda: DecodeReports([KRR]), f"DecodeReports needs a JobSpec, got {str([KRR])[:57]}..."),
    *[
        (call, f"{owner} needs the JobSpec of the previous steps, got one with a different {differ}")
        for owner, differ, call in (
            ("CountReports", "allowed_lateness", lambda: decoded(STREAM).reports | CountReports(LATER)),
            ("CountReports", "deduplicate", lambda: decoded(FIXED).reports | CountReports(ONCE)),
            ("CountReports", "windows", lambda: decoded(WHOLE).reports | CountReports(FIXED)),
            ("EstimateDistribution", "min_reports", lambda: counted(FIXED) | EstimateDistribution(FEWER)),
            ("ReleaseOnce", "allowed_lateness, release", lambda: counted(STREAM) | ReleaseOnce(FINALLY)),
            ("CountsRows", "min_reports", lambda: counted(FIXED) | CountsRows(FEWER)),
            ("SummarizeLedger", "windows", lambda: (decoded(FIXED).ledger,) | SummarizeLedger(WHOLE)),
        )
    ],
    # engines
    (
        lambda: (
            endless(runner="FlinkRunner") | EstimateReports(collections=[KRR], window="1d", timezone="Europe/Berlin")
        ),
        "JobSpec.timezone and months need a runner that supports window functions in Python, got "
        "FlinkRunner; on this runner, store hourly counts with --window 1h --write_counts and combine them into days, "
        "weeks or months, for example with uldp reestimate --timezone PLACE --window 1mo",
    ),
    (
        lambda: endless("--experiments=streaming_mode_at_least_once") | EstimateReports(STREAM),
        "Dataflow's streaming mode must be exactly-once, because reports would count twice, got "
        "streaming_mode_at_least_once",
    ),
    (lambda: ReadReportFiles(5), "ReadReportFiles.pattern must be a text or a list of texts, got 5"),
    (lambda: ReadReportFiles("*.avro", grouped=1), "ReadReportFiles.grouped must be true or false, got 1"),
    (
        lambda: DecodeReports(JobSpec(collections=(KRR,)), mixed=None),
        "DecodeReports.mixed must be true or false, got None",
    ),
    (EstimateReports, "JobSpec needs the key 'collections', got no keys"),
    (
        lambda: EstimateReports(collections=[KRR], windows="1h"),
        f"JobSpec takes the keys {KEYS}, got 'windows'; did you mean 'window'?",
    ),
    (lambda: EstimateReports(collections=[KRR], window=Sessions(60)), "windows must be fixed or sliding, got Sessions"),
    *[
        (
            call,
            "collection 'open' has an open alphabet and needs 1 to 1048576 candidate values (--candidates) or public "
            "values, got 0",
        )
        for call in (
            lambda: EstimateReports(collections=[OPEN]),
            lambda: EstimateDistribution(JobSpec(collections=(OPEN,))),
        )
    ],
]
