"""Main jobs that are handed to a cluster and go on there, whatever becomes of the program that handed them over."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.rigs.cache import ROOT
from tests.rigs.flink.standalone import SLOTS, Standalone
from tests.rigs.flink.stream import Job, command

LAUNCH_PATIENCE = 300.0
"""Seconds for which the program may take to hand the job over."""


class Launched(Job):
    """A job on a cluster.

    Attributes:
        id: by which Flink knows it.
    """

    def __init__(self, flink: Standalone, job: str, output: Path, log: Path):
        super().__init__(lambda: flink.rest.ended(job), output, log)
        self.id = job


def launch(flink: Standalone, spec: Path, output: Path, options: Sequence[str]) -> Launched:
    """Hand a main job over, and wait until it runs.

    Args:
        flink: the cluster.
        spec: file of a collection.
        output: directory for its rows.
        options: beside those of ``command``.

    Raises:
        RuntimeError: the program did not end well, or the job does not come.
    """
    before, number = set(flink.rest.jobs()), len(list(output.parent.glob(f"{output.name}-*.log")))
    log = output.with_name(f"{output.name}-{number}.log")
    words = [*command(spec, output, options), "--no_wait_until_finish", *flink.options(parallelism=SLOTS)]
    with log.open("wb") as out:
        ended = subprocess.run(words, cwd=ROOT, stdout=out, stderr=out, check=False, timeout=LAUNCH_PATIENCE)
    if ended.returncode:
        raise RuntimeError(f"{output.name} ended with {ended.returncode}: {log.read_text('utf-8', 'replace')[-2000:]}")
    found = flink.rest.wait(f"the job {output.name}", lambda: (set(flink.rest.jobs()) - before) or None).pop()
    wait_until_it_runs(flink, found)
    return Launched(flink, found, output, log)


def wait_until_it_runs(flink: Standalone, job: str) -> None:
    """Wait until all parts of a job run.

    Raises:
        RuntimeError: it takes too long.
    """

    def look() -> bool | None:
        vertices = flink.rest.ask(f"/jobs/{job}")["vertices"]
        return all(vertex["status"] in ("RUNNING", "FINISHED") for vertex in vertices) or None

    flink.rest.wait(f"job {job}", look)
