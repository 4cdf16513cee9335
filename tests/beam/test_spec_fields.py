"""The table of fields: every field of a specification is in it, and whatever shows fields follows it."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tests.support import dataflow_template, spec_page
from tests.support.messages_cases import KRR
from uldp_transforms import JobSpec
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.jobs.spec_options import check_options_agree, option_help, spec_options
from uldp_transforms.ldp import SpecError
from uldp_transforms.ldp.checks import nearest
from uldp_transforms.spec.plain_values import SpecValues
from uldp_transforms.spec.spec_fields import SPEC_FIELDS, Kind, Section, SpecField
from uldp_transforms.spec.spec_rules import Voice, check_agreement, voice_of_library
from uldp_transforms.windows import parse_duration

FIELDS = list(SPEC_FIELDS.values())
OPTIONS = {action.dest: action for action in command_line()._actions}
PAGE = (Path(__file__).parents[2] / spec_page.PATH).read_text(encoding="utf-8").splitlines()
COMMAND_LINE = Voice(prefix="--", equals=" ", streams="--endless", source="--file")


def test_every_field_is_in_the_table() -> None:
    """``windows`` of a ``JobSpec`` is what the fields about windows make together."""
    windows = [field.name for field in FIELDS if field.section is Section.WINDOWS]
    of_spec = [field.name for field in dataclasses.fields(JobSpec)]
    assert list(SPEC_FIELDS) == list(SpecValues.__annotations__)
    assert set(of_spec) - {"windows"} == set(SPEC_FIELDS) - set(windows)
    assert set(JobSpec(collections=(KRR,)).to_json()) == set(SPEC_FIELDS)


def test_defaults_are_those_of_the_specification() -> None:
    for field in dataclasses.fields(JobSpec):
        if field.name in SPEC_FIELDS and field.name != "collections":
            row = SPEC_FIELDS[field.name]
            given = row.default
            assert field.default == (parse_duration(given) if row.kind is Kind.DURATION and given else given), row.name


@pytest.mark.parametrize("row", FIELDS, ids=list(SPEC_FIELDS))
def test_a_row_says_what_pages_and_forms_need(row: SpecField) -> None:
    assert row.label[0].isupper()
    assert row.help[0].islower()
    assert not row.help.endswith(".")
    assert row.name == "collections" or row.default is not None or row.default_text
    names = {*row.needs, *(other.name for other in row.excludes)}
    assert names <= set(SPEC_FIELDS)
    assert (row.high is not None) == (row.kind is Kind.COUNT)
    assert bool(row.choices) == (row.kind is Kind.CHOICE)


@pytest.mark.parametrize("row", FIELDS, ids=list(SPEC_FIELDS))
def test_command_line_template_and_page_follow_the_table(row: SpecField) -> None:
    offered = row.section is not Section.JOB
    assert (f"--{row.name}" in spec_options(*set(Section) - {Section.JOB})) == offered
    (line,) = [line for line in PAGE if line.startswith(f"| `{row.name}` | ")]
    assert line == f"| {' | '.join(spec_page.rows()[FIELDS.index(row)])} |".replace("|  |", "| |")
    if offered:
        assert OPTIONS[row.name].help == option_help(row)
        parameter = dataflow_template.parameter(OPTIONS[row.name])
        assert parameter["label"] == row.label
        assert parameter.get("isOptional", False) == (not row.streams_need)
        assert ("defaultValue" in parameter) == (row.default is not None and row.may_repeat_default)


# ---------------------------------------------------------------------- contradictions

GIVEN: dict[str, Any] = dict.fromkeys(SPEC_FIELDS, "something")
"""Each field with a value that says something and excludes nothing by itself."""


def with_needs(name: str) -> dict[str, Any]:
    """A field and all that it needs."""
    given = {name: GIVEN[name]}
    for needed in SPEC_FIELDS[name].needs:
        given |= with_needs(needed)
    return given


def said(given: dict[str, Any], voice: Voice = COMMAND_LINE, bounded: bool | None = None) -> str:
    with pytest.raises(SpecError) as caught:
        check_agreement(given, voice, bounded)
    return str(caught.value)


@pytest.mark.parametrize("row", FIELDS, ids=list(SPEC_FIELDS))
def test_contradictions_are_told_in_the_words_of_the_user(row: SpecField) -> None:
    name, library, whole = row.name, voice_of_library(True), with_needs(row.name)
    for one in row.needs:
        given = {other: value for other, value in whole.items() if other != one}
        assert said(given) == f"--{name} needs --{one}, got none"
        assert said(given, library) == f"JobSpec.{name} needs JobSpec.{one}, got none"
    for other in row.excludes:
        value = "" if other.value is None else f" {other.value}"
        because = f", {other.because}" if other.because else ""
        given = whole | {"window": "1h", other.name: other.value or "something"}
        assert said(given) == f"--{name} cannot be combined with --{other.name}{value}{because}, got both"
        between = value.replace(" ", "=")
        assert (
            said(given, library) == f"JobSpec.{name} cannot be combined with JobSpec.{other.name}{between}{because}, "
            "got both"
        )
        if other.value is not None:
            check_agreement(given | {other.name: "another"}, COMMAND_LINE)
    if row.files == "refuse":
        assert said(whole, bounded=True) == f"--{name} needs --endless, got --file"
        assert said(whole, library, True) == f"JobSpec.{name} needs an unbounded input, got a bounded one"
    else:
        check_agreement(whole, COMMAND_LINE, True)
    if row.streams_need:
        assert said({}, bounded=False) == f"--file needs --{name}: {row.streams_need}, got none"
    check_agreement(whole | {"window": "1h"}, COMMAND_LINE, False)
    check_agreement({name: GIVEN[name]}, COMMAND_LINE, exempt=[name])


def test_there_is_something_to_contradict() -> None:
    assert sum(len(row.needs) for row in FIELDS) >= 6
    assert sum(len(row.excludes) for row in FIELDS) >= 3
    assert [row.name for row in FIELDS if row.files == "refuse"]
    assert [row.name for row in FIELDS if row.streams_need]


# ---------------------------------------------------------------------- unknown names


@pytest.mark.parametrize(
    ("unknown", "meant"),
    [
        ("windows", "window"),
        ("time_zone", "timezone"),
        ("alarm", "alarm_every"),
        ("lateness", "allowed_lateness"),
        ("min-reports", "min_reports"),
        ("colections", "collections"),
        ("epsilon", None),
        ("more", None),
        ("tz", None),
        (5, None),
    ],
)
def test_an_unknown_name_suggests_the_nearest(unknown: object, meant: str | None) -> None:
    assert nearest(unknown, SPEC_FIELDS) == meant


@pytest.mark.parametrize(
    ("argument", "hint"),
    [
        ("--windows", "; did you mean --window?"),
        ("--alarm=5", "; did you mean --alarm_every?"),
        ("more", ""),
        ("--", ""),
    ],
)
def test_an_unknown_option_suggests_the_nearest(argument: str, hint: str) -> None:
    assert command_line().nearest_option(argument) == hint


@pytest.mark.parametrize(
    ("window", "slide", "overlap"),
    [
        ("1h", "60m", False),
        ("7d", "P1W", False),
        ("1mo", "P1M", False),
        ("1h", "59m", True),
        ("2mo", "1mo", True),
    ],
)
def test_a_slide_of_the_length_of_the_window_is_no_overlap(window: str, slide: str, overlap: bool) -> None:
    """However the two are written; ``--smooth`` takes windows that do not overlap."""
    parser = command_line()
    required = ["--collection", "c", "--output", "o", "--input", "i"]
    args = parser.parse_args([*required, "--smooth", "--window", window, "--slide", slide])
    if not overlap:
        check_options_agree(args)
        return
    with pytest.raises(SpecError, match=r"^--smooth cannot be combined with --slide"):
        check_options_agree(args)


def test_options_of_sources_and_sinks_in_forms_have_labels_of_their_own() -> None:
    """None is made from the name of the option."""
    parameters = {name: dataflow_template.parameter(action) for name, action in dataflow_template.options().items()}
    assert parameters["bigquery"]["label"] == "BigQuery dataset"
    with pytest.raises(ValueError, match=r"^--new must have a label, or be in NOT_OFFERED, got neither$"):
        dataflow_template.parameter(argparse.Action(["--new"], "new"))
