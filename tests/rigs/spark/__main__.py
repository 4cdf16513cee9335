"""The main job on Spark, over files: are its rows those of the local engine, and does a dead worker end the job?

Needs Java 17 and, for the first run, Maven.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

import apache_beam as beam

from tests.rigs.compare import differences
from tests.rigs.job import make_reports, run
from tests.rigs.spark.server import JARS, spark

REPORTS = 1_000_000


def main() -> int:
    JARS.fetch()
    print(f"{JARS.folder.name}, Python's Beam {beam.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_reports(folder, "single", 20_000)
        make_reports(folder, "packed", REPORTS)
        reports, local, rows = str(folder / "*.avro"), folder / "local", folder / "rows"
        here = run(folder, reports, local, [])
        with spark(folder) as options:
            there = run(folder, reports, rows, options)
        wrong = differences(rows, local)
        print(f"{REPORTS + 20_000:,} reports: {there:.1f} s (local {here:.1f} s), ", end="")
        print(f"rows differ in {', '.join(wrong)}" if wrong else "rows of the local engine", flush=True)
        return 1 if wrong or not _a_worker_that_cannot_start(folder, reports) else 0


def _a_worker_that_cannot_start(folder: Path, reports: str) -> bool:
    """Whether the job ends with a sentence that names the log of the worker."""
    begin = time.monotonic()
    with spark(folder, start_timeout="1ms") as options:
        sentence = sentence_of_failure(folder, reports, options)
    print(f"a worker that cannot start: after {time.monotonic() - begin:.0f} s {sentence!r}")
    return str(folder) in sentence


def sentence_of_failure(folder: Path, reports: str, options: list[str]) -> str:
    """The sentence with which the main job fails; empty if it does not."""
    try:
        run(folder, reports, folder / "failed", options)
    except RuntimeError as error:
        found = re.findall(r"^estimate: the run failed: (.*)$", str(error), re.M)
        return str(found[-1]) if found else ""
    return ""


if __name__ == "__main__":
    sys.exit(main())
