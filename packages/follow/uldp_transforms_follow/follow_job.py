"""The command line of ``uldp estimate --follow``, and its run."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sqlite3
from collections.abc import Sequence
from typing import Any

from uldp_transforms import JobSpec
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.signals import CUT_OFF, Signals
from uldp_transforms.jobs.kafka.reader import KafkaReadError
from uldp_transforms.jobs.kafka.topic_options import first_moment, reading_options
from uldp_transforms.jobs.records.ledger_sums import UNREAD_FILES, summary, sums_of
from uldp_transforms.jobs.records.row_file_options import flush_every
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.jobs.records.run_directory import RunDirectory
from uldp_transforms.jobs.records.run_records import (
    CANCELLED,
    FAILED,
    STOPPED,
    RunRecord,
    files_of,
    new_run_id,
    read_lines,
    read_records,
    start_of_run,
)
from uldp_transforms.jobs.records.unknown_repeats import warnings_at_start
from uldp_transforms.jobs.spec_options import check_options_agree, given
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.refusal_causes import sentence_of_files
from uldp_transforms.spec.row_forecast import RowForecast
from uldp_transforms.spec.spec_fields import SPEC_FIELDS
from uldp_transforms.spec.spec_rules import check_value
from uldp_transforms.windows import milliseconds
from uldp_transforms_follow.follow_options import check_supported
from uldp_transforms_follow.follower import Follower, Source
from uldp_transforms_follow.notices import say
from uldp_transforms_follow.spool_reading import SpoolSource, check_spool
from uldp_transforms_follow.state import NAME, SPOOL, FollowState, run_of
from uldp_transforms_follow.topic_reading import TopicSource, check_topic

POLL = 1.0
"""Seconds between two looks at the source."""

BROKEN = 1

_GOES_ON = "the next start continues where this one stopped"


@dataclasses.dataclass(frozen=True, kw_only=True)
class FollowJob:
    """A job that follows a spool or a topic.

    Attributes:
        source: source of the reports.
        option, name: the option that names the source, and its argument.
        spec: specification of the job.
        directory: output directory, which is locked.
        state: what was counted.
        late_every: milliseconds for which late reports of a window are collected.
        early_every: the same before the end of a window; None: no rows before the end.
        forms: in which rows are written.
        flush_every: milliseconds for which rows are collected before they are written together.
    """

    source: Source
    option: str
    name: str
    spec: JobSpec
    directory: RunDirectory
    state: FollowState
    late_every: int
    early_every: int | None
    forms: RowForms
    flush_every: int = 0


def follow_job(args: argparse.Namespace, parser: cli.Parser | None, beam_args: Sequence[str] = ()) -> FollowJob:
    """The job of a command line with ``--follow``.

    Args:
        args: parsed command line.
        parser: its parser; None: one of supported options only.
        beam_args: arguments that are not the parser's.

    Raises:
        SpecError: if an option is not supported, or ``--input`` is no spool, or a topic cannot be read, or ``--output``
            is of another job.
        OSError: if a file cannot be read or written.
    """
    _check(args, parser, beam_args)
    run = run_of(args.output, new_run_id())
    values = given(args)
    late_every, early_every = _pause(values, "late_every"), _pause(values, "early_every")
    assert late_every is not None, "it has a default"
    spec = JobSpec.of(collections=cli.matching("--collection", args.collection), bounded=True, run=run, **values)
    spec.check_candidates()
    forms = RowForms.of(args.write_json, args.write_parquet, counts=args.write_counts)
    directory = RunDirectory(args.output, run, bounded=False, launched=False)
    try:
        if directory.open() and not os.path.isfile(os.path.join(args.output, NAME)):
            raise SpecError(
                f"--output must be a new directory or one of --follow, got {args.output!r}, which another job wrote"
            )
        directory.prepare()
        state = FollowState(args.output, run, _identity(spec, forms), _kind_of_source(args))
        source = _source(args, spec, state)
    except BaseException:
        directory.close()
        raise
    return FollowJob(
        source=source,
        option="--input" if args.kafka_topic is None else "--kafka_topic",
        name=args.input if args.kafka_topic is None else args.kafka_topic,
        spec=spec,
        directory=directory,
        state=state,
        late_every=late_every,
        early_every=early_every,
        forms=forms,
        flush_every=0 if args.flush_every is None else flush_every(args),
    )


def _check(args: argparse.Namespace, parser: cli.Parser | None, beam_args: Sequence[str]) -> None:
    """Refuse unsupported options by name, a missing window, and an input that is no spool; raises SpecError."""
    check_supported(args, parser, beam_args)
    check_options_agree(args)
    if args.kafka_topic is None:
        if args.dimension is not None:
            raise SpecError("--dimension needs --subscription or --kafka_topic, got --input")
        check_spool(args.input)
    else:
        first_moment(args)
        options = reading_options(args)
        if not os.path.isfile(os.path.join(args.output, NAME)):  # a job that goes on waits for brokers
            check_topic(args.kafka_topic, options)


def _pause(values: dict[str, Any], name: str) -> int | None:
    """Take a time between rows out of the values of a specification, which is that of files; milliseconds."""
    given = values.pop(name, getattr(JobSpec, name))
    found = milliseconds(given, f"--{name}") if isinstance(given, str) else given
    check_value(SPEC_FIELDS[name], found)
    return found


def _kind_of_source(args: argparse.Namespace) -> str:
    return SPOOL if args.kafka_topic is None else f"the topic {args.kafka_topic!r}"


def _source(args: argparse.Namespace, spec: JobSpec, state: FollowState) -> Source:
    if args.kafka_topic is None:
        return SpoolSource(args.input, spec, state)
    return TopicSource(args.kafka_topic, reading_options(args), first_moment(args), spec, state)


def _identity(spec: JobSpec, forms: RowForms) -> str:
    """The settings that must not change while a directory is in use, as JSON."""
    values = spec.to_json()
    names = ("window", "slide", "window_offset", "timezone", "bit_patterns")
    by = {} if spec.by is None else {"by": list(spec.by)}  # absent from directories that count totals only
    once = {"deduplicate_by": spec.deduplicate_by} if spec.deduplicate else {}  # absent as above
    # absent from directories with JSON lines of all estimates, which readers take first
    files = {} if forms.json else {"estimates": forms.of_kind("estimates")}
    return json.dumps({name: values[name] for name in names} | by | once | files)


def run_follow(job: FollowJob, signals: Signals) -> int:
    """Follow the source until a signal, write the run record, and print the outcome; returns the exit code."""
    signals.can_drain = True
    record = _record(job)
    forecast = RowForecast.of(job.spec)
    if forecast.is_large:
        say(forecast.sentence())
    for warning in warnings_at_start(job.spec):
        say(warning)
    try:
        record.write(job.directory.path)
        follower = follower_of(job)
        say(f"following {job.option} {job.name}; each window has its rows in {job.directory.path} when it is due")
        while not signals.stop.is_set():
            follower.step()
            signals.stop.wait(POLL)
        follower.finish()
        return _ended(job, record, STOPPED)
    except KeyboardInterrupt:
        return _ended(job, record, CANCELLED)
    except SpecError as error:  # the next start will refuse it
        return _ended(job, record, FAILED, str(error))
    except (OSError, sqlite3.Error, KafkaReadError) as error:
        code = _ended(job, record, FAILED, f"{error}; {_GOES_ON}")
        return cli.DISK_FULL if cli.is_full(error) else code
    finally:
        job.source.close()
        job.state.close()
        job.directory.close()


def follower_of(job: FollowJob, **options: Any) -> Follower:
    """The follower of a job; options replace those of the job."""
    names = ("late_every", "early_every", "forms", "flush_every")
    own = {name: getattr(job, name) for name in names}
    return Follower(job.source, job.directory.path, job.spec, job.state, **own | options)


def _record(job: FollowJob) -> RunRecord:
    """The record of the run, which all restarts continue."""
    source: dict[str, Any] = {"option": job.option, "name": job.name, "bounded": False, "resumes": False}
    record = start_of_run(job.spec, source, launched=False)
    began = [before.started for before in read_records(job.directory.path) if before.run == record.run]
    return dataclasses.replace(record, started=began[0]) if began else record


def _ended(job: FollowJob, record: RunRecord, end: str, cause: str = "") -> int:
    """Complete the record, and print the outcome."""
    sums = None
    if end == STOPPED:
        rows = read_lines(files_of(job.directory.path, f"ledger-{record.run}-*.jsonl"))
        sums = sums_of(rows) if rows else None
    sentence = {
        STOPPED: f"stopped: {summary(sums) if sums else 'no reports'}",
        CANCELLED: f"cancelled: {_GOES_ON}",
        FAILED: f"the run failed: {cause}",
    }[end]
    with contextlib.suppress(OSError):  # the run may have failed because it cannot write
        record.with_end(end, sentence, sums).write(job.directory.path)
    say(sentence)
    if end == STOPPED and (unread := sentence_of_files((sums or {}).get(UNREAD_FILES, {}))) is not None:
        say(f"{unread}; uldp check {job.directory.path} names them")
        return cli.UNREAD
    return {STOPPED: cli.DONE, CANCELLED: CUT_OFF, FAILED: BROKEN}[end]
