"""Completion in real shells: what they offer is what the programs take, and no program is started."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.completion.completion_command import programs
from uldp_transforms.jobs.completion.shell_scripts import SCRIPTS

ZSH = """
zmodload zsh/zpty
zpty shell $4 -f -i
zpty -w shell 'PROMPT=; autoload -Uz compinit; compinit -u -D; source '$1'; echo rea""dy'
zpty -r -m shell printed '*ready*'
zpty -w -n shell "$2"$'\\t'
zpty -r -m shell printed "*$3*" && print -r -- "$printed"
"""
"""A line that is typed in an interactive shell, and Tab; ends when the expected text is on the screen."""


@functools.cache
def script_of(shell: str) -> str:
    return SCRIPTS[shell](list(programs()))


def written(shell: str, folder: Path) -> Path:
    """The script of a shell as a file; skips the test without this shell."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = folder / f"uldp.{shell}"
    path.write_text(script_of(shell))
    return path


def in_shell(*command: str, folder: Path) -> str:
    """What a shell prints that cannot start any program."""
    paths = {"PATH": "/nonexistent", "HOME": str(folder), "TERM": "dumb", "LC_ALL": "C.UTF-8"}
    shell = shutil.which(command[0])
    assert shell is not None
    done = subprocess.run(
        [shell, *command[1:]], env=paths, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def bash_offers(script: Path, *words: str) -> list[str]:
    typed = " ".join(f"'{word}'" for word in words)
    asking = (
        f"source {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; _uldp; printf '%s\\n' ${{COMPREPLY[@]}}"
    )
    return in_shell("bash", "--norc", "-c", asking, folder=script.parent).split()


def test_bash_offers_programs_options_and_values(tmp_path):
    script = written("bash", tmp_path)
    assert bash_offers(script, "uldp", "") == list(uldp.PROGRAMS)
    assert bash_offers(script, "uldp", "comp") == ["compare", "compact", "completion"]
    assert bash_offers(script, "uldp", "plan", "--mis") == ["--missing"]
    assert bash_offers(script, "uldp", "plan", "--missing", "") == ["refuse", "skip", "keep"]
    assert bash_offers(script, "uldp", "completion", "z") == ["zsh"]
    assert bash_offers(script, "uldp", "describe", "C") == []  # files, by bash itself
    assert bash_offers(script, "uldp", "unknown", "--x") == []


def test_bash_offers_the_options_that_each_help_shows(tmp_path, capsys):
    script = written("bash", tmp_path)
    for name in uldp.PROGRAMS:
        if name in uldp.LABORATORY:
            continue
        with pytest.raises(SystemExit):
            uldp.main([name, "--help"])
        shown = [line[2:].partition("  ")[0] for line in capsys.readouterr().out.splitlines() if line[:3] == "  -"]
        expected = sorted(option for line in shown for option in re.findall(r"--[a-z_0-9]+", line))
        assert sorted(bash_offers(script, "uldp", name, "--")) == expected


def typed_in_zsh(script: Path, typed: str, expected: str) -> str:
    given = ("zsh", str(script), typed, expected, str(shutil.which("zsh")))
    return in_shell("zsh", "-f", "-c", ZSH, *given, folder=script.parent)


def test_zsh_completes_what_is_typed(tmp_path):
    script = written("zsh", tmp_path)
    for typed, completed in (
        ("uldp pla", "plan "),
        ("uldp plan --mis", "--missing "),
        ("uldp plan --missing s", "skip "),
        ("uldp completion f", "fish "),
    ):
        assert completed in typed_in_zsh(script, typed, completed)


def test_fish_completes_what_is_typed(tmp_path):
    script = written("fish", tmp_path)

    def offers(line: str) -> list[str]:
        asking = f"source {script}; complete -C '{line}'"
        printed = in_shell("fish", "-N", "-c", asking, folder=script.parent)
        return [one.partition("\t")[0] for one in printed.splitlines()]

    assert sorted(offers("uldp ")) == sorted(uldp.PROGRAMS)
    assert offers("uldp plan --mis") == ["--missing"]
    assert sorted(offers("uldp plan --missing ")) == ["keep", "refuse", "skip"]
    assert sorted(offers("uldp completion ")) == ["bash", "fish", "zsh"]


def test_descriptions_cannot_leave_their_quotes():
    """A quote in a help text would end the text of a script and begin a command."""
    for shell, text in ((shell, script_of(shell)) for shell in ("zsh", "fish")):
        bare = re.sub(r"'[^']*'|\\'", "", text)
        assert "'" not in bare, shell
        assert "browser" not in bare, shell  # of a description with an apostrophe


def test_the_command_prints_a_script(capsys):
    assert uldp.main(["completion", "fish"]) == 0
    assert capsys.readouterr().out == script_of("fish")
    assert uldp.main(["completion", "tcsh"]) == 2
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err


def test_a_parser_is_asked_without_running_its_program(capsys):
    from uldp_transforms.jobs.plan import plan_command  # noqa: PLC0415  # an example

    assert cli.parser_of(plan_command.main).prog.endswith("plan")
    assert capsys.readouterr() == ("", "")
