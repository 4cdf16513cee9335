"""Estimates from a Java program, on Beam's local job service: Java reads, Python estimates, Java prints.

Needs a JDK and, for the first run, Maven.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam

from tests.rigs import cache
from tests.rigs.flink.processes import PATIENCE, free_port, java, process, wait_for
from tests.rigs.job import collection, make_reports
from tests.rigs.service import expansion_service
from uldp_transforms.messages.containers import read_messages

FOLDER = Path(__file__).parent
JARS = cache.Jars(source=FOLDER, folder=cache.CACHE / "java-beam-2.70.0")
PROGRAM = FOLDER / "EstimateFromJava.java"


def missing() -> str | None:
    """Why this cannot run here; None if it can."""
    if shutil.which("javac") is None:
        return "javac is not on PATH"
    return cache.missing("python -m tests.rigs.java", JARS.folder)


def as_lines(reports: Path) -> Path:
    """The messages of an Avro file as Base64, one a line, in a file beside it."""
    lines = reports.with_suffix(".txt")
    with reports.open("rb") as file, lines.open("wb") as out:
        for message in read_messages(file, reports.name):
            if isinstance(message, bytes):
                out.write(base64.b64encode(message) + b"\n")
    return lines


@contextlib.contextmanager
def job_service(folder: Path) -> Iterator[str]:
    """Start Beam's local job service; yields HOST:PORT.

    Args:
        folder: for its log.
    """
    log, port = folder / "jobs.log", free_port()
    command = [sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main", f"--port={port}"]
    with process(command, log) as started:
        wait_for("Listening for beam jobs", started, log)
        yield f"localhost:{port}"


def run(folder: Path, reports: Path, of: Path, jobs: str) -> list[str]:
    """Compile the program and run it over reports; returns the lines that it prints.

    Args:
        folder: for classes and logs.
        reports: messages as Base64, one a line.
        of: the file of their collection.
        jobs: HOST:PORT of a job service of Beam.

    Raises:
        RuntimeError: it did not compile or end well.
    """
    classes = folder / "classes"
    _run(["javac", "-cp", JARS.class_path, "-d", str(classes), str(PROGRAM)])
    engine = ["--runner=PortableRunner", f"--jobEndpoint={jobs}", "--defaultEnvironmentType=LOOPBACK"]
    with expansion_service(folder) as service:
        options = [f"--service={service}", f"--reports={reports}", f"--collection={of}"]
        return _run(java(f"{classes}:{JARS.class_path}", PROGRAM.stem, *engine, *options)).splitlines()


def _run(command: list[str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, timeout=5 * PATIENCE, check=False)
    if ended.returncode:
        raise RuntimeError(f"{command[0]} ended with {ended.returncode}: {(ended.stdout + ended.stderr)[-4000:]}")
    return ended.stdout


def main() -> int:
    JARS.fetch()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{JARS.folder.name}, Python's Beam {beam.__version__}")
        reports = as_lines(make_reports(folder, "packed", 20_000))
        with job_service(folder) as jobs:
            print(*run(folder, reports, collection(folder), jobs), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
