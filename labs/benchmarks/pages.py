"""Pages and rows of many windows with many values, from stored counts: a process of its own for each program."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from labs.benchmarks.stored_windows import HOUR, closed, counted, run, write_counts

_WINDOWS, _VALUES, _PEOPLE = 365, 1_000, 20_000


def main() -> None:
    print(f"{_WINDOWS:,} windows of {_VALUES:,} values and {_PEOPLE:,} people (krr, epsilon 2)")
    with tempfile.TemporaryDirectory() as name:
        of, rng = closed(_VALUES), np.random.default_rng(1)
        counts = write_counts(Path(name), of, [counted(of, at * HOUR, _PEOPLE, rng) for at in range(_WINDOWS)])
        shown = [f"--show={_VALUES}", "--estimator=projected"]
        for what, words in (
            ("reestimate", ["reestimate", *counts, *shown, f"--output={name}/rows"]),
            ("report", ["report", f"{name}/rows", counts[1], f"--output={name}/page.html"]),
            ("reestimate --smooth", ["reestimate", *counts, *shown, "--smooth", f"--output={name}/smooth"]),
            ("report of smooth rows", ["report", f"{name}/smooth", counts[1], f"--output={name}/page.html"]),
        ):
            seconds, memory = run(words)
            print(f"  {what}: {seconds:.1f} s, {memory:.0f} MiB", flush=True)
