"""The main job on Prism, Beam's own portable engine, written in Go: does it write the rows of the local engine?

Needs Go for the first run, which builds Prism from its module; Go's checksum database vouches for the source.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import apache_beam as beam

from tests.rigs.cache import CACHE, require_program
from tests.rigs.compare import differences
from tests.rigs.job import make_reports, run

VERSION = f"v{beam.__version__}"
PRISM = CACHE / f"prism-{VERSION}" / "prism"
MODULE = "github.com/apache/beam/sdks/v2/go/cmd/prism"
REPORTS = 1_000_000


def fetch() -> Path:
    """The engine of the installed version of Beam; built unless it is in the cache (a few minutes)."""
    if not PRISM.exists():
        require_program("go", f"build {PRISM}")
        environment = {**os.environ, "GOBIN": str(PRISM.parent)}
        subprocess.run(["go", "install", f"{MODULE}@{VERSION}"], env=environment, check=True)
    return PRISM


def missing() -> str | None:
    """Why Prism cannot run here; None if it can."""
    return None if PRISM.exists() else f"{PRISM} is not there: make prism builds it"


def options() -> list[str]:
    """Options of a job for Prism, whose Python worker is the process that starts the job."""
    return ["--runner=PrismRunner", f"--prism_location={PRISM}", "--prism_log_level=error"]


def main() -> int:
    fetch()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_reports(folder, "single", 20_000)
        make_reports(folder, "packed", REPORTS)
        reports, local, prism = str(folder / "*.avro"), folder / "local", folder / "prism"
        seconds = run(folder, reports, local, []), run(folder, reports, prism, options())
        wrong = differences(prism, local)
    rows = f"rows differ in {', '.join(wrong)}" if wrong else "rows of the local engine"
    print(f"Prism {VERSION}, {REPORTS + 20_000:,} reports: {seconds[1]:.1f} s (local {seconds[0]:.1f} s), {rows}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
