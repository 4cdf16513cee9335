"""Single reports of a Kafka topic read by Python on Beam's local engine, with numpy and with the compiled decoder if it
is installed, beside what consuming the same messages takes. The broker is librdkafka's own, in another process."""

from __future__ import annotations

import contextlib
import functools
import subprocess
import sys
from collections.abc import Iterator
from unittest import mock

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from confluent_kafka import TopicPartition

from labs.benchmarks.measure import collection, cpu_seconds
from uldp_transforms import CountReports, DecodeReports, JobSpec
from uldp_transforms.jobs.kafka.offsets import ConsumerSettings
from uldp_transforms.jobs.kafka.polled import PollKafka, groups_of
from uldp_transforms.jobs.kafka.reader import Reading
from uldp_transforms.messages import native_module

_PARTITIONS, _NUMBER, _FEW = 4, 240_000, 400

_BROKER = """
import sys
from labs.benchmarks.measure import collection, reports
from tests.support.kafka_cluster import Cluster
from uldp_transforms.messages import wire
cluster = Cluster()
for number in map(int, sys.argv[1:]):
    batch = reports(collection("krr", 16, 64), number)
    messages, topic, part = wire.encode_reports(batch), cluster.topic(), -(-number // 4)
    for at in range(4):
        cluster.send(topic, messages[at * part : (at + 1) * part], 1_000_000_000_000, at)
print(cluster.servers, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def broker(*numbers: int) -> Iterator[ConsumerSettings]:
    """A broker with a topic of each number of single reports: topic-1, topic-2, ..."""
    command = [sys.executable, "-c", _BROKER, *map(str, numbers)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None, "it is a pipe"
        yield ConsumerSettings(process.stdout.readline().strip())
        process.communicate()


def consume(settings: ConsumerSettings, topic: str, number: int) -> None:
    """Take the values of all messages and nothing else."""
    consumer = settings.consumer()
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(_PARTITIONS)])
    values: list[bytes] = []
    while len(values) < number:
        values += [record.value() for record in consumer.consume(10_000, 1.0) if record.error() is None]
    consumer.close()


def poll(reading: Reading, topic: str, number: int) -> None:
    """Read groups of messages with their times, without an engine."""
    reader = reading.reader(topic)
    reader.seek(dict.fromkeys(range(_PARTITIONS), 0))
    while number > 0:
        polled = reader.poll(1.0)
        number -= sum(len(messages) for messages, _ in groups_of(polled)) if polled else 0
    reader.close()


def run(reading: Reading, topic: str) -> None:
    """Read, decode and count."""
    spec = JobSpec(collections=(collection("krr", 16, 64),))
    with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
        messages = pipeline | PollKafka(topic, reading, ends=True)
        _ = (messages | DecodeReports(spec)).reports | CountReports(spec)


def main() -> None:
    print(f"single reports of a Kafka topic with {_PARTITIONS} partitions (K = 16, C = 64)")
    with broker(_NUMBER, _FEW) as settings:
        reading = Reading(settings=settings, kind_of_times="CreateTime")
        alone = cpu_seconds(lambda: consume(settings, "topic-1", _NUMBER)) / _NUMBER
        _line("consuming alone", alone, alone)
        _line("polling groups", cpu_seconds(lambda: poll(reading, "topic-1", _NUMBER)) / _NUMBER, alone)
        parts = {"numpy": None} | ({} if native_module.native() is None else {"compiled": native_module.native()})
        for name, part in parts.items():
            with mock.patch.object(native_module, "native", lambda part=part: part):
                whole, start = (cpu_seconds(functools.partial(run, reading, f"topic-{at}")) for at in (1, 2))
            _line(f"the local engine, {name}", (whole - start) / (_NUMBER - _FEW), alone)


def _line(what: str, seconds: float, alone: float) -> None:
    print(f"  {what}: {1e6 * seconds:.2f} us a message, {seconds / alone:.2f} times consuming", flush=True)
