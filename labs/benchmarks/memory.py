"""Peak memory of the pipeline against the number of reports, each size in a process of its own."""

from __future__ import annotations

import subprocess
import sys

_CHILD = """
import resource
from labs.benchmarks import pipeline
from labs.benchmarks.measure import collection, reports
from uldp_transforms import Windows
from uldp_transforms.messages import wire
spec = collection("krr", 16, 64)
batch = reports(spec, 100_000)
pipeline._MESSAGES["x"] = [wire.encode_batch(batch[i : i + 1000]) for i in range(0, len(batch), 1000)]
pipeline.run(spec, "x", {repeats}, Windows(size=3_600_000))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def main() -> None:
    print("peak memory, packed k-RR, hourly windows (pipeline)")
    for repeats in (10, 40, 160):
        child = [sys.executable, "-c", _CHILD.format(repeats=repeats)]
        peak = subprocess.run(child, capture_output=True, text=True, check=True).stdout.split()[-1]
        print(f"  {repeats * 100_000:>12,} reports: {peak} MiB", flush=True)
