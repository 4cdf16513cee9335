"""Comparisons of stored counts by groups and by windows: the command ``compare``, a process of its own for each."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from labs.benchmarks.stored_windows import HOUR, closed, counted, run, write_counts
from uldp_transforms.rows.row_identity import fields_of_group
from uldp_transforms.rows.row_types import WindowCounts

_PEOPLE = 1_000


def groups(folder: Path, number: int, values: int) -> list[str]:
    """Store counts of groups; returns the options that compare all with the first one."""
    of = closed(values, [f"g{at}" for at in range(number)])
    rng, total, rows = np.random.default_rng(1), np.zeros(values, dtype=np.int64), list[WindowCounts]()
    for group in of.dimensions[0].values:
        row = counted(of, 0, _PEOPLE, rng)
        total += row.cells
        rows.append(row._replace(**fields_of_group([("g", group)], has_groups=True)))
    everybody = rows[0]._replace(num_reports=[int(total.sum())], cells=total.tolist())
    rows.append(everybody._replace(**fields_of_group([], has_groups=True)))
    return [*write_counts(folder, of, rows), "--by=g", "--against=g=g0"]


def windows(folder: Path, number: int, values: int) -> list[str]:
    """Store counts of hours; returns the options that compare each with the one before."""
    of, rng = closed(values), np.random.default_rng(1)
    return [*write_counts(folder, of, [counted(of, at * HOUR, _PEOPLE, rng) for at in range(number)]), "--windows"]


def main() -> None:
    print(f"comparisons of {_PEOPLE:,} people each (krr, epsilon 2; the command compare)")
    for what, store, number, values in (
        ("groups with the first one", groups, 200, 64),
        ("groups with the first one", groups, 1_000, 64),
        ("windows with the ones before", windows, 200, 200),
        ("windows with the ones before", windows, 8_759, 200),
    ):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            seconds, memory = run(["compare", *store(folder, number, values)])
            rows = sum(1 for _ in (folder / "comparisons.jsonl").open("rb"))
        print(
            f"  {number:,} {what}, {values} values: {seconds:.1f} s, {1e6 * seconds / rows:.0f} us a row, "
            f"{memory:.0f} MiB",
            flush=True,
        )
