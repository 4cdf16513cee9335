"""Messages in one buffer, as a block of a file holds them: no object for each. No Beam."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from uldp_transforms.messages.wire import REPORT_FORM, reports_in


class JoinedMessages(Sequence[bytes]):
    """n messages, one after the other.

    Args:
        data: the bytes of all messages, and nothing else.
        ends: n numbers as int64, increasing: the position in ``data`` after each message; the last one is its length.
    """

    def __init__(self, data: bytes, ends: bytes):
        self.data = data
        self.ends = ends

    @classmethod
    def of(cls, data: bytes, ends: Sequence[int] | np.ndarray) -> JoinedMessages:
        """Messages with ends in another form."""
        return cls(data, np.asarray(ends, dtype=np.int64).tobytes())

    @classmethod
    def join(cls, messages: Sequence[bytes]) -> JoinedMessages:
        """Any messages."""
        if isinstance(messages, JoinedMessages):
            return messages
        lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
        return cls.of(b"".join(messages), np.cumsum(lengths))

    @classmethod
    def concatenate(cls, parts: Sequence[JoinedMessages]) -> JoinedMessages:
        """All messages, in order."""
        if len(parts) == 1:
            return parts[0]
        starts = np.cumsum([0, *(len(part.data) for part in parts[:-1])])
        ends = np.frombuffer(b"".join([part.ends for part in parts]), dtype=np.int64)
        return cls.of(b"".join([part.data for part in parts]), ends + np.repeat(starts, list(map(len, parts))))

    @functools.cached_property
    def bounds(self) -> np.ndarray:
        """(n + 1,) int64, the start of each message, followed by the end of the last."""
        return np.concatenate([[0], np.frombuffer(self.ends, dtype=np.int64)])

    def parts(self, most: int) -> Iterator[JoinedMessages]:
        """The same messages in parts of at most this number."""
        if len(self) <= most:
            yield self
            return
        for first in range(0, len(self), most):
            yield self.part(first, first + most)

    def part(self, first: int, end: int) -> JoinedMessages:
        """The messages from one position to before another."""
        bounds = self.bounds[first : end + 1]
        return JoinedMessages.of(self.data[bounds[0] : bounds[-1]], bounds[1:] - bounds[0])

    def __len__(self) -> int:
        return len(self.ends) // 8

    def __iter__(self) -> Iterator[bytes]:
        bounds, data = self.bounds.tolist(), self.data
        return (data[start:end] for start, end in itertools.pairwise(bounds))

    def __getitem__(self, at: Any) -> Any:
        """A message, or a list of those of a slice."""
        if isinstance(at, slice):
            return list(self)[at]
        place = range(len(self))[at]
        start, end = self.bounds[place : place + 2].tolist()
        return self.data[start:end]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # equal to lists, which are not hashable


@dataclasses.dataclass(frozen=True)
class RepeatedMessages(Sequence[bytes]):
    """Messages each of whose reports stands for several equal ones, as a row of counted reports does.

    Attributes:
        messages: packed messages without ids.
        times: number of reports that each of their reports stands for, at least 2.
    """

    messages: Sequence[bytes]
    times: int

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, at: Any) -> Any:
        return self.messages[at]


def num_reports(messages: Sequence[bytes]) -> int:
    """Number of reports that plain messages declare; ``JoinedMessages`` must be single reports."""
    if isinstance(messages, RepeatedMessages):
        return messages.times * num_reports(messages.messages)
    return len(messages) if isinstance(messages, JoinedMessages) else sum(map(reports_in, messages))


def join_singles(parts: Sequence[Sequence[bytes]]) -> list[bytes] | JoinedMessages:
    """The messages of all parts, in order: joined if all parts are and no message is a packed one, else a list."""
    if all(isinstance(part, JoinedMessages) for part in parts):
        joined = JoinedMessages.concatenate([JoinedMessages.join(part) for part in parts])
        forms = np.frombuffer(joined.data + b"\0", dtype=np.uint8)[joined.bounds[:-1]]
        if (forms == REPORT_FORM).all():
            return joined
    return list(itertools.chain.from_iterable(parts))


def cut(messages: list[bytes] | JoinedMessages, size: int) -> Iterator[list[bytes] | JoinedMessages]:
    """The messages in groups of about this number of bytes."""
    joined = messages if isinstance(messages, JoinedMessages) else None
    if (sum(map(len, messages)) if joined is None else len(joined.data)) < size:
        yield from [messages] if messages else []
        return
    ends = JoinedMessages.join(messages).bounds[1:]
    cuts = [0, *(np.flatnonzero(np.diff(ends // size)) + 1).tolist(), len(ends)]
    for begin, end in itertools.pairwise(cuts):
        yield messages[begin:end] if joined is None else joined.part(begin, end)
