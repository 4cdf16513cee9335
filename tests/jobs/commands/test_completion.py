"""Completion in real shells: what they offer is what the programs take, and no program is started."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.completion.completion_command import _options_of, _words_of, programs
from uldp_transforms.jobs.completion.shell_scripts import SCRIPTS, Option, Program

THERE = {
    name: what
    for name, what in uldp.PROGRAMS.items()
    if name not in uldp.COMPANIONS or name in uldp.programs_of_others()
}
"""Programs of this package and of installed companions."""

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
    assert bash_offers(script, "uldp", "") == list(THERE)
    assert bash_offers(script, "uldp", "comp") == ["compare", "compact", "completion"]
    assert bash_offers(script, "uldp", "plan", "--mis") == ["--missing", "--missing_texts"]
    assert bash_offers(script, "uldp", "plan", "--missing", "") == ["refuse", "skip", "keep"]
    assert bash_offers(script, "uldp", "completion", "z") == ["zsh"]
    assert bash_offers(script, "uldp", "describe", "C") == []  # files, by bash itself
    assert bash_offers(script, "uldp", "unknown", "--x") == []


def test_bash_offers_the_options_that_each_help_shows(tmp_path, capsys):
    script = written("bash", tmp_path)
    for name in THERE:
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

    assert sorted(offers("uldp ")) == sorted(THERE)
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


# ---------------------------------------------------------------------- the same without a shell


def test_options_are_those_of_a_parser_in_the_order_of_its_help():
    """Old names and letters are not offered; flags take no value; switches may; a description is its first clause."""
    parser = cli.Parser("example")
    parser.add_argument("path", nargs="*")
    parser.add_argument("shell", choices=("zsh", "bash"))
    parser.add_argument("-f", "--first", "--also", help="what it\n  is; and more")
    parser.add_argument("-x", help="a letter")
    parser.add_argument("--flag", action="store_true", help="100 %% sure")
    parser.add_argument("--switch", **cli.SWITCH, help="on; off")
    parser.add_argument("--kind", choices=(2, 1))
    parser.add_argument("--listed", type=cli.Listed(["b", "a"]), help="ids")
    parser.add_argument("--former", **cli.old_name("--first"))
    assert list(_options_of(parser)) == [
        Option("--help", "show this help message and exit", (), False),
        Option("--first", "what it is", (), True),
        Option("--also", "what it is", (), True),
        Option("--flag", "100 % sure", (), False),
        Option("--switch", "on", ("true", "false"), True),
        Option("--kind", "", ("2", "1"), True),
        Option("--listed", "ids: a, b", ("a", "b"), True),
    ]
    assert list(_words_of(parser)) == ["zsh", "bash"]


def test_all_programs_are_in_the_script():
    found = list(programs())
    assert {one.name: one.what for one in found} == THERE
    assert {one.name for one in found if not one.options} == set(uldp.LABORATORY)
    assert [(one.name, one.words) for one in found if one.words] == [("completion", ("bash", "zsh", "fish"))]


EXAMPLES = [
    Program(
        "plan",
        "plans: it's new",
        (
            Option("--kind", "which [a]: c:\\d's", ("x", "y"), True),
            Option("--file", "path", (), True),
            Option("--open", "all texts", (), False),
        ),
        (),
    ),
    Program("completion", "prints a script", (), ("bash", "zsh")),
]
"""A program with each kind of option, and one with words."""

BASH = """\
# bash completion of uldp; printed by: uldp completion bash
_uldp() {
    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" options="" values=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "plan completion" -- "$word"))
        return
    fi
    case "${COMP_WORDS[1]}" in
        plan) options="--kind --file --open" ;;
        completion) options="" ;;
    esac
    case "${COMP_WORDS[1]} $before" in
        "plan --kind") values="x y" ;;
        "completion completion") values="bash zsh" ;;
    esac
    case "$word" in
        -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
        *) [ -z "$values" ] || COMPREPLY=($(compgen -W "$values" -- "$word")) ;;
    esac
}
complete -o default -F _uldp uldp
"""
ZSH_SCRIPT = """\
#compdef uldp
# zsh completion of uldp; printed by: uldp completion zsh
_uldp() {
    local -a programs
    programs=(
        'plan:plans: it'\\''s new'
        'completion:prints a script'
    )
    if (( CURRENT == 2 )); then
        _describe program programs
        return
    fi
    local program="${words[2]}"
    words=("uldp ${words[2]}" ${words[3,-1]})
    (( CURRENT -= 1 ))
    case "$program" in
        plan) _arguments -S \\
            '*--kind[which \\[a\\]\\: c\\:\\\\d'\\''s]:value:(x y)' \\
            '*--file[path]:value:_files' \\
            '*--open[all texts]' \\
            '*:argument:_files' ;;
        completion) _arguments -S \\
            '*:argument:(bash zsh)' ;;
    esac
}
if [ "$funcstack[1]" = "_uldp" ]; then
    _uldp "$@"
else
    compdef _uldp uldp
fi
"""
FISH = """\
# fish completion of uldp; printed by: uldp completion fish
complete -c uldp -f -n __fish_use_subcommand -a plan -d 'plans: it'\\''s new'
complete -c uldp -f -n __fish_use_subcommand -a completion -d 'prints a script'
complete -c uldp -n "__fish_seen_subcommand_from plan" -l kind -x -a 'x y' -d 'which [a]: c:\\d'\\''s'
complete -c uldp -n "__fish_seen_subcommand_from plan" -l file -r -d 'path'
complete -c uldp -n "__fish_seen_subcommand_from plan" -l open -d 'all texts'
complete -c uldp -f -n "__fish_seen_subcommand_from completion" -a 'bash zsh'
"""


@pytest.mark.parametrize(("shell", "script"), [("bash", BASH), ("zsh", ZSH_SCRIPT), ("fish", FISH)])
def test_a_script_is_the_one_that_was_tried_in_its_shell(shell: str, script: str):
    """The text of each line, for machines without the shell: change it together with the tests above."""
    assert SCRIPTS[shell](EXAMPLES) == script
