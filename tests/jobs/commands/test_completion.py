"""Completion in real shells: what they offer is what the programs take, and no program is started."""

from __future__ import annotations

import argparse
import functools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import shtab

from tests.support.commands import programs
from tests.support.companions import companion
from uldp_transforms.jobs import cli, completion, uldp

ZSH = """
zmodload zsh/zpty
zpty shell $4 -f -i
zpty -w shell 'PROMPT=; fpath=('$1' $fpath); autoload -Uz compinit; compinit -u -D; echo rea""dy'
zpty -r -m shell printed '*ready*'
zpty -w -n shell "$2"$'\\t'
zpty -r -m shell printed "*$3*" && print -r -- "$printed"
"""
"""A line that is typed in an interactive shell, and Tab; ends when the expected text is on the screen."""


@functools.cache
def script_of(shell: str) -> str:
    return completion.script_of(completion.everything(), shell)


def written(shell: str, folder: Path) -> Path:
    """The script of a shell as a file; skips the test without this shell."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = folder / ("_uldp" if shell == "zsh" else f"uldp.{shell}")
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
    place = f"COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}"
    asking = f"source {script}; {place}; _shtab_uldp; printf '%s\\n' ${{COMPREPLY[@]}}"
    return in_shell("bash", "--norc", "-c", asking, folder=script.parent).split()


def test_bash_offers_programs_options_and_values(tmp_path):
    script = written("bash", tmp_path)
    assert bash_offers(script, "uldp", "") == programs()
    assert bash_offers(script, "uldp", "comp") == ["compare", "compact", "completion"]
    assert bash_offers(script, "uldp", "plan", "--mis") == ["--missing", "--missing_texts"]
    assert bash_offers(script, "uldp", "plan", "--missing", "") == ["refuse", "skip", "keep"]
    assert bash_offers(script, "uldp", "completion", "z") == ["zsh"]
    assert bash_offers(script, "uldp", "describe", "uldp.b") == ["uldp.bash"]
    assert bash_offers(script, "uldp", "sql", "C.json", "uldp.b") == ["uldp.bash"]
    assert bash_offers(script, "uldp", "plan", "--output", "uldp.b") == ["uldp.bash"]
    assert bash_offers(script, "uldp", "unknown", "--x") == []


def test_bash_offers_the_options_that_each_help_shows(tmp_path, capsys):
    script = written("bash", tmp_path)
    for name in programs():
        with pytest.raises(SystemExit):
            uldp.main([name, "--help", "all"])
        shown = [line[2:].partition("  ")[0] for line in capsys.readouterr().out.splitlines() if line[:3] == "  -"]
        expected = sorted(option for line in shown for option in re.findall(r"--[a-z_0-9]+", line))
        assert sorted(bash_offers(script, "uldp", name, "--")) == expected


def typed_in_zsh(script: Path, typed: str, expected: str) -> str:
    given = ("zsh", str(script.parent), typed, expected, str(shutil.which("zsh")))
    return in_shell("zsh", "-f", "-c", ZSH, *given, folder=script.parent)


def test_zsh_completes_what_is_typed(tmp_path):
    script = written("zsh", tmp_path)
    for typed, completed in (
        ("uldp pla", "plan "),
        ("uldp plan --missing_t", "--missing_texts "),
        ("uldp plan --missing s", "skip "),
        ("uldp completion f", "fish "),
        ("uldp estimate --collection C.json --collec", "--collection "),
        ("uldp sql C.json _ul", "_uldp "),
    ):
        assert completed in typed_in_zsh(script, typed, completed)


def test_fish_completes_what_is_typed(tmp_path):
    script = written("fish", tmp_path)

    def offers(line: str) -> list[str]:
        asking = f"source {script}; complete -C '{line}'"
        printed = in_shell("fish", "-N", "-c", asking, folder=script.parent)
        return [one.partition("\t")[0] for one in printed.splitlines()]

    assert sorted(offers("uldp ")) == sorted(programs())
    assert offers("uldp plan --mis") == ["--missing", "--missing_texts"]
    assert sorted(offers("uldp plan --missing ")) == ["keep", "refuse", "skip"]
    assert sorted(offers("uldp completion ")) == ["bash", "fish", "zsh"]


def test_the_command_prints_a_script(capsys):
    assert uldp.main(["completion", "fish"]) == 0
    assert capsys.readouterr().out == script_of("fish") + "\n"
    assert uldp.main(["completion", "tcsh"]) == 2
    assert capsys.readouterr().err == "completion: shell must be one of bash, zsh, fish, got 'tcsh'\n"


def test_a_parser_is_asked_without_running_its_program(capsys):
    from uldp_transforms.jobs import describe  # noqa: PLC0415  # an example

    assert cli.parser_of(describe.main).prog.endswith("describe")
    assert capsys.readouterr() == ("", "")


# ---------------------------------------------------------------------- the same without a shell


def added(parser: cli.Parser) -> list[argparse.Action]:
    """What the script has of a program with this parser."""
    command = argparse.ArgumentParser(add_help=False)
    completion.add_options(command, parser)
    return command._actions


def test_options_are_those_of_a_parser_in_the_order_of_its_help():
    """Letters and hidden options are not offered; flags take no value, switches may; descriptions are first clauses."""
    parser = cli.Parser("example")
    parser.add_argument("paths", nargs="*")
    parser.add_argument("shell", choices=("zsh", "bash"))
    parser.add_argument("-f", "--first", "--also", help="what it\n  is; and more")
    parser.add_argument("-x", help="a letter")
    parser.add_argument("--flag", action="store_true", help="100 %% sure")
    parser.add_argument("--switch", **cli.SWITCH, help="on; off")
    parser.add_argument("--kind", choices=(2, 1))
    parser.add_argument("--listed", type=cli.Listed(["b", "a"]), help="ids")
    parser.add_argument("--hidden", help=argparse.SUPPRESS)
    files = shtab.FILE
    assert [
        (one.option_strings or one.dest, one.help, one.choices, one.nargs, getattr(one, "complete", None))
        for one in added(parser)
    ] == [
        (["--help"], "show this help message and exit", None, 0, None),
        ("paths", "", None, "+", files),
        ("shell", "", ("zsh", "bash"), None, None),
        (["--first", "--also"], "what it is", None, None, files),
        (["--flag"], "100 %% sure", None, 0, None),
        (["--switch"], "on", ("true", "false"), None, None),
        (["--kind"], "", ("2", "1"), None, None),
        (["--listed"], "ids: a, b", ("a", "b"), None, None),
    ]


def test_all_programs_are_in_the_script():
    """Each with options of its own."""
    (commands,) = completion.everything()._actions
    assert isinstance(commands, argparse._SubParsersAction)
    assert list(commands.choices) == programs()
    assert [name for name, command in commands.choices.items() if len(command._actions) < 2] == []
    described = uldp.PROGRAMS | uldp.LABORATORY
    assert completion.programs().items() >= {(name, described[name]) for name in programs()}


def test_zsh_may_repeat_options_and_completes_every_file():
    """As texts, for machines without the shell: change them together with the test above."""
    parser = cli.Parser("example")
    parser.add_argument("--kind", choices=("x", "y"), help="which [a]: it's $HOME `a`")
    parser.add_argument("--open", action="store_true", help="all texts")
    parser.add_argument("files", nargs="*", help="tables")
    root = argparse.ArgumentParser("uldp", add_help=False)
    completion.add_options(root.add_subparsers().add_parser("plan", help="plans", add_help=False), parser)
    options = completion.script_of(root, "zsh").partition("_shtab_uldp_plan_options=(\n")[2].partition("\n)\n")[0]
    assert [line.strip() for line in options.splitlines()] == [
        '"*--help[show this help message and exit]"',
        r'''"*--kind[which \[a\]\: it\'s \$HOME \`a\`]:kind:(x y)"''',
        '"*--open[all texts]"',
        '"*:tables:_files"',
    ]


# ---------------------------------------------------------------------- programs of companion packages

MORE = """
import argparse
from uldp_transforms.jobs import cli

def more(words):
    parser = cli.Parser("more")
    parser.add_argument("--depth", choices=("low", "high"))
    parser.parse_args(words)
    return 0

def other(words):
    argparse.ArgumentParser("other").parse_args(words)

def broken(words):
    raise RuntimeError("always")
"""


def test_programs_of_companion_packages_are_completed(tmp_path, monkeypatch, capsys):
    """With their options if their parser is one of ours; what cannot be asked is offered by its name alone."""
    names = ("more", "other", "broken")
    companion(tmp_path, monkeypatch, "\n".join(f"{name} = more_programs:{name}" for name in names), MORE)
    (commands,) = completion.everything()._actions
    assert isinstance(commands, argparse._SubParsersAction)
    (one,) = (action for action in commands.choices["more"]._actions if "--depth" in action.option_strings)
    assert one.choices == ("low", "high")
    assert commands.choices["other"]._actions == commands.choices["broken"]._actions == []
    assert {completion.programs()[name] for name in names} == {"of uldp-more"}
    assert capsys.readouterr() == ("", "")
    path = tmp_path / "uldp.bash"
    path.write_text(completion.script_of(completion.everything(), "bash"), encoding="utf-8")
    assert bash_offers(path, "uldp", "more", "--depth", "h") == ["high"]


def test_a_fault_of_an_own_program_is_shown(monkeypatch):
    monkeypatch.setattr(uldp, "main_of", lambda name: broken)
    with pytest.raises(RuntimeError, match="broken"):
        completion.parser_of("plan")


def broken(words: object) -> int:
    raise RuntimeError("broken")


def test_programs_of_a_checkout_are_offered_where_they_run(monkeypatch):
    """And those of companions where they are installed."""
    for name in ("labs", *(f"labs.{program.replace('-', '_')}" for program in uldp.LABORATORY)):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(uldp, "programs_of_others", dict)
    assert completion.programs().keys() == uldp.PROGRAMS.keys() - uldp.COMPANIONS.keys()
