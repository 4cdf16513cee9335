"""Beam's Python expansion service with EstimateReports, as other languages call it: expands and runs it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.rigs.flink.processes import free_port, process, wait_for

TRANSFORM = "uldp_transforms.yaml.EstimateReports"
OUTPUTS = ("estimates", "values", "health", "ledger", "rejected", "counts")


def command(port: int) -> list[str]:
    """The command that serves the one transform, and the workers that run it."""
    serve = [sys.executable, "-m", "apache_beam.runners.portability.expansion_service_main", f"--port={port}"]
    workers = ["--serve_loopback_worker", "--environment_type=EXTERNAL", f"--environment_config=localhost:{port}"]
    return [*serve, f"--fully_qualified_name_glob={TRANSFORM}", *workers]


@contextlib.contextmanager
def expansion_service(folder: Path) -> Iterator[str]:
    """Start the service; yields HOST:PORT.

    Args:
        folder: for its log.
    """
    log, port = folder / "service.log", free_port()
    with process(command(port), log) as started:
        wait_for("Listening for expansion requests", started, log)
        yield f"localhost:{port}"
