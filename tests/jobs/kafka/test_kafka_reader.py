"""A topic read by Python: ranges and streams, watermarks, faults and options; on librdkafka's own mock cluster.

With a real broker: ``tests/jobs/kafka/test_kafka_broker.py``; on Flink: ``python -m tests.rigs.flink.polled``.
"""

from __future__ import annotations

import contextlib
import json
import pickle
import time
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import confluent_kafka
import numpy as np
import pytest
from apache_beam.coders import TimestampCoder
from apache_beam.io.restriction_trackers import OffsetRange
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.options.pipeline_options import StandardOptions
from apache_beam.runners.sdf_utils import (
    RestrictionTrackerView,
    ThreadsafeRestrictionTracker,
    ThreadsafeWatermarkEstimator,
)
from apache_beam.utils.timestamp import MIN_TIMESTAMP

from tests.rigs import prism
from tests.support import live
from tests.support.kafka.reading import NOW, SECRET, poll, poll_to_the_end, reading, turn
from tests.support.kafka_cluster import Cluster
from tests.support.messages_cases import KRR, write_files
from uldp_transforms.jobs.engines.step_streams import NEVER
from uldp_transforms.jobs.estimate.run import configure, run
from uldp_transforms.jobs.kafka import offsets as kafka_offsets
from uldp_transforms.jobs.kafka import polled as kafka_polled
from uldp_transforms.jobs.kafka import reader as kafka_reader
from uldp_transforms.jobs.kafka.offsets import ConsumerSettings, Part, Share, shares_of
from uldp_transforms.jobs.kafka.polled import (
    EndlessTracker,
    Offsets,
    PollKafka,
    Positions,
    Reading,
    _at_the_latest,
    groups_of,
)
from uldp_transforms.jobs.kafka.reader import Pool, Reader
from uldp_transforms.jobs.kafka.records import Polled
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME
from uldp_transforms.messages import wire
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, rfc3339

HOUR = 3_600_000


@pytest.fixture(scope="module")
def kafka() -> Cluster:
    return Cluster()


# ---------------------------------------------------------------------- the consumer


def test_records_are_arrays(kafka: Cluster) -> None:
    topic = kafka.topic()
    kafka.send(topic, [b"a", None, b"c"], [NOW, NOW + 1, NOW - 5], partition=1)
    kafka.send(topic, [b"d"], NOW + 2, partition=3)
    with reading(kafka, topic, p1=1, p3=0) as reader:
        polled = poll(reader, 3)
        order = np.lexsort((polled.offsets, polled.partitions))
        assert [polled.values[index] for index in order] == [b"", b"c", b"d"]
        assert polled.partitions[order].tolist() == [1, 1, 3]
        assert polled.offsets[order].tolist() == [1, 2, 0]
        assert polled.times[order].tolist() == [NOW + 1, NOW - 5, NOW + 2]
        assert reader.positions() == (3, 1)
        assert {column.dtype for column in polled[1:]} == {np.dtype(np.int64)}


def test_a_reader_goes_on_where_it_stands_and_goes_back_when_told(kafka: Cluster) -> None:
    topic = kafka.topic()
    kafka.send(topic, [b"a", b"b"], NOW)
    with reading(kafka, topic) as reader:
        assert poll(reader, 2).values == [b"a", b"b"]
        kafka.send(topic, [b"c"], NOW)
        with mock.patch.object(reader, "_consumer", wraps=reader._consumer) as consumer:
            reader.seek({0: 2})
            assert poll(reader).values == [b"c"]
            consumer.assign.assert_not_called()
            reader.seek({0: 1})
            assert poll(reader, 2).values == [b"b", b"c"]
            consumer.assign.assert_called_once()


def test_the_watermark_is_that_of_the_slowest_partition(kafka: Cluster) -> None:
    """A partition without records is as far as the clock, once a broker has said that it has none; not before."""
    topic = kafka.topic()
    kafka.send(topic, [b"a", b"b"], [NOW - HOUR, NOW - 2 * HOUR], partition=0)
    kafka.send(topic, [b"c"], NOW + HOUR, partition=1)
    with reading(kafka, topic, p0=0, p1=0, p2=0) as reader:
        assert reader.watermark(0) is None
        before = time.time_ns() // 1_000_000
        poll(reader, 3)
        with mock.patch.object(reader, "_at_their_ends", lambda moment: []):
            assert reader.watermark(0) is None  # nothing is known of partition 2
        poll_to_the_end(reader)
        found = reader.watermark(10_000)
        assert found is not None
        after = time.time_ns() // 1_000_000
        assert before - 10_000 <= found <= after - 10_000  # partition 1 is ahead of the clock
        kafka.send(topic, [b"d"], NOW - HOUR, partition=2)
        poll(reader)
        ahead = reader.watermark(-HOUR)
        assert ahead is not None
        assert ahead <= time.time_ns() // 1_000_000


def test_lost_connections_are_waited_out(kafka: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    with reading(kafka, kafka.topic()) as reader:
        down = confluent_kafka.KafkaError(confluent_kafka.KafkaError._ALL_BROKERS_DOWN, "all down")
        lost = confluent_kafka.Message(error=down)
        with mock.patch.object(reader, "_consumer") as consumer:
            consumer.consume.return_value = [lost]
            assert reader.poll(0.1) is None
        assert "all down" in caplog.text


@pytest.mark.parametrize("moment", [(1 << 63) - 1, 10**16, -(1 << 63), -1])
def test_a_time_that_a_sender_chose_is_one_that_an_engine_can_write(kafka: Cluster, moment: int) -> None:
    record = confluent_kafka.Message(value=b"a", partition=0, offset=0, timestamp=(1, moment))
    with reading(kafka, kafka.topic()) as reader, mock.patch.object(reader, "_consumer") as consumer:
        consumer.consume.return_value = [record]
        polled = reader.poll(0.1)
    assert polled is not None
    [time_of_it] = polled.times.tolist()
    assert time_of_it == min(max(moment, MIN_EVENT_TIME), MAX_EVENT_TIME)
    for group in groups_of(polled):
        TimestampCoder().encode(_at_the_latest(group).timestamp)


def test_consumers_that_wait_are_kept_and_in_the_end_closed() -> None:
    pool, first, second = Pool(), mock.Mock(), mock.Mock()
    assert pool.take("a", lambda: first) is first
    pool.put_back("a", first)
    pool.put_back("a", second)
    first.close.assert_called_once_with()
    with mock.patch.object(kafka_reader, "_now", lambda: time.monotonic() + 1000):
        assert pool.take("b", lambda: first) is first
    second.close.assert_called_once_with()
    assert pool.take("a", lambda: first) is first


def test_a_consumer_that_was_used_a_moment_ago_is_kept_while_others_are_taken() -> None:
    pool, first, second = Pool(), mock.Mock(), mock.Mock()
    pool.put_back("a", first)
    assert pool.take("b", lambda: second) is second
    first.close.assert_not_called()
    assert pool.take("a", mock.Mock()) is first


# ---------------------------------------------------------------------- what Beam asks for


def test_where_no_broker_answers_no_partition_is_known() -> None:
    """And the job goes on with those that it has."""
    alone = contextlib.closing(Reader(ConsumerSettings("127.0.0.1:1"), "t", CREATE_TIME))
    with mock.patch.object(kafka_reader, "ANSWER_SECONDS", 0.2), alone as reader:
        assert reader.partitions() == set()


def test_partitions_are_shared_evenly() -> None:
    parts = [Part("t", number, 10 * number, 0) for number in range(5)]
    assert shares_of(parts, 2) == [Share("t", (0, 2, 4), (0, 20, 40)), Share("t", (1, 3), (10, 30))]
    assert shares_of(parts[:1], 7) == [Share("t", (0,), (0,))]


def test_an_endless_restriction_is_put_off_and_never_split() -> None:
    share = Share("t", (0, 1), (5, 6))
    tracker = Positions().create_tracker(Positions().initial_restriction(share))
    assert not tracker.is_bounded()
    assert tracker.current_progress().fraction_completed == 0
    assert tracker.try_split(0.5) is None
    assert tracker.try_claim((7, 6))
    assert tracker.try_split(0) == ((), (7, 6))
    assert not tracker.try_claim((8, 6))
    assert tracker.try_split(0) is None
    assert tracker.current_restriction() == ()
    tracker.check_done()
    assert Positions().restriction_size(share, (5, 6)) == 2


def test_a_turn_of_a_stream(kafka: Cluster) -> None:
    """It hands on what came, at the largest time, and says where to go on; the watermark starts at the beginning."""
    topic, known = kafka.topic(), frozenset(range(4))
    kafka.send(topic, [b"a", b"b"], [NOW - HOUR, NOW - 2 * HOUR])
    fn = kafka_polled._StreamFn(Reading(settings=kafka.settings, kind_of_times=CREATE_TIME, partitions=known))
    fn.setup()
    share, watermark = Share(topic, (0,), (0,)), ManualWatermarkEstimator(MIN_TIMESTAMP)
    outputs, restriction = [], (0,)
    while not outputs:
        outputs, (restriction, _) = turn(fn, share, restriction, watermark)
    (output,) = outputs
    assert output.value[0] == [b"a", b"b"]
    assert output.timestamp.micros == 1000 * (NOW - HOUR)
    assert restriction == (2,)
    assert watermark.current_watermark().micros >= 1000 * (NOW - HOUR)


def test_a_turn_that_was_cut_off_hands_on_nothing_more(kafka: Cluster) -> None:
    """The engine has put off the rest meanwhile: another worker reads it, and this consumer is closed."""
    topic = kafka.topic()
    kafka.send(topic, [b"a"], NOW)
    fn = kafka_polled._StreamFn(Reading(settings=kafka.settings, kind_of_times=CREATE_TIME, partitions=frozenset([0])))
    fn.setup()
    tracker = ThreadsafeRestrictionTracker(EndlessTracker((0,)))
    assert tracker.try_split(0) is not None
    reader = mock.Mock()
    reader.poll.return_value = Polled([b"a"], *np.array([[0], [0], [NOW]]))
    reader.positions.return_value = (1,)
    watermark = ThreadsafeWatermarkEstimator(ManualWatermarkEstimator(MIN_TIMESTAMP))
    with mock.patch.object(Reading, "reader", lambda *_: reader):
        assert not list(fn.process(Share(topic, (0,), (0,)), RestrictionTrackerView(tracker), watermark))
    reader.close.assert_called_once_with()


def test_a_range_ends_at_its_last_offset(kafka: Cluster) -> None:
    topic = kafka.topic()
    kafka.send(topic, [b"%d" % number for number in range(10)], NOW)
    fn = kafka_polled._RangeFn(Reading(settings=kafka.settings, kind_of_times=CREATE_TIME))
    part = Part(topic, 0, 2, 7)
    restriction = Offsets().initial_restriction(part)
    assert Offsets().restriction_size(part, restriction) == 5
    assert Offsets().create_tracker(restriction).is_bounded()
    outputs, _ = turn(fn, part, restriction)
    assert [value for group in outputs for value in group[0]] == [b"2", b"3", b"4", b"5", b"6"]
    outputs, _ = turn(fn, Part(topic, 1, 0, 0), OffsetRange(0, 0))  # a partition without records
    assert outputs == []


# ---------------------------------------------------------------------- jobs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, {"krr.json": KRR})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments(cluster: Cluster, topic: str, *more: str) -> list[str]:
    return [
        "--collection=krr.json",
        f"--kafka_topic={topic}",
        f"--bootstrap_servers={cluster.servers}",
        "--output=out",
        "--min_reports=1",
        *more,
    ]


def reports(number: int, moment: int) -> list[bytes]:
    return wire.encode_reports(KRR.perturb(["1"] * number, np.random.default_rng(number), np.full(number, moment)))


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for path in Path("out").glob(f"{name}*.jsonl") for line in path.read_text().splitlines()]


@pytest.mark.usefixtures("folder")
def test_a_range_needs_no_java(kafka: Cluster) -> None:
    """What comes after the pipeline was built is not in it; an empty record is unread, one partition is empty."""
    topic = kafka.topic()
    kafka.send(topic, reports(300, NOW), NOW)
    kafka.send(topic, [*reports(40, NOW - 30 * HOUR), None], NOW, partition=1)
    kafka.send(topic, [wire.encode_batch(KRR.perturb(["0"] * 50, np.random.default_rng(1), np.full(50, NOW)))], NOW, 2)
    configured = configure(arguments(kafka, topic, "--window=1h", "--kafka_until=now"))
    kafka.send(topic, reports(7, NOW), NOW)
    assert run(configured) == 0
    assert sorted(row["num_reports"] for row in rows("estimates")) == [40, 350]
    ledger = rows("ledger")
    assert sum(row["received"] for row in ledger) == 390
    assert [row["unread_messages"] for row in ledger if row["unread_messages"]] == [{"malformed": 1}]
    assert not any(row["rejected"] for row in ledger)
    (record,) = (json.loads(path.read_text()) for path in Path("out").glob("run-*.json"))
    source = {"option": "--kafka_topic with --kafka_until", "name": topic, "bounded": True, "resumes": False}
    assert record["source"] == source


@pytest.mark.skipif(prism.missing() is not None, reason=str(prism.missing()))
def test_a_stream_on_prism_needs_no_java(kafka: Cluster, folder: Path) -> None:
    """Rows of windows come while it runs; a record of the mock cluster's fourth partition is never there."""
    topic, log = kafka.topic(), folder / "log"
    options = arguments(kafka, topic, "--window=2s", "--allowed_lateness=10s", *live.SOON, *prism.options())
    options = [option.replace("=krr", f"={folder}/krr").replace("=out", f"={folder}/out") for option in options]
    sent = 0
    with live.job(options, log) as process:
        for second in range(6):
            now = time.time_ns() // 1_000_000
            kafka.send(topic, reports(60, now), now, partition=second % 3)
            sent += 60
            time.sleep(0.5)
        live.wait_until(lambda: sum(row["num_reports"] for row in rows("estimates")) == sent, process, log, 120)
        engines = children(process.pid)
        process.terminate()
        assert process.wait(600) == 130
        assert len(engines) == 1
        assert not Path(f"/proc/{engines[0]}").exists()
    assert len({row["window_start"] for row in rows("estimates")}) == len(rows("estimates"))


@pytest.mark.slow
@pytest.mark.skipif(prism.missing() is not None, reason=str(prism.missing()))
def test_each_window_of_a_stream_on_prism_is_released_once(kafka: Cluster, folder: Path) -> None:
    """While the stream goes on: a lateness and a minute after its end, with late reports; and so is its ledger."""
    topic, log, expected = kafka.topic(), folder / "log", Counter[int]()
    final = ["--window=5s", "--allowed_lateness=10s", "--release=final", "--flush_every=1s", *prism.options()]
    options = [option.replace("=krr", f"={folder}/krr") for option in arguments(kafka, topic, *final)]
    options = [option.replace("=out", f"={folder}/out") for option in options]
    with live.job(options, log) as process:
        for turn in range(20):
            now = time.time_ns() // 1_000_000
            for moment in (now, now - 7_000):
                kafka.send(topic, reports(30, moment), now, partition=turn % 3)
                expected[moment // 5000] += 30
            time.sleep(1)
        live.wait_until(lambda: sum(row["num_reports"] for row in rows("estimates")) >= 1200, process, log, 300)
        live.wait_until(lambda: live.books(folder / "out")["received"] >= 1200, process, log, 60)
    found = [(row["window_start"], row["num_reports"]) for row in rows("estimates")]
    assert sorted(found) == [(rfc3339(5000 * start), number) for start, number in sorted(expected.items())]
    assert live.books(folder / "out") == {"received": 1200, "accepted": 1200}


def children(parent: int) -> list[int]:
    """Process ids."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # processes end while we look
            if int(path.read_text().rpartition(") ")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found


# ---------------------------------------------------------------------- options


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "readers"), [("--parallelism=3", 3), ("--parallelism=3 --kafka_readers=2", 2), ("", 1)]
)
def test_flink_is_told_what_it_needs(kafka: Cluster, options: str, readers: int) -> None:
    endpoint = "--runner=PortableRunner --job_endpoint=localhost:1 --kafka_reader=python"
    job, _ = configure(arguments(kafka, kafka.topic(), "--window=1h", *endpoint.split(), *options.split()))
    assert job.spec.bounded is False
    assert job.options.view_as(StandardOptions).streaming
    said = job.options.get_all_options()
    assert said["shutdown_sources_after_idle_ms"] == NEVER
    assert said["finish_bundle_before_checkpointing"] is True
    assert job.source.records._reading.readers == readers


def test_secrets_stay_where_they_are(kafka: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ULDP_KAFKA_PASSWORD", SECRET)
    path = tmp_path / "consumer"
    path.write_text("bootstrap.servers=elsewhere:1\nsasl.password = ${ULDP_KAFKA_PASSWORD}\ngroup.id=mine\n")
    settings = ConsumerSettings(kafka.servers, (("client.id", "me"),), str(path))
    found: dict[str, str] = {}
    with mock.patch.object(confluent_kafka, "Consumer", lambda chosen, logger: found.update(chosen)):
        settings.consumer()
    assert found["sasl.password"] == SECRET
    assert found["bootstrap.servers"] == kafka.servers
    assert (found["group.id"], found["client.id"]) == ("mine", "me")
    assert found.items() >= kafka_offsets.OURS.items()
    poll_kafka = PollKafka("t", Reading(settings=settings, kind_of_times=CREATE_TIME), ends=True)
    assert SECRET.encode() not in pickle.dumps(poll_kafka)
    assert poll_kafka.display_data() == {"servers": kafka.servers, "topic": "t"}
