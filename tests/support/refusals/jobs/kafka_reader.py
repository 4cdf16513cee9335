"""Refusals of the reader of Kafka: calls and their sentences."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import confluent_kafka
from apache_beam.io.restriction_trackers import OffsetRange
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.utils.timestamp import MIN_TIMESTAMP

from tests.support.kafka.reading import NOW, SECRET, poll, reading, turn
from tests.support.kafka_cluster import Cluster
from tests.support.refusals.tables import Refusal
from uldp_transforms.jobs.estimate.run import configure
from uldp_transforms.jobs.kafka import offsets as kafka_offsets
from uldp_transforms.jobs.kafka import polled as kafka_polled
from uldp_transforms.jobs.kafka import reader as kafka_reader
from uldp_transforms.jobs.kafka.offsets import BrokersAwayError, ConsumerSettings, Part, Share, parts_of
from uldp_transforms.jobs.kafka.polled import (
    EndlessTracker,
    Reading,
)
from uldp_transforms.jobs.kafka.reader import KafkaReadError
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME, LOG_APPEND_TIME


def fault_behind_a_record(kafka: Cluster) -> None:
    """It is said once, together with the record, and waits for the next poll."""
    gone = confluent_kafka.KafkaError(confluent_kafka.KafkaError._AUTO_OFFSET_RESET, "gone")
    fault = confluent_kafka.Message(error=gone)
    record = confluent_kafka.Message(value=b"a", partition=0, offset=0, timestamp=(1, NOW))
    with reading(kafka, kafka.topic()) as reader, mock.patch.object(reader, "_consumer") as consumer:
        consumer.consume.side_effect = [[record, fault], []]
        polled = reader.poll(0.1)
        assert polled is not None
        assert polled.values == [b"a"]
        reader.poll(0.1)


def configured(*more: str) -> Callable[[], Any]:
    source = ["--collection=krr.json", "--kafka_topic=t", "--bootstrap_servers=127.0.0.1:1", "--output=out"]
    return lambda: configure([*source, "--window=1h", *more])


def with_cluster(call: Callable[[Cluster], Any]) -> Callable[[], Any]:
    return lambda: call(Cluster())


def wrong_kind(cluster: Cluster) -> None:
    topic = cluster.topic()
    cluster.send(topic, [b"a"], NOW)
    with reading(cluster, topic, LOG_APPEND_TIME) as reader:
        poll(reader)


def records_that_are_gone(cluster: Cluster) -> None:
    with reading(cluster, cluster.topic(), p0=200) as reader:
        poll(reader)


def stalled(cluster: Cluster) -> None:
    topic = cluster.topic()
    cluster.send(topic, [b"a"], NOW)
    fn = kafka_polled._RangeFn(Reading(settings=cluster.settings, kind_of_times=CREATE_TIME))
    with mock.patch.object(kafka_reader, "PATIENCE", 0.5):
        turn(fn, Part(topic, 0, 0, 5), OffsetRange(0, 5))


def more_partitions(cluster: Cluster) -> None:
    topic = cluster.topic()
    fn = kafka_polled._StreamFn(
        Reading(settings=cluster.settings, kind_of_times=CREATE_TIME, partitions=frozenset([0, 1]))
    )
    fn.setup()
    with mock.patch.object(kafka_polled, "PARTITIONS_SECONDS", 0.0):
        turn(fn, Share(topic, (0,), (0,)), (0,), ManualWatermarkEstimator(MIN_TIMESTAMP))


def no_answer() -> None:
    with mock.patch.object(kafka_offsets, "ANSWER_SECONDS", 1.0):
        parts_of(ConsumerSettings("127.0.0.1:1"), "t", ends=True)


def without_client() -> None:
    with mock.patch.dict(sys.modules, {"confluent_kafka": None}):
        ConsumerSettings("a:1").consumer()


def consumer_of(*properties: tuple[str, str]) -> Callable[[], Any]:
    return lambda: ConsumerSettings("a:1", properties).consumer()


WHOSE = "--kafka_consumer_config and --kafka_property"
A_LATER_TIME = 4_102_444_800
REFUSED: list[Refusal] = [
    (
        configured(),
        "--kafka_topic needs --kafka_until (a range is read on this machine), or --runner PrismRunner, "
        "FlinkRunner or another runner that reads streams, got 'DirectRunner'",
    ),
    (
        configured("--kafka_reader=java"),
        "--kafka_topic needs --runner FlinkRunner, DataflowRunner or another runner that also runs Java, "
        "got 'DirectRunner'",
    ),
    (configured("--runner=FlinkRunner", "--kafka_from=0"), "--kafka_from needs --kafka_reader python, got java"),
    (configured("--kafka_until=now", "--kafka_reader=java"), "--kafka_until needs --kafka_reader python, got java"),
    (
        configured("--kafka_until=now", "--expansion_service=localhost:1"),
        "--expansion_service needs --kafka_reader java, got python",
    ),
    (
        configured("--kafka_until=now", "--late_every=1m"),
        "--late_every needs --subscription or --kafka_topic, got --kafka_topic with --kafka_until",
    ),
    (
        configured("--runner=PrismRunner", "--kafka_readers=2"),
        "--kafka_readers must be 1 on PrismRunner, which mixes up their watermarks, got 2",
    ),
    (configured("--kafka_until=soon"), "--kafka_until must be RFC 3339 or seconds since 1970, got 'soon'"),
    (
        configured("--kafka_from=now", "--kafka_until=now"),
        "--kafka_from must be RFC 3339 or seconds since 1970, got 'now'",
    ),
    (
        configured(f"--kafka_until={A_LATER_TIME}"),
        f"--kafka_until must be a time that has passed, got '{A_LATER_TIME}'",
    ),
    (
        without_client,
        "--kafka_topic read by Python needs the package confluent-kafka (pip install '.[kafka]'), got none",
    ),
    (BrokersAwayError, no_answer, "brokers of --bootstrap_servers must answer, got Local: Broker transport failure"),
    (
        with_cluster(lambda cluster: parts_of(cluster.settings, "nowhere", ends=True)),
        "--kafka_topic must be a topic that exists, got 'nowhere': Broker: Unknown topic or partition",
    ),
    (
        consumer_of(("enable.auto.commit", "true")),
        f"{WHOSE} must not contain enable.auto.commit, enable.auto.offset.store, auto.offset.reset, "
        "enable.partition.eof, which this program sets, got enable.auto.commit",
    ),
    (consumer_of(("sasl.pasword", SECRET)), f"settings of {WHOSE} must be settings of librdkafka, got sasl.pasword"),
    (
        KafkaReadError,
        with_cluster(wrong_kind),
        "topic 'topic-1' must have times of kind LogAppendTime, got CreateTime",
    ),
    (
        KafkaReadError,
        with_cluster(records_that_are_gone),
        "topic 'topic-1' cannot be read: fetch failed due to requested offset not available on the broker: Broker: "
        "Offset out of range (broker 1)",
    ),
    (KafkaReadError, with_cluster(fault_behind_a_record), "topic 'topic-1' cannot be read: gone"),
    (
        KafkaReadError,
        with_cluster(stalled),
        "partition 0 of topic 'topic-1' returned no records for 0.5 s at offset 1, before 5: nothing",
    ),
    (
        KafkaReadError,
        with_cluster(more_partitions),
        "topic 'topic-1' must have the 2 partitions that it had when the job was started (restart the job), got 4",
    ),
    (
        ValueError,
        EndlessTracker((0,)).check_done,
        "EndlessTracker must have deferred the rest before a call ends, got a call that ended without it",
    ),
]
"""Error, what raises it, and its sentence."""
