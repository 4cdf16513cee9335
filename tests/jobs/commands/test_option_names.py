"""A wrong value of any option of the table of fields is refused by the name of the option, not of the field."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.messages_cases import KRR, container, single, write_files
from uldp_transforms.jobs.uldp import main
from uldp_transforms.spec.spec_fields import SPEC_FIELDS, Kind, Section, SpecField

BAD: dict[Kind, tuple[str, ...]] = {
    Kind.LENGTH: ("x", "1000d"),
    Kind.DURATION: ("x", "99999d"),
    Kind.COUNT: ("0", "x", "99999999999999"),
    Kind.SHARE: ("2", "x"),
    Kind.CONFIDENCE: ("0", "1", "1.5", "x", "95", "nan", "0.9999999"),
    Kind.CHOICE: ("never",),
    Kind.TEXT: ("never",),
    Kind.NUMBERS: ("x", "nan", "", "1"),
    Kind.NAMES: ("nobody", "a,a", "A"),
    Kind.SUMS: ('{"x": []}', '{"x": ["nobody"]}', '{"x": {"weights": {"ant": "a"}}}', "{"),
}
MORE = {
    "early_every": ("1ms", "1500ms"),
    "late_every": ("1500ms",),
    "liars": ("1",),
    "discover": (None,),
    "borrow": (None,),
    "smooth": (None,),
}
"""Values of one option; None for a switch, which is wrong where it stands."""

WITH = {"timezone": "--window 1d", "smooth": "", "borrow": "", "alarm_every": "--window 1h --smooth"}
"""What stands beside an option, if it is not what it needs."""

UNLIMITED = {"min_reports"}
"""Counts without an upper limit."""


def cases() -> Iterator[tuple[str, str | None]]:
    for field in SPEC_FIELDS.values():
        if field.section is not Section.JOB:
            for bad in (*BAD.get(field.kind, ()), *MORE.get(field.name, ())):
                if not (field.name in UNLIMITED and bad == BAD[Kind.COUNT][-1]):
                    yield field.name, bad


CASES = list(cases())


def beside(field: SpecField) -> str:
    """The source and the options that a field needs."""
    source = "--subscription projects/p/subscriptions/s" if field.streams_only else "--input good.avro"
    needed = "--window 1h" if field.streams_only or "window" in field.needs else ""
    switches = " ".join(f"--{name}" for name in field.needs if SPEC_FIELDS[name].kind is Kind.SWITCH)
    return f"{source} {WITH.get(field.name, f'{needed} {switches}')}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, {"krr.json": KRR, "good.avro": container([(3, single() * 3)])})
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("name", "bad"), CASES)
def test_a_refusal_names_the_option(name: str, bad: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    argv = shlex.split(f"estimate --collection krr.json {beside(SPEC_FIELDS[name])} --output out")
    assert main([*argv, f"--{name}", *([] if bad is None else [bad])]) == 2
    said = capsys.readouterr().err
    assert f"--{name}" in said
    assert "JobSpec" not in said and "Windows." not in said
    assert said.startswith("estimate: ") and said.count("\n") == 1


def test_every_option_with_a_value_has_a_case() -> None:
    named = {name for name, _ in CASES}
    rest = {field.name for field in SPEC_FIELDS.values() if field.section is not Section.JOB} - named
    assert {SPEC_FIELDS[name].kind for name in rest} == {Kind.SWITCH, Kind.CANDIDATES}


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (
            "gateway --collection krr.json --spool s --window 0s",
            "gateway: --window must be a duration from 1ms to 365d, got 0s\n",
        ),
        (
            "reestimate --collection krr.json out --output again --liars 1",
            "reestimate: --liars must have a share in [0, 1), got 1.0\n",
        ),
    ],
)
def test_other_programs_say_it_too(argv: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(argv)) == 2
    assert capsys.readouterr().err == sentence
