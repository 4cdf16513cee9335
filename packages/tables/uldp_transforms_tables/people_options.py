"""The options that describe a file of people's values: the same names in all commands that read one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping

from uldp_transforms.jobs import cli
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_tables.cell_texts import MISSING_TEXTS
from uldp_transforms_tables.time_forms import UNITS
from uldp_transforms_tables.values_file import MISSING, REFUSE, ValuesFile

VALUE_COLUMN = "value"


def _texts(given: str) -> list[str]:
    """An argparse type: texts with commas between them, in small letters."""
    return [text.strip().lower() for text in given.split(",") if text.strip()]


TABLE = "CSV (commas, semicolons or tabs), JSON lines or Parquet, compressed or not, or a directory of such files"
"""Kinds of tables, for help texts."""

TIMES: cli.Options = {
    "--time_format": {
        "help": "format of times that are texts, such as %%d.%%m.%%Y %%H:%%M, or unit of times that are numbers: "
        f"{', '.join(UNITS)} (default: RFC 3339, or seconds since 1970 from 1990 to 2099)"
    },
    "--timezone": {"help": "time zone such as Europe/Berlin, of times without an offset from UTC"},
}

PEOPLE: cli.Options = {
    "--value_column": {"help": f"name of the column of values (default: {VALUE_COLUMN})"},
    "--time_column": {"help": "name of the column of times (default: event_time, if there is one)"},
    **TIMES,
    "--missing": {
        "choices": MISSING,
        "help": f"what to do with missing cells of the columns that are read, which are counted: {REFUSE} the file, "
        f"skip their rows, or keep them as the empty text (default: {REFUSE})",
    },
    "--missing_texts": {
        "type": _texts,
        "metavar": "TEXT,...",
        "help": "texts that mean a missing cell, in any case, unless the collection lists them; an empty text: none "
        f"(default: {','.join(MISSING_TEXTS)})",
    },
}
"""Commands that need no times check them all the same, so that a file that one of them accepts is accepted by all."""


def people_in(
    path: str,
    args: argparse.Namespace,
    others: Mapping[str, str] | None = None,
    listed: Mapping[str, Collection[str]] | None = None,
) -> ValuesFile:
    """The file that a command line describes; raises SpecError, OSError.

    Args:
        path: of the file.
        args: the parsed options.
        others, listed: further columns, and the texts that are values of columns; see ``ValuesFile``. The key "" of
            ``listed`` is the column of values.
    """
    name = args.value_column or VALUE_COLUMN
    return ValuesFile(
        path,
        name,
        args.time_column,
        args.timezone,
        time_format=args.time_format,
        missing=args.missing or REFUSE,
        others=others,
        listed={column or name: texts for column, texts in (listed or {}).items()},
        marks=args.missing_texts,
    )


def refuse_people_options(args: argparse.Namespace, needed: str) -> None:
    """Refuse these options without the option ``needed`` that names the file; raises SpecError."""
    for name in PEOPLE:
        value = getattr(args, name.removeprefix("--"))
        if value is not None:
            got = ",".join(value) if isinstance(value, list) else value
            raise SpecError(f"{name} can be given only with {needed}, got {got}")


def say_missing(program: str, file: ValuesFile, but: Collection[str] = ()) -> None:
    """Print how many cells of each column were missing, and what became of them, after the file was read.

    Args:
        program: its name.
        file: the file.
        but: columns of which nothing is said.
    """
    for sentence in file.missing_sentences(but):
        print(f"{program}: {sentence}", file=sys.stderr)
