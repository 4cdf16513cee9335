"""The main job on Flink: does it write the rows of the local engine, how fast is it, does it survive a killed worker?

Needs Linux, Java 17 and, for the first run, Maven.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import apache_beam as beam

from tests.rigs.compare import differences
from tests.rigs.flink.cached import JARS, fetch
from tests.rigs.flink.cluster import Cluster, cluster
from tests.rigs.job import REPORTS_OF_A_FILE, make_reports, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rigs.flink", description=__doc__)
    parser.add_argument("--files", type=int, default=200, help=f"of {REPORTS_OF_A_FILE:,} packed reports each")
    parser.add_argument("--class_path", help="another job server than the one of deploy/container/pom.xml")
    args = parser.parse_args()
    if args.class_path is None:
        fetch()
    print(f"{args.class_path or JARS.folder.name}, Python's Beam {beam.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few, many = prepare(folder, args.files)
        try:
            with cluster(folder, args.class_path or JARS.class_path) as flink:
                for parallelism in (1, 2):
                    start = attempt(flink, few, parallelism, "40,000 reports, single and packed")
                    whole = attempt(flink, many, parallelism, f"{args.files} million packed reports")
                    print(f"    {args.files / (whole - start):.1f} million reports/s after the start", flush=True)
                threading.Thread(target=flink.kill_busy_worker, daemon=True).start()
                attempt(flink, many, 2, "the same, a busy worker killed")
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


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


def attempt(flink: Cluster, inputs: Path, parallelism: int, what: str) -> float:
    """Run the job, print how it went, and return the seconds that it took.

    Raises:
        RuntimeError: the job failed, or its rows are not those of the local engine.
    """
    output, restarts = inputs / "flink", flink.restarts()
    shutil.rmtree(output, ignore_errors=True)
    seconds = run(inputs, str(inputs / "*.avro"), output, flink.options(parallelism))
    wrong = differences(output, inputs / "local")
    if wrong:
        raise RuntimeError(f"{what}, parallelism {parallelism}: rows differ in {', '.join(wrong)}")
    again = flink.restarts() - restarts
    print(f"{what}, parallelism {parallelism}: {seconds:.1f} s, {again} restarts, rows of the local engine", flush=True)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
