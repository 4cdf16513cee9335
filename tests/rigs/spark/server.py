"""Spark on this machine, inside Beam's job server: one process of Java, and Python workers in processes of theirs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.rigs import cache
from tests.rigs.flink.processes import free_port, java, process, wait_for

JARS = cache.Jars(source=cache.ROOT / "deploy" / "spark", folder=cache.CACHE / "spark-3.5.0-beam-2.70.0")
JOB_SERVER = "org.apache.beam.runners.spark.SparkJobServerDriver"

_OPENED = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in ("java.nio", "sun.nio.ch", "sun.security.action")]
"""Packages of Java 17 that Spark 3.5 uses by reflection, besides those that Flink uses."""
_LOG = "-Dorg.apache.logging.log4j.level=INFO"  # the line that says where the job server listens


def missing() -> str | None:
    """Why Spark cannot run here; None if it can."""
    return cache.missing("make spark", JARS.folder)


@contextlib.contextmanager
def spark(folder: Path, start_timeout: str = "60s") -> Iterator[list[str]]:
    """Start job server, Spark with two cores, and the pool of workers; yields the options of a job.

    Args:
        folder: for logs and staged files; workers write ``worker-*.log``.
        start_timeout: of the pool.
    """
    log, pool_log = folder / "spark.log", folder / "pool.log"
    server = [
        JOB_SERVER,
        "--spark-master-url=local[2]",
        f"--artifacts-dir={folder / 'artifacts'}",
        "--job-host=localhost",
    ]
    server += ["--job-port=0", "--artifact-port=0", "--expansion-port=0"]
    command, *rest = java(JARS.class_path, *server, memory="2g")
    pool = [sys.executable, "-m", "uldp_transforms.jobs", "workers", f"--address=localhost:{free_port()}"]
    pool += [f"--start_timeout={start_timeout}", f"--log_dir={folder}"]
    with process([command, *_OPENED, _LOG, *rest], log) as engine, process(pool, pool_log) as workers:
        endpoint = wait_for(r"JobService started on (\S+)", engine, log)[1]
        address = wait_for(r"listening at (\S+)", workers, pool_log)[1]
        keep = "--environment_cache_millis=60000"  # or every step of the job starts workers of its own
        external = ["--environment_type=EXTERNAL", f"--environment_config={address}"]
        yield ["--runner=PortableRunner", f"--job_endpoint={endpoint}", *external, keep]
