"""Engine options for streams that are read by a splittable DoFn in Python (decision note 57)."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, StandardOptions

from uldp_transforms.beam.runtime.engines import PRISM

NEVER = 9_000_000_000_000_000
"""Practically infinite time in milliseconds."""

YEARS = 100_000_000
"""Practically infinite time in seconds."""

_WHOSE = "of Beam's job server for Flink"
_FLINK = ("FlinkRunner", "PortableRunner")


class FlinkSourceOptions(PipelineOptions):
    """Options of Beam's job server for Flink that Beam's Python package does not list."""

    @classmethod
    def _add_argparse_args(cls, parser: Any) -> None:
        known_elsewhere = contextlib.suppress(argparse.ArgumentError)  # later Beam versions or a job server define it
        with known_elsewhere:
            parser.add_argument("--shutdown_sources_after_idle_ms", type=int, help=_WHOSE)
        with known_elsewhere:
            parser.add_argument("--finish_bundle_before_checkpointing", action="store_true", default=None, help=_WHOSE)


def prepare_engine(options: PipelineOptions) -> None:
    """Set the options that an engine needs to run such a stream for a long time.

    Flink: without the first option, the source of partitions finishes and no checkpoint ever completes; without the
    second one, a job may hang at the start. Prism: Beam stops listening after a timeout of five minutes that is meant
    for single responses, and treats this as the end of the job.
    """
    runner = options.view_as(StandardOptions).runner
    if runner in _FLINK:
        chosen = options.view_as(FlinkSourceOptions)
        chosen.shutdown_sources_after_idle_ms = chosen.shutdown_sources_after_idle_ms or NEVER
        chosen.finish_bundle_before_checkpointing = True
    elif runner == PRISM:
        options.view_as(PortableOptions).job_server_timeout = YEARS
