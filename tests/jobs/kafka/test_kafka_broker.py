"""A topic read by Python from a real broker: transactions, compaction, times, restarts, more partitions, TLS, SASL."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import confluent_kafka
import pytest
from apache_beam.io.restriction_trackers import OffsetRange
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.rigs.flink import cached
from tests.rigs.flink.kafka import broker
from tests.rigs.flink.processes import java, process, wait_for
from tests.support.kafka.plain_topics import MORE, create, send
from tests.support.kafka.reading import poll, poll_to_the_end, turn
from tests.support.kafka.topics import SECRET, config, lines_of
from tests.support.kafka.topics import create as create_secured
from uldp_transforms.jobs.kafka import offsets as kafka_offsets
from uldp_transforms.jobs.kafka import polled as kafka_polled
from uldp_transforms.jobs.kafka.offsets import ConsumerSettings, Part, Share, parts_of
from uldp_transforms.jobs.kafka.reader import KafkaReadError, Reader, Reading
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME
from uldp_transforms.ldp.errors import SpecError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(cached.missing() is not None, reason=str(cached.missing())),
]

HOUR = 3_600_000
NOW = time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with broker(tmp_path_factory.mktemp("broker"), more=MORE) as found:
        yield found


def read(settings: ConsumerSettings, part: Part) -> list[bytes]:
    """A range, as a job reads it."""
    fn = kafka_polled._RangeFn(Reading(settings=settings, kind_of_times=CREATE_TIME))
    outputs, _ = turn(fn, part, OffsetRange(part.start, part.stop))
    return [value for group in outputs for value in group[0]]


def test_only_what_was_committed(server: str) -> None:
    """Aborted records and the marks of transactions are gaps between offsets: nothing waits for them."""
    create(server, "transactions")
    producer = confluent_kafka.Producer({"bootstrap.servers": server, "transactional.id": "t"})
    producer.init_transactions(60)
    for word, end in ((b"a", producer.commit_transaction), (b"b", producer.abort_transaction)):
        producer.begin_transaction()
        for number in range(3):
            producer.produce("transactions", word + b"%d" % number, timestamp=NOW)
        producer.flush(60)
        end(60)
    settings = ConsumerSettings(server, (("isolation.level", "read_committed"),))
    (part,) = parts_of(settings, "transactions", ends=True)
    assert part.stop == 8  # six records and two marks
    assert read(settings, part) == [b"a0", b"a1", b"a2"]
    reader = Reader(settings, "transactions", CREATE_TIME)
    reader.seek({0: 0})
    poll(reader, 3)
    poll_to_the_end(reader)
    assert (reader.watermark(0) or 0) > NOW + 1000
    producer.begin_transaction()
    producer.produce("transactions", b"c", timestamp=NOW)
    producer.flush(60)
    assert reader.poll(1.0) is None  # of a transaction that is not over
    producer.commit_transaction(60)
    assert poll(reader).values == [b"c"]
    reader.close()


def test_a_compacted_topic(server: str) -> None:
    """Of each key the last record is there; the range ends, though its first records are gone."""
    quick = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01", "max.compaction.lag.ms": "100"}
    create(server, "compacted", settings={"cleanup.policy": "compact", **quick})
    settings = ConsumerSettings(server)
    end = time.monotonic() + 120
    while True:  # the segment that is written to is not compacted, and records of later times begin a new one
        send(server, "compacted", [b"a1", b"b1", b"a2", b"b2"], [time.time_ns() // 1_000_000] * 4)
        (part,) = parts_of(settings, "compacted", ends=True)
        found = read(settings, part)
        if len(found) < part.stop:
            break
        assert time.monotonic() < end
        time.sleep(1)
    assert found[-1] == b"b2"


def test_times(server: str) -> None:
    create(server, "times", 2)
    send(server, "times", [b"a", b"b", b"c"], [NOW - 3 * HOUR, NOW - 2 * HOUR, NOW - HOUR])
    settings = ConsumerSettings(server)

    def asked(since: int | None, until: int | None) -> list[tuple[int, int]]:
        parts = parts_of(settings, "times", ends=True, since=since, until=until)
        return [(part.start, part.stop) for part in parts]

    assert asked(None, None) == [(0, 3), (0, 0)]
    assert asked(NOW - 2 * HOUR, None) == [(1, 3), (0, 0)]
    assert asked(None, NOW - HOUR) == [(0, 2), (0, 0)]
    assert asked(NOW - 2 * HOUR, NOW - HOUR) == [(1, 2), (0, 0)]
    assert asked(NOW, NOW) == [(3, 3), (0, 0)]
    assert asked(NOW - HOUR, NOW - 2 * HOUR) == [(1, 1), (0, 0)]
    (first, _) = parts_of(settings, "times", ends=False, since=NOW - HOUR)
    assert first == Part("times", 0, 2, kafka_offsets.NO_END)


def test_records_that_were_deleted_are_missed(server: str) -> None:
    """A job that stood before them says so, and does not go on behind them."""
    create(server, "deleted")
    send(server, "deleted", [b"a", b"b", b"c"], [NOW] * 3)
    client = AdminClient({"bootstrap.servers": server})
    place = confluent_kafka.TopicPartition("deleted", 0, 2)
    client.delete_records([place])[place].result(60)
    with pytest.raises(KafkaReadError, match=r"topic 'deleted' cannot be read: .*Offset out of range"):
        read(ConsumerSettings(server), Part("deleted", 0, 0, 3))
    (part,) = parts_of(ConsumerSettings(server), "deleted", ends=True)
    assert read(ConsumerSettings(server), part) == [b"c"]


def test_a_partition_more_stops_the_job(server: str) -> None:
    create(server, "grows")
    reading = Reading(settings=ConsumerSettings(server), kind_of_times=CREATE_TIME, partitions=frozenset([0]))
    fn = kafka_polled._StreamFn(reading)
    fn.setup()
    share, watermark = Share("grows", (0,), (0,)), ManualWatermarkEstimator(MIN_TIMESTAMP)
    with mock.patch.object(kafka_polled, "PARTITIONS_SECONDS", 0.0):
        turn(fn, share, (0,), watermark)
        client = AdminClient({"bootstrap.servers": server})
        client.create_partitions([NewPartitions("grows", 2)])["grows"].result(60)
        with pytest.raises(KafkaReadError, match=r"topic 'grows' must have the 1 partitions .* got 2"):
            for _ in range(30):
                turn(fn, share, (0,), watermark)


def test_a_broker_that_is_away_for_a_while(tmp_path: Path) -> None:
    """Meanwhile the watermark stands still: there may be records that nobody can read."""
    with broker(tmp_path, more=MORE) as server:
        kill_and_restart(tmp_path, server)


def kill_and_restart(folder: Path, server: str) -> None:
    create(server, "restart")
    send(server, "restart", [b"a"], [NOW])
    reader = Reader(ConsumerSettings(server), "restart", CREATE_TIME)
    reader.seek({0: 0})
    poll(reader)
    poll_to_the_end(reader)
    before = reader.watermark(0)
    wait_until_restartable(folder / "kafka")
    os.kill(process_of(str(folder / "kafka.properties")), signal.SIGKILL)
    reader.poll(2.0)
    with mock.patch("uldp_transforms.jobs.kafka.reader.ANSWER_SECONDS", 2.0):
        assert reader.watermark(0) == before
    log = folder / "again.log"
    with process(java(cached.JARS.class_path, "kafka.Kafka", str(folder / "kafka.properties")), log) as started:
        wait_for("Kafka Server started", started, log)
        send(server, "restart", [b"b"], [NOW])
        assert poll(reader).values == [b"b"]
        poll_to_the_end(reader)
        assert (reader.watermark(0) or 0) > before
    reader.close()


def wait_until_restartable(data: Path) -> None:
    """Until each partition has the file that names its topic: Kafka does not start with one that was just made."""
    end = time.monotonic() + 60
    while not all((partition / "partition.metadata").exists() for partition in data.glob("*-*/")):
        assert time.monotonic() < end
        time.sleep(0.1)


def process_of(argument: str) -> int:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        if argument.encode() in path.read_bytes().split(b"\0"):
            return int(path.parent.name)
    raise AssertionError(argument)


def test_tls_and_sasl(
    secured: dict[str, str],  # the fixture
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a file whose secret stands in the environment; nobody else is let in."""
    monkeypatch.setenv("ULDP_KAFKA_PASSWORD", SECRET)
    monkeypatch.setattr(kafka_offsets, "ANSWER_SECONDS", 5.0)
    servers = secured["bootstrap.servers"]
    create_secured(secured, ["incoming"])
    producer = confluent_kafka.Producer(secured)
    producer.produce("incoming", b"a", partition=1, timestamp=NOW)
    assert producer.flush(60) == 0

    def settings(password: str) -> ConsumerSettings:
        path = config(tmp_path, servers, *lines_of(secured | {"sasl.password": password}))
        return ConsumerSettings(servers, (), str(path))

    parts = parts_of(settings("${ULDP_KAFKA_PASSWORD}"), "incoming", ends=True)
    assert [read(settings("${ULDP_KAFKA_PASSWORD}"), part) for part in parts] == [[], [b"a"]]
    with pytest.raises(SpecError, match="brokers of --bootstrap_servers must answer, got "):
        parts_of(settings("wrong"), "incoming", ends=True)
