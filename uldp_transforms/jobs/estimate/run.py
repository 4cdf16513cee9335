"""Run the main job: build it, start it, wait for it, check the ledger, and report the outcome."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import CrossLanguageOptions, GoogleCloudOptions
from apache_beam.runners.runner import PipelineState
from apache_beam.utils.subprocess_server import JavaJarServer

from uldp_transforms import EstimateReports
from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.engines import clock_is_watermark
from uldp_transforms.collector.rejected_share import facts_of
from uldp_transforms.files import stores
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.last_words import last_words, state_of
from uldp_transforms.jobs.engines.memory_limit import MemoryWatch
from uldp_transforms.jobs.engines.runners import (
    ends_elsewhere,
    graph_of,
    is_dry,
    is_only_launched,
    runs_in_this_process,
    stop_engine,
)
from uldp_transforms.jobs.engines.signals import CUT_OFF, Signals
from uldp_transforms.jobs.estimate.options import Job, read_arguments
from uldp_transforms.jobs.files.progress import of_this_process
from uldp_transforms.jobs.pictures import drawing
from uldp_transforms.jobs.records.killed_runs import cut_before
from uldp_transforms.jobs.records.ledger_sums import (
    UNREAD_FILES,
    periods_out_of_balance,
    sentence_of_times,
    summary,
    sums_of,
)
from uldp_transforms.jobs.records.run_accounts import kept, remove_accounts
from uldp_transforms.jobs.records.run_records import (
    CANCELLED,
    COMPLETE,
    FAILED,
    STOPPED,
    RunRecord,
    files_of,
    read_lines,
    read_records,
    start_of_run,
)
from uldp_transforms.jobs.records.unknown_repeats import warnings_at_start
from uldp_transforms.jobs.sinks import Output
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.refusal_causes import sentence_of_files, sentence_of_sums
from uldp_transforms.rows import row_types
from uldp_transforms.rows.figures.window_names import clock, moment_in_zone
from uldp_transforms.spec.row_forecast import RowForecast
from uldp_transforms.windows import moment_of, rfc3339


def build(pipeline: beam.Pipeline, job: Job) -> None:
    """Read reports from the source, estimate, and write every kind of row to every sink."""
    # an engine without checkpoints repeats nothing, but may emit rows years later
    is_local = clock_is_watermark(pipeline.runner, pipeline.options)
    late = None if is_local else job.spec.slack
    with_counts = any(sink.takes_counts for sink in job.sinks)
    # the steps of a stream that goes on from a checkpoint do not depend on its sinks
    keeps_steps = not job.spec.bounded and not is_local
    with_values = keeps_steps or any(sink.takes_values for sink in job.sinks)
    windows = job.source.read(pipeline) | "EstimateReports" >> EstimateReports(
        job.spec, with_counts=with_counts, with_values=with_values, columns=True
    )
    outputs = [
        Output("estimates", windows.estimates, row_types.ESTIMATE_SCHEMA),
        Output("rejected", windows.rejected, row_types.REJECTED_SCHEMA, keyed=False),
        Output("ledger", windows.ledger, row_types.LEDGER_SCHEMA, late=late),
        Output("health", windows.health, row_types.HEALTH_SCHEMA),
    ]
    asked = {
        "values": row_types.VALUE_SCHEMA,
        "counts": row_types.COUNTS_SCHEMA,
        "discovered": row_types.DISCOVERED_SCHEMA,
    }
    rows = windows._asdict()
    outputs += [Output(name, rows[name], schema) for name, schema in asked.items() if rows[name] is not None]
    for sink in job.sinks:
        sink.write(outputs)


_PROGRAM = "estimate"

BROKEN, UNBALANCED, MOSTLY_REJECTED, OUT_OF_MEMORY = 1, 3, 4, 5

_GOES_ON = None
"""State of a job that runs elsewhere and whose end this program does not observe."""

_PATIENCE = 3.0  # seconds

_ENDS = {PipelineState.DRAINED: STOPPED, PipelineState.CANCELLED: CANCELLED}


def configure(argv: Sequence[str]) -> tuple[Job, beam.Pipeline]:
    """Build the job and its pipeline, and report errors in the options."""
    job = read_arguments(argv)
    dry = is_dry(job.options)  # nothing is read or written but the options' files: no credentials are needed
    try:
        job = job if dry else _after_earlier_runs(job)
        try:
            pipeline = beam.Pipeline(options=job.options)
        except ImportError as error:
            raise SpecError(f"--runner must be a runner that Beam can load, got {error}") from None
        services = job.options.view_as(CrossLanguageOptions).beam_services
        with JavaJarServer.beam_services(services):  # Beam itself observes this option only in "with pipeline"
            build(pipeline, job)
        if not dry:
            for sink in job.sinks:
                sink.prepare()
            job.directory.prepare()
    except BaseException:
        job.directory.close()
        raise
    forecast = RowForecast.of(job.spec)
    if dry or forecast.is_large:
        _say(forecast.sentence())
    notices = (sink.notice for sink in job.sinks if sink.notice is not None)
    for warning in (*notices, *warnings_at_start(job.spec)):
        _say(warning)
    return job, pipeline


def _after_earlier_runs(job: Job) -> Job:
    """The job, with windows cut if an earlier run of the directory received some of their reports; prints a message."""
    earlier = job.directory.open()
    if not job.source.resumes or job.options.view_as(GoogleCloudOptions).update:
        return job
    record = start_of_run(job.spec, _source(job), launched=False)
    before = cut_before(earlier, moment_of(record.started), job.spec.future_skew, job.directory.path)
    if before is None:
        return job
    last = [run for run in earlier if run.resumes][-1]
    zone = clock(job.spec.windows.to_json()["timezone"] if job.spec.windows else None)
    _say(
        f"windows that begin before {moment_in_zone(rfc3339(before), zone)} are partial, because run {last.run} "
        "counted some of their reports; if both runs used --write_counts, uldp reestimate can add up their counts"
    )
    if last.end is None and not last.launched:
        _say(
            f"run {last.run} was killed: the reports that it had acknowledged for open windows are in no "
            "estimate; stop streams with SIGTERM (Flink and Dataflow keep their state)"
        )
    return dataclasses.replace(job, spec=dataclasses.replace(job.spec, partial_before=before))


def _record(job: Job) -> RunRecord:
    """The record of a run that starts or resumes now."""
    record = start_of_run(job.spec, _source(job), launched=is_only_launched(job.options))
    began = [before.started for before in read_records(job.directory.path) if before.run == record.run]
    return dataclasses.replace(record, started=began[0]) if began else record


def _source(job: Job) -> dict[str, Any]:
    source = job.source
    return {"option": source.option, "name": job.source_name, "bounded": source.bounded, "resumes": source.resumes}


def run(configured: tuple[Job, beam.Pipeline], signals: Signals | None = None) -> int:
    """Run the pipeline, write the run record, and print the outcome in one line.

    A stream runs until it is told to stop (SIGTERM or Ctrl-C).
    """
    job, pipeline = configured
    signals = signals or Signals(_PROGRAM)
    try:
        job.source.check_access(job.options)
        record = _record(job)
        try:
            record.write(job.directory.path)
        except OSError as error:  # rows could not be written either; what the directory holds of this run stays
            _say(f"the run failed before its first row, without a record: {error}")
            return cli.DISK_FULL if cli.is_full(error) else BROKEN
        memory = MemoryWatch(functools.partial(_stop, signals))
        try:
            with memory.watching() if _keeps_all(job) else contextlib.nullcontext():
                end = _wait(job, pipeline, signals)
            if end is _GOES_ON:
                dataclasses.replace(record, launched=True).write(job.directory.path)
                return cli.DONE
            code = _ended(job, record, end)
            return OUT_OF_MEMORY if memory.full and code == cli.DONE else code
        except KeyboardInterrupt:
            return _ended(job, record, CANCELLED)
        except Exception as error:
            if signals.cancelled:  # an engine may report the interrupt as an error
                return _ended(job, record, CANCELLED)
            traceback.print_exc()
            code = _ended(job, record, FAILED, root_cause(error))
            return cli.DISK_FULL if cli.is_full(error) else code
    finally:
        job.directory.close()


def _keeps_all(job: Job) -> bool:
    """Whether the engine is the local one for streams, whose memory grows with each report until it ends."""
    return job.source.resumes and runs_in_this_process(job.options)


def _stop(signals: Signals, sentence: str) -> None:
    """Drain the stream, as the first signal does."""
    _say(sentence)
    signals.stop.set()


def _wait(job: Job, pipeline: beam.Pipeline, signals: Signals) -> str | None:
    """Run the pipeline, and return how it ended; engine errors propagate."""
    draining = job.source.draining(job.options, signals.stop)
    signals.can_drain = draining is not None
    here = runs_in_this_process(job.options)
    with contextlib.ExitStack() as stack:
        if draining is not None:
            stack.enter_context(draining)
        if here:
            of_files = None if job.progress is None else job.source.num_bytes()
            stack.enter_context(of_this_process(_PROGRAM, job.progress, of_files))
            if _keeps_all(job):
                stack.enter_context(kept(job.directory.path, str(job.spec.run), metrics.SEEN))
        words = stack.enter_context(last_words())
        result = pipeline.run()
        if is_only_launched(job.options):
            return _GOES_ON
        try:
            state = result.wait_until_finish()
        except KeyboardInterrupt:
            how_to_end = ends_elsewhere(job.options)
            if how_to_end is not None:
                rows = f"; its rows stay in {job.directory.rows}" if job.spec.bounded else ""
                _say(f"the job goes on; {how_to_end}{rows}")
                return _GOES_ON
            _cancel(result, _PATIENCE if runs_in_this_process(job.options) else None)
            stop_engine(job.options)
            raise
        except Exception:  # Dataflow reports every other end than DONE as an error
            state = state_of(result, words)
            if state not in _ENDS:
                raise
    if signals.cancelled:  # an engine may report the interrupt as an error of a bundle
        raise KeyboardInterrupt
    return STOPPED if signals.stop.is_set() else _ENDS.get(state, COMPLETE)


def _cancel(result: Any, seconds: float | None) -> None:
    """Cancel a job, and wait at most ``seconds`` for an engine in this process, whose bundle may still write rows."""
    cancelling = threading.Thread(target=result.cancel, daemon=True)
    cancelling.start()
    cancelling.join(seconds)


def _ended(job: Job, record: RunRecord, end: str, cause: str = "") -> int:
    """Publish or remove the rows, complete the record, and print the outcome; returns the exit code."""
    rows = _ledger(job, strict=end in (COMPLETE, STOPPED))
    sums = None if rows is None else sums_of(rows)
    books = summary(sums) if sums else ""
    if end == COMPLETE:
        job.directory.publish()
    else:
        job.directory.abandon()
    sentence = {
        COMPLETE: books,
        STOPPED: f"stopped: {books}{_cut_windows()}",
        CANCELLED: _CANCELLED_JOB if job.spec.bounded else _CANCELLED_STREAM,
        FAILED: f"the run failed: {cause}",
    }[end]
    with contextlib.suppress(Exception):  # the run may have failed because it cannot write
        record.with_end(end, sentence, sums).write(job.directory.path)
        remove_accounts(job.directory.path, record.run)
    if job.report and end in (COMPLETE, STOPPED):
        _write_report(job.directory.path)
    _say(sentence)
    if end not in (COMPLETE, STOPPED):
        return {CANCELLED: CUT_OFF, FAILED: BROKEN}[end]
    return _verdict(job, rows or [], sums)


def _cut_windows() -> str:
    """Describe what happened to the windows that were open when this process stopped its stream."""
    rows = metrics.SEEN[f"{metrics.WINDOWS}_partial"]
    return f"; windows that were cut short (status partial): {rows}" if rows else ""


def _write_report(directory: str) -> None:
    """Write the page and the picture of all results; a failure here does not affect the results."""
    try:
        drawing("report")(directory)
    except Exception as error:
        _say(f"no report was written: {root_cause(error)}")


def _verdict(job: Job, rows: Sequence[Mapping[str, Any]], sums: Mapping[str, Any] | None) -> int:
    """Print the problems in the ledger of a finished run; returns the exit code."""
    wrong = periods_out_of_balance(rows)
    for collection, start, stop, what in wrong:
        window = f"window {start} to {stop}"
        _say(f"the ledger does not balance for collection {collection!r}, {window}: {what}; do not use this output")
    if wrong:
        return UNBALANCED
    if (of_times := sentence_of_times(rows)) is not None:
        _say(of_times)
    cause = None
    if job.spec.bounded and sums:
        share = job.spec.rejected_share
        cause = sentence_of_sums(sums, share, lambda: facts_of(job.spec, job.source.example()))
    if cause is not None:
        _say(cause)
    unread = sentence_of_files((sums or {}).get(UNREAD_FILES, {}))
    if unread is not None:
        _say(f"{unread}; uldp check {job.directory.path} names them")
        return cli.UNREAD
    return cli.DONE if cause is None else MOSTLY_REJECTED


_CANCELLED_JOB = "cancelled: nothing was written; any results in the directory are from an earlier run"
_CANCELLED_STREAM = "cancelled: reports that were not yet written are in no row"


def _ledger(job: Job, *, strict: bool) -> list[dict[str, Any]] | None:
    """The rows of this run's ledger; None if there are none, or if they are unreadable and not ``strict``."""
    directory = job.directory
    try:
        if job.spec.bounded:
            return read_lines([stores.joined(directory.rows, "ledger.jsonl")]) if strict else None
        return read_lines(files_of(directory.path, f"ledger-{job.spec.run}-*.jsonl"))
    except (OSError, ValueError):
        if strict:
            raise
        return None


def root_cause(error: BaseException) -> str:
    """The original error in one line, extracted from the errors that Beam wraps around it."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, OSError) and error.filename and error.strerror:
        return f"{error.filename}: {error.strerror}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Exit|Refused|Invalid\w*)\b", line)]
    line = (named or lines or [type(error).__name__])[-1]
    line = re.sub(r" \[while running .*", "", line)
    return re.sub(r"^\w*Error: \[Errno \d+\] (.*): '(.*)'$", r"\2: \1", line)


def _say(sentence: str) -> None:
    print(f"{_PROGRAM}: {sentence}", file=sys.stderr)


def configured_job(argv: Sequence[str], signals: Signals) -> Callable[[], int]:
    """The run of a command line."""
    configured = configure(argv)
    job, pipeline = configured
    return (
        functools.partial(_describe, pipeline) if is_dry(job.options) else functools.partial(run, configured, signals)
    )


def _describe(pipeline: beam.Pipeline) -> int:
    """Print the graph of a dry run."""
    print(graph_of(pipeline.run()))
    return cli.DONE
