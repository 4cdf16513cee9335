"""The command line of ``make live``."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
from collections.abc import Sequence

from labs.live import __doc__ as description
from uldp_transforms.jobs import cli
from uldp_transforms.ldp.errors import SpecError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Live:
    """Parsed options of a command line."""

    people: float
    window: str
    early_every: str
    output: str
    port: int
    results_port: int


def configure(argv: Sequence[str]) -> Live:
    """Parse the command line; raises SpecError."""
    parser = cli.Parser("live", description=description)
    parser.add_argument(
        "--people", type=_rate, default=40.0, help="number of simulated answers per second; 0 means none"
    )
    parser.add_argument("--window", type=cli.window_length("--window"), default="20s", help="length of a window")
    parser.add_argument(
        "--early_every",
        type=cli.window_length("--early_every"),
        default="5s",
        help="time between early estimates of an unfinished window",
    )
    parser.add_argument("--output", help="directory for the rows (default: a new one in live-output)")
    parser.add_argument("--port", type=int, default=8000, help="port of the survey page; 0 means any free port")
    parser.add_argument(
        "--results_port", type=int, default=8001, help="port of the results page; 0 means any free port"
    )
    args = parser.parse_args(argv)
    for option in ("port", "results_port"):
        if not 0 <= getattr(args, option) < 1 << 16:
            raise SpecError(f"--{option} must be a number from 0 to 65535, got {getattr(args, option)}")
    args.output = args.output or _new_directory()
    return Live(**vars(args))


def _new_directory() -> str:
    """A new directory for each start; otherwise the first windows would be ``partial``, shared with the last start."""
    return f"live-output/{datetime.datetime.now(datetime.timezone.utc):%Y%m%dT%H%M%SZ}"


def _rate(text: str) -> float:
    """An argparse type: people per second."""
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 <= rate <= 1_000:
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1000, got {text!r}")
    return rate
