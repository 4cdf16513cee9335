"""``uldp plan --help``: what most people need, and ``--help all`` for everything."""

from __future__ import annotations

import re

import pytest

from uldp_transforms.jobs import cli, uldp

LINE = re.compile(r"^  (--[a-z][a-z0-9_]*)", re.MULTILINE)


def help_of_plan(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as ended:
        uldp.main(["plan", "--help", *words])
    said = capsys.readouterr()
    assert (ended.value.code, said.err) == (0, "")
    return said.out


def test_the_help_shows_twenty_options_at_most_and_all_that_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    named = [one for one in cli.parser_of(uldp.main_of("plan")).actions() if one.option_strings]
    options = {one.option_strings[-1] for one in named} - {"--help"}
    short, everything = help_of_plan(capsys), help_of_plan(capsys, "all")
    shown = set(LINE.findall(short))
    assert 15 <= len(shown) <= 20 and shown < options
    assert {one.option_strings[-1] for one in named if one.required} <= shown
    assert options <= set(re.findall(r"--[a-z][a-z0-9_]*", everything))
    assert short.splitlines()[-1].endswith("plan --help all shows all options.")
    assert "--help all" not in everything
