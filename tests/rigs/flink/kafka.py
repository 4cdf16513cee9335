"""A Kafka broker on this machine, and Beam's expansion service, which writes the step that reads it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.rigs.flink.cached import JARS, client
from tests.rigs.flink.processes import free_port, java, process, wait_for

EXPANSION_SERVICE = "org.apache.beam.sdk.expansion.service.ExpansionService"


@contextlib.contextmanager
def broker(
    folder: Path, secured: int | None = None, more: Mapping[str, str | int | Path] | None = None
) -> Iterator[str]:
    """One process that is broker and controller, and listens on this machine only.

    Args:
        folder: for its log and its data.
        secured: a free port on which it also listens, by SASL_SSL; None: it does not.
        more: settings, such as those of TLS and SASL.

    Yields:
        HOST:PORT for clients.
    """
    server, properties = prepare(folder, secured, more)
    with serve(properties, folder / "kafka.log"):
        yield server


def prepare(
    folder: Path, secured: int | None = None, more: Mapping[str, str | int | Path] | None = None
) -> tuple[str, Path]:
    """HOST:PORT and the file of settings of a broker that has not been started; for arguments see ``broker``."""
    port, controller = free_port(), free_port()
    beside = "" if secured is None else f",SASL_SSL://127.0.0.1:{secured}"
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}{beside}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
        "log.dirs": folder / "kafka",
        "offsets.topic.replication.factor": 1,
        **(more or {}),
    }
    properties = folder / "kafka.properties"
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), "utf-8")
    cluster_id = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
    form = java(
        JARS.class_path, "kafka.tools.StorageTool", "format", f"--cluster-id={cluster_id}", f"--config={properties}"
    )
    subprocess.run(form, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return f"127.0.0.1:{port}", properties


@contextlib.contextmanager
def serve(properties: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a prepared broker, the first time or again on the data that it left; it is killed on leaving."""
    with process(java(JARS.class_path, "kafka.Kafka", str(properties)), log) as started:
        wait_for("Kafka Server started", started, log)
        yield started


def create_topic(server: str, topic: str, partitions: int, timestamps: str) -> None:
    """Make an empty topic whose records have times of the given kind, CreateTime or LogAppendTime."""
    admin = client().KafkaAdminClient(bootstrap_servers=server)
    settings = {"message.timestamp.type": timestamps}
    admin.create_topics([client().admin.NewTopic(topic, partitions, 1, topic_configs=settings)])
    admin.close()


@contextlib.contextmanager
def expansion_service(folder: Path) -> Iterator[str]:
    """Beam's expansion service, whose steps run in Java workers that are processes of this machine.

    Args:
        folder: for its log and the program that starts a worker.

    Yields:
        HOST:PORT.
    """
    worker, log, port = folder / "java_worker", folder / "expansion.log", free_port()
    worker.write_text(f'#!/bin/sh\nexec {sys.executable} -m tests.rigs.flink.java_worker "$@"\n', "utf-8")
    worker.chmod(0o755)
    config = json.dumps({"command": str(worker)})
    environment = ["--defaultEnvironmentType=PROCESS", f"--defaultEnvironmentConfig={config}"]
    # read by Flink itself: as a splittable step, a topic without pauses would never reach a checkpoint
    native = "--experiments=use_deprecated_read"
    with process(java(JARS.class_path, EXPANSION_SERVICE, str(port), *environment, native), log) as started:
        wait_for("Starting expansion service at", started, log)
        yield f"localhost:{port}"
