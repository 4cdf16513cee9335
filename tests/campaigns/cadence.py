"""Rows and files of a quiet stream: ``python -m tests.campaigns.cadence [--seconds 60] [--rate 100] -- OPTIONS``.

Reports are published at a constant rate to a loopback server, while the main job reads them on the local engine with
the given options. Each is sent up to 20 s after its event time, so windows of 20 s get late reports for 20 s. Printed
are the rows of each window, partial ones too, and the files of each kind. The exit code is 1 if a report is missing.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.support import cases, live
from tests.support.messages_cases import write_files
from uldp_transforms.messages import wire

WINDOW = 20  # seconds; also the longest delay of a report
ANIMALS = cases.COLLECTIONS["closed-sensitive-urr"]


def publish(broker: live.Broker, seconds: int, rate: int) -> None:
    """Ten times a second, reports of the last 20 s."""
    rng = np.random.default_rng(1)
    begin, tick = time.monotonic(), rate // 10
    for number in range(10 * seconds):
        now = time.time_ns() // 1_000_000
        times = (now - rng.integers(0, 1000 * WINDOW, tick)).tolist()
        broker.publish(wire.encode_reports(ANIMALS.perturb(rng.choice(cases.VALUES, tick).tolist(), rng, times)))
        time.sleep(max(0.0, begin + (number + 1) / 10 - time.monotonic()))


def summary(output: Path) -> str:
    """What the job wrote."""
    rows = Counter(row["window_start"] for row in live.rows(output, "estimates"))
    files = Counter(path.name.partition("-")[0] for path in output.iterdir() if path.suffix in (".jsonl", ".avro"))
    kinds = ", ".join(f"{name} {number}" for name, number in sorted(files.items()))
    return f"rows of a window: {', '.join(map(str, rows.values()))}\nfiles: {files.total()} ({kinds})"


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    cut = words.index("--") if "--" in words else len(words)
    own, options = words[:cut], words[cut + 1 :]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--rate", type=int, default=100)
    args = parser.parse_args(own)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, {"animals.json": ANIMALS})
        output, log = folder / "output", folder / "log"
        job = f"--collection={folder}/animals.json --subscription={live.SUBSCRIPTION} --output={output}".split()
        job += [f"--window={WINDOW}s", "--allowed_lateness=30s", *options]
        with live.broker() as broker, live.job(job, log, fork=False) as process:
            live.wait_until(lambda: any(output.glob("run-*.json")), process, log)
            publish(broker, args.seconds, args.rate)
            time.sleep(5)
            process.send_signal(signal.SIGTERM)
            code = process.wait(live.PATIENCE)
        books, expected = live.books(output), args.seconds * (args.rate // 10) * 10
        print(" ".join(options) or "defaults", summary(output), dict(books), f"exit code {code}", sep="\n")
    return int(code != 0 or books["received"] != expected or live.balance(books) != 0)


if __name__ == "__main__":
    sys.exit(main())
