"""PollKafka: read a topic in Python, in groups of records, without Java."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.io.iobase import RestrictionProgress, RestrictionTracker
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.io.watermark_estimators import ManualWatermarkEstimator
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.transforms.core import RestrictionProvider, WatermarkEstimatorProvider
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp

from uldp_transforms.beam.transforms.gather_messages import GATHERED, Gathered
from uldp_transforms.jobs.kafka.offsets import Part, Share, parts_of, shares_of
from uldp_transforms.jobs.kafka.reader import PARTITIONS_SECONDS, TURN_SECONDS, KafkaReadError, Pool, Reader, Reading
from uldp_transforms.jobs.kafka.records import Polled
from uldp_transforms.messages.joined_messages import cut

GROUP_BYTES = 1 << 21
"""Approximate size in bytes of a group of messages."""

_POOL = Pool()


class PollKafka(beam.PTransform[PBegin, PCollection[Gathered]]):
    """Reads the records of a topic with Confluent's client; the value of each record is a message.

    Offsets are fixed when the pipeline is built, and the engine stores the position in each partition: a repeated
    bundle reads the same records. A topic may be compacted or transactional. The timestamp of a record is its arrival
    time, for the gate and for the watermark.

    Output: groups of messages in the global window, with the timestamp of the latest one; a record without a value is
    an empty message.

    Args:
        topic: an existing topic.
        reading: options for reading.
        ends: whether reading is bounded. Otherwise the engine must support deferred execution of a splittable DoFn.
        since: milliseconds; start at the first record of this time or later; None: at the first record.
        until: milliseconds; stop before the first record of this time or later; None: after the current last record.

    Raises:
        SpecError: when the pipeline is built, if settings are wrong, brokers do not respond, or the topic does not
        exist.
    """

    def __init__(self, topic: str, reading: Reading, *, ends: bool, since: int | None = None, until: int | None = None):
        super().__init__()
        self._topic, self._reading = topic, reading
        self._ends, self._since, self._until = ends, since, until

    def expand(self, begin: PBegin) -> PCollection[Gathered]:
        parts = parts_of(self._reading.settings, self._topic, ends=self._ends, since=self._since, until=self._until)
        reading = dataclasses.replace(self._reading, partitions=frozenset(part.partition for part in parts))
        # no shuffle, which engines would insert between a partition and the bundle that reads it
        if self._ends:
            work: Any = begin | "Parts" >> beam.Create(parts, reshuffle=False)
            read_fn: beam.DoFn = _RangeFn(reading)
        else:
            work = begin | "Shares" >> beam.Create(shares_of(parts, reading.readers), reshuffle=False)
            read_fn = _StreamFn(reading)
        polled: beam.PCollection[Gathered] = work | "Poll" >> beam.ParDo(read_fn)
        polled.element_type = GATHERED  # a hint would be checked against tuples
        return polled

    def display_data(self) -> dict[str, Any]:
        return {"servers": self._reading.settings.servers, "topic": self._topic}


class Offsets(RestrictionProvider):
    """Tracker of a range: the offsets of its ``Part``."""

    def initial_restriction(self, part: Part) -> OffsetRange:
        return OffsetRange(part.start, part.stop)

    def create_tracker(self, restriction: OffsetRange) -> OffsetRestrictionTracker:
        return OffsetRestrictionTracker(restriction)

    def restriction_size(self, part: Part, restriction: OffsetRange) -> int:
        return int(restriction.size())


class Positions(RestrictionProvider):
    """Tracker of a stream: an offset for each partition of its ``Share``; no deferred offsets remain."""

    def initial_restriction(self, share: Share) -> tuple[int, ...]:
        return share.starts

    def create_tracker(self, restriction: tuple[int, ...]) -> EndlessTracker:
        return EndlessTracker(restriction)

    def restriction_size(self, share: Share, restriction: tuple[int, ...]) -> int:
        return len(restriction)


class EndlessTracker(RestrictionTracker):
    """Positions of the partitions of a share; the rest can be deferred, but not split among workers."""

    def __init__(self, positions: tuple[int, ...]):
        self._positions = positions
        self._put_off = False

    def current_restriction(self) -> tuple[int, ...]:
        return self._positions

    def current_progress(self) -> RestrictionProgress:
        return RestrictionProgress(fraction=0.0)

    def try_claim(self, positions: tuple[int, ...]) -> bool:
        """Claim the records before these offsets; if possible, the remaining range begins there."""
        if not self._put_off:
            self._positions = positions
        return not self._put_off

    def try_split(self, fraction_of_remainder: float) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        if self._put_off or fraction_of_remainder != 0:
            return None
        left, self._positions, self._put_off = self._positions, (), True
        return self._positions, left

    def check_done(self) -> None:
        if not self._put_off:
            raise ValueError(
                "EndlessTracker must have deferred the rest before a call ends, got a call that ended without it"
            )

    def is_bounded(self) -> bool:
        return False


class FromTheBeginning(WatermarkEstimatorProvider):
    """A minimum watermark for the time before the first record; without it engines would see no watermark at all."""

    def initial_estimator_state(self, element: Any, restriction: Any) -> Timestamp:
        return MIN_TIMESTAMP

    def create_watermark_estimator(self, state: Timestamp) -> ManualWatermarkEstimator:
        return ManualWatermarkEstimator(state)


class _RangeFn(beam.DoFn):
    """Reads a bounded range to its end, without interruption."""

    def __init__(self, reading: Reading):
        self._reading = reading

    def process(
        self,
        part: Part,
        tracker: Any = beam.DoFn.RestrictionParam(Offsets()),  # noqa: B008  # Beam's way
    ) -> Iterator[Gathered]:
        with contextlib.closing(self._reading.reader(part.topic)) as reader:
            reader.seek({part.partition: tracker.current_restriction().start})
            while True:
                polled = reader.poll(TURN_SECONDS)
                if polled is not None and not tracker.try_claim(int(polled.offsets[-1])):
                    yield from groups_of(polled.before(tracker.current_restriction().stop))
                    return
                if polled is not None:
                    yield from groups_of(polled)
                stop = tracker.current_restriction().stop
                if reader.has_reached(stop):
                    tracker.try_claim(stop)
                    return


class _StreamFn(beam.DoFn):
    """Reads for one turn, and defers the rest."""

    def __init__(self, reading: Reading):
        self._reading = reading

    def setup(self) -> None:
        self._looked = time.monotonic()

    @beam.DoFn.unbounded_per_element()  # type: ignore[untyped-decorator]  # Beam's
    def process(
        self,
        share: Share,
        tracker: Any = beam.DoFn.RestrictionParam(Positions()),  # noqa: B008  # Beam's way
        watermark: Any = beam.DoFn.WatermarkEstimatorParam(FromTheBeginning()),  # noqa: B008  # Beam's way
    ) -> Iterator[TimestampedValue[Gathered]]:
        key, ends = (self._reading, share), time.monotonic() + TURN_SECONDS
        reader = _POOL.take(key, lambda: self._reading.reader(share.topic))
        with contextlib.ExitStack() as unless_put_back:
            unless_put_back.callback(reader.close)
            reader.seek(dict(zip(share.partitions, tracker.current_restriction())))
            while (left := ends - time.monotonic()) > 0:
                polled = reader.poll(left)
                if polled is not None:
                    if not tracker.try_claim(reader.positions()):
                        return
                    yield from map(_at_the_latest, groups_of(polled))
            _advance(watermark, reader.watermark(self._reading.idle_lag))
            self._check_partitions(share, reader)
            tracker.defer_remainder()
            unless_put_back.pop_all()
            _POOL.put_back(key, reader)

    def _check_partitions(self, share: Share, reader: Reader) -> None:
        """Fail if the topic has new partitions that no reader reads."""
        known = self._reading.partitions
        if min(known) not in share.partitions or time.monotonic() < self._looked + PARTITIONS_SECONDS:
            return
        self._looked = time.monotonic()
        more = reader.partitions() - known
        if more:
            raise KafkaReadError(
                f"topic {share.topic!r} must have the {len(known)} partitions that it had when the job was "
                f"started (restart the job), got {len(known | more)}"
            )


def groups_of(polled: Polled) -> Iterator[Gathered]:
    """Group polled messages so that decoding needs little memory."""
    done = 0
    for group in cut(polled.values, GROUP_BYTES):
        yield group, polled.times[done : done + len(group)]
        done += len(group)


def _at_the_latest(group: Gathered) -> TimestampedValue[Gathered]:
    return TimestampedValue(group, Timestamp(micros=1000 * int(np.max(group[1]))))


def _advance(watermark: Any, milliseconds: int | None) -> None:
    moment = MIN_TIMESTAMP if milliseconds is None else Timestamp(micros=1000 * milliseconds)
    if moment > watermark.current_watermark():
        watermark.set_watermark(moment)
