"""Flink on this machine: one process of Java, and Python workers in processes of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.rigs.flink.cached import FOLDER, JARS
from tests.rigs.flink.processes import free_port, java, process, wait_for

JOB_SERVER = "org.apache.beam.runners.flink.FlinkJobServerDriver"
WORKED = 4.0
"""Seconds of CPU time after which a worker has imported everything and counts."""
BUSY = 0.05
"""Seconds of CPU time in two seconds that an idle worker does not use."""


class Cluster:
    """A running cluster; made by ``cluster``.

    Attributes:
        job_endpoint: HOST:PORT of its job server.
    """

    def __init__(self, job_endpoint: str, pool: subprocess.Popen[bytes], pool_port: int, log: Path):
        self._pool = pool
        self._log = log
        self.job_endpoint = job_endpoint
        self._endpoints = [f"--job_endpoint={job_endpoint}", f"--environment_config=localhost:{pool_port}"]

    def options(self, parallelism: int) -> list[str]:
        """Options of a job that has as many Python processes as Flink has slots."""
        slots = [f"--parallelism={parallelism}", f"--sdk_worker_parallelism={parallelism}"]
        keep = "--environment_cache_millis=5000"  # or every step of the job starts workers of its own
        return ["--runner=PortableRunner", "--environment_type=EXTERNAL", *self._endpoints, keep, *slots]

    def workers(self) -> dict[int, float]:
        """Process ids of the Python workers, and the seconds of CPU time that each has used."""
        seconds = {}
        for status in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):  # processes end while we look
                state, parent, *rest = status.read_text().rpartition(") ")[2].split()
                if int(parent) == self._pool.pid and state != "Z":
                    ticks = int(rest[9]) + int(rest[10])
                    seconds[int(status.parent.name)] = ticks / os.sysconf("SC_CLK_TCK")
        return seconds

    def kill_busy_worker(self) -> None:
        """Wait for a Python worker that is counting, and kill it (SIGKILL)."""
        before = self.workers()
        while True:
            time.sleep(2)
            after = self.workers()
            busy = [pid for pid, used in after.items() if used > WORKED and used - before.get(pid, used) >= BUSY]
            if busy:
                os.kill(busy[0], signal.SIGKILL)
                return
            before = after

    def kill_worker(self) -> None:
        """Kill the Python worker that has worked most (SIGKILL)."""
        seconds = self.workers()
        os.kill(max(seconds, key=seconds.__getitem__), signal.SIGKILL)

    def restarts(self) -> int:
        """How often Flink has started a job again."""
        return self._log.read_text("utf-8", "replace").count("switched from state RESTARTING to RUNNING")


@contextlib.contextmanager
def cluster(
    folder: Path, class_path: str = JARS.class_path, config: Path = FOLDER / "config.yaml", more: str = ""
) -> Iterator[Cluster]:
    """Start job server, Flink and worker pool; end them, and the workers, on leaving.

    Args:
        folder: for logs, settings, checkpoints and staged files.
        class_path: of another job server, for instance the one file that Beam publishes for each version of Flink.
        config: of Flink, without the place of checkpoints.
        more: lines of settings besides.
    """
    log, pool_port = folder / "flink.log", free_port()
    server = [JOB_SERVER, "--flink-master=[local]", f"--flink-conf-dir={_settings(folder, config, more)}"]
    server += [f"--artifacts-dir={folder / 'artifacts'}", "--job-host=localhost"]
    server += ["--job-port=0", "--artifact-port=0", "--expansion-port=0"]
    pool = [sys.executable, "-m", "uldp_transforms.jobs", "workers", f"--address=localhost:{pool_port}"]
    with process(java(class_path, *server, memory="2g"), log) as flink, process(pool, folder / "pool.log") as workers:
        endpoint = wait_for(r"JobService started on (\S+)", flink, log)[1]
        yield Cluster(endpoint, workers, pool_port, log)


def _settings(folder: Path, config: Path, more: str) -> Path:
    """A folder with ``config.yaml``, which gets to know where checkpoints go."""
    settings = folder / "settings"
    settings.mkdir()
    checkpoints = f"state.checkpoints.dir: {(folder / 'checkpoints').as_uri()}\n"
    (settings / "config.yaml").write_text(config.read_text("utf-8") + checkpoints + more, "utf-8")
    return settings
