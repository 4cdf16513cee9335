"""Command-line options for the fields of a specification, generated from the table of fields."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection
from typing import Any

from uldp_transforms.calendar_windows import calendar_length, is_months
from uldp_transforms.jobs import cli
from uldp_transforms.spec.spec_fields import SPEC_FIELDS, Kind, Section, SpecField
from uldp_transforms.spec.spec_rules import Voice, check_agreement
from uldp_transforms.windows import parse_duration

COLLECTION: cli.Options = {
    "--collection": {
        "required": True,
        "action": "append",
        cli.IS_COMMON: True,
        "help": "JSON file of a collection, or a pattern for several; may be given several times",
    },
}
"""The option that names the collections of a job."""

_OTHER_NAMES = {
    "Windows.size": "--window",
    "Windows.slide": "--slide",
    "Windows.offset": "--window_offset",
    "CalendarWindows.size": "--window",
    "CalendarWindows.slide": "--slide",
    "CalendarWindows.offset": "--window_offset",
    "CalendarWindows.timezone": "--timezone",
    "estimator.id": "--estimator",
    "JobSpec.collections": "--collection",
    "JobSpec.numbers": "--limits and --quantiles",
}

_OF_REPORTS = "max_rejected_share"
"""An option beside those of estimates that is about reports."""


def option_of(name: str) -> str:
    """The option for a name in a message of the library, such as ``JobSpec.liars``; other names stay."""
    field = SPEC_FIELDS.get(name.removeprefix("JobSpec."))
    if field is not None and field.section is not Section.JOB:
        return f"--{field.name}"
    return _OTHER_NAMES.get(name, name)


def spec_options(*sections: Section) -> cli.Options:
    """The options of these sections, with their arguments for argparse."""
    fields = {name: field for name, field in SPEC_FIELDS.items() if field.section in sections}
    return {f"--{name}": {**spec_option(name), cli.IS_COMMON: field.is_common} for name, field in fields.items()}


def spec_option(name: str, **changes: Any) -> dict[str, Any]:
    """The argparse arguments of one option; a program whose option has a narrower meaning replaces its help."""
    field = SPEC_FIELDS[name]
    settings: dict[str, Any] = {"help": option_help(field)}
    if field.kind is Kind.SWITCH:
        settings |= cli.SWITCH
    elif field.may_repeat_default and field.default is not None:
        settings["default"] = field.default
    if field.kind is Kind.LENGTH:
        settings["type"] = cli.window_length(f"--{name}")
    if field.kind is Kind.DURATION:
        settings["type"] = cli.duration_text(f"--{name}")
    if field.kind is Kind.COUNT:
        settings["type"] = cli.positive()
    if field.kind is Kind.SHARE:
        settings["type"] = cli.share
    if field.kind is Kind.CONFIDENCE:
        settings["type"] = cli.confidence
    if field.kind is Kind.NUMBERS:
        settings["type"] = cli.numbers
    if field.kind is Kind.NAMES:
        settings["type"] = cli.names
    if field.kind is Kind.CHOICE:
        settings["choices"] = field.choices
    if field.listed:
        settings["type"] = cli.Listed(field.listed)
    return settings | changes


def options_of_samples(*without: str) -> tuple[str, ...]:
    """Names of the options that say what is estimated of a sample: a new one is an option of each program that makes
    rows.

    Args:
        without: options that a program cannot have, or has with another meaning.
    """
    fields = SPEC_FIELDS.values()
    names = [field.name for field in fields if field.section is Section.ESTIMATES or field.name == "by"]
    return tuple(name for name in names if name not in (_OF_REPORTS, *without))


def option_help(field: SpecField) -> str:
    """Meaning, conditions and default of an option; other fields are named as options."""
    parts = [field.help, *(["streams only"] if field.streams_only else []), *conditions(field)]
    return in_words("; ".join(parts) + unsaid_default(field), "--")


def conditions(field: SpecField) -> list[str]:
    """What a field needs and excludes, with names in backticks."""
    excluded = [(other.name, "" if other.value is None else f" {other.value}") for other in field.excludes]
    return [*(f"needs `{name}`" for name in field.needs), *(f"not with `{name}`{value}" for name, value in excluded)]


def in_words(text: str, prefix: str) -> str:
    """A text of the table without backticks, with a prefix before field names."""
    names = "|".join(SPEC_FIELDS)
    return re.sub(rf"`({names})`", rf"{prefix}\1", text).replace("`", "")


def unsaid_default(field: SpecField) -> str:
    """The default in words, if a parser or form does not show it as a value."""
    if field.kind is Kind.SWITCH or (field.default is not None and field.may_repeat_default):
        return ""
    return f" (default: {default_words(field)})"


def default_words(field: SpecField) -> str:
    """The default in words."""
    if field.default is None:
        return field.default_text
    return f"{field.default:,}" if field.kind is Kind.COUNT else str(field.default)


def given(args: argparse.Namespace) -> dict[str, Any]:
    """Name -> value of the fields that are given on a command line."""
    values = {name: getattr(args, name, None) for name, field in SPEC_FIELDS.items() if field.section != Section.JOB}
    return {name: value for name, value in values.items() if value is not None and value is not False}


def _length(text: str) -> int | tuple[int, str]:
    """Milliseconds, or a number of months."""
    return calendar_length(text, "--window") if is_months(text) else parse_duration(text, "--window")


def check_options_agree(
    args: argparse.Namespace,
    *,
    bounded: bool | None = None,
    streams: str = "",
    source: str = "",
    exempt: Collection[str] = (),
) -> None:
    """Refuse options that contradict each other or the source.

    Args:
        args: parsed command line.
        bounded: whether the source is bounded; None: irrelevant.
        streams: options that name unbounded sources.
        source: the option that names the source.
        exempt: fields whose needs and exclusions do not apply.

    Raises:
        SpecError: for the first contradiction.
    """
    values = given(args)
    if "slide" in values and "window" in values and _length(values["slide"]) == _length(values["window"]):
        del values["slide"]
    check_agreement(values, Voice(prefix="--", equals=" ", streams=streams, source=source), bounded, exempt)
