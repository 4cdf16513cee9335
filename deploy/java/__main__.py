"""Estimates from a Java program, on Beam's local job service: Java reads, Python estimates, Java prints.

Needs a JDK and, for the first run, Maven.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import apache_beam as beam

from deploy import cache
from deploy.flink.processes import PATIENCE, free_port, java, process, wait_for
from deploy.job import collection, make_reports
from deploy.service import expansion_service
from uldp_transforms.messages.containers import read_messages

FOLDER = Path(__file__).parent
JARS = cache.Jars(source=FOLDER, folder=cache.CACHE / "java-beam-2.70.0")
PROGRAM = FOLDER / "EstimateFromJava.java"


def missing() -> str | None:
    """Why this cannot run here; None if it can."""
    if shutil.which("javac") is None:
        return "javac is not on PATH"
    return cache.missing("python -m deploy.java", JARS.folder)


def as_lines(reports: Path) -> Path:
    """The messages of an Avro file as Base64, one a line, in a file beside it."""
    lines = reports.with_suffix(".txt")
    with reports.open("rb") as file, lines.open("wb") as out:
        out.writelines(base64.b64encode(bytes(message)) + b"\n" for message in read_messages(file, reports.name))
    return lines


def run(folder: Path, reports: Path, of: Path) -> list[str]:
    """Compile the program and run it over reports; returns the lines that it prints.

    Args:
        folder: for classes and logs.
        reports: messages as Base64, one a line.
        of: the file of their collection.

    Raises:
        RuntimeError: it did not compile or end well.
    """
    log, port = folder / "jobs.log", free_port()
    compiled = ["javac", "-cp", JARS.class_path, "-d", str(folder / "classes"), str(PROGRAM)]
    jobs = [sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main", f"--port={port}"]
    with expansion_service(folder) as service, process(jobs, log) as started:
        wait_for("Listening for beam jobs", started, log)
        options = [f"--service={service}", f"--reports={reports}", f"--collection={of}"]
        engine = ["--runner=PortableRunner", f"--jobEndpoint=localhost:{port}", "--defaultEnvironmentType=LOOPBACK"]
        class_path = f"{folder / 'classes'}:{JARS.class_path}"
        _run(compiled)
        return _run(java(class_path, PROGRAM.stem, *engine, *options)).splitlines()


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
        print(*run(folder, as_lines(make_reports(folder, "packed", 20_000)), collection(folder)), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
