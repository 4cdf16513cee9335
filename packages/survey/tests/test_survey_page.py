"""The commands of the page on survey answers print what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from uldp_transforms.jobs import uldp

PAGE = (Path(__file__).parents[3] / "docs" / "survey.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```csv\n(.*?)```.*?```sh\n(.*?)\n```.*?```\n(.*?)```", PAGE, flags=re.DOTALL)


def test_every_command_of_the_page_is_run():
    assert len(EXAMPLES) == PAGE.count("```sh") == PAGE.count("```csv") == 3


@pytest.mark.parametrize(("table", "command", "printed"), EXAMPLES)
def test_the_page_prints_what_it_says(table, command, printed, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name, *words = shlex.split(command)
    Path(words[1]).write_text(table, encoding="utf-8")
    assert (name, uldp.main(words)) == ("uldp", 0)
    assert capsys.readouterr().out == printed
