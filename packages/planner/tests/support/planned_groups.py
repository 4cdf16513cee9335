"""Refusals of ``uldp plan`` with groups: calls and their sentences."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from tests.support.refusals.tables import Refusal
from uldp_transforms_planner.plan import plan_command as program

COMMAND = "--num_values 4 --epsilon 2 --reports 10000"


def write(path, rows):
    path.write_text("\n".join(["value,event_time,country,arm", *rows]) + "\n")
    return f"--values {path} --epsilon 2 --reports 100000 --dimensions"


def planned(arguments: str) -> None:
    """Reads a command line, with a file of people in place of TABLE, and plans."""
    with tempfile.TemporaryDirectory() as folder:
        people = [f"v{at % 2},2026-01-01T00:00:00Z,DE,{'ab'[at % 2]}" for at in range(9)]
        tables = {"TABLE": people, "NOBODY": [",2026-01-01T00:00:00Z,DE,a"]}
        for name, lines in tables.items():
            arguments = arguments.replace(name, write(Path(folder) / f"{name}.csv", lines))
        program.job(program.configure(arguments.split()))


SAID = [
    (f"{COMMAND} --groups 1", "--groups must be at least 2, got 1"),
    (f"{COMMAND} --groups 70000", "--groups times cohorts must be at most 65,536, got 70,000 groups"),
    (f"{COMMAND} --smallest_group 0.1", "--smallest_group can be given only with --groups, got 0.1"),
    *[
        (
            f"--num_values 60 --num_sensitive 5 --reports 1000 --epsilon {tiny}",
            f"--epsilon must be at least 0.000001, got {tiny}",
        )
        for tiny in ("1e-300", "1e-160")
    ],
    (f"{COMMAND} --liars 1", "--liars must be below 1, got 1"),
    (f"{COMMAND} --byte_cost -1", "--byte_cost must be at least 0, got -1"),
    (
        "--open --num_candidates 9 --epsilon 1 --reports 1000 --liars 0.1",
        "--liars can be given only without --open, got 0.1",
    ),
    (f"{COMMAND} --difference 0.1", "--difference can be given only with --groups or --dimensions, got 0.1"),
    (f"{COMMAND} --groups 4 --difference 1", "--difference must be between 0 and 1, got 1"),
    (
        f"{COMMAND} --groups 4 --smallest_group 0.6",
        "--smallest_group must be a share above 0, at most 0.5, got 0.6",
    ),
    (
        f"{COMMAND} --groups 20000",
        "--reports must give the smallest group at least 1 report, got 10,000 for all",
    ),
    (f"{COMMAND} --dimensions arm", "--dimensions can be given only with --values, got arm"),
    (
        "--open --num_candidates 9 --epsilon 1 --reports 1000000 --groups 40000",
        "--groups must be at most 32,768 with --open, got 40,000",
    ),
    ("TABLE arm --groups 4", "--groups can be given only without --dimensions, got 4"),
    ("TABLE arm,arm", "--dimensions must name each column once, such as country,arm, got arm,arm"),
    ("TABLE country", "--dimensions must be columns with at least 2 different groups, got 1"),
    ("NOBODY arm --missing skip", ".../NOBODY.csv must have at least 1 value, got none"),
]
REFUSED: list[Refusal] = [(functools.partial(planned, arguments), said) for arguments, said in SAID]
