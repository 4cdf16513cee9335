"""What a transform may be applied to: checked when the pipeline is built, in one sentence."""

from __future__ import annotations

from typing import Any

from apache_beam.options.pipeline_options import StandardOptions
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import FixedWindows, GlobalWindows, SlidingWindows, WindowFn
from apache_beam.typehints import Any as AnyType
from apache_beam.typehints.typehints import is_consistent_with

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.runtime.beam_windows import beam_windows, windows_of_beam
from uldp_transforms.spec import JobSpec

_CLOCK_IS_WATERMARK = ("SwitchingDirectRunner", "BundleBasedDirectRunner")


def spec_for(owner: str, spec: JobSpec, elements: PCollection[Any], kind: Any, *, windowed: bool = False) -> JobSpec:
    """The specification for this input, if a transform can take it.

    Args:
        owner: the transform, for the sentence.
        spec: of the job.
        elements: the input.
        kind: type of its elements, as Beam's type hints say it.
        windowed: whether it must be in the windows of the job; otherwise in the global window.

    Raises:
        SpecError: for elements of another type, in other windows, or that end against the specification.
    """
    require_elements(f"{owner} needs a PCollection of {_name(kind)}", elements, kind)
    expected = beam_windows(spec.windows) if windowed else GlobalWindows()
    window_fn = elements.windowing.windowfn
    if window_fn != expected:
        if windowed:
            raise SpecError(
                f"{owner} needs elements in the windows of its specification, {_seen(expected)}, got {_seen(window_fn)}"
            )
        came = type(window_fn).__name__
        raise SpecError(f"{owner} needs elements in the global window (reports carry their own time), got {came}")
    runner = type(elements.pipeline.runner).__name__
    streaming = elements.pipeline.options.view_as(StandardOptions).streaming
    return spec.for_input(
        bool(elements.is_bounded), clock_is_watermark=bool(streaming) and runner in _CLOCK_IS_WATERMARK
    )


def require_elements(needed: str, elements: object, kind: Any) -> None:
    """Refuse what is no PCollection, or one of another type; raises SpecError that begins with ``needed``."""
    if not isinstance(elements, PCollection):
        raise SpecError(f"{needed}, got {type(elements).__name__}")
    came = elements.element_type
    if came not in (None, AnyType, Any) and not is_consistent_with(came, kind):
        raise SpecError(f"{needed}, got one of {_name(came)}")


def _seen(window_fn: WindowFn) -> str:
    """Windows of Beam as a specification names them, as far as it can."""
    known = type(window_fn) in (FixedWindows, SlidingWindows)
    return str(windows_of_beam(window_fn)) if known else type(window_fn).__name__


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)
