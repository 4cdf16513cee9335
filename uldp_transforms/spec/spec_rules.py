"""Validation by the table of fields: values out of range, and fields that contradict each other.

Messages about contradictions use the terms of the interface: ``--smooth needs --window`` on a command line,
``JobSpec.smooth needs JobSpec.window`` in a program.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from uldp_transforms.ldp.checks import describe, is_number, require_int, require_number
from uldp_transforms.ldp.confidence import check_confidence
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.spec.spec_fields import SPEC_FIELDS, Kind, SpecField
from uldp_transforms.windows import checked_milliseconds

_SECOND = 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Voice:
    """Terms for fields and inputs in messages.

    Attributes:
        prefix: text before the name of a field.
        equals: text between a name and its value.
        streams: description of the input that streams-only fields need.
        source: description of the input of this job.
    """

    prefix: str
    equals: str
    streams: str = ""
    source: str = ""


def voice_of_library(bounded: bool | None = None) -> Voice:
    """Terms for a program that builds a ``JobSpec``."""
    source = "an unbounded input" if bounded is False else "a bounded one"
    return Voice(prefix="JobSpec.", equals="=", streams="an unbounded input", source=source)


def check_value(field: SpecField, value: object) -> None:
    """Refuse an invalid value of a ``JobSpec`` field, with durations in milliseconds; raises SpecError.

    Collections, windows, candidates and texts are checked where they are read.
    """
    where, optional = f"JobSpec.{field.name}", field.default is None
    if value is None and optional:
        return
    if field.kind is Kind.COUNT and field.high is not None:
        require_int(where, value, field.low, field.high)
    if field.kind is Kind.DURATION:
        checked_milliseconds(where, value, low=field.low)
        if field.whole_seconds and isinstance(value, int) and value % _SECOND:
            raise SpecError(f"{where} must be a whole number of seconds, got {value} ms")
    if field.kind is Kind.SHARE:
        within = isinstance(value, (int, float)) and is_number(value) and 0 <= value <= 1
        require_number(where, value, "a number in [0, 1] or null", within)
    if field.kind is Kind.CONFIDENCE:
        check_confidence(where, value)
    if field.kind is Kind.NUMBERS and not (
        isinstance(value, tuple) and value and all(is_number(item) and math.isfinite(item) for item in value)
    ):
        raise SpecError(f"{where} must be a list of numbers, or a text such as 30,60, got {describe(value)}")
    if field.kind is Kind.NAMES and not (
        isinstance(value, tuple) and value and all(isinstance(item, str) for item in value)
    ):
        raise SpecError(f"{where} must be a list of names, or a text such as country,arm, got {describe(value)}")
    if field.kind is Kind.SWITCH and not isinstance(value, bool):
        allowed = "true, false or null" if optional else "true or false"
        raise SpecError(f"{where} must be {allowed}, got {describe(value)}")
    if field.kind is Kind.CHOICE and value not in field.choices:
        allowed = " or ".join(f'"{choice}"' for choice in field.choices)
        raise SpecError(f"{where} must be {allowed}, got {describe(value)}")


def check_agreement(
    given: Mapping[str, Any], voice: Voice, bounded: bool | None = None, exempt: Collection[str] = ()
) -> None:
    """Refuse fields that are valid separately, but not together or not for this input.

    Args:
        given: name -> value of the fields that differ from their defaults.
        voice: terms for the messages.
        bounded: whether the input is bounded; None: unknown or irrelevant.
        exempt: fields whose needs and exclusions do not apply.

    Raises:
        SpecError: for the first contradiction, in the terms of ``voice``.
    """
    for sentence in _contradictions(given, voice, bounded, exempt):
        raise SpecError(sentence)


def _contradictions(
    given: Mapping[str, Any], voice: Voice, bounded: bool | None, exempt: Collection[str]
) -> Iterator[str]:
    name = voice.prefix
    said = [field for field in SPEC_FIELDS.values() if field.name in given]
    for field in said:
        if bounded and field.files == "refuse":
            yield f"{name}{field.name} needs {voice.streams}, got {voice.source}"
    for field in SPEC_FIELDS.values():
        if bounded is False and field.streams_need and field not in said:
            yield f"{voice.source} needs {name}{field.name}: {field.streams_need}, got none"
    for field in said:
        for other in field.excludes:
            if field.name not in exempt and other.name in given and other.value in (None, given[other.name]):
                value = "" if other.value is None else f"{voice.equals}{other.value}"
                because = f", {other.because}" if other.because else ""
                yield f"{name}{field.name} cannot be combined with {name}{other.name}{value}{because}, got both"
    for field in said:
        for needed in field.needs:
            if field.name not in exempt and needed not in given:
                yield f"{name}{field.name} needs {name}{needed}, got none"
