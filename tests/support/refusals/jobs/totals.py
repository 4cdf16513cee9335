"""Refusals of ``uldp reestimate --window all``: calls and their sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.jobs.reestimated import FILES, MINUTE
from tests.support.jobs.stored_periods import GROUPED, ONE, of_group, store, stored
from tests.support.messages_cases import write_files
from tests.support.refusals.tables import Refusal
from uldp_transforms.jobs.reestimate import reestimate_command, whole_periods
from uldp_transforms.jobs.reestimate.added_windows import Overlap


def total(*words: str) -> reestimate_command.Reestimation:
    """The task of a command line."""
    return reestimate_command.configure([*words, "--window", "all"])


def overlapping() -> Any:
    write_files(Path(), FILES | {"one.json": ONE})
    store([stored(ONE, 0, [7, 2, 1]), stored(ONE, MINUTE, [7, 2, 1])])
    task = total("job", "--collection", "one.json")
    return list(whole_periods.periods(task.spec, task.jobs))


def without_counts() -> Any:
    write_files(Path(), FILES | {"one.json": ONE})
    Path("none").mkdir(exist_ok=True)
    return total("none", "--collection", "one.json")


def without_groups() -> None:
    write_files(Path(), {"grouped.json": GROUPED})
    store([of_group("", [60, 30, 10])])
    reestimate_command.job(total("job", "--collection", "grouped.json", "--by", "arm"))


REFUSED: list[Refusal] = [
    (
        Overlap,
        overlapping,
        "DIR must have windows that do not overlap, because reports would count twice, got overlapping windows of "
        "'one'",
    ),
    (
        without_groups,
        "--by needs counts of groups, which uldp estimate --write_counts --by arm stores, got none by these dimensions",
    ),
    (
        without_counts,
        "DIR must have stored counts (counts*.avro), which uldp estimate --write_counts writes, got none in 'none'",
    ),
    (lambda: total("."), "--collection must be given, because no run in . names a collection, got none"),
]
