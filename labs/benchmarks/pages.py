"""Pages and rows of many windows with many values, and of ten years of days, from stored counts: a process of its own
for each program."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from labs.benchmarks.stored_windows import DAY, HOUR, closed, counted, run, write_counts

_PEOPLE = 20_000


def main() -> None:
    _pages(365, 1_000, HOUR, ["", "--smooth"])
    _pages(3_653, 10, DAY, ["--smooth"])


def _pages(windows: int, values: int, length: int, ways: Sequence[str]) -> None:
    print(f"{windows:,} windows of {values:,} values and {_PEOPLE:,} people (krr, epsilon 2)")
    with tempfile.TemporaryDirectory() as name:
        of, rng = closed(values), np.random.default_rng(1)
        rows = [counted(of, at * length, _PEOPLE, rng, length) for at in range(windows)]
        counts = write_counts(Path(name), of, rows)
        for way in ways:
            output, shown = f"{name}/rows{way}", [f"--show={values}", *([way] if way else ["--estimator=projected"])]
            seconds, memory = run(["reestimate", *counts, *shown, f"--output={output}"])
            print(f"  reestimate {way}: {seconds:.1f} s, {memory:.0f} MiB", flush=True)
            page = [f"--latest_windows={windows}", f"--output={name}/page.html"]
            seconds, memory = run(["report", output, counts[1], *page])
            print(f"  report of these rows: {seconds:.1f} s, {memory:.0f} MiB", flush=True)
