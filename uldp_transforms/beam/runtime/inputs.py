"""Checks of inputs when the pipeline is built, and of outputs that are used in another way than by their names."""

from __future__ import annotations

import dataclasses
import difflib
from typing import Any, ClassVar

from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import FixedWindows, GlobalWindows, SlidingWindows, TimestampedValue, WindowFn
from apache_beam.typehints import Any as AnyType
from apache_beam.typehints import Dict, Optional, Tuple
from apache_beam.typehints.typehints import is_consistent_with

from uldp_transforms.beam.runtime.beam_windows import CalendarWindowFn, beam_windows, windows_of_beam
from uldp_transforms.beam.runtime.engines import check_calendar, check_exactly_once, clock_is_watermark
from uldp_transforms.calendar_windows import CalendarWindows
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.spec.job_spec import JobSpec

_MARK = "_uldp_spec"
"""Attribute of a PCollection that holds the specification for which it was made."""


def require_spec(owner: str, spec: object) -> JobSpec:
    """Return the specification; raises SpecError for anything else."""
    if not isinstance(spec, JobSpec):
        raise SpecError(f"{owner} needs a JobSpec, got {describe(spec)}")
    return spec


def mark(spec: JobSpec, *outputs: PCollection[Any]) -> None:
    """Remember for which specification PCollections were made, for ``spec_for``."""
    for output in outputs:
        setattr(output, _MARK, spec)


def spec_for(owner: str, spec: JobSpec, elements: PCollection[Any], kind: Any, *, windowed: bool = False) -> JobSpec:
    """The specification, completed for this input; refuses inputs that a transform cannot accept.

    Args:
        owner: name of the transform, for the message.
        spec: specification of the job.
        elements: the input.
        kind: type of its elements, as in Beam's type hints.
        windowed: whether the input must be in the windows of the job rather than in the global window.

    Raises:
        SpecError: if elements have another type, are in other windows or were made for another specification; if the
        boundedness of the input contradicts the specification; or if the engine cannot support the specification.
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
        raise SpecError(
            f"{owner} needs elements in the global window (reports carry their own time), got {came}; use: "
            'elements | "Unwindowed" >> beam.WindowInto(beam.window.GlobalWindows())'
        )
    runner, options = elements.pipeline.runner, elements.pipeline.options
    settled = spec.for_input(bool(elements.is_bounded), clock_is_watermark=clock_is_watermark(runner, options))
    if not settled.bounded:
        check_exactly_once(options)
    if isinstance(settled.windows, CalendarWindows):
        check_calendar(runner)
    require_same_spec(owner, settled, elements)
    return settled


def require_same_spec(owner: str, settled: JobSpec, elements: PCollection[Any]) -> None:
    """Refuse PCollections made for a different specification; raises SpecError naming the difference."""
    other = getattr(elements, _MARK, settled)
    if other != settled:
        names = [field.name for field in dataclasses.fields(JobSpec)]
        differ = ", ".join(name for name in names if getattr(other, name) != getattr(settled, name))
        raise SpecError(f"{owner} needs the JobSpec of the previous steps, got one with a different {differ}")


def require_elements(needed: str, elements: object, kind: Any) -> None:
    """Require a PCollection of the right type; raises a SpecError that begins with ``needed``."""
    if not isinstance(elements, PCollection):
        raise SpecError(f"{needed}, got {type(elements).__name__}")
    came = elements.element_type
    allowed = Optional[kind] if kind is bytes else kind  # without a message, such as a deleted record of Kafka
    if came not in (None, AnyType, Any) and not is_consistent_with(came, allowed):
        raise SpecError(f"{needed}, got one of {_name(came)}{cure_of(came) if kind is bytes else ''}")


_OF_PAIR = 'message[1] or b""'
"""A record that was deleted from a Kafka topic has None, which Beam's coder of bytes refuses."""

_BYTES_OF: tuple[tuple[Any, str], ...] = (
    (ReportBatch, "wire.encode_batch(message)"),
    (PubsubMessage, "message.data"),
    (Tuple[AnyType, Optional[bytes]], _OF_PAIR),
    (tuple, _OF_PAIR),
    (TimestampedValue, "message"),
    (Dict[AnyType, AnyType], "to_message(message)"),
    (dict, "to_message(message)"),
)
"""Types of elements that contain messages, and how to get at them."""


def cure_of(came: Any) -> str:
    """End of a sentence about elements that are no messages: the line that makes messages of them, if there is one."""
    if came is str:
        return "; use, if they are names of files: names | ReadReportFiles()"
    for kind, expression in _BYTES_OF:
        if is_consistent_with(came, kind):
            return f"; use: messages | beam.Map(lambda message: {expression}).with_output_types(bytes)"
    return ""


def _seen(window_fn: WindowFn) -> str:
    """Describe Beam windows in the terms of a specification if possible."""
    known = type(window_fn) in (FixedWindows, SlidingWindows, CalendarWindowFn)
    return str(windows_of_beam(window_fn)) if known else type(window_fn).__name__


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


_OF_PCOLLECTION = frozenset({"element_type", "is_bounded", "pipeline", "producer", "tag", "windowing"})
"""Attributes that Beam's steps ask of their input."""


class NoOutputError(SpecError, AttributeError):
    """A transform has no output of this name."""


class NamedOutputs(tuple[Any, ...]):
    """Base of the named tuples of outputs: refuses a step for all of them, and names that are none of theirs.

    Attributes:
        owner: name of the transform.
        example: an expression for the output that most steps need, such as ``files.messages``.
    """

    __slots__ = ()

    owner: ClassVar[str]
    example: ClassVar[str]

    def __or__(self, step: object) -> Any:
        raise SpecError(self._in_words("several outputs", "a step for all", f"{self.example} | step"))

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, str):
            raise SpecError(self._in_words("its outputs as attributes", f"[{at!r}]", f".{self._nearest(at)}"))
        return super().__getitem__(at)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Python and Beam ask for such names
            raise AttributeError(name)
        if name in _OF_PCOLLECTION:
            raise NoOutputError(self._in_words("several outputs", "a step for all", f"{self.example} | step"))
        raise NoOutputError(self._in_words("its outputs as attributes", f".{name}", f".{self._nearest(name)}"))

    def _in_words(self, has: str, came: str, use: str) -> str:
        return f"{self.owner} has {has} ({', '.join(self._fields)}), got {came}; use: {use}"

    def _nearest(self, name: str) -> str:
        nearest = difflib.get_close_matches(name, self._fields, n=1)
        return nearest[0] if nearest else self.example.rpartition(".")[2]
