"""The main job on Flink: does it write the rows of the local engine, how fast is it, does it survive a killed worker?

Needs Linux, Java 17 and, for the first run, Maven.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import apache_beam as beam

from deploy.compare import differences
from deploy.flink.cluster import Cluster, cluster, fetch
from deploy.job import REPORTS_OF_A_FILE, make_reports, run

WORKED = 4.0
"""Seconds of CPU time after which a worker has imported everything and counts."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.flink", description=__doc__)
    parser.add_argument("--files", type=int, default=64, help=f"of {REPORTS_OF_A_FILE:,} packed reports each")
    parser.add_argument("--class_path", help="another job server than the one of deploy/flink/pom.xml")
    args = parser.parse_args()
    print(f"{args.class_path or fetch().name}, Python's Beam {beam.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few, many = prepare(folder, args.files)
        with cluster(folder, args.class_path) as flink:
            right = attempt(flink, few, 2, "40,000 reports, single and packed")
            for parallelism in (1, 2):
                right &= attempt(flink, many, parallelism, f"{args.files * REPORTS_OF_A_FILE:,} packed reports")
            threading.Thread(target=kill_busy_worker, args=(flink,), daemon=True).start()
            right &= attempt(flink, many, 2, "the same, a worker killed")
    return 0 if right else 1


def prepare(folder: Path, files: int) -> tuple[Path, Path]:
    """Two folders of reports, each with the rows of the local engine in its ``local``."""
    few, many = folder / "few", folder / "many"
    for inputs in (few, many):
        inputs.mkdir()
    make_reports(few, "single", 20_000)
    make_reports(few, "packed", 20_000)
    packed = make_reports(many, "packed", REPORTS_OF_A_FILE)
    for number in range(1, files):
        os.link(packed, many / f"{number:04}.avro")
    for inputs in (few, many):
        run(inputs, str(inputs / "*.avro"), inputs / "local", [])
    return few, many


def attempt(flink: Cluster, inputs: Path, parallelism: int, what: str) -> bool:
    """Run the job, print how it went, and say whether its rows are right."""
    output, restarts = inputs / "flink", flink.restarts()
    shutil.rmtree(output, ignore_errors=True)
    seconds = run(inputs, str(inputs / "*.avro"), output, flink.options(parallelism))
    wrong = differences(output, inputs / "local")
    rows = f"rows differ in {', '.join(wrong)}" if wrong else "rows of the local engine"
    restarted = f", {flink.restarts() - restarts} restarts" if flink.restarts() > restarts else ""
    print(f"{what}, parallelism {parallelism}: {seconds:.1f} s{restarted}, {rows}", flush=True)
    return not wrong


def kill_busy_worker(flink: Cluster) -> None:
    """Kill (SIGKILL) a worker that is counting."""
    before = flink.workers()
    while True:
        time.sleep(0.5)
        after = flink.workers()
        busy = [worker for worker, used in after.items() if used > WORKED and used - before.get(worker, used) > 0.1]
        if busy:
            os.kill(busy[0], signal.SIGKILL)
            return
        before = after


if __name__ == "__main__":
    sys.exit(main())
