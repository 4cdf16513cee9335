"""The options that describe a file of people's values: the same names in all commands that read one."""

from __future__ import annotations

import argparse
import sys

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.files.values_file import MISSING, REFUSE, ValuesFile
from uldp_transforms.ldp.errors import SpecError

VALUE_COLUMN = "value"

PEOPLE: cli.Options = {
    "--value_column": {"help": f"name of the column of values (default: {VALUE_COLUMN})"},
    "--time_column": {"help": "name of the column of times (default: event_time, if there is one)"},
    "--time_format": {
        "help": "format of times that are texts, such as %%d.%%m.%%Y %%H:%%M (default: RFC 3339, or seconds since 1970)"
    },
    "--timezone": {"help": "time zone of times without an offset from UTC, such as Europe/Berlin"},
    "--missing": {
        "choices": MISSING,
        "help": f"what to do with missing cells, which are counted: {REFUSE} the file, skip their rows, or keep them "
        f"as the empty text (default: {REFUSE})",
    },
}
"""Commands that need no times check them all the same, so that a file that one of them accepts is accepted by all."""


def add_people_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup, *old_names: str) -> None:
    """Add the options, and deprecated names of ``--value_column``."""
    cli.add_options(parser, PEOPLE)
    for name in old_names:
        parser.add_argument(name, **cli.old_name("--value_column"))


def people_in(path: str, args: argparse.Namespace, column: str | None = None) -> ValuesFile:
    """The file that a command line describes; raises SpecError, OSError.

    Args:
        column: another column than that of values, without missing cells; None: that of values.
    """
    missing = (args.missing or REFUSE) if column is None else None
    name = column or args.value_column or VALUE_COLUMN
    return ValuesFile(path, name, args.time_column, args.timezone, time_format=args.time_format, missing=missing)


def refuse_people_options(args: argparse.Namespace, needed: str) -> None:
    """Refuse these options without the option ``needed`` that names the file; raises SpecError."""
    for name in PEOPLE:
        value = getattr(args, name.removeprefix("--"))
        if value is not None:
            raise SpecError(f"{name} can be given only with {needed}, got {value}")


def say_missing(program: str, file: ValuesFile) -> None:
    """Print how many cells were missing, and what became of them, after the file was read."""
    sentence = file.missing_sentence()
    if sentence is not None:
        print(f"{program}: {sentence}", file=sys.stderr)
