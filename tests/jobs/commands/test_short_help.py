"""``--help`` of programs with many options: what most people need, and ``--help all`` for everything."""

from __future__ import annotations

import re

import pytest

from tests.support.option_meanings import MOST_WITHOUT_SHORT_HELP
from tests.support.programs_of_core import parsers
from uldp_transforms.jobs import uldp

MOST_SHOWN = 20
LINE = re.compile(r"^  (--[a-z][a-z0-9_]*)", re.MULTILINE)


def help_of(program: str, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        uldp.main([program, "--help", *words])
    said = capsys.readouterr()
    assert (ended.value.code, said.err) == (0, "")
    return said.out


def test_programs_with_many_options_have_a_short_help(capsys: pytest.CaptureFixture[str]) -> None:
    long = {}
    for program, parser in parsers().items():
        options = {one.option_strings[-1] for one in parser.actions() if one.option_strings} - {"--help"}
        assert parser.has_short_help == (len(options) > MOST_WITHOUT_SHORT_HELP), program
        if parser.has_short_help:
            long[program] = options
    assert long.keys() == {"estimate"}
    for program, options in long.items():
        short, everything = help_of(program, capsys), help_of(program, capsys, "all")
        assert 15 <= len(LINE.findall(short)) <= MOST_SHOWN
        assert set(LINE.findall(short)) < options
        assert options <= set(re.findall(r"--[a-z][a-z0-9_]*", everything))
        assert short.splitlines()[-1].endswith(f"{program} --help all shows all options.")
        assert "--help all" not in everything


def test_a_short_help_keeps_groups_and_required_options(capsys: pytest.CaptureFixture[str]) -> None:
    short = help_of("estimate", capsys)
    for title in ("source of the reports", "destination of the rows", "windows and counting", "estimates:"):
        assert title in short
    required = {one.option_strings[-1] for one in parsers()["estimate"].actions() if one.required}
    assert required <= set(LINE.findall(short))


@pytest.mark.parametrize("program", parsers())
def test_usage_has_what_must_be_given(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    usage = " ".join(help_of(program, capsys).partition("\n\n")[0].split())
    must = re.fullmatch(rf"usage: .*\b{program.replace('-', '[-_]')} \[options\](.*)", usage)
    assert must is not None, usage
    given = {one.option_strings[-1] for one in parsers()[program].actions() if one.required and one.option_strings}
    assert set(re.findall(r"--\w+", must[1])) == given


def test_other_programs_show_everything_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert help_of("check", capsys) == help_of("check", capsys, "all")
    assert "--max_age" in help_of("check", capsys)
