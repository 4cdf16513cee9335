"""The command line of the main job, and the job that it describes."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from uldp_transforms import JobSpec
from uldp_transforms.beam.runtime.engines import check_exactly_once
from uldp_transforms.beam.spec.spec_fields import (
    ALARM_EVERY,
    CORRECTED,
    ESTIMATOR,
    FINAL,
    LATE_EVERY,
    MIN_REPORTS,
    PARTS,
    SHOW,
)
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.job_server import SAVEPOINT, goes_on
from uldp_transforms.jobs.engines.runners import check_options, is_only_launched
from uldp_transforms.jobs.estimate import __doc__ as description
from uldp_transforms.jobs.records.run_directory import RunDirectory
from uldp_transforms.jobs.records.run_records import new_run_id, read_records
from uldp_transforms.jobs.report.report_command import require_charts
from uldp_transforms.jobs.sinks import SINKS, Sink
from uldp_transforms.jobs.sources import SOURCES, Source
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.messages.refusal_causes import REJECTED_SHARE_OF_FILES, REJECTED_SHARE_OF_STREAMS


def _share(text: str) -> float:
    """An argparse type: a number from 0 to 1."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, got {text!r}")
    return number


_COUNTING: cli.Options = {
    **cli.WINDOWS,
    "--allowed_lateness": {
        "type": cli.duration("--allowed_lateness"),
        "default": "1h",
        "help": "how long after the end of its base period, the longest time that divides window and slide, a report "
        "still counts (streams; files have no arrival times)",
    },
    "--early_every": {
        "type": cli.duration("--early_every"),
        "help": "also estimate unfinished windows, this often (streams)",
    },
    "--late_every": {
        "type": cli.duration("--late_every"),
        "help": "with --release corrected, correct the row of a window at most this often (streams); 0s: for each "
        f"bundle with late reports; none: {LATE_EVERY // 1000}s",
    },
    "--release": {
        "choices": (CORRECTED, FINAL),
        "default": CORRECTED,
        "help": "streams: a row when the watermark passes the end of a window and further ones for late reports, or "
        "one row a window, after the allowed lateness",
    },
    "--deduplicate": cli.SWITCH | {"help": "count each report id once per base period; costs a shuffle and state"},
    "--deduplicate_parts": {
        "type": cli.positive(),
        "help": f"parts of a base period, over which workers share it; none: {PARTS}",
    },
    "--bit_patterns": cli.SWITCH
    | {"help": "look inside the reports of rappor, urap and aoue, for two more sentinels; costs time per report"},
}

_SHOWING: cli.Options = {
    "--report": cli.SWITCH
    | {
        "help": "at the end also write DIR/report.html and DIR/report.png, as uldp report does; for a stream that runs "
        "there is uldp report --follow"
    },
}

_ESTIMATING: cli.Options = {
    "--estimator": {"default": ESTIMATOR, "help": f"one of {', '.join(sorted(ESTIMATORS))}"},
    "--candidates": {"help": "text file, one value a line: what to estimate in open alphabets"},
    "--discover": cli.SWITCH
    | {
        "help": "also search alphabets of prefixes for frequent values that nobody listed; rows in discovered*.jsonl; "
        "takes up to a minute for each window and pane"
    },
    "--min_reports": {
        "type": cli.positive(),
        "default": MIN_REPORTS,
        "help": "windows with fewer reports are suppressed",
    },
    "--show": {
        "type": cli.positive(),
        "default": SHOW,
        "help": "rows have the values with the largest frequencies, so many, and intervals that allow for this choice",
    },
    "--smooth": cli.SWITCH
    | {"help": "also estimate each window from its neighbours: in a stream from those before it, in files from all"},
    "--alarm_every": {
        "type": cli.positive(),
        "help": f"windows between two false alarms that a share moved, in the mean; with --smooth; none: {ALARM_EVERY}",
    },
    "--max_rejected_share": {
        "type": _share,
        "help": "more refused reports than this share mean a wrong configuration: a stream fails, so that they stay in "
        f"their queue, files give exit code 4; 1: never; none: {REJECTED_SHARE_OF_STREAMS} of 1000 reports of a stream "
        f"in a row and for one reason, {REJECTED_SHARE_OF_FILES} of files",
    },
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that the pipeline needs to be built.

    Attributes:
        spec: what is done with the reports.
        source: where they come from.
        sinks: where rows go.
        directory: of the row files.
        options: of Beam.
        source_name: what the source's option named, for the record of the run.
        report: whether a page of the results is written when the run has come to its end.
    """

    spec: JobSpec
    source: Source
    sinks: tuple[Sink, ...]
    directory: RunDirectory
    options: PipelineOptions
    source_name: str = ""
    report: bool = False


def command_line() -> cli.Parser:
    """The options of this program; those of Beam come on top."""
    parser = cli.Parser(
        "estimate",
        description=description,
        epilog="All options of Apache Beam can be given too, for instance --runner DataflowRunner.",
    )
    parser.add_argument(
        "--collection",
        required=True,
        action="append",
        help="JSON file of a collection, or a pattern for several; may be given several times",
    )
    sources = parser.add_argument_group("where the reports come from (one of them)")
    exclusive = sources.add_mutually_exclusive_group(required=True)
    for source in SOURCES:
        exclusive.add_argument(source.option, type=source.kind, help=source.help)
    for title, options in (
        ("where the rows go", [*(option for sink in SINKS for option in sink.options.items()), *_SHOWING.items()]),
        ("windows and counting", _COUNTING.items()),
        ("estimates", _ESTIMATING.items()),
        *((f"only with {source.option}", source.own_options.items()) for source in SOURCES if source.own_options),
    ):
        group = parser.add_argument_group(title)
        for name, settings in options:
            group.add_argument(name, **settings)
    return parser


def read_arguments(argv: Sequence[str]) -> Job:
    """The job of a command line; raises SpecError or OSError."""
    args, beam_args = command_line().parse_known_args(argv)
    check_options(beam_args)
    options = PipelineOptions(beam_args)
    FileSystems.set_options(options)
    named = next(source for source in SOURCES if getattr(args, source.option[2:]) is not None)
    chosen = named.variant(args)
    _check(args, options, chosen)
    if args.report:
        require_charts()
    args.run = _run_that_goes_on(args.output) if goes_on(beam_args) else new_run_id()
    directory = RunDirectory(args.output, args.run, bounded=chosen.bounded, launched=is_only_launched(options))
    args.rows = directory.rows
    sinks = [sink.of(args, chosen, options) for sink in SINKS]
    source = chosen.of(args, options)
    return Job(
        spec=specification(args, chosen),
        source=source,
        sinks=tuple(sink for sink in sinks if sink is not None),
        directory=directory,
        options=options,
        source_name=str(getattr(args, named.option[2:])),
        report=args.report,
    )


def _run_that_goes_on(directory: str) -> str:
    """The name of the latest run of a directory, whose state the job begins with: it is still that run."""
    earlier = read_records(directory)
    if not earlier:
        raise SpecError(
            f"{SAVEPOINT} needs the --output of the run whose state it is, got {directory!r}, where no run has written"
        )
    return earlier[-1].run


def specification(args: argparse.Namespace, source: type[Source]) -> JobSpec:
    """What a command line says of counting and estimating."""
    return JobSpec.of(
        collections=cli.matching("--collection", args.collection),
        window=args.window,
        slide=args.slide,
        window_offset=args.window_offset,
        timezone=args.timezone,
        allowed_lateness=f"{args.allowed_lateness}ms",
        early_every=_text(args.early_every),
        late_every=f"{LATE_EVERY if args.late_every is None else args.late_every}ms",
        release=args.release,
        deduplicate=args.deduplicate,
        deduplicate_parts=args.deduplicate_parts,
        bit_patterns=args.bit_patterns,
        smooth=args.smooth,
        alarm_every=args.alarm_every,
        candidates=args.candidates,
        discover=args.discover,
        estimator=args.estimator,
        min_reports=args.min_reports,
        show=args.show,
        max_rejected_share=args.max_rejected_share,
        bounded=source.bounded,
        run=args.run,
    )


def _text(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else f"{milliseconds}ms"


def _check(args: argparse.Namespace, options: PipelineOptions, source: type[Source]) -> None:
    """Refuse options that do not go together, by their names on the command line; raises SpecError."""
    stream, streams = not source.bounded, " or ".join(other.option for other in SOURCES if not other.bounded)
    standard = options.view_as(StandardOptions)
    rules = [
        (standard.streaming and not stream, f"--streaming needs {streams}, got {source.option}"),
        *(
            (getattr(args, name[2:]) is not None and not stream, f"{name} needs {streams}, got {source.option}")
            for name in ("--early_every", "--late_every")
        ),
        (
            stream and args.window is None,
            f"{source.option} needs --window: an endless stream without windows has no estimate, got none",
        ),
        *(
            (getattr(args, name[2:]) is not None, f"{name} needs {other.option}, got {source.option}")
            for other in SOURCES
            if not issubclass(source, other)
            for name in other.own_options
        ),
        (
            args.release == FINAL and not stream,
            f"--release final needs {streams}: files have one row a window anyway, got {source.option}",
        ),
        *(
            (
                args.release == FINAL and getattr(args, name[2:]) is not None,
                f"{name} cannot go with --release final, got both",
            )
            for name in ("--early_every", "--late_every")
        ),
        *cli.needs_window(args),
        (args.smooth and args.window is None, "--smooth needs --window, got none"),
        (
            args.smooth and args.slide not in (None, args.window),
            "--smooth needs windows that do not overlap, got --slide",
        ),
        (
            args.report and is_only_launched(options),
            "--report needs a job whose end is seen here, got one that is only launched",
        ),
        (args.alarm_every is not None and not args.smooth, "--alarm_every needs --smooth, got none"),
        (
            args.deduplicate_parts is not None and not args.deduplicate,
            "--deduplicate_parts needs --deduplicate, got none",
        ),
    ]
    for wrong, sentence in rules:
        if wrong:
            raise SpecError(sentence)
    check_exactly_once(options)
