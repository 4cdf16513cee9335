"""Limitations of engines that this package cannot work around, and the clock of their timers."""

from __future__ import annotations

import time

from apache_beam.options.pipeline_options import DebugOptions, GoogleCloudOptions, PipelineOptions, StandardOptions

from uldp_transforms.ldp.errors import SpecError

PRISM = "PrismRunner"

_JAVA_WINDOWS_ONLY = ("FlinkRunner", "SparkRunner")
"""Engines that process all windows in Java, which supports only Beam's own window types."""

_AT_LEAST_ONCE = "streaming_mode_at_least_once"
_CLOCK_IS_WATERMARK = ("SwitchingDirectRunner", "BundleBasedDirectRunner")


def clock_is_watermark(runner: object, options: PipelineOptions) -> bool:
    """Whether an engine uses its clock as the watermark of a stream, even for old messages."""
    return bool(options.view_as(StandardOptions).streaming) and type(runner).__name__ in _CLOCK_IS_WATERMARK


def check_exactly_once(options: PipelineOptions) -> None:
    """Refuse Dataflow's at-least-once mode, which may repeat sums of reports between steps irreversibly.

    Raises:
        SpecError: naming the mode.
    """
    service = options.view_as(GoogleCloudOptions).dataflow_service_options or []
    experiments = options.view_as(DebugOptions).experiments or []
    if _AT_LEAST_ONCE in (*service, *experiments):
        raise SpecError(
            f"Dataflow's streaming mode must be exactly-once, because reports would count twice, got {_AT_LEAST_ONCE}"
        )


def check_calendar(runner: object) -> None:
    """Refuse calendar windows on engines that cannot read them.

    Raises:
        SpecError: naming the engine.
    """
    name = type(runner).__name__
    if name in _JAVA_WINDOWS_ONLY:
        raise SpecError(
            "JobSpec.timezone and months need a runner that supports window functions in Python, got "
            f"{name}; on this runner, store hourly counts with --window 1h --write_counts and combine them "
            "into days, weeks or months, for example with uldp reestimate --timezone PLACE --window 1mo"
        )


def processing_time() -> float:
    """Seconds since 1970 by the clock that fires timers of processing time."""
    return time.time()
