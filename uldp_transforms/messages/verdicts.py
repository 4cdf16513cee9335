"""Collection of verdicts during decoding: rejections with their reasons, and numbers of received reports. No Beam."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.joined_messages import JoinedMessages
from uldp_transforms.messages.rejection import Rejection

NOBODY = -1
"""Number that stands for "no collection"."""


class Verdicts:
    """Collects the rejections of one ``MessageDecoder.decode`` call, and counts the received reports.

    Args:
        catalog: the collections of the job.
        messages: the n messages.
        arrival_times: (n,) int64 in ms; None if messages have none.

    Attributes:
        off_by, stranger: as in ``Decoded``.
    """

    def __init__(self, catalog: CollectionCatalog, messages: Sequence[bytes], arrival_times: np.ndarray | None):
        self.arrival_times = arrival_times
        self.off_by: dict[Reason, int] = {}
        self.stranger = b""
        self._catalog = catalog
        self._refused: dict[tuple[Reason, int, int, int | None, int], tuple[int, int]] = {}
        self._messages = messages
        self._all_settled = False
        self._num_received = np.zeros(len(catalog) + 1, dtype=np.int64)  # last entry: no collection

    def take_out(self, messages: np.ndarray, numbers: np.ndarray, num_reports: np.ndarray | int = 1) -> None:
        """Count reports, before any check, by the messages that contain them and the numbers of their collections."""
        self._settled[messages] = True
        np.add.at(self._num_received, numbers, num_reports)

    def take_out_all(self, numbers: np.ndarray, num_reports: np.ndarray) -> None:
        """Count the reports of all messages by the numbers of their collections, which are all different."""
        self._all_settled = True
        self._num_received[numbers] += num_reports

    def note(self, reason: Reason, off_by: np.ndarray) -> None:
        """Record the largest number of milliseconds by which these reports missed a time limit."""
        self.off_by[reason] = max(int(off_by.max()), self.off_by.get(reason, 0))

    @functools.cached_property
    def _settled(self) -> np.ndarray:
        """(n,) bool: messages whose reports were counted."""
        return np.full(len(self._messages), self._all_settled)

    @functools.cached_property
    def arrival_range(self) -> tuple[int, int]:
        """Earliest and latest arrival time of the messages, at least one."""
        assert self.arrival_times is not None
        return int(self.arrival_times.min()), int(self.arrival_times.max())

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """(n,) int64, bytes of the messages."""
        if isinstance(self._messages, JoinedMessages):
            return np.diff(self._messages.bounds)
        return np.fromiter(map(len, self._messages), dtype=np.int64, count=len(self._messages))

    def num_received(self) -> np.ndarray:
        """See ``Decoded.received``."""
        received: np.ndarray = self._num_received.copy()
        if not self._all_settled:
            received[NOBODY] += len(self._settled) - np.count_nonzero(self._settled)
        return received

    def refuse(
        self, messages: np.ndarray, reason: Reason, numbers: np.ndarray | int = NOBODY, num_reports: int = 1
    ) -> None:
        """Refuse whole messages, of ``num_reports`` each; 0: the messages could not be read."""
        if not len(messages):
            return
        numbers = np.broadcast_to(numbers, len(messages))
        self.take_out(messages, numbers, num_reports)
        self._add(messages, reason, num_reports, numbers, None)

    def refuse_each(self, messages: np.ndarray, reasons: np.ndarray) -> None:
        """Refuse messages that could not be read, each with its own reason (0: not refused)."""
        for reason in np.unique(reasons[reasons > 0]):
            self.refuse(messages[reasons == reason], Reason(reason), num_reports=0)

    def refuse_reports(
        self, messages: np.ndarray, reason: Reason, numbers: np.ndarray, periods: np.ndarray | None
    ) -> None:
        """Refuse single reports, given by their messages (n,), collections and, if established, base periods (n,)."""
        self._add(messages, reason, 1, numbers, periods)

    def _add(
        self,
        messages: np.ndarray,
        reason: Reason,
        num_reports: int,
        numbers: np.ndarray,
        periods: np.ndarray | None,
    ) -> None:
        """Count rejections by size, time of arrival, period and collection."""
        nothing = np.zeros(len(messages), dtype=np.int64)
        keys = [
            self.lengths[messages],
            nothing if self.arrival_times is None else self.arrival_times[messages],
            nothing if periods is None else periods,
            numbers,
        ]
        groups, counts = np.unique(np.stack(keys, axis=1), axis=0, return_counts=True)
        for (size, arrival, period, number), count in zip(groups.tolist(), counts.tolist()):
            key = (reason, size, number, None if periods is None else period, arrival)
            reports, unread = self._refused.get(key, (0, 0))
            self._refused[key] = (reports + num_reports * count, unread + (0 if num_reports else count))

    @property
    def rejections(self) -> list[Rejection]:
        """All rejections, grouped by reason, size, collection, period and time of arrival."""
        return [
            Rejection(
                reason,
                num_reports,
                size,
                None if number == NOBODY else self._catalog.numbered[number],
                period,
                None if self.arrival_times is None else arrival,
                num_messages=num_messages,
            )
            for (reason, size, number, period, arrival), (num_reports, num_messages) in self._refused.items()
        ]
