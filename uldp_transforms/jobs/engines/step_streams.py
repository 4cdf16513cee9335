"""What engines must be told about streams that a splittable step in Python reads; docs/decisions say why (note 57)."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions, StandardOptions

from uldp_transforms.beam.runtime.engines import PRISM

NEVER = 9_000_000_000_000_000
"""Milliseconds."""

YEARS = 100_000_000
"""Seconds."""

_WHOSE = "of Beam's job server for Flink"
_FLINK = ("FlinkRunner", "PortableRunner")


class FlinkSourceOptions(PipelineOptions):
    """Options of Beam's job server for Flink that Beam's Python package does not list."""

    @classmethod
    def _add_argparse_args(cls, parser: Any) -> None:
        known_elsewhere = contextlib.suppress(argparse.ArgumentError)  # a later Beam may list them, or a job server has
        with known_elsewhere:
            parser.add_argument("--shutdown_sources_after_idle_ms", type=int, help=_WHOSE)
        with known_elsewhere:
            parser.add_argument("--finish_bundle_before_checkpointing", action="store_true", default=None, help=_WHOSE)


def prepare_engine(options: PipelineOptions) -> None:
    """Set what an engine needs to run such a stream for longer than a trial.

    Flink: without the first option the source that named the partitions ends, and no checkpoint is ever complete;
    without the second one a job may hang when it starts. Prism: Beam's program stops listening to it after a timeout
    that is meant for single answers, five minutes, and takes that for the end of the job.
    """
    runner = options.view_as(StandardOptions).runner
    if runner in _FLINK:
        chosen = options.view_as(FlinkSourceOptions)
        chosen.shutdown_sources_after_idle_ms = chosen.shutdown_sources_after_idle_ms or NEVER
        chosen.finish_bundle_before_checkpointing = True
    elif runner == PRISM:
        options.view_as(PortableOptions).job_server_timeout = YEARS
