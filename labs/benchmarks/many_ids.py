"""A hundred million ids of one base period in the memory of one process: time per report, and memory."""

from __future__ import annotations

import time

import numpy as np

from labs.benchmarks.measure import collection, line, reports
from uldp_transforms.beam.spec.spec_fields import PARTS
from uldp_transforms.beam.transforms.deduplicate import read_again
from uldp_transforms.beam.transforms.known_reports import KnownReports, to_rows

IDS = 100_000_000
AT_ONCE = 50_000
"""Reports that one part gets together: those of a bundle of 800,000."""


def main() -> None:
    print(f"{IDS:,} ids of one base period in {PARTS} parts (library, one process)", flush=True)
    width = to_rows(reports(collection("krr", 16, 64), 1)).shape[1]
    parts = [KnownReports(width) for _ in range(PARTS)]
    rng, added = np.random.default_rng(4), 0
    for tenth in range(10):
        seconds = 0.0
        while added < IDS * (tenth + 1) // 10:
            rows = rng.integers(0, 256, (AT_ONCE, width), dtype=np.uint8)
            begin = time.process_time()
            changes = parts[added // AT_ONCE % PARTS].add(rows)
            seconds += time.process_time() - begin
            added += len(changes.added)
        held = sum(part.num_bytes for part in parts)
        line(f"  up to {added:,}: {held / 1e9:.2f} GB, {held / added:.0f} B a report", IDS // 10, seconds)
    rows = parts[0].rows
    blocks = [part.tobytes() for part in np.array_split(rows, len(rows) // 1_200)]
    begin = time.process_time()
    again = read_again(blocks, width)
    line(f"  one part read again, {rows.nbytes / 1e6:,.0f} MB of state", len(again), time.process_time() - begin)
