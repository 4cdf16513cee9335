"""The options of the directory of rows, for every engine."""

from __future__ import annotations

import argparse

from uldp_transforms.jobs import cli
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.spec.row_forecast import MANY_AT_ONCE
from uldp_transforms.windows import duration_text

FLUSH_EVERY = 60_000
"""Default milliseconds for which rows are collected before they are written."""

MOST_FLUSH_EVERY = 600_000
"""Maximum of these milliseconds; ``uldp check`` allows the ledger of a running stream this time to balance."""

OPTIONS: cli.Options = {
    "--output": {"required": True, cli.IS_COMMON: True, "help": "where to write the rows: a directory"},
    "--write_counts": cli.SWITCH
    | {
        "label": "Counts of each window",
        cli.IS_COMMON: True,
        "help": "also write the counts of each window, for uldp reestimate",
    },
    "--write_json": cli.SWITCH
    | {
        "default": None,
        "label": "JSON lines",
        "help": "write estimates as JSON lines too, not only as Avro (default: true, but false for files if each "
        f"window can have {MANY_AT_ONCE:,} values or more)",
    },
    "--write_parquet": cli.SWITCH
    | {
        "default": None,
        "label": "Parquet files",
        cli.IS_COMMON: True,
        "help": "also write Parquet files: the rows, and one row per value (default: true if no JSON lines are "
        "written, else false)",
    },
    "--flush_every": {
        "label": "Time between files",
        "type": cli.duration("--flush_every"),
        "help": "streams: time for which rows are collected before they are "
        "written as one file; 0s: one file per bundle "
        f"(default: {FLUSH_EVERY // 1000}s)",
    },
}


def flush_every(args: argparse.Namespace) -> int:
    """Milliseconds over which rows are collected, from a command line; raises SpecError if out of range."""
    milliseconds = FLUSH_EVERY if args.flush_every is None else int(args.flush_every)
    if milliseconds > MOST_FLUSH_EVERY:
        raise SpecError(
            f"--flush_every must be at most {duration_text(MOST_FLUSH_EVERY)}, got {duration_text(milliseconds)}"
        )
    return milliseconds
