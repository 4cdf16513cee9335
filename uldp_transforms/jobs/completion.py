"""Prints a script that completes programs, options and their values in a shell.

The shell reads the script once and never starts Python to complete a word: bash from
``~/.local/share/bash-completion/completions/uldp``, zsh from ``_uldp`` in a folder of ``fpath``, fish from
``~/.config/fish/completions/uldp.fish``. Make the folder first. Print the script again after an update.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import re
from collections.abc import Sequence

import shtab

from uldp_transforms.jobs import cli, uldp

_USAGE = re.compile(r"^# Usage:\n(#.*\n)+", re.MULTILINE)
"""What the library says of its scripts in general: the help of this program has the place of this one."""

SHELLS = ("bash", "zsh", "fish")
"""Shells in which the scripts are tested; the library knows more."""


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Options of a script: the shell that reads it."""

    shell: str


def configure(argv: Sequence[str]) -> Wanted:
    """Parse the command line; raises SpecError."""
    parser = cli.Parser("completion", description=__doc__)
    parser.add_argument("shell", choices=SHELLS, help="shell that reads the script")
    return Wanted(parser.parse_args(argv).shell)


def job(wanted: Wanted) -> int:
    """Print the script."""
    print(script_of(everything(), wanted.shell))
    return cli.DONE


def script_of(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script of a shell for a parser and its commands."""
    script = _USAGE.sub("", shtab.complete(parser, shell))
    return script.replace('"(*):', '"*:')  # zsh would complete the first of several files only


def everything() -> argparse.ArgumentParser:
    """One parser that has all programs which can be started here as its commands."""
    root = argparse.ArgumentParser("uldp", add_help=False)
    commands = root.add_subparsers()
    for name, what in programs().items():
        add_options(commands.add_parser(name, help=what, add_help=False), parser_of(name))
    return root


def programs() -> dict[str, str]:
    """The programs that can be started here, and what they do."""
    found = {}
    for name, what in uldp.described().items():
        with contextlib.suppress(uldp.Unavailable):
            uldp.main_of(name)
            found[name] = what
    return found


def parser_of(name: str) -> cli.Parser:
    """The parser of a program; one without options if a companion's program has none of this kind, or fails."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            return cli.parser_of(lambda words: uldp.main([name, *words]))
        except Exception:
            if name in uldp.PROGRAMS:
                raise
            return cli.Parser(add_help=False)


def add_options(command: argparse.ArgumentParser, parser: cli.Parser) -> None:
    """Add what the help of a program shows: options may be repeated, and take their values, or the names of files."""
    for action in parser.actions():
        names = [name for name in action.option_strings if name.startswith("--")]
        if action.help is argparse.SUPPRESS or (action.option_strings and not names):
            continue
        what = _first_clause(parser, action)
        if action.nargs == 0 or isinstance(action, argparse._HelpAction):
            command.add_argument(*names, action="append_const", const=True, help=what)
            continue
        values, several = _values(action), None if names or action.nargs not in ("*", "+") else "+"
        added = command.add_argument(
            *(names or [action.dest]), action="append", nargs=several, choices=values or None, help=what
        )
        if not values:
            added.complete = shtab.FILE  # type: ignore[attr-defined]  # where the library looks for it


def _first_clause(parser: cli.Parser, action: argparse.Action) -> str:
    """The help of an option up to its first semicolon, in one line, as argparse reads it."""
    return " ".join(parser.help_of(action).partition(";")[0].split()).replace("%", "%%")


def _values(action: argparse.Action) -> tuple[str, ...]:
    """The values that an option lists; none if it takes files or free texts."""
    if action.choices is not None:
        return tuple(map(str, action.choices))
    if isinstance(action.type, cli.Listed):
        return tuple(sorted(action.type.values))
    return ("true", "false") if action.metavar == cli.SWITCH["metavar"] else ()


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("completion", configure, job, argv)


if __name__ == "__main__":
    uldp.run_program("completion")
