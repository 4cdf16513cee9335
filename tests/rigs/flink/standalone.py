"""Flink as a cluster: a JobManager, task managers with two slots each, job server and ZooKeeper, all processes.

They stand for machines: a task manager has a pool of Python workers of its own, and is lost together with it. ZooKeeper
keeps which jobs run, so that a JobManager that is started again goes on with them. It is part of the jars of Flink.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.rigs.flink.cached import FOLDER, JARS
from tests.rigs.flink.cluster import JOB_SERVER
from tests.rigs.flink.processes import free_port, java, process, wait_for
from tests.rigs.flink.rest import Rest

JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
ZOOKEEPER = "org.apache.flink.shaded.zookeeper3.org.apache.zookeeper.server.ZooKeeperServerMain"

TASK_MANAGERS, SLOTS = 2, 2
POOL = "worker-pool"
"""Name under which each task manager finds its own pool."""


class Standalone:
    """A running cluster of processes; made by ``standalone``.

    Attributes:
        rest: its REST interface.
        job_endpoint: HOST:PORT of its job server.
    """

    def __init__(self, folder: Path, stack: contextlib.ExitStack):
        self._folder = folder
        self._machines: dict[str, contextlib.ExitStack] = {}
        self._started = 0
        self._pool_port = free_port()
        self._stack = stack
        self._zookeeper, rest_port = free_port(), free_port()
        self.rest = Rest(f"http://localhost:{rest_port}")
        self._settings = self._write_settings(rest_port)
        self.job_endpoint = ""

    def start(self) -> None:
        """Start everything, in the order of a real one."""
        zookeeper = java(JARS.class_path, ZOOKEEPER, str(self._zookeeper), str(self._folder / "zookeeper"))
        self._stack.enter_context(process(zookeeper, self._folder / "zookeeper.log"))
        self.start_job_manager()
        for number in range(TASK_MANAGERS):
            self.start_task_manager(number)
        self.rest.wait_for_slots(SLOTS * TASK_MANAGERS)
        self.start_job_server()

    def start_job_manager(self) -> None:
        command = java(JARS.class_path, JOB_MANAGER, f"--configDir={self._settings}", memory="1g")
        machine, log = self._machine("jobmanager")
        started = machine.enter_context(process(command, log))
        wait_for("Rest endpoint listening at", started, log)

    def start_job_server(self) -> None:
        """The service that takes jobs of Beam, and gives them to the JobManager."""
        artifacts = f"--artifacts-dir={self._folder / 'artifacts'}"
        server = [JOB_SERVER, f"--flink-master={self.rest.address}", f"--flink-conf-dir={self._settings}", artifacts]
        server += ["--job-host=localhost", "--job-port=0", "--artifact-port=0", "--expansion-port=0"]
        machine, log = self._machine("jobserver")
        started = machine.enter_context(process(java(JARS.class_path, *server), log))
        self.job_endpoint = wait_for(r"JobService started on (\S+)", started, log)[1]

    def start_task_manager(self, number: int) -> None:
        """A task manager, and the pool of Python workers that it finds under the name ``POOL``."""
        machine, log = self._machine(f"taskmanager-{number}")
        hosts, address = self._folder / f"hosts-{number}", f"127.0.0.{2 + number}"
        hosts.write_text(f"127.0.0.1 localhost {socket.gethostname()}\n{address} {POOL}\n", "utf-8")
        pool = [sys.executable, "-m", "uldp_transforms.jobs", "workers", f"--address={address}:{self._pool_port}"]
        machine.enter_context(process(pool, log.with_suffix(".pool.log")))
        named = f"-Dtaskmanager.resource-id=taskmanager-{number}-{self._started}"
        command = java(JARS.class_path, TASK_MANAGER, f"--configDir={self._settings}", named, memory="1g")
        machine.enter_context(process([command[0], f"-Djdk.net.hosts.file={hosts}", *command[1:]], log))

    def lose(self, name: str) -> None:
        """Kill (SIGKILL) all processes of ``jobmanager``, ``jobserver``, or ``taskmanager-0``, and so on."""
        self._machines.pop(name).close()

    def options(self, parallelism: int) -> list[str]:
        """Options of a job that has as many Python processes as Flink has slots."""
        environment = ["--environment_type=EXTERNAL", f"--environment_config={POOL}:{self._pool_port}"]
        environment += ["--environment_cache_millis=5000", f"--sdk_worker_parallelism={parallelism}"]
        endpoint = f"--job_endpoint={self.job_endpoint}"
        return ["--runner=PortableRunner", endpoint, *environment, f"--parallelism={parallelism}"]

    def _machine(self, name: str) -> tuple[contextlib.ExitStack, Path]:
        """What is running under this name, and the log of what is started next."""
        self._started += 1
        machine = self._machines[name] = self._stack.enter_context(contextlib.ExitStack())
        return machine, self._folder / f"{name}-{self._started}.log"

    def _write_settings(self, rest_port: int) -> Path:
        """A folder with Flink's ``config.yaml``."""
        settings, here = self._folder / "settings", "localhost"
        settings.mkdir()
        own = {
            "jobmanager.rpc.address": here,
            "jobmanager.rpc.port": free_port(),
            "rest.address": here,
            "rest.port": rest_port,
            "taskmanager.host": here,
            "taskmanager.numberOfTaskSlots": SLOTS,
            "state.checkpoints.dir": (self._folder / "checkpoints").as_uri(),
            "state.savepoints.dir": (self._folder / "savepoints").as_uri(),
            "high-availability.type": "zookeeper",
            "high-availability.zookeeper.quorum": f"{here}:{self._zookeeper}",
            "high-availability.storageDir": (self._folder / "jobs").as_uri(),
            "io.tmp.dirs": self._folder / "temporary",
        }
        os.makedirs(self._folder / "temporary")
        texts = [(FOLDER / name).read_text("utf-8") for name in ("config.yaml", "standalone.yaml")]
        lines = [f"{name}: {value}\n" for name, value in own.items()]
        (settings / "config.yaml").write_text("\n".join([*texts, "".join(lines)]), "utf-8")
        return settings


@contextlib.contextmanager
def standalone(folder: Path) -> Iterator[Standalone]:
    """Start a cluster; end all its processes on leaving.

    Args:
        folder: for logs, settings, checkpoints, savepoints and staged files.
    """
    with contextlib.ExitStack() as stack:
        running = Standalone(folder, stack)
        running.start()
        yield running
