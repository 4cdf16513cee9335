"""Parts of what reads and writes Kafka, without a broker: a consumer, a producer and brokers that a test plays."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import confluent_kafka
import numpy as np
import pytest
from apache_beam.io.restriction_trackers import OffsetRange
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from confluent_kafka import KafkaError, KafkaException, Message

from uldp_transforms.jobs.kafka import polled as kafka_polled
from uldp_transforms.jobs.kafka import producer as kafka_producer
from uldp_transforms.jobs.kafka import reader as kafka_reader
from uldp_transforms.jobs.kafka.offsets import NO_END, BrokersAwayError, ConsumerSettings, Part, Share, parts_of
from uldp_transforms.jobs.kafka.polled import FromTheBeginning, Offsets, PollKafka, Reading, groups_of
from uldp_transforms.jobs.kafka.producer import KafkaSettings, NotDelivered, deliver
from uldp_transforms.jobs.kafka.reader import KafkaReadError, Reader
from uldp_transforms.jobs.kafka.records import Polled
from uldp_transforms.jobs.kafka.settings import accepted, read_lines, read_settings, refuse_taken, variable_of, words_of
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.joined_messages import JoinedMessages

NOW = 1_800_000_000_000


def error(name: str = "_AUTO_OFFSET_RESET", text: str = "of this test") -> KafkaError:
    return KafkaError(getattr(KafkaError, name), text)


def record(
    partition: int = 0, offset: int = 0, time: int = NOW, value: bytes | None = b"a", kind: int = 1, **more: Any
) -> Message:
    return Message(partition=partition, offset=offset, timestamp=(kind, time), value=value, **more)


def event(name: str, partition: int = 0, offset: int = 0) -> Message:
    return Message(partition=partition, offset=offset, error=error(name))


class Moment:
    """The clocks of the module."""

    steady, now = 100.0, NOW

    def monotonic(self) -> float:
        return self.steady

    def time_ns(self) -> int:
        return self.now * 1_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Moment:
    found = Moment()
    monkeypatch.setattr(kafka_reader, "time", found)
    return found


@pytest.fixture
def consumer() -> mock.Mock:
    return mock.Mock()


@pytest.fixture
def reader(consumer: mock.Mock, clock: Moment) -> Any:
    settings: Any = SimpleNamespace(consumer=lambda: consumer)
    return Reader(settings, "t", "CreateTime")


def polled_by(reader: Any, *came: Any) -> Polled | None:
    reader._consumer.consume.return_value = [*came]
    found: Polled | None = reader.poll(0.5)
    reader._consumer.consume.assert_called_with(256, 0.5)
    return found


def polled_in_calls(reader: Any, *sizes: int) -> list[Any]:
    """The arguments of the calls of one poll, which give so many records each, the second of them an event."""
    came = [[record(number % 2, number * 256 + at) for at in range(size)] for number, size in enumerate(sizes)]
    for found in came:
        found[1:2] = [event("_PARTITION_EOF", 5, 7)] * len(found[1:2])
    reader._consumer.consume.reset_mock()
    reader._consumer.consume.side_effect = came
    polled = reader.poll(0.5)
    used = reader._consumer.consume.call_args_list
    number = sum(sizes[: len(used)]) - sum(size > 1 for size in sizes[: len(used)])
    assert number == (0 if polled is None else len(polled.values))
    return [call.args for call in used]


# ---------------------------------------------------------------------- the consumer


def test_another_fault_ends_reading_after_the_records_that_came_with_it(reader: Any) -> None:
    sentence = r"^topic 't' cannot be read: of this test$"
    with pytest.raises(KafkaReadError, match=sentence):
        polled_by(reader, event("_AUTO_OFFSET_RESET"))
    reader._fault = None
    assert polled_by(reader, event("_AUTO_OFFSET_RESET"), record()) is not None
    reader._consumer.consume.reset_mock()
    with pytest.raises(KafkaReadError, match=sentence):
        reader.poll(1.0)
    reader._consumer.consume.assert_not_called()


def test_a_poll_ends_when_the_client_has_no_more_for_the_moment(reader: Any, clock: Moment) -> None:
    """Or has handed over 16,384, or a fifth of a second after its beginning."""
    clock.steady = 0.0
    assert polled_in_calls(reader, 0) == [(256, 0.5)]
    assert polled_in_calls(reader, 255, 256) == [(256, 0.5)]
    assert polled_in_calls(reader, 256, 256, 3) == [(256, 0.5), *[(256, 0.2)] * 2]
    assert len(polled_in_calls(reader, *[256] * 65)) == 64
    assert reader._ends == {5: 7}
    moments = iter([0.0, 0.05, 0.25])
    clock.monotonic = lambda: next(moments, 9.0)  # type: ignore[method-assign]  # times that this test chooses
    assert polled_in_calls(reader, 256, 256, 3) == [(256, 0.5), (256, pytest.approx(0.15)), (256, 0.0)]


def test_an_event_between_records_takes_none_of_them_away(reader: Any) -> None:
    reader.seek({0: 0, 1: 0})
    polled = polled_by(
        reader, record(1, 4, value=None), event("_PARTITION_EOF", 0, 9), record(1, 5, NOW + 3), record(0, 2)
    )
    assert polled is not None
    assert polled.values == [b"", b"a", b"a"]
    assert [column.tolist() for column in polled[1:]] == [[1, 1, 0], [4, 5, 2], [NOW, NOW + 3, NOW]]
    assert reader.positions() == (3, 6)
    assert (reader._ends, reader._times) == ({0: 9}, {0: NOW, 1: NOW + 3})


def test_a_time_of_another_kind_is_refused_beside_right_ones_and_events(reader: Any) -> None:
    with pytest.raises(KafkaReadError, match="must have times of kind CreateTime, got LogAppendTime"):
        polled_by(reader, record(), event("_PARTITION_EOF"), record(kind=2))


def test_single_reports_are_in_one_buffer_and_packed_ones_are_not_copied(reader: Any) -> None:
    single, packed = b"\x02 a report", b"\x04 many reports"
    polled = polled_by(reader, *(record(0, offset, value=single) for offset in range(3)))
    assert polled is not None and isinstance(polled.values, JoinedMessages)
    assert polled.values == [single] * 3
    for others in ([packed, packed], [single, packed], [packed, single], [single, None]):
        polled = polled_by(reader, *(record(0, offset, value=value) for offset, value in enumerate(others)))
        assert polled is not None and type(polled.values) is list
        assert polled.values == [value or b"" for value in others]


def test_a_range_is_read_when_its_last_offset_is_or_nothing_is_left(reader: Any, clock: Moment) -> None:
    """Records that must exist are waited for a minute."""
    reader.seek({3: 5})
    assert reader.has_reached(5) and reader.has_reached(4) and not reader.has_reached(6)
    polled_by(reader, event("_PARTITION_EOF", 3, 8))
    assert reader.has_reached(8) and not reader.has_reached(9)
    clock.steady += 60.0
    assert not reader.has_reached(9)
    clock.steady += 0.1
    sentence = r"^partition 3 of topic 't' returned no records for 60 s at offset 5, before 9: nothing$"
    with pytest.raises(KafkaReadError, match=sentence):
        reader.has_reached(9)
    polled_by(reader, record(3, 8))
    assert not reader.has_reached(10)


def test_offsets_between_those_of_another_partition_are_not_made_up(reader: Any) -> None:
    """Four records and offsets from 5 to 8, but 6 and 7 are gaps of the other partition."""
    places = [(3, 5), (2, 6), (2, 9), (3, 8)]
    polled = polled_by(reader, *(record(*place) for place in places))
    assert polled is not None
    assert list(zip(polled.partitions.tolist(), polled.offsets.tolist())) == places
    assert polled.last().tolist() == [2, 3]


@pytest.mark.parametrize("offsets", [[5], [5, 6, 7], [5, 7], [5, 6, 9, 10]])
def test_offsets_of_one_partition_are_those_of_its_records(reader: Any, offsets: list[int]) -> None:
    """Compacted topics have gaps, in which nothing may be counted."""
    reader.seek({3: 5})
    polled = polled_by(reader, *(record(3, offset) for offset in offsets))
    assert polled is not None
    assert polled.offsets.tolist() == offsets
    assert polled.partitions.tolist() == [3] * len(offsets)
    assert reader.positions() == (offsets[-1] + 1,)


def asked_of(reader: Any, *answers: tuple[int, int, Any]) -> None:
    """What brokers answer about the ends of partitions: number, offset, error."""
    reader._consumer.offsets_for_times.return_value = [
        SimpleNamespace(partition=number, offset=offset, error=fault) for number, offset, fault in answers
    ]


def test_the_watermark_is_the_least_time_that_all_partitions_have_passed(reader: Any, clock: Moment) -> None:
    reader.seek({0: 0, 1: 0})
    polled_by(reader, record(0, 0, NOW - 50))
    assert reader.watermark(10) is None
    polled_by(reader, record(1, 0, NOW + 70))
    assert reader.watermark(10) == NOW - 50
    reader._consumer.offsets_for_times.assert_not_called()
    polled_by(reader, event("_PARTITION_EOF", 0, 1), event("_PARTITION_EOF", 1, 1))
    asked_of(reader, (0, 1, None))
    assert reader.watermark(10) == NOW - 10
    [[place]] = [call.args[0] for call in reader._consumer.offsets_for_times.call_args_list]
    assert (place.topic, place.partition, place.offset) == ("t", 0, confluent_kafka.OFFSET_END)
    assert reader._consumer.offsets_for_times.call_args.kwargs == {"timeout": 15.0}
    clock.now += 500
    asked_of(reader, (0, 1, None), (1, 1, None))
    assert reader.watermark(10) == clock.now - 10
    assert reader.watermark(-1000) == clock.now, "never ahead of the clock"


@pytest.mark.parametrize(
    ("answer", "is_idle"),
    [((1, None), True), ((0, None), True), ((2, None), False), ((-1, None), False), ((1, "fault"), False)],
)
def test_only_a_partition_without_more_records_is_idle(answer: tuple[int, Any], is_idle: bool, reader: Any) -> None:
    reader.seek({0: 1})
    polled_by(reader, event("_PARTITION_EOF", 0, 1))
    asked_of(reader, (0, *answer))
    assert reader._at_their_ends(NOW) == [0] * is_idle
    reader._consumer.offsets_for_times.side_effect = KafkaException(error())
    assert reader._at_their_ends(NOW) == []


@pytest.mark.parametrize(
    ("end", "time", "is_asked"), [(4, 0, False), (5, 0, True), (5, NOW, False), (5, NOW - 1, True)]
)
def test_only_partitions_that_may_be_idle_are_asked_for(end: int, time: int, is_asked: bool, reader: Any) -> None:
    reader.seek({0: 5})
    reader._ends, reader._times = {0: end}, {0: time}
    asked_of(reader, (0, 5, None))
    assert reader._at_their_ends(NOW) == [0] * is_asked
    assert reader._consumer.offsets_for_times.called is is_asked
    reader._ends = {}
    assert reader._at_their_ends(NOW) == []


def test_records_before_an_offset() -> None:
    found = Polled([b"a", b"b", b"c"], *np.array([[0, 0, 0], [3, 5, 9], [1, 2, 3]]))
    for stop, number in ((3, 0), (4, 1), (5, 1), (6, 2), (9, 2), (10, 3)):
        part = found.before(stop)
        assert part.values == found.values[:number]
        assert [column.tolist() for column in part[1:]] == [column[:number].tolist() for column in found[1:]]


# ---------------------------------------------------------------------- offsets


def brokers(offsets: dict[int, tuple[int, int]], at: dict[int, dict[int, int]] | None = None, fault: Any = None) -> Any:
    """Settings whose consumer says these first and last offsets of a topic, and those of times."""
    consumer = mock.Mock()
    consumer.list_topics.return_value.topics = {"t": SimpleNamespace(error=fault, partitions=offsets)}
    consumer.get_watermark_offsets.side_effect = lambda place, timeout: offsets[place.partition]

    def of_times(places: Sequence[Any], timeout: float) -> list[Any]:
        assert timeout == 15.0
        return [
            SimpleNamespace(partition=place.partition, offset=(at or {})[place.offset][place.partition])
            for place in reversed(places)
        ]

    consumer.offsets_for_times.side_effect = of_times
    return SimpleNamespace(consumer=lambda: consumer, used=consumer)


def test_ranges_are_those_of_offsets_or_times() -> None:
    settings = brokers({1: (2, 9), 0: (0, 5)}, {100: {0: 3, 1: -1}, 200: {0: -1, 1: 4}})
    for options, expected in (
        ({"ends": True}, [(0, 5), (2, 9)]),
        ({"ends": False}, [(0, NO_END), (2, NO_END)]),
        ({"ends": True, "since": 100}, [(3, 5), (9, 9)]),
        ({"ends": True, "until": 200}, [(0, 5), (2, 4)]),
        ({"ends": True, "since": 100, "until": 200}, [(3, 5), (4, 4)]),
        ({"ends": False, "since": 200, "until": 100}, [(5, NO_END), (4, NO_END)]),
    ):
        found = parts_of(settings, "t", **options)
        assert found == [Part("t", number, *bounds) for number, bounds in enumerate(expected)]
    settings.used.list_topics.assert_called_with("t", timeout=15.0)
    assert {call.kwargs["timeout"] for call in settings.used.get_watermark_offsets.call_args_list} == {15.0}
    assert settings.used.close.call_count == 6
    assert NO_END == 9_223_372_036_854_775_807


@pytest.mark.parametrize(
    ("name", "kind"), [("LEADER_NOT_AVAILABLE", BrokersAwayError), ("UNKNOWN_TOPIC_OR_PART", SpecError)]
)
def test_brokers_without_a_leader_may_have_one_later(name: str, kind: type[Exception]) -> None:
    settings = brokers({}, fault=error(name))
    with pytest.raises(
        SpecError, match=r"^--kafka_topic must be a topic that exists, got 't': of this test$"
    ) as caught:
        parts_of(settings, "t", ends=True)
    assert type(caught.value) is kind
    settings.used.close.assert_called_once_with()
    settings.used.list_topics.side_effect = KafkaException(error(text="Failed to get metadata: gone"))
    with pytest.raises(BrokersAwayError, match=r"^brokers of --bootstrap_servers must answer, got gone$"):
        parts_of(settings, "t", ends=True)


def test_what_a_consumer_and_an_admin_are_told(tmp_path: Path) -> None:
    """A file, then properties, then what users cannot change; what is not given has a default."""
    path = tmp_path / "settings"
    path.write_text("group.id=file\nclient.id=file\nfetch.queue.backoff.ms=7\n", encoding="utf-8")
    settings = ConsumerSettings("b:1", (("client.id", "line"),), str(path))
    given = {"group.id": "file", "client.id": "line", "fetch.queue.backoff.ms": "7", "bootstrap.servers": "b:1"}
    with mock.patch.object(confluent_kafka, "Consumer") as made:
        settings.consumer()
    made.assert_called_once_with(
        given
        | {
            "queued.max.messages.kbytes": "16384",
            "reconnect.backoff.ms": "1000",
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "auto.offset.reset": "error",
            "enable.partition.eof": "true",
        },
        logger=logging.getLogger("kafka"),
    )
    with mock.patch("confluent_kafka.admin.AdminClient") as made:
        settings.admin()
    [(told,)] = [call.args for call in made.call_args_list]
    assert told == given
    assert made.call_args.kwargs["logger"].level == logging.CRITICAL
    with mock.patch.object(confluent_kafka, "Consumer") as made:
        ConsumerSettings("b:1").consumer()
    assert made.call_args.args[0]["group.id"] == "uldp"
    assert made.call_args.args[0]["fetch.queue.backoff.ms"] == "100"


# ---------------------------------------------------------------------- steps of a pipeline


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        *(([], []), ([0], [1]), ([9, 1], [1, 1]), ([9, 2], [1, 1]), ([4, 4], [2])),
        *(([5, 5, 5, 25, 1], [1, 2, 2]), ([3] * 7, [3, 3, 1])),
    ],
)
def test_groups_end_at_multiples_of_their_size(
    sizes: list[int], groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_polled, "GROUP_BYTES", 10)
    found = list(groups_of(Polled([b"x" * size for size in sizes], *np.arange(3 * len(sizes)).reshape(3, -1))))
    assert [len(values) for values, _ in found] == groups
    assert [time for _, times in found for time in times.tolist()] == list(range(2 * len(sizes), 3 * len(sizes)))


class Tracker:
    """Claims offsets before an end."""

    def __init__(self, restriction: Any, end: int):
        self._restriction, self._end = restriction, end
        self.claimed: list[Any] = []

    def current_restriction(self) -> Any:
        return self._restriction

    def try_claim(self, at: Any) -> bool:
        self.claimed.append(at)
        return isinstance(at, tuple) or at < self._end


def test_a_range_is_read_until_its_end() -> None:
    """Records behind it are left out; where brokers have no more, the rest is claimed."""
    with mock.patch.object(Reading, "reader") as made:
        fn = kafka_polled._RangeFn(Reading(settings=ConsumerSettings("b:1"), kind_of_times="CreateTime"))
        reader = made.return_value
        reader.poll.side_effect = [None, of_offsets(3, 4), None, of_offsets(5, 7, 9)]
        reader.has_reached.return_value = False
        tracker: Any = Tracker(OffsetRange(3, 8), 8)
        assert [group[0] for group in fn.process(Part("t", 2, 3, 8), tracker)] == [[b"3", b"4"], [b"5", b"7"]]
        made.assert_called_with("t")
        reader.seek.assert_called_once_with({2: 3})
        assert tracker.claimed == [4, 9]
        reader.has_reached.assert_called_with(8)
        reader.poll.assert_called_with(1.0)
        reader.close.assert_called_once_with()
        reader.poll.side_effect, reader.has_reached.return_value = [None], True
        tracker = Tracker(OffsetRange(3, 8), 8)
        assert list(fn.process(Part("t", 2, 3, 8), tracker)) == []
        assert tracker.claimed == [8]


def of_offsets(*offsets: int, time: int = NOW) -> Polled:
    columns = np.array([[0] * len(offsets), offsets, [time + offset for offset in offsets]])
    return Polled([b"%d" % offset for offset in offsets], *columns)


@pytest.mark.parametrize(
    ("partitions", "later", "there", "fails"),
    [
        ((0, 2), 59.9, {0, 1, 2, 3}, False),
        ((0, 2), 60.0, {0, 1, 2, 3}, True),
        ((0, 2), 60.0, {0, 1, 2}, False),
        ((0, 2), 60.0, set(), False),
        ((1,), 60.0, {0, 1, 2, 3}, False),
    ],
)
def test_one_reader_looks_for_new_partitions_once_a_minute(
    partitions: tuple[int, ...], later: float, there: set[int], fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    steady = mock.Mock(return_value=100.0)
    monkeypatch.setattr(kafka_polled, "time", SimpleNamespace(monotonic=steady))
    known = frozenset({0, 1, 2})
    fn = kafka_polled._StreamFn(Reading(settings=ConsumerSettings("b:1"), kind_of_times="x", partitions=known))
    fn.setup()
    steady.return_value += later
    reader = mock.Mock()
    reader.partitions.return_value = there
    share = Share("t", partitions, (0,) * len(partitions))
    if fails:
        with pytest.raises(KafkaReadError, match=r"must have the 3 partitions .*, got 4$"):
            fn._check_partitions(share, reader)
    else:
        fn._check_partitions(share, reader)
    is_asked = later >= 60 and 0 in partitions
    assert reader.partitions.called is is_asked
    fn._check_partitions(share, reader)
    assert reader.partitions.call_count == is_asked


@pytest.mark.parametrize(
    ("before", "found", "after"),
    [(5, 7, 7), (5, 5, 5), (7, 5, 7), (5, None, 5), (None, None, None), (None, 5, 5)],
)
def test_a_watermark_never_goes_back(before: int | None, found: int | None, after: int | None) -> None:
    def moment(milliseconds: int | None) -> Timestamp:
        return MIN_TIMESTAMP if milliseconds is None else Timestamp(micros=1000 * milliseconds)

    assert FromTheBeginning().initial_estimator_state("share", (0,)) == MIN_TIMESTAMP
    watermark = FromTheBeginning().create_watermark_estimator(moment(before))
    assert isinstance(watermark, ManualWatermarkEstimator)
    kafka_polled._advance(watermark, found)
    assert watermark.current_watermark() == moment(after)


def test_a_reading_says_what_it_reads_and_how() -> None:
    reading = Reading(settings=ConsumerSettings("b:1"), kind_of_times="CreateTime")
    assert (reading.idle_lag, reading.readers, reading.partitions, reading.set_groups) == (2_000, 1, frozenset(), None)
    assert PollKafka("t", reading, ends=True).display_data() == {"servers": "b:1", "topic": "t"}
    assert Offsets().restriction_size(Part("t", 0, 0, 9), OffsetRange(2, 9)) == 7
    with mock.patch.object(kafka_reader, "Reader") as made:
        assert reading.reader("t") is made.return_value
    made.assert_called_once_with(reading.settings, "t", "CreateTime", None)


# ---------------------------------------------------------------------- the producer


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One that acknowledges what it was given when it is flushed."""
    found, given = mock.Mock(), list[Any]()

    def produce(*_: Any, on_delivery: Any, **__: Any) -> None:
        given.append(on_delivery)

    def flush() -> None:
        while given:
            given.pop(0)(None, None)

    found.produce.side_effect, found.flush.side_effect = produce, flush
    monkeypatch.setattr(kafka_producer, "_producers", {})
    monkeypatch.setattr(kafka_producer, "new_producer", mock.Mock(return_value=found))
    return found


RECORDS = [(b"k1", b"v1", [("h", b"1")]), (b"k2", b"v2", [])]
SETTINGS = KafkaSettings("path")


def test_records_are_sent_with_key_and_headers_and_waited_for(producer: Any) -> None:
    deliver(SETTINGS, "t", [])
    producer.produce.assert_not_called()
    for _ in range(2):
        deliver(SETTINGS, "t", RECORDS)
    calls = [(call.args, call.kwargs["headers"]) for call in producer.produce.call_args_list]
    assert calls == [(("t", value, key), headers) for key, value, headers in RECORDS] * 2
    assert producer.poll.call_args_list == [mock.call(0)] * 4
    kafka_producer.new_producer.assert_called_once_with(SETTINGS)  # type: ignore[attr-defined]  # a stand-in


def test_a_full_queue_is_waited_for(producer: Any) -> None:
    send, full = producer.produce.side_effect, [BufferError(), BufferError()]

    def produce(*args: Any, **more: Any) -> None:
        if full:
            raise full.pop()
        send(*args, **more)

    producer.produce.side_effect = produce
    deliver(SETTINGS, "t", RECORDS)
    assert producer.poll.call_args_list == [mock.call(1.0)] * 2 + [mock.call(0)] * 2


@pytest.mark.parametrize(
    ("faults", "sentence"),
    [
        ([None, error(text="first")], "Kafka did not take 1 of 2 rows for topic 't': first"),
        ([error(text="first"), error(text="next")], "Kafka did not take 2 of 2 rows for topic 't': first"),
        ([], "Kafka did not take 2 of 2 rows for topic 't': nothing"),
    ],
)
def test_what_is_not_acknowledged_is_told_and_the_connection_given_up(
    faults: list[Any], sentence: str, producer: Any
) -> None:
    given = list[Any]()
    producer.produce.side_effect = lambda *_, on_delivery, **__: given.append(on_delivery)
    producer.flush.side_effect = lambda: [told(fault, None) for told, fault in zip(given, faults)]
    with pytest.raises(NotDelivered) as caught:
        deliver(SETTINGS, "t", RECORDS)
    assert str(caught.value) == sentence
    assert not kafka_producer._producers


def test_a_record_that_the_client_refuses_is_told(producer: Any) -> None:
    fault = KafkaException(error(text="Unable to produce message: too large"))
    producer.produce.side_effect = fault
    with pytest.raises(NotDelivered, match=r"^Kafka did not take 2 of 2 rows for topic 't': too large$"):
        deliver(SETTINGS, "t", RECORDS)
    assert producer.produce.call_count == 2


def test_what_a_producer_is_told(tmp_path: Path) -> None:
    path = tmp_path / "settings"
    path.write_text("bootstrap.servers=b:1\nlinger.ms=9\n", encoding="utf-8")
    with mock.patch.object(confluent_kafka, "Producer") as made:
        kafka_producer.new_producer(KafkaSettings(str(path)))
    made.assert_called_once_with(
        {
            "bootstrap.servers": "b:1",
            "linger.ms": "9",
            "delivery.timeout.ms": "120000",
            "message.max.bytes": "20000000",
            "reconnect.backoff.ms": "1000",
            "enable.idempotence": "true",
            "acks": "all",
        },
        logger=logging.getLogger("kafka"),
    )


# ---------------------------------------------------------------------- settings


def test_lines_of_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings"
    path.write_text("# none\n\n a = b = c \nd=\n e=${ULDP_NAME} \nf=${ULDP_NAME}x\ng=${a-b}\n", encoding="utf-8")
    found = {"a": "b = c", "d": "", "e": "${ULDP_NAME}", "f": "${ULDP_NAME}x", "g": "${a-b}"}
    assert read_lines(str(path), "--file") == found
    assert {name: variable_of(value) for name, value in found.items()} == dict.fromkeys(found) | {"e": "ULDP_NAME"}
    monkeypatch.setenv("ULDP_NAME", "secret")
    assert read_settings(str(path), "--file") == found | {"e": "secret"}
    monkeypatch.delenv("ULDP_NAME")
    with pytest.raises(SpecError, match=r"^--file takes e from the environment variable ULDP_NAME, which must be set"):
        read_settings(str(path), "--file")
    for line in ("text", "=text"):
        path.write_text(f"a=b\n{line}\n", encoding="utf-8")
        with pytest.raises(
            SpecError, match=r"^--file must have NAME=VALUE in each line, got a different text in line 2$"
        ):
            read_lines(str(path), "--file")


def test_settings_of_the_program_are_not_those_of_users() -> None:
    refuse_taken({"c": "1"}, {"b": "1", "a": "1"}, "--file")
    with pytest.raises(SpecError, match=r"^--file must not contain b, a, which this program sets, got a$"):
        refuse_taken({"b": "1", "a": "1"}, {"b": "1", "a": "1"}, "--file")


@pytest.mark.parametrize(
    ("fault", "got"),
    [
        (KafkaException(error("_INVALID_ARG", 'No such configuration property: "sasl.pasword"')), "sasl.pasword"),
        (ValueError('Invalid value "secret" for configuration property "acks": secret'), "acks"),
        (TypeError("expected a secret"), "one, or a combination, that it refuses"),
    ],
)
def test_a_setting_that_is_refused_is_named_and_not_shown(fault: Exception, got: str) -> None:
    with pytest.raises(SpecError) as caught:
        accepted(mock.Mock(side_effect=fault), "--file")
    assert str(caught.value) == f"settings of --file must be settings of librdkafka, got {got}"
    assert accepted(lambda: 5, "--file") == 5
    assert words_of(KafkaException(error(text="Failed to get metadata: Failed to get metadata: x"))) == (
        "Failed to get metadata: x"
    )
