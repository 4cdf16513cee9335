"""The Java programs of the compose file and the manifests start with their arguments, and write the job's steps."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.portability.api import beam_runner_api_pb2

from tests.rigs.flink import cached
from tests.rigs.flink.processes import free_port, java, process, wait_for
from tests.support.project.deployed import JOBS, SERVICES, here
from uldp_transforms.jobs.estimate.options import read_arguments
from uldp_transforms.jobs.estimate.run import build

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(cached.missing() is not None, reason=str(cached.missing())),
]


SERVER = SERVICES["job-server"]["command"]
PROGRAMS = {"expansion": SERVICES["expansion"]["entrypoint"], "job-server": SERVER[:5]}


def command(service: str, *arguments: str) -> list[str]:
    """The program of a service, with the jars of this machine."""
    program, _, flag, folder, main_class = PROGRAMS[service]
    assert (program, flag, folder) == ("java", "-cp", "/opt/beam/jars/*")
    return java(cached.JARS.class_path, main_class, *arguments)


def wait_for_port(port: int) -> None:
    """Programs say that they listen a moment before they do."""
    for _ in range(100):
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("localhost", port), 5):
            return
        time.sleep(0.2)
    raise TimeoutError(f"nobody listens on {port}")


@pytest.mark.parametrize("where", JOBS)
def test_java_writes_the_steps_that_read_kafka(where: str, tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "expansion.log"
    _, *arguments = SERVICES["expansion"]["command"]
    with process(command("expansion", str(port), *arguments), log) as started:
        wait_for("Registered SchemaTransformProviders", started, log)
        wait_for_port(port)
        option = "--expansion_service="
        _, *argv = (word for word in here(JOBS[where], tmp_path) if not word.startswith(option))
        job = read_arguments([*argv, f"{option}localhost:{port}"])
        pipeline = beam.Pipeline(options=job.options)
        build(pipeline, job)
        graph = pipeline.to_runner_api()
    job.directory.close()
    processes = [each for each in graph.components.environments.values() if each.urn == "beam:env:process:v1"]
    assert processes
    for environment in processes:
        payload = beam_runner_api_pb2.ProcessPayload.FromString(environment.payload)
        assert payload.command == "/opt/apache/beam/boot"
    text = json.dumps([str(step) for step in graph.components.transforms.values()])
    assert ("org.apache.kafka.common.config.provider.FileConfigProvider" in text) == (where == "Kubernetes")


def test_the_job_server_takes_its_arguments(tmp_path: Path) -> None:
    log, ours = tmp_path / "job_server.log", dict(text.split("=") for text in SERVER[5:])
    ours |= {"--job-port": "0", "--artifact-port": "0", "--artifacts-dir": str(tmp_path)}
    ours["--flink-conf-dir"] = str(cached.FOLDER)
    arguments = [f"{name}={value}" for name, value in ours.items()]
    with process(command("job-server", *arguments), log) as started:
        wait_for(r"JobService started on \S+", started, log)
