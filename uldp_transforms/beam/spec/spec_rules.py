"""What the table of fields forbids: values out of range, and fields that contradict each other.

Contradictions are told in the words of whoever made them: ``--smooth needs --window`` on a command line,
``JobSpec.smooth needs JobSpec.window`` in a program.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from uldp_transforms.beam.spec.spec_fields import SPEC_FIELDS, Kind, SpecField
from uldp_transforms.ldp.checks import describe, is_number, require_int, require_number
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import checked_milliseconds

_SECOND = 1_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Voice:
    """How a user names fields and inputs.

    Attributes:
        prefix: of the name of a field.
        equals: between a name and its value.
        streams: what a field that is for streams only needs.
        source: the input of this job.
    """

    prefix: str
    equals: str
    streams: str = ""
    source: str = ""


def voice_of_library(bounded: bool | None = None) -> Voice:
    """The words of a program that builds a ``JobSpec``."""
    source = "an unbounded input" if bounded is False else "a bounded one"
    return Voice(prefix="JobSpec.", equals="=", streams="an unbounded input", source=source)


def check_value(field: SpecField, value: object) -> None:
    """Refuse what is no value of a field in a ``JobSpec``, where durations are milliseconds; raises SpecError.

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
            raise SpecError(f"{where} must be whole seconds, got {value} ms")
    if field.kind is Kind.SHARE:
        within = isinstance(value, (int, float)) and is_number(value) and 0 <= value <= 1
        require_number(where, value, "a number in [0, 1] or null", within)
    if field.kind is Kind.SWITCH and not isinstance(value, bool):
        allowed = "true, false or null" if optional else "true or false"
        raise SpecError(f"{where} must be {allowed}, got {describe(value)}")
    if field.kind is Kind.CHOICE and value not in field.choices:
        allowed = " or ".join(f'"{choice}"' for choice in field.choices)
        raise SpecError(f"{where} must be {allowed}, got {describe(value)}")


def check_agreement(
    given: Mapping[str, Any], voice: Voice, bounded: bool | None = None, exempt: Collection[str] = ()
) -> None:
    """Refuse fields that are allowed alone, but not together or not for this input.

    Args:
        given: name -> value of the fields that say something.
        voice: of the user.
        bounded: whether the input ends; None: not known, or it does not matter.
        exempt: fields whose needs and exclusions do not apply.

    Raises:
        SpecError: with the first contradiction, in the words of the user.
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
                yield f"{name}{field.name} cannot go with {name}{other.name}{value}{because}, got both"
    for field in said:
        for needed in field.needs:
            if field.name not in exempt and needed not in given:
                yield f"{name}{field.name} needs {name}{needed}, got none"
