"""Beam's runners: selection of the engine on this machine, and validation of Beam's options."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from apache_beam.options.pipeline_options import (
    DebugOptions,
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
    TestOptions,
)
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
from apache_beam.runners.portability.prism_runner import PrismRunner
from google.protobuf import json_format  # type: ignore[import-untyped]  # has no types

from uldp_transforms.beam.runtime.engines import PRISM
from uldp_transforms.files.stores import in_store
from uldp_transforms.jobs.cli import Parser
from uldp_transforms.jobs.engines.job_server import EMBEDDED, add_described, described_options
from uldp_transforms.ldp.errors import SpecError

DATAFLOW, FLINK, PORTABLE = "DataflowRunner", "FlinkRunner", "PortableRunner"

_FLINK_OF_PROGRAM = ("[auto]", "[local]")
"""Values of --flink_master that run Flink inside the job server, which this program starts and stops."""

_ENDS_ELSEWHERE = {
    DATAFLOW: "drain or cancel it on Dataflow",
    FLINK: "stop or cancel it on Flink",
    PORTABLE: "stop or cancel it on its engine",
}

LOCAL_FILES, LOCAL_STREAMS = "FnApiRunner", "BundleBasedDirectRunner"
"""Engines that are part of Beam's Python package."""

_LOCAL = ("directrunner", "switchingdirectrunner", "bundlebaseddirectrunner", "fnapirunner")
_WITHOUT_PUBSUB = ("flinkrunner", "fnapirunner", "portablerunner", "prismrunner", "sparkrunner")


def choose_local_engine(options: PipelineOptions, *, streaming: bool, option: str = "this source") -> None:
    """Select the engine for ``DirectRunner`` (the default), and set the options that a stream needs.

    ``DirectRunner`` is a switch that may first try to download another engine; the two named here are part of Beam: one
    for files, one that can read Pub/Sub.

    Args:
        options: Beam's options.
        streaming: whether the source is unbounded.
        option: name of the source's option, for messages.

    Raises:
        SpecError: if the runner cannot read Pub/Sub with Beam's Python SDK.
    """
    standard = options.view_as(StandardOptions)
    standard.streaming = streaming
    if streaming and str(standard.runner).lower() in _WITHOUT_PUBSUB:
        raise SpecError(f"{option} needs --runner DirectRunner or DataflowRunner, got {standard.runner!r}")
    if standard.runner in (None, "DirectRunner"):
        standard.runner = LOCAL_STREAMS if streaming else LOCAL_FILES


def require_java_engine(options: PipelineOptions, *, option: str = "this source") -> None:
    """Set the options for a stream that Beam reads in Java; ``option`` names the source, for messages.

    Raises:
        SpecError: if the runner is a local engine, which runs only Python.
    """
    standard = options.view_as(StandardOptions)
    standard.streaming = True
    runner = standard.runner or "DirectRunner"
    if runner.lower() in _LOCAL:
        raise SpecError(
            f"{option} needs --runner FlinkRunner, DataflowRunner or another runner that also runs Java, got {runner!r}"
        )
    if runner != DATAFLOW:  # Flink's own Kafka source; the newer one never reaches a checkpoint in a busy topic
        options.view_as(DebugOptions).add_experiment("use_deprecated_read")


def require_stream_engine(options: PipelineOptions, *, option: str, ends: str) -> None:
    """Set the options for a stream whose source is a splittable DoFn in Python.

    Args:
        options: Beam's options.
        option: name of the source's option, for messages.
        ends: name of the option that bounds the source, for messages.

    Raises:
        SpecError: if the runner is a local engine, which reads to the end before any other step runs.
    """
    standard = options.view_as(StandardOptions)
    standard.streaming = True
    runner = standard.runner or "DirectRunner"
    if runner.lower() in _LOCAL:
        raise SpecError(
            f"{option} needs {ends} (a range is read on this machine), or --runner PrismRunner, FlinkRunner "
            f"or another runner that reads streams, got {runner!r}"
        )


def require_credentials() -> None:
    """Check for Google credentials before the job starts; a server named by ``PUBSUB_EMULATOR_HOST`` needs none.

    Raises:
        google.auth.exceptions.DefaultCredentialsError: if there are no credentials.
    """
    if not os.environ.get("PUBSUB_EMULATOR_HOST"):
        import google.auth  # noqa: PLC0415  # of the extra gcp

        google.auth.default()


def is_dry(options: PipelineOptions) -> bool:
    """Whether the job is only described, by ``--dry_run=True``."""
    return bool(options.view_as(TestOptions).dry_run)


def check_dry_run(options: PipelineOptions) -> None:
    """Refuse a dry run on engines that would run the job; raises SpecError."""
    runner = options.view_as(StandardOptions).runner
    if is_dry(options) and runner != DATAFLOW:
        raise SpecError(f"--dry_run needs --runner {DATAFLOW}, got {runner or 'DirectRunner'!r}")


def check_locations(options: PipelineOptions) -> None:
    """Refuse locations in Cloud Storage in place of which Beam would take, and create, a bucket of its own choice.

    Raises:
        SpecError: if --temp_location or --staging_location of Dataflow is no such location, or neither is given for a
            dry run, which needs no network.
    """
    if options.view_as(StandardOptions).runner != DATAFLOW:
        return
    cloud = options.view_as(GoogleCloudOptions)
    validator = PipelineOptionsValidator(options, None)
    given = {name: getattr(cloud, name) for name in ("temp_location", "staging_location")}
    for name, location in given.items():
        if location is not None and validator.validate_gcs_path(cloud, name):
            raise SpecError(
                f"--{name} must be gs://BUCKET/FOLDER, with a bucket of at least 3 of the characters a-z, 0-9, '-', "
                f"'_' and '.', got {location!r}"
            )
    if is_dry(options) and set(given.values()) == {None}:
        raise SpecError("--dry_run needs --temp_location gs://BUCKET/FOLDER, got none")


def graph_of(described: Any) -> str:
    """The graph of a dry run as JSON, in the form of Beam's ``Pipeline`` message.

    Args:
        described: result of the pipeline.
    """
    text: str = json_format.MessageToJson(described.job.proto_pipeline, preserving_proto_field_name=True)
    return text


def is_only_launched(options: PipelineOptions) -> bool:
    """Whether the job runs elsewhere or later after the runner was called, so that there is nothing to wait for."""
    cloud = options.view_as(GoogleCloudOptions)
    return bool(cloud.template_location or is_dry(options) or options.view_as(StandardOptions).no_wait_until_finish)


def ends_elsewhere(options: PipelineOptions) -> str | None:
    """How to end a job that continues without this program; None: it ends with the program, or when cancelled.

    Beam's job server for Flink does not cancel the job on request; it only stops waiting for it.
    """
    runner, endpoint = str(options.view_as(StandardOptions).runner), options.view_as(PortableOptions).job_endpoint
    if runner == FLINK and endpoint is None and options.view_as(FlinkRunnerOptions).flink_master in _FLINK_OF_PROGRAM:
        return None
    if runner == PORTABLE and endpoint in (None, EMBEDDED):
        return None
    return _ENDS_ELSEWHERE.get(runner)


def stop_engine(options: PipelineOptions) -> None:
    """Stop the engine process that this program has started, if any."""
    if options.view_as(StandardOptions).runner == PRISM:
        server = PrismRunner.shared_handle.acquire(_NoServer)
        server.stop()


class _NoServer:
    def stop(self) -> None:
        """Do nothing: no engine was started."""


def reachable_output(path: str, options: PipelineOptions) -> str:
    """The directory of ``--output`` for all processes of an engine: absolute, unless all is done in this process.

    Processes that an engine starts have working directories of their own.
    """
    runner = options.view_as(StandardOptions).runner
    if runner is None or runs_in_this_process(options) or in_store(path):
        return path
    return os.path.abspath(path)


def runs_in_this_process(options: PipelineOptions) -> bool:
    """Whether the job always ends with this process."""
    return str(options.view_as(StandardOptions).runner).lower() in _LOCAL


def check_options(beam_args: Sequence[str], hint: Callable[[str], str] = lambda argument: "") -> None:
    """Refuse options that neither this program, nor Beam, nor the job server knows; Beam would only warn.

    The job server at ``--job_endpoint`` is asked only about arguments that Beam does not know.

    Args:
        beam_args: arguments that this program does not know.
        hint: function that returns the end of the sentence about an unknown argument, see ``Parser.nearest_option``.

    Raises:
        SpecError: if an argument is unknown, with its name, or if the job server does not respond.
    """
    parser = Parser(add_help=False)
    for options in _subclasses(PipelineOptions):
        with contextlib.suppress(SpecError):  # an option that several classes define
            options._add_argparse_args(parser)  # type: ignore[arg-type]  # any argparse parser will do
    known, unknown = parser.parse_known_args(list(beam_args))
    if unknown and known.job_endpoint not in (None, EMBEDDED):
        add_described(parser, described_options(known.job_endpoint, known.job_server_timeout))
        _, unknown = parser.parse_known_args(list(beam_args))
    if unknown:
        others = "; options are those of --help all, of Apache Beam and of the job server at --job_endpoint"
        raise SpecError(f"unrecognized arguments: {unknown[0]}{hint(unknown[0]) or others}")


def _subclasses(cls: type[PipelineOptions]) -> list[type[PipelineOptions]]:
    return [found for sub in cls.__subclasses__() for found in (sub, *_subclasses(sub))]
