"""What some engines do that this package cannot make good."""

from __future__ import annotations

from apache_beam.options.pipeline_options import DebugOptions, GoogleCloudOptions, PipelineOptions, StandardOptions

from uldp_transforms.ldp.errors import SpecError

PRISM = "PrismRunner"

_JAVA_WINDOWS_ONLY = ("FlinkRunner", "SparkRunner")
"""Engines that read all windows in Java, which knows Beam's own alone."""

_AT_LEAST_ONCE = "streaming_mode_at_least_once"
_CLOCK_IS_WATERMARK = ("SwitchingDirectRunner", "BundleBasedDirectRunner")


def clock_is_watermark(runner: object, options: PipelineOptions) -> bool:
    """Whether an engine takes its clock for the watermark of a stream, however old its messages are."""
    return bool(options.view_as(StandardOptions).streaming) and type(runner).__name__ in _CLOCK_IS_WATERMARK


def check_exactly_once(options: PipelineOptions) -> None:
    """Refuse Dataflow's at-least-once mode: it may repeat sums of reports between steps, which nothing could undo.

    Raises:
        SpecError: naming the mode.
    """
    service = options.view_as(GoogleCloudOptions).dataflow_service_options or []
    experiments = options.view_as(DebugOptions).experiments or []
    if _AT_LEAST_ONCE in (*service, *experiments):
        raise SpecError(f"Dataflow's streaming mode must be exactly-once, or reports count twice, got {_AT_LEAST_ONCE}")


def check_calendar(runner: object) -> None:
    """Refuse windows of a calendar where an engine cannot read them.

    Raises:
        SpecError: naming the engine.
    """
    name = type(runner).__name__
    if name in _JAVA_WINDOWS_ONLY:
        raise SpecError(
            "JobSpec.timezone and months need a runner that takes windows from Python (elsewhere, count hours with "
            "--window 1h --write_counts, then uldp reestimate --timezone PLACE --window 1mo makes months of the stored "
            f"counts, or days, or weeks), got {name}"
        )
