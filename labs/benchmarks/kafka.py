"""Single reports of a Kafka topic read by Python, on the local engine and by a job that follows the topic, with numpy
and with the compiled decoder if it is there, beside what the client takes to hand the messages over. The broker is
librdkafka's own, in another process."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from unittest import mock

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from confluent_kafka import TopicPartition

from labs.benchmarks.measure import collection, cpu_seconds
from uldp_transforms import CountReports, DecodeReports, JobSpec
from uldp_transforms.jobs.kafka.offsets import ConsumerSettings
from uldp_transforms.jobs.kafka.polled import PollKafka, groups_of
from uldp_transforms.jobs.kafka.reader import IN_A_CALL, Reading
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.messages import native_module
from uldp_transforms_follow.follower import Follower
from uldp_transforms_follow.state import FollowState
from uldp_transforms_follow.topic_reading import TopicSource

_PARTITIONS, _NUMBER, _FEW, _ROUNDS = 4, 300_000, 4_000, 3

_BROKER = """
import sys
from labs.benchmarks.measure import collection, reports
from tests.support.kafka_cluster import Cluster
from uldp_transforms.messages import wire
cluster = Cluster()
for number in map(int, sys.argv[1:]):
    batch = reports(collection("krr", 16, 64), number)
    messages, topic, latest = wire.encode_reports(batch), cluster.topic(), int(batch.event_times.max())
    for partition in range(4):
        part = messages[partition::4]
        for at in range(0, len(part), 50_000):
            cluster.send(topic, part[at : at + 50_000], latest, partition)
print(cluster.servers, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def broker(*numbers: int) -> Iterator[ConsumerSettings]:
    """A broker with a topic of each number of single reports: topic-1, topic-2, ..."""
    command = [sys.executable, "-c", _BROKER, *map(str, numbers)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None, "it is a pipe"
        servers = process.stdout.readline().strip()
        assert servers, "the process has failed"
        yield ConsumerSettings(servers)
        process.communicate()


@dataclasses.dataclass(frozen=True)
class Topic:
    """A topic with single reports, and how it is read."""

    reading: Reading
    name: str
    number: int

    def consume(self, at_once: int = IN_A_CALL) -> None:
        """Take all messages, so many with a call, and drop them."""
        consumer, left = self.reading.settings.consumer(), self.number
        consumer.assign([TopicPartition(self.name, partition, 0) for partition in range(_PARTITIONS)])
        while left > 0:
            left -= len(consumer.consume(at_once, 1.0))  # and the ends of partitions, which are four
        consumer.close()

    def poll(self) -> None:
        """Read groups of messages with their times, without an engine."""
        reader, left = self.reading.reader(self.name), self.number
        reader.seek(dict.fromkeys(range(_PARTITIONS), 0))
        while left > 0:
            polled = reader.poll(1.0)
            left -= sum(len(messages) for messages, _ in groups_of(polled)) if polled else 0
        reader.close()

    def run(self) -> None:
        """Read, decode and count with a pipeline."""
        spec = JobSpec(collections=(collection("krr", 16, 64),))
        with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
            messages = pipeline | PollKafka(self.name, self.reading, ends=True)
            _ = (messages | DecodeReports(spec)).reports | CountReports(spec)

    def follow(self) -> None:
        """Read, decode, count and commit, as a job that follows the topic."""
        collections = [collection("krr", 16, 64)]
        spec = JobSpec.of(collections=collections, bounded=False, run="run", window="1d", allowed_lateness="2d")
        with tempfile.TemporaryDirectory() as folder:
            state = FollowState(folder, "run", "windows")
            source = TopicSource(self.name, self.reading, None, spec, state)
            follower = Follower(source, folder, spec, state, late_every=0, forms=RowForms())
            while sum(state.offsets().values()) < self.number:
                follower.step()
            source.close()
            state.close()


def main() -> None:
    print(f"single reports of a Kafka topic with {_PARTITIONS} partitions (K = 16, C = 64), least of {_ROUNDS} rounds")
    with broker(_NUMBER, _FEW) as settings:
        reading = Reading(settings=settings, kind_of_times="CreateTime")
        many, few = Topic(reading, "topic-1", _NUMBER), Topic(reading, "topic-2", _FEW)
        works: dict[str, tuple[Callable[[], None], ...]] = {
            "consuming alone": (many.consume,),
            "consuming alone, 10,000 a call": (functools.partial(many.consume, 10_000),),
            "polling groups": (many.poll,),
        }
        for name, part in {"numpy": None, "compiled": native_module.native()}.items():
            if part is not None or name == "numpy":
                works[f"the local engine, {name}"] = tuple(_with(part, topic.run) for topic in (many, few))
                works[f"following, {name}"] = tuple(_with(part, topic.follow) for topic in (many, few))
        taken = {name: [float("inf")] * len(work) for name, work in works.items()}
        for _ in range(_ROUNDS):
            for name, work in works.items():
                taken[name] = [min(least, cpu_seconds(one, 1)) for least, one in zip(taken[name], work)]
    alone = taken["consuming alone"][0] / _NUMBER
    for name, (whole, *start) in taken.items():
        each = (whole - start[0]) / (_NUMBER - _FEW) if start else whole / _NUMBER
        print(f"  {name}: {1e6 * each:.2f} us a message, {each / alone:.2f} times consuming", flush=True)


def _with(part: object, work: Callable[[], None]) -> Callable[[], None]:
    """The same with this compiled decoder, or with none."""
    return mock.patch.object(native_module, "native", lambda: part)(work)
