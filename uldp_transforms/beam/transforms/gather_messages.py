"""GatherMessages: combine the messages of a bundle into few elements."""

from __future__ import annotations

import functools
import logging
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam import coders
from apache_beam.pvalue import PCollection, TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.beam.runtime.inputs import cure_of
from uldp_transforms.collector.ledger_entries import LedgerEntry, handed_on
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.joined_messages import JoinedMessages, RepeatedMessages
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, BasePeriods, split_by_period

_FLUSH_BYTES = 1 << 21
"""Size in bytes at which gathered messages are emitted before the end of the bundle."""

_FLUSH_MESSAGES = 1 << 14

Gathered = tuple[Sequence[bytes], Sequence[int] | np.ndarray]
"""Group of messages, as a list, ``JoinedMessages`` or ``RepeatedMessages``, and their arrival times in milliseconds
(int64) or None."""

_CODER_VERSION, _REPEATED_VERSION = 1, 2
_REPEATED = bytes([_REPEATED_VERSION])
_TIMES = struct.Struct("<BI")  # version, how often each report counts; then the bytes of version 1
_HEADER = struct.Struct("<BBI")  # version, whether there are arrival times, number of messages
_END = struct.Struct("<q")  # position behind a message
_LOOKED_AT = 64
_LOG = logging.getLogger(__name__)


class GroupOfMessages:
    """Stands for ``Gathered`` where an element type has to be a class with a coder."""


GATHERED = GroupOfMessages
"""Element type of a PCollection of gathered messages."""


class GatheredCoder(coders.Coder):
    """Coder of groups: version, whether there are arrival times, number n of messages (uint32), n ends (int64), n
    arrival times (int64) if there are, and the joined messages. All little-endian. Repeated messages have a head of
    their own."""

    def encode(self, value: Gathered) -> bytes:
        messages, arrived = value
        if isinstance(messages, RepeatedMessages):
            return _TIMES.pack(_REPEATED_VERSION, messages.times) + self.encode((messages.messages, arrived))
        joined = JoinedMessages.join(only_bytes(messages))
        times = np.asarray(arrived, dtype="<i8").tobytes()
        head = _HEADER.pack(_CODER_VERSION, len(times) > 0, len(joined))
        return b"".join((head, joined.ends, times, joined.data))

    def decode(self, encoded: bytes) -> Gathered:
        if encoded[:1] == _REPEATED and len(encoded) >= _TIMES.size:
            messages, arrived = self.decode(encoded[_TIMES.size :])
            return RepeatedMessages(messages, _TIMES.unpack_from(encoded)[1]), arrived
        version, with_times, number = _HEADER.unpack_from(encoded.ljust(_HEADER.size, b"\0"))
        if version not in (_CODER_VERSION, _REPEATED_VERSION) and encoded:
            raise ValueError(f"GatheredCoder reads versions 1 and 2, got version {version}")
        times_at = _HEADER.size + 8 * number
        data_at = times_at + 8 * number * with_times
        size = len(encoded) - data_at
        if size < 0 or size != (_END.unpack_from(encoded, times_at - _END.size)[0] if number else 0):
            raise ValueError(f"GatheredCoder reads whole groups of messages, got {len(encoded)} bytes of one")
        times = np.frombuffer(encoded[times_at:data_at], dtype="<i8").astype(np.int64)
        return JoinedMessages(encoded[data_at:], encoded[_HEADER.size : times_at]), times

    def estimate_size(self, value: Gathered) -> int:
        """About the encoded size, from the first messages: engines ask for it often, because groups are few."""
        messages = value[0]
        if isinstance(messages, JoinedMessages):
            return len(messages.data) + len(messages.ends)
        first = only_bytes(messages[:_LOOKED_AT])
        return len(messages) * (8 + sum(map(len, first)) // max(1, len(first)))

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type:
        return GATHERED


coders.registry.register_coder(GATHERED, GatheredCoder)


def kind_of_messages(elements: object) -> Any:
    """``GATHERED`` for a PCollection of groups of messages, otherwise ``bytes``."""
    return GATHERED if getattr(elements, "element_type", None) is GATHERED else bytes


def only_bytes(elements: Sequence[Any]) -> Sequence[bytes]:
    """The same elements if all are ``bytes``; an empty message, which counts as unread (malformed), instead of each
    element that contains no bytes, such as None for a deleted record of a Kafka topic.
    """
    if isinstance(elements, JoinedMessages) or set(map(type, elements)) <= {bytes}:
        return elements
    return [_as_bytes(element) for element in elements]


def _as_bytes(element: Any) -> bytes:
    if isinstance(element, (bytes, bytearray, memoryview)):
        return bytes(element)
    if element is not None:
        kind: Any = type(element)
        _warn_of(kind)
    return b""


@functools.cache
def _warn_of(kind: Any) -> None:
    """Log that elements of this type are no messages, once in each process."""
    _LOG.warning(
        "EstimateReports and DecodeReports need bytes; elements of type %s are unread messages (malformed)%s",
        kind.__name__,
        cure_of(kind),
    )


class Grouping:
    """Forms groups of messages without arrival times."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._messages: list[bytes] = []
        self._joined: list[JoinedMessages] = []
        self._number = self._size = 0

    def add(
        self, items: Iterable[Sequence[bytes] | RepeatedMessages | Rejection]
    ) -> Iterator[Gathered | RepeatedMessages | Rejection]:
        """Yield groups as soon as there are enough messages, and repeated messages and rejections at once."""
        for item in items:
            if isinstance(item, (RepeatedMessages, Rejection)):
                yield item
            elif isinstance(item, JoinedMessages):
                for part in item.parts(_FLUSH_MESSAGES):
                    self._joined.append(part)
                    yield from self._full(len(part), len(part.data))
            else:
                for message in item:
                    self._messages.append(message)
                    yield from self._full(1, len(message))

    def _full(self, number: int, size: int) -> list[Gathered]:
        """The groups, if there are enough messages with these."""
        self._number += number
        self._size += size
        return self.rest() if self._size >= _FLUSH_BYTES or self._number >= _FLUSH_MESSAGES else []

    def rest(self) -> list[Gathered]:
        """The last groups, if there are messages."""
        messages, joined = self._messages, self._joined
        self._forget()
        found: list[Gathered] = [(JoinedMessages.concatenate(joined), [])] if joined else []
        return [*found, (messages, [])] if messages else found


class GatheredMessages(NamedTuple):
    """Outputs of ``GatherMessages``."""

    gathered: PCollection[Gathered]
    ledger: PCollection[LedgerEntry]


class GatherMessages(beam.PTransform[Any, GatheredMessages]):
    """Gather messages into groups for decoding, and count them.

    Input: messages, or groups of them, which are counted as groups.

    The ledger uses this count, so it shows any loss after this step. A separate counting step would cost half as much
    again as all the work that this step does per message.

    All messages of a group of a stream arrived in the same base period. So their ledger entries belong to the same
    period of arrival, however an engine forms bundles, also when it repeats them after a fault.

    Args:
        spec: specification of the job, for this input.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = spec

    def expand(self, messages: PCollection[Any]) -> GatheredMessages:
        timed, periods = self._spec.gate is not None, self._spec.periods
        if kind_of_messages(messages) == GATHERED:
            gather_fn: beam.DoFn = _CountFn(periods, timed)
        else:
            gather_fn = _TimedGatherFn(periods) if timed else _GatherFn()
        outputs = messages | "Bundle" >> beam.ParDo(gather_fn).with_outputs("ledger", main="gathered")
        outputs.gathered.element_type = GATHERED
        outputs.ledger.element_type = LedgerEntry
        return GatheredMessages(outputs.gathered, outputs.ledger)


class _GatherFn(beam.DoFn):
    """``process`` is not a generator and takes only the message, which is Beam's fastest call; it runs for every
    message.
    """

    def __init__(self) -> None:
        self._messages: list[bytes] = []
        self._size = 0

    def start_bundle(self) -> None:
        self._messages, self._size = [], 0

    def process(self, message: bytes) -> list[Any] | None:
        self._messages.append(message)
        try:  # noqa: SIM105  # for every message, where a context would cost more than all the rest
            self._size += len(message)
        except TypeError:
            pass  # ``only_bytes`` replaces what is no message
        return self._gathered() if self._is_full() else None

    def finish_bundle(self) -> list[Any]:
        return self._gathered() if self._messages else []

    def _is_full(self) -> bool:
        return self._size >= _FLUSH_BYTES or len(self._messages) >= _FLUSH_MESSAGES

    def _gathered(self) -> list[Any]:
        messages = only_bytes(self._messages)
        self._messages, self._size = [], 0
        return [
            WindowedValue((messages, []), MIN_TIMESTAMP, (GlobalWindow(),)),
            TaggedOutput("ledger", WindowedValue(handed_on(len(messages)), MIN_TIMESTAMP, (GlobalWindow(),))),
        ]


class _TimedGatherFn(_GatherFn):
    """Gathers messages with arrival times, which the gate compares with event times."""

    def __init__(self, periods: BasePeriods | None):
        super().__init__()
        self._periods = periods
        self._arrival_times: list[int] = []

    def start_bundle(self) -> None:
        super().start_bundle()
        self._arrival_times = []

    def process(self, message: bytes, timestamp: Any = beam.DoFn.TimestampParam) -> list[Any] | None:
        self._arrival_times.append(timestamp.micros // 1000)
        return super().process(message)

    def _gathered(self) -> list[Any]:
        messages, arrived = only_bytes(self._messages), _require_times(self._arrival_times)
        self._messages, self._size, self._arrival_times = [], 0, []
        return _outputs(messages, arrived, self._periods)


def _require_times(arrival_times: list[int]) -> np.ndarray:
    """The times as an array; raises SpecError if some are no moments, as elements have without a time of their own."""
    times = np.array(arrival_times, dtype=np.int64)
    if times.min() < MIN_EVENT_TIME or times.max() > MAX_EVENT_TIME:
        raise SpecError(
            "messages of a stream must have their time of arrival as timestamp, got messages without a time; use, in a "
            "TestStream: stream.add_elements([TimestampedValue(message, time.time())])"
        )
    return times


def _outputs(messages: Sequence[bytes], arrived: np.ndarray, periods: BasePeriods | None) -> list[Any]:
    """Groups by period of arrival, each with the timestamp of its latest message, and their ledger entries."""
    found: list[Any] = []
    for group in _by_period(messages, arrived, periods):
        latest = Timestamp(micros=1000 * int(group[1].max()))
        found.append(WindowedValue(group, latest, (GlobalWindow(),)))
        found.append(TaggedOutput("ledger", WindowedValue(handed_on(len(group[0])), latest, (GlobalWindow(),))))
    return found


def _by_period(
    messages: Sequence[bytes], arrived: np.ndarray, periods: BasePeriods | None
) -> Iterator[tuple[Sequence[bytes], np.ndarray]]:
    starts, index = split_by_period(arrived, periods)
    if len(starts) == 1:
        yield messages, arrived
        return
    messages = list(messages)  # one by one
    for places in np.split(np.argsort(index, kind="stable"), np.cumsum(np.bincount(index))[:-1]):
        yield [messages[place] for place in places.tolist()], arrived[places]


class _CountFn(beam.DoFn):
    """Passes on and counts groups from the source: with their times, or without if no gate uses them.

    Args:
        periods: base periods of the job.
        timed: whether messages have arrival times.
    """

    def __init__(self, periods: BasePeriods | None, timed: bool):
        self._periods = periods
        self._timed = timed

    def process(self, group: Gathered) -> list[Any]:
        messages, arrived = only_bytes(group[0]), group[1]
        if not self._timed:
            return [(messages, []), TaggedOutput("ledger", handed_on(len(messages)))]
        if len(arrived) != len(messages):
            came = f"{len(arrived)} for {len(messages)}"
            raise SpecError(f"groups of messages of a stream must have an arrival time for each message, got {came}")
        return _outputs(messages, np.asarray(arrived, dtype=np.int64), self._periods) if messages else []
