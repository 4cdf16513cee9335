"""The main job with ``--bigquery_method storage_write_api``: does Java write its steps? Nothing is sent to BigQuery.

Needs Java and, for the first run, Maven.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam

from tests.rigs import cache
from tests.rigs.flink.kafka import EXPANSION_SERVICE
from tests.rigs.flink.processes import free_port, java, process, wait_for
from tests.rigs.job import collection, make_reports
from uldp_transforms.jobs.estimate.run import configure

JARS = cache.Jars(source=Path(__file__).parent, folder=cache.CACHE / "storage-write-beam-2.73.0")

TARGET = "sdks:java:io:google-cloud-platform:expansion-service:build"
"""What Beam's Python calls the service that it would download."""

WRITE = "beam:transform:org.apache.beam:bigquery_write:v1"


def missing() -> str | None:
    """Why this cannot run here; None if it can."""
    return cache.missing("python -m tests.rigs.storage_write", JARS.folder)


@contextlib.contextmanager
def expansion_service(folder: Path) -> Iterator[str]:
    """Start the service; yields HOST:PORT.

    Args:
        folder: for its log.
    """
    log, port = folder / "expansion.log", free_port()
    with process(java(JARS.class_path, EXPANSION_SERVICE, str(port)), log) as started:
        wait_for("Starting expansion service at", started, log)
        yield f"localhost:{port}"


def steps(folder: Path) -> list[str]:
    """Names of the steps of the main job that write to BigQuery in Java; the job is built and not run.

    Args:
        folder: for reports and logs.
    """
    reports = make_reports(folder, "packed", 10)
    argv = [f"--collection={collection(folder)}", f"--input={reports}", f"--output={folder / 'out'}", "--window=6h"]
    argv += ["--bigquery=my-project:reports", "--bigquery_method=storage_write_api"]
    with expansion_service(folder) as service:
        _, pipeline = configure([*argv, f"--beam_services={json.dumps({TARGET: service})}"])
        graph = pipeline.to_runner_api()
    return sorted(step.unique_name for step in graph.components.transforms.values() if step.spec.urn == WRITE)


def main() -> int:
    JARS.fetch()
    with tempfile.TemporaryDirectory() as folder:
        found = steps(Path(folder))
    print(f"{JARS.folder.name}, Python's Beam {beam.__version__}:", *found, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
