"""How the programs of this folder begin and end: the engine is there, a folder is theirs, a fault is a sentence."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import apache_beam as beam

from tests.rigs.flink.cached import JARS, fetch


def try_out(run: Callable[[Path], str | None]) -> int:
    """Fetch Flink, name the versions, run, and print what comes of it.

    Args:
        run: gets a folder that is removed afterwards; raises RuntimeError for what is not as it must be.

    Returns:
        The exit code.
    """
    fetch()
    print(f"{JARS.folder.name}, Python's Beam {beam.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        try:
            said = run(Path(name))
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    if said is not None:
        print(said)
    return 0


def try_out_traffic(
    name: str, about: str | None, run: Callable[[Path, int, int], str | None], *, rate: int, seconds: int
) -> int:
    """The same for a program that sends reports while it runs.

    Args:
        name: of the program, below ``tests.rigs.flink``.
        about: its docstring.
        run: gets a folder, and the two options.
        rate: default of ``--rate``.
        seconds: default of ``--seconds``.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(prog=f"python -m tests.rigs.flink.{name}", description=about)
    parser.add_argument("--rate", type=int, default=rate, help="new reports a second")
    parser.add_argument("--seconds", type=int, default=seconds, help="for which reports are sent")
    args = parser.parse_args()
    return try_out(lambda folder: run(folder, args.rate, args.seconds))
