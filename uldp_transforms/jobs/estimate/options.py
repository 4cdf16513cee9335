"""The command line of the main job, and the resulting job."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from uldp_transforms import JobSpec
from uldp_transforms.beam.runtime.engines import PRISM, check_exactly_once
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.companion_engines import installed_engines
from uldp_transforms.jobs.engines.job_server import SAVEPOINT, goes_on
from uldp_transforms.jobs.engines.runners import (
    check_dry_run,
    check_locations,
    check_options,
    is_only_launched,
    reachable_output,
    runs_in_this_process,
)
from uldp_transforms.jobs.estimate import __doc__ as description
from uldp_transforms.jobs.files.progress import PROGRESS
from uldp_transforms.jobs.message_attributes import ATTRIBUTES
from uldp_transforms.jobs.pictures import drawing
from uldp_transforms.jobs.records.run_directory import RunDirectory
from uldp_transforms.jobs.records.run_records import new_run_id, read_records
from uldp_transforms.jobs.sinks import SINKS, Sink
from uldp_transforms.jobs.sources import SOURCES, Source
from uldp_transforms.jobs.spec_options import COLLECTION, check_options_agree, given, spec_options
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.spec.row_forecast import RowForecast
from uldp_transforms.spec.spec_fields import FINAL, Section

_SHOWING: cli.Options = {
    "--report": cli.SWITCH
    | {
        cli.IS_COMMON: True,
        "help": "also write DIR/report.html and DIR/report.png at the end, as uldp report does; for a running "
        "stream, use uldp report --follow",
    },
    **PROGRESS,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that is needed to build the pipeline.

    Attributes:
        spec: specification of the job.
        source: source of the reports.
        sinks: destinations of the rows.
        directory: directory of the row files.
        options: Beam's options.
        source_name: argument of the source's option, for the run record.
        report: whether to write a page of the results at the end of the run.
        progress: milliseconds between lines of progress; None: a bar on terminals.
    """

    spec: JobSpec
    source: Source
    sinks: tuple[Sink, ...]
    directory: RunDirectory
    options: PipelineOptions
    source_name: str = ""
    report: bool = False
    progress: int | None = None


def command_line() -> cli.Parser:
    """The options of this program, without those of Beam."""
    parser = cli.Parser(
        "estimate",
        has_short_help=True,
        description=description,
        epilog="All options of Apache Beam are accepted too, for example --runner DataflowRunner.",
    )
    cli.add_options(parser, COLLECTION)
    sources = parser.add_argument_group("source of the reports (exactly one)")
    exclusive = sources.add_mutually_exclusive_group(required=True)
    for source in SOURCES:
        of_source = {"type": source.kind, "help": source.help, cli.IS_COMMON: source.is_common}
        cli.add_options(exclusive, {source.option: of_source})
    engines = installed_engines()
    cli.add_options(sources, {f"--{name}": engine.option for name, engine in engines.items()})
    cli.add_options(sources, ATTRIBUTES)
    of_sinks = {name: settings for sink in SINKS for name, settings in sink.options.items()}
    for title, options in (
        ("destination of the rows", {**of_sinks, **_SHOWING}),
        ("windows and counting", spec_options(Section.WINDOWS, Section.COUNTING)),
        ("estimates", spec_options(Section.ESTIMATES)),
        *((f"only with {source.option}", source.own_options) for source in SOURCES if source.own_options),
    ):
        cli.add_options(parser.add_argument_group(title), options)
    parser.last_words = " ".join(engine.last_words(parser) for engine in engines.values())
    return parser


def read_arguments(argv: Sequence[str]) -> Job:
    """Parse a command line; raises SpecError or OSError."""
    parser = command_line()
    args, beam_args = parser.parse_known_args(argv)
    check_options(beam_args, parser.nearest_option)
    options = PipelineOptions(beam_args)
    check_dry_run(options)
    check_locations(options)
    args.output = reachable_output(args.output, options)
    FileSystems.set_options(options)
    named = next(source for source in SOURCES if getattr(args, source.option[2:]) is not None)
    chosen = named.variant(args)
    _check(args, options, chosen)
    if args.report:
        drawing("report")
    args.run = _run_that_goes_on(args.output) if goes_on(beam_args) else new_run_id()
    directory = RunDirectory(args.output, args.run, bounded=chosen.bounded, launched=is_only_launched(options))
    args.rows = directory.rows
    source = chosen.of(args, options)
    if args.progress is not None and not runs_in_this_process(options):  # the source has chosen an engine
        raise SpecError("--progress needs an engine in this process, got another one, which shows its own metrics")
    spec = specification(args, chosen)
    args.entries = RowForecast.of(spec).of_each
    sinks = [sink.of(args, chosen, options) for sink in SINKS]
    source.check_windows(spec.windows)
    _refuse_lost_questions(spec, options)
    return Job(
        spec=spec,
        source=source,
        sinks=tuple(sink for sink in sinks if sink is not None),
        directory=directory,
        options=options,
        source_name=str(getattr(args, named.option[2:])),
        report=args.report,
        progress=args.progress,
    )


def _refuse_lost_questions(spec: JobSpec, options: PipelineOptions) -> None:
    """Refuse an engine that drops what is grouped a second time, without an error; raises SpecError."""
    if spec.bounded and spec.questions and options.view_as(StandardOptions).runner == PRISM:
        raise SpecError(
            f"--runner must be an engine that pools questions of bounded sources, such as DirectRunner, got {PRISM} "
            f"and the question {spec.questions[0].id!r}"
        )


def _run_that_goes_on(directory: str) -> str:
    """The name of the latest run of a directory, whose state the job resumes, so that it is still the same run."""
    earlier = read_records(directory)
    if not earlier:
        raise SpecError(
            f"{SAVEPOINT} needs the --output directory of the run that made the savepoint, got "
            f"{directory!r}, to which no run has written"
        )
    return earlier[-1].run


def specification(args: argparse.Namespace, source: type[Source]) -> JobSpec:
    """The specification from the options of counting and estimation."""
    return JobSpec.of(
        collections=cli.matching("--collection", args.collection),
        bounded=source.bounded,
        run=args.run,
        **given(args),
    )


def _check(args: argparse.Namespace, options: PipelineOptions, source: type[Source]) -> None:
    """Refuse options that contradict each other, by their names on the command line; raises SpecError."""
    streams = " or ".join(other.option for other in SOURCES if not other.bounded)
    standard = options.view_as(StandardOptions)
    rules = [
        (standard.streaming and source.bounded, f"--streaming needs {streams}, got {source.option}"),
        *(
            (getattr(args, name[2:]) is not None, f"{name} needs {other.option}, got {source.option}")
            for other in SOURCES
            if not issubclass(source, other)
            for name in other.own_options
        ),
        (
            args.dimension is not None and not source.takes_attributes,
            f"--dimension needs --subscription or --kafka_topic, got {source.option}",
        ),
        (
            args.release == FINAL and source.bounded,
            f"--release final needs {streams}, because files always give one row per window, got {source.option}",
        ),
        (
            args.report and is_only_launched(options),
            "--report needs a job that this program waits for, got one that it only launches",
        ),
    ]
    for wrong, sentence in rules:
        if wrong:
            raise SpecError(sentence)
    check_options_agree(args, bounded=source.bounded, streams=streams, source=source.option)
    check_exactly_once(options)
