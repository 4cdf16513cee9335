"""The parts that all command lines share: types of options, the help, and what becomes of an error."""

from __future__ import annotations

import argparse
import errno
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.spec_options import option_of
from uldp_transforms.ldp import SpecError

DURATION = "must be a number with a unit such as 90s, 15m, 1h or 1d, got"


LEVEL = "must be a number between 0 and 1, at most 0.999999, such as 0.95, got "


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (cli.duration("--x"), "90s", 90_000),
        (cli.duration_text("--x"), "90s", "90s"),
        (cli.window_length("--x"), "1mo", "1mo"),
        (cli.window_length("--x"), "1d", "1d"),
        (cli.positive(), "1", 1),
        (cli.positive(float), "0.5", 0.5),
        (cli.share, "0", 0.0),
        (cli.share, "1", 1.0),
        (cli.confidence, "0.9", 0.9),
        (cli.confidence, ".999999", 0.999999),
        (cli.numbers, "1,-2.5", [1.0, -2.5]),
        (cli.names, "a, b", ["a", "b"]),
        (cli.names, "", None),
        (cli.name_and_value, "a=b=c", ("a", "b=c")),
        (cli.name_and_value, "a=", ("a", "")),
        (cli.dimension_from("attribute"), "country=attribute:c:c", ("country", "c:c")),
        (cli.dimension_from("header"), "country=header:X-C", ("country", "X-C")),
        (cli.resource("topics"), "projects/p/topics/t", "projects/p/topics/t"),
        (cli.dataset, "p-1:d_2", "p-1:d_2"),
        (cli.SWITCH["type"], "true", True),
        (cli.SWITCH["type"], "false", False),
        (cli.Listed(["b", "a"]), "c", "c"),
        (cli.Listed(["b", "a"], int), "7", 7),
    ],
)
def test_what_an_option_takes(read: Callable[[str], Any], text: str, value: Any) -> None:
    found = read(text)
    assert (found, type(found)) == (value, type(value))
    if isinstance(read, cli.OptionType) and text:
        assert re.fullmatch(read.pattern, text.replace(" ", "")), "a form takes it too"


@pytest.mark.parametrize(
    ("read", "text", "sentence"),
    [
        (cli.duration("--x"), "1mo", f"{DURATION} '1mo'"),
        (cli.duration_text("--x"), "5", f"{DURATION} '5'"),
        (cli.window_length("--x"), "5", f"{DURATION} '5'"),
        (cli.positive(), "-1", "must be a whole number above 0, got '-1'"),
        (cli.positive(), "1.5", "must be a whole number above 0, got '1.5'"),
        (cli.positive(float), "nan", "must be a number above 0, got 'nan'"),
        (cli.positive(float), "x", "must be a number above 0, got 'x'"),
        (cli.share, "-0.1", "must be a number from 0 to 1, got '-0.1'"),
        (cli.share, "1.1", "must be a number from 0 to 1, got '1.1'"),
        (cli.share, "x", "must be a number from 0 to 1, got 'x'"),
        *((cli.confidence, text, f"{LEVEL}{text!r}") for text in ("0", "1", "1.5", "x", "95", "0.9999999")),
        (cli.numbers, "1;2", "must be comma-separated numbers, got '1;2'"),
        (cli.name_and_value, "secret", "must be NAME=VALUE (the value is not shown)"),
        (
            cli.dimension_from("header"),
            "country=header:X:C",
            "must be NAME=header:KEY, such as country=header:cc, got 'country=header:X:C'",
        ),
        (cli.resource("topics"), "projects/p/topics/t/u", "must be projects/PROJECT/topics/NAME, got "),
        (cli.dataset, "P:d", "must be PROJECT:DATASET, got 'P:d'"),
    ],
)
def test_what_an_option_refuses(read: Callable[[str], Any], text: str, sentence: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        read(text)
    assert str(caught.value).startswith(sentence)


# ---------------------------------------------------------------------- command lines


def parser() -> cli.Parser:
    made = cli.Parser("my-name", description="D.")
    cli.add_options(
        made,
        {
            "--once": {"help": "named", "label": "Once"},
            "--listed": {"type": cli.numbers, "default": "7", "help": "numbers"},
            "--servers": {"type": cli.servers, "help": "servers"},
            "--number": {"type": cli.positive(), "default": 7, "help": "a number"},
            "--said": {"default": 3, "help": "another (default: three)"},
            "--kind": {"type": cli.Listed(["b", "a"]), "default": "a", "help": "kind"},
            "--flag": cli.SWITCH | {"help": "a switch"},
        },
    )
    return made


def test_a_repeated_option_loses_no_value() -> None:
    """Lists add up; a single value may be repeated as it is, and another one is refused."""
    made = parser()
    assert made.parse_args(["--once", "x", "--once=x"]).once == "x"
    assert made.parse_args(["--once", "y"]).once == "y", "each command line on its own"
    for words in (["--once", "x", "--once", "y"], ["--number", "7", "--number=8"], ["--flag", "--flag", "false"]):
        with pytest.raises(SpecError, match=rf"^{words[0]} must have one value, got two different ones$"):
            made.parse_args(words)
    assert made.parse_args(["--listed", "1,2", "--listed", "2,3"]).listed == [1, 2, 3]
    assert made.parse_args([]).listed == [7]
    assert made.parse_args(["--servers", "a:1", "--servers", "b:2,c:3"]).servers == "a:1,b:2,c:3"


def test_help_has_defaults_and_values() -> None:
    made = parser()
    help_of = {action.dest: made.help_of(action) for action in made.actions() if action.help != argparse.SUPPRESS}
    assert help_of == {
        "help": "show this help message and exit; with all: every option",
        "once": "named",
        "listed": "numbers (default: 7)",
        "servers": "servers",
        "number": "a number (default: 7)",
        "said": "another (default: three)",
        "kind": "kind: a, b (default: a)",
        "flag": "a switch",
    }
    made.add_argument("--bare")
    assert made.help_of(made.actions()[-1]) == ""
    assert cli.parser_of(lambda words: made.parse_args(words) and 0) is made


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--numbr 3", "unrecognized arguments: --numbr 3; did you mean --number?"),
        ("--numbr=3", "unrecognized arguments: --numbr=3; did you mean --number?"),
        ("--zzzzzzzz", "unrecognized arguments: --zzzzzzzz"),
        ("number", "unrecognized arguments: number"),
        ("--num 3", "unrecognized arguments: --num 3"),
        ("--number 0", "--number must be a whole number above 0, got '0'"),
        ("--number", "argument --number: expected one argument"),
    ],
)
def test_errors_of_a_command_line_are_one_sentence(words: str, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        parser().parse_args(words.split())
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("called", "prog"),
    [
        ("/usr/bin/uldp", "uldp my-name"),
        ("/x/my_name.py", "python -m pipelines.my_name"),
        ("/x/uldp_transforms_my/__main__.py", "uldp my-name"),
    ],
)
def test_a_program_is_named_as_it_was_called(called: str, prog: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    assert parser().prog == prog
    assert cli.Parser(prog="x").prog == "x"


# ---------------------------------------------------------------------- errors and exit codes


def raising(error: BaseException) -> Callable[[Any], int]:
    def call(_: Any) -> int:
        raise error

    return call


FULL = OSError(errno.ENOSPC, "No space left on device")
AROUND = RuntimeError("of the engine")
AROUND.__cause__ = RuntimeError("OSError: [Errno 28] No space left on device")


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (SpecError("JobSpec.min_reports\n must  be 1"), 2, "--min_reports must be 1"),
        (SpecError("CalendarWindows.size must be 1"), 2, "--window must be 1"),
        (OSError(errno.ENOENT, "No such file or directory", "x"), 2, "x: No such file or directory"),
        (OSError(errno.EIO, "Input/output error"), 2, "[Errno 5] Input/output error"),
        (FULL, 6, "a disk is full: [Errno 28] No space left on device"),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "x"), 6, "x: Disk quota exceeded"),
    ],
)
def test_an_error_of_the_configuration_is_one_line(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run("name", raising(error), int, []) == code
    assert capsys.readouterr() == ("", f"name: {said}\n")


def test_an_error_of_the_job_is_one_line_if_it_is_one_of_its_faults(capsys: pytest.CaptureFixture[str]) -> None:
    error = SpecError("no")
    assert cli.run("name", list, raising(error), ["a"], (SpecError,)) == 2
    assert capsys.readouterr().err == "name: no\n"
    with pytest.raises(SpecError, match=r"^no$"):
        cli.run("name", list, raising(error), ["a"], (OSError,))
    with pytest.raises(KeyError):
        cli.run("name", raising(KeyError()), int, [])


def test_a_job_has_the_exit_code_that_it_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli.run("name", len, lambda number: number + 40, ["a", "b"]) == 42
    monkeypatch.setattr(sys, "argv", ["uldp", "a"])
    assert cli.run("name", list, lambda words: words == ["a"], None) is True


@pytest.mark.parametrize(
    ("error", "full"),
    [(FULL, True), (AROUND, True), (RuntimeError("database or disk is full"), True), (OSError(5, "x"), False)],
)
def test_a_full_disk_is_found_behind_other_errors(error: Exception, full: bool) -> None:
    assert cli.is_full(error) is full
    assert cli.is_full(None) is False


def test_files_of_an_option(tmp_path: Path) -> None:
    for name in ("b.json", "a.json"):
        (tmp_path / name).touch()
    both = [f"{tmp_path}/a.json", f"{tmp_path}/b.json"]
    assert cli.matching("--x", ["nowhere.json", f"{tmp_path}/*.json", f"{tmp_path}/?.json"]) == [
        "nowhere.json",
        *both,
        *both,
    ]
    with pytest.raises(SpecError, match=r"^--x must match at least one file, got '"):
        cli.matching("--x", [f"{tmp_path}/?"])


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("JobSpec.liars", "--liars"),
        ("JobSpec.window", "--window"),
        ("Windows.offset", "--window_offset"),
        ("estimator.id", "--estimator"),
        ("JobSpec.run", "JobSpec.run"),
        ("JobSpec.collections", "--collection"),
        ("other", "other"),
    ],
)
def test_a_field_is_called_by_its_option(name: str, option: str) -> None:
    assert option_of(name) == option
