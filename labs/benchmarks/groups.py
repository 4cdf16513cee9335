"""Counting packed reports with 100 groups and without, and the memory of 65,536 groups: one run, one ratio."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from apache_beam.utils.timestamp import MIN_TIMESTAMP

from labs.benchmarks.measure import DAY, cpu_seconds
from uldp_transforms import JobSpec
from uldp_transforms.beam.transforms.count_reports import _CountBundleFn
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Owner, Sample

_DAY = 1_000_000_000_000 // DAY * DAY


def closed(mechanism: str, num_values: int, dimensions: list[list[str]]) -> Collection:
    """A collection with dimensions called a, b, ..."""
    return Collection.from_json(
        {
            "id": "benchmark",
            "version": 1,
            "alphabet": {"id": "closed", "values": [str(value) for value in range(num_values)]},
            "mechanism": {"id": mechanism, "epsilon": 1},
        }
        | ({"dimensions": [{"name": n, "values": v} for n, v in zip("abcd", dimensions)]} if dimensions else {})
    )


def reports(spec: Collection, number: int) -> ReportBatch:
    """Reports of one day, in random groups."""
    rng = np.random.default_rng(1)
    values = [str(value) for value in rng.integers(0, len(spec.alphabet.known_values or ()), number)]
    columns = {d.name: rng.choice(d.all_values, number).tolist() for d in spec.dimensions}
    return spec.perturb(values, rng, np.sort(_DAY + rng.integers(0, DAY, number)), columns or None)


def bundle(spec: Collection, batches: list[ReportBatch], by: tuple[str, ...] | None) -> Callable[[], Any]:
    """A worker that counts one bundle, and hands the sums on."""
    worker = _CountBundleFn(JobSpec.of(collections=[spec], window="1d", by=by))

    def count() -> int:
        worker.start_bundle()
        for batch in batches:
            list(worker.process(batch, MIN_TIMESTAMP))
        return len(list(worker.finish_bundle()))

    return count


def estimates() -> None:
    """Rows of 1,000 groups of one window; the ratio is to rows without post-processing."""
    spec = closed("krr", 64, [[str(i) for i in range(999)]])
    counts = list(spec.count_by(reports(spec, 300_000), ["a"]).values())
    place = {"window_start": None, "window_end": None, "pane_index": 0, "pane_timing": "ON_TIME", "run": None}
    samples = [Sample(owner=Owner(named=spec), place=place, counts={spec.fingerprint: own}) for own in counts]
    print("rows of 1,000 groups with 64 values and 300 reports each (krr, epsilon 1)")
    each: dict[str, float] = {}
    for name in ("empirical", "projected", "eb"):
        asked = Asked(estimator=ESTIMATORS[name]())
        each[name] = cpu_seconds(lambda a=asked: list(rows_of(samples, a)))
        ratio = each[name] / each["empirical"]
        print(f"  {name}: {each[name]:.2f} s, {ratio:.1f} times that of empirical", flush=True)


def main() -> None:
    print("counting packed reports of one day in a bundle of 1,000,000, without and with 100 groups (one worker)")
    for mechanism, values, size in (("krr", 16, 1000), ("krr", 64, 1000), ("krr", 64, 10_000), ("rappor", 64, 1000)):
        seconds = []
        for spec, by in (
            (closed(mechanism, values, []), None),
            (closed(mechanism, values, [[str(i) for i in range(99)]]), ("a",)),
        ):
            batch = reports(spec, 200_000)
            batches = [batch[at : at + size] for at in range(0, len(batch), size)] * 5
            seconds.append(cpu_seconds(bundle(spec, batches, by)))
        without, grouped = seconds
        print(
            f"  {mechanism} K={values}, packs of {size:,}: {1000 * without:.1f} and {1000 * grouped:.1f} ns a report, "
            f"{without / grouped:.2f} of the speed",
            flush=True,
        )
    estimates()
    names = [str(i) for i in range(255)]
    spec = closed("krr", 64, [names, names])
    batch = reports(spec, 400_000)
    count = bundle(spec, [batch[at : at + 1000] for at in range(0, len(batch), 1000)], ("a", "b"))
    tracemalloc.start()
    sums = count()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(f"  65,536 groups, 400,000 reports: {sums:,} sums, at most {peak / 1e6:.0f} MB", flush=True)
