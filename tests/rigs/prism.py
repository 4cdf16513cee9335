"""The main job on Prism, Beam's own portable engine, written in Go: does it write the rows of the local engine?

Needs Go for the first run, which builds Prism and the entry point of Beam's containers (``container_worker``).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import apache_beam as beam

from tests.rigs.cache import CACHE, GoCommand
from tests.rigs.compare import differences
from tests.rigs.container_worker import BOOT
from tests.rigs.job import make_reports, run

VERSION = f"v{beam.__version__}"
"""Of the engine: that of the installed Beam."""

PRISM = GoCommand(
    module="github.com/apache/beam/sdks/v2/go/cmd/prism",
    version=VERSION,
    folder=CACHE / f"prism-{VERSION}",
    command="make prism",
)
REPORTS = 1_000_000


def missing() -> str | None:
    """Why Prism cannot run here; None if it can."""
    return PRISM.missing()


def options() -> list[str]:
    """Options of a job for Prism, whose Python worker is the process that starts the job.

    A process otherwise keeps its first server, even one that another job failed to start without this binary.
    """
    return [
        "--runner=PrismRunner",
        f"--prism_location={PRISM.binary}",
        "--prism_log_level=error",
        "--experiments=disable_prism_server_singleton",
    ]


def main() -> int:
    PRISM.fetch()
    BOOT.fetch()
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
