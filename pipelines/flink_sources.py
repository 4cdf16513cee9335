"""What Flink must be told about sources that are read by Python; see docs/decisions/0051-kafka-read-by-python.md."""

from __future__ import annotations

from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

NEVER = 9_000_000_000_000_000
"""Milliseconds."""

_FLINK = ("FlinkRunner", "PortableRunner")


class FlinkSourceOptions(PipelineOptions):
    """Options of Beam's job server for Flink that Beam's Python package does not list."""

    @classmethod
    def _add_argparse_args(cls, parser: Any) -> None:
        parser.add_argument("--shutdown_sources_after_idle_ms", type=int, help="of Beam's job server for Flink")
        parser.add_argument(
            "--finish_bundle_before_checkpointing",
            action="store_true",
            default=None,
            help="of Beam's job server for Flink",
        )


def keep_sources_open(options: PipelineOptions) -> None:
    """Let Flink make checkpoints while a splittable step reads, and flush what is in the first of them.

    Without the first option the source that named the partitions ends, and no checkpoint is ever complete; without the
    second one a job may hang when it starts.
    """
    if options.view_as(StandardOptions).runner in _FLINK:
        chosen = options.view_as(FlinkSourceOptions)
        chosen.shutdown_sources_after_idle_ms = chosen.shutdown_sources_after_idle_ms or NEVER
        chosen.finish_bundle_before_checkpointing = True
