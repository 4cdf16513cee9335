"""Prints a script that completes programs, options and their values in a shell.

The shell reads the script once and never starts Python to complete a word. Print the script again after an update.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence

from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.completion.shell_scripts import SCRIPTS, Option, Program


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Options of a script: the shell that reads it."""

    shell: str


def configure(argv: Sequence[str]) -> Wanted:
    """Parse the command line; raises SpecError."""
    parser = cli.Parser("completion", description=__doc__)
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="shell that reads the script")
    return Wanted(parser.parse_args(argv).shell)


def job(wanted: Wanted) -> int:
    """Print the script."""
    print(SCRIPTS[wanted.shell](list(programs())), end="")
    return cli.DONE


def programs() -> Iterator[Program]:
    """All installed programs, with their options in the order of their help."""
    absent = uldp.COMPANIONS.keys() - uldp.programs_of_others().keys()
    for name, what in uldp.PROGRAMS.items():
        if name in absent:
            continue
        if name in uldp.LABORATORY:
            yield Program(name, what, (), ())
            continue
        shown = cli.parser_of(uldp.main_of(name))
        yield Program(name, what, tuple(_options_of(shown)), tuple(_words_of(shown)))


def _options_of(parser: cli.Parser) -> Iterator[Option]:
    for action in parser.actions():
        if action.help is not argparse.SUPPRESS:
            for name in (name for name in action.option_strings if name.startswith("--")):
                yield Option(name, _first_clause(parser, action), _values(action), action.nargs != 0)


def _words_of(parser: cli.Parser) -> Iterator[str]:
    """Values of arguments without a name."""
    for action in parser.actions():
        if not action.option_strings:
            yield from _values(action)


def _first_clause(parser: cli.Parser, action: argparse.Action) -> str:
    """The help of an option up to its first semicolon, in one line."""
    return " ".join(parser.help_of(action).partition(";")[0].split())


def _values(action: argparse.Action) -> tuple[str, ...]:
    """The values that an option lists; none if it takes files or free texts."""
    if action.choices is not None:
        return tuple(map(str, action.choices))
    if isinstance(action.type, cli.Listed):
        return tuple(sorted(action.type.values))
    return ("true", "false") if action.metavar == cli.SWITCH["metavar"] else ()


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("completion", configure, job, argv)
