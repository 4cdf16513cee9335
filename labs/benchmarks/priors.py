"""The estimator ``eb`` by number of values, and ``em`` of numbers by number of bins: milliseconds of CPU a window."""

from __future__ import annotations

import numpy as np

from labs.benchmarks.measure import cpu_seconds
from labs.benchmarks.stored_windows import closed
from uldp_transforms.ldp import CohortCounts, Collection


def main() -> None:
    print("one window of krr at epsilon 2 with 20,000 people: the unbiased estimate, and eb")
    for values in (16, 64, 100, 500, 1_000, 2_000, 4_000):
        of = closed(values)
        law = 1 / np.arange(1, values + 1)
        _line(f"{values:,} values", of, law / law.sum(), 20_000, "eb")
    print("numbers by the square wave at epsilon 2 with 500,000 people: the unbiased estimate, and em")
    for bins in (16, 64, 256):
        spec = {"id": "numbers", "version": 1, "mechanism": {"id": "sw", "epsilon": 2.0}}
        of = Collection.from_json(spec | {"alphabet": {"id": "ordered", "low": 0, "high": 100, "num_bins": bins}})
        centres = (np.arange(bins) + 0.5) / bins
        law = np.exp(-0.5 * ((np.log(centres) + 1.2) / 0.5) ** 2) / centres
        _line(f"{bins} bins", of, law / law.sum(), 500_000, "em")


def _line(what: str, of: Collection, law: np.ndarray, people: int, estimator: str) -> None:
    cells = np.random.default_rng(1).multinomial(people, of.mechanism.response(law))
    counts = CohortCounts(np.array([people]), cells[np.newaxis])
    plain, found = (
        1000 * cpu_seconds(lambda name=name: of.estimate(counts, name)) for name in ("empirical", estimator)
    )
    print(f"  {what}: {plain:.2f} and {found:.2f} ms, {found / plain:.1f} times", flush=True)
