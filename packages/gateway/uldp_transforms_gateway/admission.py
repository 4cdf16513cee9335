"""Decides which messages are accepted, by the verdict of the job's own decoder on each message. No network."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.messages.decoder import MessageDecoder

_MARKED = len(wire.REPORT_HEADER)
_NOTHING: Counter[Reason] = Counter()  # of all messages of which nothing is refused; never changed


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Content of a message.

    Attributes:
        fingerprint: the collection of the accepted reports; empty if there are none.
        accepted: number of accepted reports.
        refused: number of refused reports by reason.
        has_ids: whether the accepted reports have ids.
    """

    fingerprint: bytes
    accepted: int
    refused: Counter[Reason]
    has_ids: bool = True

    @property
    def reason(self) -> Reason:
        """The most frequent reason of refusal."""
        return max(self.refused, key=self.refused.__getitem__)


def plain(message: bytes) -> bytes:
    """A message without the header of single-object encoding, if it has one."""
    return message[_MARKED:] if message[:_MARKED] in (wire.REPORT_HEADER, wire.BATCH_HEADER) else message


def has_ids(batch: ReportBatch) -> bool:
    """Whether reports have ids; a batch has them for all or none."""
    return len(batch.report_ids) > 0


_Judged = tuple[Sequence[Verdict], Sequence[ReportBatch]]
"""Verdicts on messages, and the accepted reports."""


class Admission:
    """Judges messages, many at a time, as ``DecodeReports`` would.

    Args:
        decoder: of the job.
        most: reports in one of the batches that are handed on, unless one message has more.
    """

    def __init__(self, decoder: MessageDecoder, most: int):
        self._decoder = decoder
        self._most = most

    def judge(self, messages: Sequence[bytes], arrival: int) -> Iterator[_Judged]:
        """Verdicts on n messages in their order, in blocks, and their accepted reports.

        Args:
            messages: n messages.
            arrival: of all of them, in milliseconds.
        """
        for part in self._parts(messages):
            yield from self._judge(part, arrival)

    def _parts(self, messages: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
        """Parts of the messages; the reports that each part declares do not exceed a limit."""
        begin = total = 0
        for at, message in enumerate(messages):
            number = wire.reports_in(plain(message))
            if at > begin and total + number > self._most:
                yield messages[begin:at]
                begin, total = at, 0
            total += number
        yield messages[begin:]

    def _judge(self, messages: Sequence[bytes], arrival: int) -> Iterator[_Judged]:
        """Decode messages together if all are good, else one by one, because rejections do not name their message."""
        decoded = self._decoder.decode(messages, np.full(len(messages), arrival, dtype=np.int64))
        if not decoded.rejections:
            fingerprints = {batch.fingerprint[:PREFIX_BYTES]: batch.fingerprint for batch in decoded.batches}
            yield [_accepted(plain(message), fingerprints) for message in messages], decoded.batches
        elif len(messages) == 1:
            refused = Counter[Reason]()
            for rejection in decoded.rejections:
                refused[rejection.reason] += rejection.number
            accepted = sum(map(len, decoded.batches))
            yield (
                [Verdict(_only_fingerprint(decoded.batches), accepted, refused, wire.has_ids(plain(messages[0])))],
                decoded.batches,
            )
        else:
            half = len(messages) // 2
            yield from self._judge(messages[:half], arrival)
            yield from self._judge(messages[half:], arrival)


def _accepted(message: bytes, fingerprints: dict[bytes, bytes]) -> Verdict:
    fingerprint = fingerprints[message[1 : 1 + PREFIX_BYTES]]
    return Verdict(fingerprint, wire.reports_in(message), _NOTHING, wire.has_ids(message))


def _only_fingerprint(batches: Sequence[ReportBatch]) -> bytes:
    return batches[0].fingerprint if batches else b""
