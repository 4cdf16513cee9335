"""The ids of one base period in the memory of one process: time per report, and memory, by what is kept of a report."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

import numpy as np

from labs.benchmarks.measure import collection, line, reports
from uldp_transforms.beam.transforms.deduplicate import read_again
from uldp_transforms.collector.known_ids import SECRET_BYTES, KnownIds, lost_reports
from uldp_transforms.collector.known_reports import KnownReports, to_rows
from uldp_transforms.spec.spec_fields import PARTS

AT_ONCE = 50_000
"""Reports that one part gets together: those of a bundle of 800,000."""

_BLOCK = 1 << 15


def main() -> None:
    width = to_rows(reports(collection("krr", 16, 64), 1)).shape[1]
    _fill("fingerprints", [KnownIds(secrets.token_bytes(SECRET_BYTES)) for _ in range(PARTS)], 100_000_000, width)
    _fill("reports", [KnownReports(width) for _ in range(PARTS)], 10_000_000, width)


def _fill(kind: str, parts: list[KnownReports] | list[KnownIds], num_ids: int, width: int) -> None:
    print(f"{num_ids:,} ids of one base period in {PARTS} parts, kept as {kind} (library, one process)", flush=True)
    rng, added, before = np.random.default_rng(4), 0, _resident()
    blocks: list[bytes] = []
    for tenth in range(10):
        seconds = 0.0
        while added < num_ids * (tenth + 1) // 10:
            part = added // AT_ONCE % PARTS
            rows = rng.integers(0, 256, (AT_ONCE, width), dtype=np.uint8)
            begin = time.process_time()
            block = parts[part].stored(parts[part].add(rows).added)
            seconds += time.process_time() - begin
            added += AT_ONCE
            if part == 0:
                blocks.append(block)
        held = sum(each.num_bytes for each in parts)
        more = _resident() - before - sum(map(len, blocks))
        line(f"  up to {added:,}: {held / added:.1f} B a report, {more / 1e6:,.0f} MB more", num_ids // 10, seconds)
    if kind == "fingerprints":
        print(f"  known: {sum(map(len, parts)):,}; at most {lost_reports(added, PARTS):.1e} are expected to be lost")
    size = 8 if kind == "fingerprints" else width
    stored, step = b"".join(blocks), _BLOCK // size * size
    secret = secrets.token_bytes(SECRET_BYTES) if kind == "fingerprints" else b""
    begin = time.process_time()
    again = read_again((stored[start : start + step] for start in range(0, len(stored), step)), width, secret)
    line(f"  one part read again, {len(stored) / 1e6:,.0f} MB of state", len(again), time.process_time() - begin)


def _resident() -> int:
    """Memory of this process, in bytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) * 1024
