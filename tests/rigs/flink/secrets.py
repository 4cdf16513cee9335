"""The main job on Flink reads a Kafka that wants TLS and a password, in Java: is the password seen anywhere?

Its rows go to a topic of the same broker. The password stands in files alone. Beside that job another one is started
with a wrong password. Then all that others can look at is searched for both: the process list, which is watched all the
time, the jobs' description, the logs and all other files of the run, and what Flink answers. Needs what
``tests.rigs.flink`` needs, and confluent-kafka.

A search that finds nothing could be blind, so each one must find something that does stand there.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc

from tests.rigs.flink.cluster import Cluster, cluster
from tests.rigs.flink.kafka import create_topic, expansion_service
from tests.rigs.flink.kafka_rows import consumed
from tests.rigs.flink.processes import free_port, process
from tests.rigs.flink.rest import Rest
from tests.rigs.flink.secured import Secured, secured_broker
from tests.rigs.flink.stream import PATIENCE, TOPIC, Job, command, job
from tests.rigs.flink.traffic import PARTITIONS, Sent, send
from tests.rigs.flink.trial import try_out_traffic
from tests.rigs.job import collection
from uldp_transforms.jobs.kafka.secrets import references_to
from uldp_transforms.jobs.sources.kafka_topic import CREATE_TIME, JAVA

ROWS = "rows"
"""Topic of the rows of estimates."""

KIND = "estimates"

AUTHORITY = "ULDP_KAFKA_AUTHORITY"
"""A variable of the environment, which the consumer's file names."""

PLACES = {
    "process list": "mark",
    "job's description": "mark",
    "logs": "mark",
    "other files": "mark",
    "Flink's answers": "step",
}
"""Where secrets are looked for, and what must be found there: a setting that is no secret, or the name of a step."""

REFUSED = "Authentication failed: Invalid username or password"
"""The brokers' words about a wrong password."""


def main() -> int:
    return try_out_traffic("secrets", __doc__, run, rate=300, seconds=20)


def run(folder: Path, rate: int, seconds: int) -> str:
    """Start everything, send, wait for all rows, search; then start a job with a wrong password.

    Returns:
        What was counted, and where was searched.

    Raises:
        RuntimeError: a row is missing or wrong, a secret or not even the mark was found, or the job with the wrong
            password did not end with a sentence.
    """
    password, wrong, mark = (secrets.token_hex(12) for _ in range(3))
    search = Search({"password": password, "wrong password": wrong, "mark": mark, "step": "ReadKafka"})
    with ExitStack() as stack:
        kafka = stack.enter_context(secured_broker(folder, password))
        os.environ[AUTHORITY] = str(kafka.authority)  # for Flink, whose consumer reads it
        stack.callback(os.environ.pop, AUTHORITY)
        service, rest_port = stack.enter_context(expansion_service(folder)), free_port()
        ports = f"rest.port: {rest_port}\nrest.bind-port: {rest_port}\n"
        flink = stack.enter_context(cluster(folder, more=ports))
        files = settings_files(folder, kafka, password, wrong)
        create_topic(kafka.server, TOPIC, PARTITIONS, CREATE_TIME)
        create_topic(kafka.server, ROWS, 1, CREATE_TIME)
        stack.enter_context(search.watch_processes())
        source = [f"--kafka_topic={TOPIC}", f"--bootstrap_servers={kafka.address}", f"--kafka_reader={JAVA}"]
        source += [f"--expansion_service={service}", f"--kafka_property=client.id={mark}", "--deduplicate"]
        rows = [f"--output_kafka_topic={ROWS}", f"--kafka_config={files['producer']}", "--release=final"]
        own = [*source, f"--kafka_consumer_config={files['consumer']}", *rows]
        running = stack.enter_context(job(folder, "right", own, flink))
        running.wait(lambda: bool(flink.workers()))
        sent = send(kafka.server, TOPIC, collection(folder), rate, seconds)
        running.wait(partial(running.has, sent))
        refused = attempt_with(files["wrong"], folder, source, flink)
        search.look_at_rest(Rest(f"http://localhost:{rest_port}"))
        search.look_at_descriptions(flink.job_endpoint)
        search.look_at_files(folder, {folder / "kafka.properties", *files.values()})
        faults = [*differences(running, consumed(kafka.server, ROWS)), *refused.faults(), *search.faults()]
    if faults:
        raise RuntimeError("\n".join(faults))
    return table(running, sent, refused)


def settings_files(folder: Path, kafka: Secured, password: str, wrong: str) -> dict[str, Path]:
    """Files of settings, which nobody else may read: of the consumer, of the producer, and of a consumer refused."""
    consumer = kafka.for_java(password) | {"ssl.truststore.location": f"${{{AUTHORITY}}}"}
    contents = {
        "consumer": consumer,
        "producer": kafka.for_librdkafka(password),
        "wrong": kafka.for_java(wrong),
    }
    files = {name: folder / f"{name}.properties" for name in contents}
    for name, path in files.items():
        path.touch(0o600)
        path.write_text("".join(f"{key}={value}\n" for key, value in contents[name].items()), "utf-8")
    return files


class Refused(NamedTuple):
    """How a job with a wrong password ended.

    Attributes:
        code: its exit code; None: it did not end.
        said: its last line.
        seconds: until then.
    """

    code: int | None
    said: str
    seconds: float

    def faults(self) -> list[str]:
        """A sentence, unless it ended as it must."""
        if self.code == 1 and self.said.startswith("estimate: the run failed: ") and self.said.endswith(REFUSED):
            return []
        return [f"with a wrong password the job must end with 1 and {REFUSED!r}, got {self.code} and {self.said!r}"]


def attempt_with(path: Path, folder: Path, source: Sequence[str], flink: Cluster) -> Refused:
    """Start a job whose settings are references into a file, each one an option; wait until it ends."""
    references = [f"--kafka_property={name}={value}" for name, value in references_to(str(path), "the file").items()]
    output, log, begin = folder / "refused", folder / "refused.log", time.monotonic()
    words = [*command(collection(folder), output, [*source, *references]), *flink.options(parallelism=1)]
    with process(words, log) as started:
        with suppress(subprocess.TimeoutExpired):
            started.wait(PATIENCE)
        lines = log.read_text("utf-8", "replace").splitlines() or [""]
        return Refused(started.poll(), lines[-1], time.monotonic() - begin)


def differences(running: Job, records: Sequence[tuple[bytes, dict[str, Any]]]) -> list[str]:
    """A sentence, unless the topic has each row of the files, once."""
    in_topic, in_files = (Counter(map(json.dumps, rows)) for rows in ([row for _, row in records], running.rows(KIND)))
    if in_topic == in_files:
        return []
    return [f"topic and files must have the same rows, got {in_topic.total()} and {in_files.total()}"]


def table(running: Job, sent: Sent, refused: Refused) -> str:
    """What was sent, counted and searched."""
    exact = "exact" if running.ledger() == sent.ledger else "too much, none missing"
    lines = [
        f"{sent.messages:,} messages, {len(sent.counts)} windows, each with its reports; the ledger is {exact}",
        f"rows in the topic: {sum(1 for _ in running.rows(KIND))}, those of the files",
        f"with a wrong password: exit code {refused.code} after {refused.seconds:.0f} s, {REFUSED!r}",
        f"neither password in: {', '.join(PLACES)}",
    ]
    return "\n".join(lines)


class Search:
    """What was found of some words, place by place.

    Args:
        words: name -> what is looked for.
    """

    def __init__(self, words: Mapping[str, str]):
        self._words = {name: word.encode() for name, word in words.items()}
        self.found: dict[str, set[str]] = {}

    def look(self, place: str, text: bytes) -> None:
        """Look at a text that stands in a place."""
        self.found.setdefault(place, set()).update(name for name, word in self._words.items() if word in text)

    @contextmanager
    def watch_processes(self) -> Iterator[None]:
        """Look at the process list again and again, until leaving."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.1):
                for line in Path("/proc").glob("[0-9]*/cmdline"):
                    self.look("process list", _read(line))

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def look_at_files(self, folder: Path, hidden: set[Path]) -> None:
        """Look at all files below a folder, logs by themselves, but for those in which secrets may stand."""
        for path in folder.rglob("*"):
            if path.is_file() and path not in hidden:
                self.look("logs" if path.suffix == ".log" else "other files", _read(path))

    def look_at_descriptions(self, endpoint: str) -> None:
        """Look at what a job server knows of its jobs."""
        with grpc.insecure_channel(endpoint) as channel:
            service = beam_job_api_pb2_grpc.JobServiceStub(channel)
            for each in service.GetJobs(beam_job_api_pb2.GetJobsRequest()).job_info:
                request = beam_job_api_pb2.GetJobPipelineRequest(job_id=each.job_id)
                self.look("job's description", service.GetPipeline(request).pipeline.SerializeToString())
                self.look("job's description", each.SerializeToString())

    def faults(self) -> list[str]:
        """A sentence for each place where a password is, or where not even the other word was found."""
        shown = [
            f"no password must be in the {place}, got the {name}"
            for place, names in self.found.items()
            for name in sorted(names)
            if "password" in name
        ]
        blind = [
            f"the {word} must be found in the {place}, got nothing"
            for place, word in PLACES.items()
            if word not in self.found.get(place, ())
        ]
        return shown + blind

    def look_at_rest(self, rest: Rest) -> None:
        """Look at what Flink answers about itself and its jobs."""
        paths = ["/config", "/jobmanager/config", "/jobmanager/environment", "/taskmanagers", "/jobs/overview"]
        for number in [each["jid"] for each in rest.ask("/jobs/overview")["jobs"]]:
            about = rest.ask(f"/jobs/{number}")
            places = ["", "/config", "/plan", "/exceptions", "/checkpoints", "/checkpoints/config", "/accumulators"]
            places += [f"/vertices/{each['id']}" for each in about["vertices"]]
            paths += [f"/jobs/{number}{place}" for place in places]
        for path in paths:
            self.look("Flink's answers", json.dumps(rest.ask(path)).encode())


def _read(path: Path) -> bytes:
    """The bytes of a file; none if it is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    sys.exit(main())
