"""Profile of a job with one small estimate for each of many collections and windows, from files to rows."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import fastavro
import numpy as np

from labs.benchmarks.many_collections import closed
from uldp_transforms.jobs import estimate
from uldp_transforms.messages import wire

HOUR = 3_600_000
EVERY = 0.004
"""Seconds between two looks at what the program does."""

PARTS = (
    ("the estimate", ("solve_windows", "_shown", "row_of_estimate")),
    ("its health", ("health_of_window",)),
    ("reading, decoding", ("messages/", "/decode.py", "/gather.py", "/read_files.py", "/fastavro/")),
    ("ledger", ("/ledger.py", "/transit.py", "ledger_sums.py")),
    ("rows: one a value", ("/windowed_estimate.py:flat",)),
    ("rows: text and files", ("/forms.py", "/sinks/", "/flushed_rows.py", "/filesink", "/fileio.py", "/avroio.py")),
    ("coders of sums", ("/runtime/coders.py",)),
    ("coders of rows", ("/coders/row_coder.py", "/coders/coders.py", "/coders/coder_impl")),
    ("counting", ("/count.py", "/counting.py", "_counts.py")),
    ("metrics", ("/runtime/metrics.py", "/beam/metrics/", "apache_beam/metrics/")),
    ("windows, panes, other steps of ours", ("_distribution.py", "/runtime/", "estimate_reports.py", "place.py")),
    (
        "to start: options, graph, pickling",
        ("/options.py", "/run.py", "to_runner_api", "pickler.py", "/runs.py"),
    ),
)
"""Parts, and what stands in the names of their functions; the innermost function that is in one decides."""

ENGINE = "engine"
_IDLE = ("threading.py", "queue.py", "selectors.py", "concurrent/futures", "grpc/", "many_pairs.py")


@contextlib.contextmanager
def looks() -> Iterator[Counter[str]]:
    """Number of samples in which each part was active in any thread."""
    seen: Counter[str] = Counter()
    over = threading.Event()

    def look() -> None:
        while not over.wait(EVERY):
            for ident, frame in sys._current_frames().items():
                if ident != threading.get_ident() and not _is_idle(frame):
                    seen[_part(frame)] += 1

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def _is_idle(frame: FrameType) -> bool:
    return any(name in frame.f_code.co_filename for name in _IDLE)


def _part(frame: FrameType | None) -> str:
    while frame is not None:
        name = f"{frame.f_code.co_filename}:{frame.f_code.co_name}"
        for part, names in PARTS:
            if any(own in name for own in names):
                return part
        frame = frame.f_back
    return ENGINE


def write_inputs(folder: Path, num_collections: int, num_windows: int, per_window: int) -> None:
    """Collections, and a file with one packed message for each, whose reports cover the given number of hours."""
    rng = np.random.default_rng(1)
    times = 1_000_000_800_000 + np.repeat(np.arange(num_windows) * HOUR, per_window)
    (folder / "collections").mkdir()
    with (folder / "reports.avro").open("wb") as out:
        records = []
        for number in range(num_collections):
            of = closed(number)
            (folder / "collections" / f"{number}.json").write_text(json.dumps(of.to_json()))
            records.append(wire.batch_record(of.perturb(["0", "1"] * (len(times) // 2), rng, times)))
        fastavro.writer(out, wire.BATCH_SCHEMA, records)


def profile(folder: str, estimator: str, num_pairs: int) -> None:
    """Run the command in this process and print microseconds of CPU by part."""
    of = closed(0)
    of.estimate(of.count(of.perturb(["0"] * 20)), estimator)  # what is loaded at the first estimate is no part of it
    begin = time.process_time()
    with looks() as seen:
        estimate.main(
            [
                f"--input={folder}/reports.avro",
                f"--collection={folder}/collections/*.json",
                "--window=1h",
                "--min_reports=1",
                f"--estimator={estimator}",
                f"--output={folder}/rows-{estimator}",
            ]
        )
    whole = 1e6 * (time.process_time() - begin)
    print(f"  {num_pairs:,} estimates, {estimator}: {whole / 1e6:.1f} s, {whole / num_pairs:.0f} us an estimate")
    for part, times in seen.most_common():
        print(f"    {part}: {whole / num_pairs * times / seen.total():.0f} us", flush=True)


def main() -> None:
    num_collections, num_windows = 300, 8
    print(
        f"{num_collections:,} collections, {num_windows} windows of 20 reports (the command estimate, --min_reports 1)"
    )
    with tempfile.TemporaryDirectory() as folder:
        write_inputs(Path(folder), num_collections, num_windows, 20)
        for estimator in ("projected", "eb"):
            call = f"profile({folder!r}, {estimator!r}, {num_collections * num_windows})"
            program = f"from labs.benchmarks.many_pairs import profile; {call}"
            subprocess.run([sys.executable, "-c", program], check=True, stderr=subprocess.DEVNULL)
