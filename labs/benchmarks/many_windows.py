"""The main job from files to rows, by the windows that the reports of one collection are in: a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

MINUTE = 60_000
_PACKED = 50_000


def job_seconds(num_windows: int, per_window: int, *options: str) -> float:
    """CPU time, user and system, of the command ``estimate`` with ``--window 1m`` and these options.

    Args:
        num_windows: so many minutes have reports, which come in the order of time, packed.
        per_window: reports in each.
        options: further ones of the command.
    """
    with tempfile.TemporaryDirectory() as folder:
        of, file = Path(folder, "collection.json"), Path(folder, "reports.avro")
        collection = _closed()
        of.write_text(json.dumps(collection.to_json()))
        with file.open("wb") as out:
            fastavro.writer(out, wire.BATCH_SCHEMA, _records(collection, num_windows, per_window))
        command = [sys.executable, "-m", "uldp_transforms.jobs", "estimate", f"--input={file}", f"--collection={of}"]
        before = _seconds_of_children()
        subprocess.run(
            [*command, "--window=1m", f"--output={folder}/rows", *options], check=True, stderr=subprocess.DEVNULL
        )
        return _seconds_of_children() - before


def _closed() -> Collection:
    spec = {"id": "many", "version": 1, "alphabet": {"id": "closed", "values": ["a", "b", "c", "d"]}}
    return Collection.from_json(spec | {"mechanism": {"id": "krr", "epsilon": 2.0}, "num_cohorts": 1})


def _records(collection: Collection, num_windows: int, per_window: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng(1)
    minutes = np.arange(num_windows).repeat(per_window)
    for begin in range(0, len(minutes), _PACKED):
        times = 1_700_000_000_000 // MINUTE * MINUTE + minutes[begin : begin + _PACKED] * MINUTE
        values = rng.choice(["a", "b", "c", "d"], len(times), p=[0.5, 0.3, 0.1, 0.1]).tolist()
        yield wire.batch_record(collection.perturb(values, rng, times))


def _seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    print("windows of one collection, from files to rows (the command estimate, --window 1m)")
    for name, per_window, options in (
        ("1 report in each, suppressed", 1, ()),
        ("1 report in each, --min_reports 1", 1, ("--min_reports=1",)),
        ("100 reports in each", 100, ()),
        ("100 reports in each, --estimator projected", 100, ("--estimator=projected",)),
    ):
        before = 0.0
        for num_windows in (2_000, 10_000):
            seconds = job_seconds(num_windows, per_window, *options)
            further = f", {1e6 * (seconds - before) / 8_000:.0f} us a further window" if before else ""
            print(f"  {num_windows:,} windows, {name}: {seconds:.1f} s of CPU{further}", flush=True)
            before = seconds
