"""Flink on this machine: one process of Java, and Python workers in processes of their own."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from deploy.cache import CACHE, ROOT

FOLDER = Path(__file__).parent
JARS = CACHE / "flink-1.19.0-beam-2.62.0"
JOB_SERVER = "org.apache.beam.runners.flink.FlinkJobServerDriver"
PATIENCE = 120.0
"""Seconds until a process that does not start is given up."""

WORKED = 4.0
"""Seconds of CPU time after which a worker has imported everything and counts."""

_PACKAGES = ("lang", "lang.reflect", "io", "net", "text", "time", "util", "util.concurrent", "util.concurrent.atomic")
OPENED = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _PACKAGES]
"""Packages of Java 17 that Flink 1.19 serialises with reflection."""


def fetch() -> Path:
    """The folder with Flink and the job server; resolved by Maven unless they are in the cache.

    Raises:
        RuntimeError: a file is not the one that ``jars.sha256`` names; nothing of it is kept.
    """
    if JARS.exists():
        return JARS
    unfinished = JARS.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    copy = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={unfinished}"]
    subprocess.run(["mvn", "--batch-mode", "--quiet", f"--file={FOLDER / 'pom.xml'}", *copy], check=True)
    wrong = mismatches(unfinished)
    if wrong:
        shutil.rmtree(unfinished)
        raise RuntimeError(f"jars must be those of {FOLDER / 'jars.sha256'}, got others for {', '.join(wrong)}")
    unfinished.rename(JARS)
    return JARS


def mismatches(folder: Path) -> list[str]:
    """Names of files that are missing, are too many, or are others than the pinned ones."""
    lines = (FOLDER / "jars.sha256").read_text("utf-8").splitlines()
    pinned = {name: digest for digest, name in (line.split() for line in lines)}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    return sorted(name for name in pinned.keys() | found.keys() if pinned.get(name) != found.get(name))


def missing() -> str | None:
    """Why Flink cannot run here; None if it can."""
    if shutil.which("java") is None:
        return "java is not on PATH"
    return None if JARS.exists() else f"{JARS} is not there: make flink fetches it"


class Cluster:
    """A running cluster; made by ``cluster``."""

    def __init__(self, job_endpoint: str, pool: subprocess.Popen[bytes], pool_port: int, log: Path):
        self._pool = pool
        self._log = log
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
            time.sleep(0.5)
            after = self.workers()
            busy = [pid for pid, used in after.items() if used > WORKED and used - before.get(pid, used) > 0.1]
            if busy:
                os.kill(busy[0], signal.SIGKILL)
                return
            before = after

    def restarts(self) -> int:
        """How often Flink has started a job again."""
        return self._log.read_text("utf-8", "replace").count("switched from state RESTARTING to RUNNING")


@contextlib.contextmanager
def cluster(folder: Path, class_path: str | None = None) -> Iterator[Cluster]:
    """Start job server, Flink and worker pool; end them, and the workers, on leaving.

    Args:
        folder: for logs and staged files.
        class_path: of another job server, for instance the one file that Beam publishes for each version of Flink;
            None: the one of the cache.
    """
    log, pool_port = folder / "flink.log", _free_port()
    java = ["java", "-Xmx2g", *OPENED, "-cp", class_path or f"{JARS}/*", JOB_SERVER]
    java += ["--flink-master=[local]", f"--flink-conf-dir={FOLDER}", f"--artifacts-dir={folder / 'artifacts'}"]
    java += ["--job-host=localhost", "--job-port=0", "--artifact-port=0", "--expansion-port=0"]
    pool = [sys.executable, "-m", "apache_beam.runners.worker.worker_pool_main", f"--service_port={pool_port}"]
    with _process(java, log) as server, _process(pool, folder / "workers.log") as workers:
        yield Cluster(_job_endpoint(server, log), workers, pool_port, log)


@contextlib.contextmanager
def _process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, which ends with all that it has started."""
    own_python = os.path.dirname(sys.executable)  # the pool starts its workers as "python"
    environment = {**os.environ, "PATH": os.pathsep.join((own_python, os.environ["PATH"]))}
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out, start_new_session=True)
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _job_endpoint(server: subprocess.Popen[bytes], log: Path) -> str:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and server.poll() is None:
        started = re.search(r"JobService started on (\S+)", log.read_text("utf-8", "replace"))
        if started:
            return started[1]
        time.sleep(0.2)
    raise RuntimeError(f"Flink did not start; its log is {log}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
