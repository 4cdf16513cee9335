"""Counts messages of a source that a job follows. No Beam pipeline."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import numpy as np

from uldp_transforms.collector.ledger_entries import ACCEPTED, RECEIVED, LedgerEntry, handed_on, received_entries
from uldp_transforms.collector.period_counts import count_batches
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.messages.decoder import Decoded, MessageDecoder
from uldp_transforms.messages.group_keys import is_total
from uldp_transforms.messages.joined_messages import JoinedMessages, cut
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import MIN_EVENT_TIME, TimeGate
from uldp_transforms_follow.state import CountedFile, Period

_AT_ONCE = 1 << 22  # bytes of messages that are decoded together


@dataclasses.dataclass
class Reading:
    """A part of a source: counts, ledger entries and rejections.

    Attributes:
        files: entries for the manifest.
        offsets: of a topic: by partition, the offset of the next record.
        times: of a topic: by partition, the time of the record before that offset, if it was read.
        counts: of the accepted reports.
        reports: accepted reports that are not counted yet, because each id counts once.
        entries: of the ledger, without rejections.
        rejections: rejected reports, messages and parts of files.
    """

    files: list[CountedFile] = dataclasses.field(default_factory=list)
    offsets: dict[int, int] = dataclasses.field(default_factory=dict)
    times: dict[int, int] = dataclasses.field(default_factory=dict)
    counts: dict[Period, CohortCounts] = dataclasses.field(default_factory=dict)
    reports: list[MixedReports] = dataclasses.field(default_factory=list)
    entries: list[LedgerEntry] = dataclasses.field(default_factory=list)
    rejections: list[Rejection] = dataclasses.field(default_factory=list)

    def merge(self, other: Reading) -> None:
        """Add a later part of the source."""
        self.files += other.files
        self.offsets |= other.offsets
        self.times |= other.times
        self.reports += other.reports
        self.entries += other.entries
        self.rejections += other.rejections
        for period, counts in other.counts.items():
            self.add(period, counts)

    def reject(self, rejections: Iterable[Rejection]) -> None:
        """Add rejected parts of the source; reports whose number is known count as received."""
        for rejection in rejections:
            self.rejections.append(rejection)
            if rejection.num_reports:
                self.entries.append(LedgerEntry(RECEIVED, b"", None, rejection.num_reports))

    def add(self, period: Period, new: CohortCounts) -> None:
        """Add counts of a base period."""
        self.counts[period] = self.counts[period] + new if period in self.counts else new


class MessageCounter:
    """Counts the reports of messages that arrived in time.

    Args:
        spec: specification of the job, with windows.
        not_before: the earliest time at which reports can arrive now, in milliseconds since 1970.
    """

    def __init__(self, spec: JobSpec, not_before: Callable[[], int] = lambda: MIN_EVENT_TIME):
        assert spec.periods is not None, "follow_job refuses a job without windows"
        self._spec, self._not_before = spec, not_before
        self._gate = TimeGate(
            periods=spec.periods, allowed_lateness=spec.allowed_lateness, future_skew=spec.future_skew
        )
        self._decoder = MessageDecoder(spec.catalog, self._gate, spec.deduplicate)

    def count(
        self, reading: Reading, messages: list[bytes] | JoinedMessages, arrived: int | np.ndarray, within: int = 0
    ) -> None:
        """Decode messages, and add their counts, ledger entries and rejections.

        Args:
            reading: is added to.
            messages: n messages.
            arrived: (n,) int64, milliseconds since 1970: earliest time at which each may have arrived; or one for all.
            within: milliseconds after that time within which they arrived.
        """
        decoder = self._decoder
        if within:
            decoder = decoder.with_gate(dataclasses.replace(self._gate, future_skew=self._gate.future_skew + within))
        times, done = np.broadcast_to(np.maximum(arrived, self._not_before()).astype(np.int64), len(messages)), 0
        for group in cut(messages, _AT_ONCE):
            decoded = decoder.decode(group, times[done : done + len(group)])
            reading.entries.append(handed_on(len(group) - decoded.num_messages))
            self._add(reading, decoded)
            done += len(group)

    def _add(self, reading: Reading, decoded: Decoded) -> None:
        spec = self._spec
        reading.entries += received_entries(decoded, spec.periods)
        reading.rejections += decoded.rejections
        if spec.deduplicate:
            reading.reports += decoded.parts
            return
        for (owner, start), counts in count_batches(
            spec.catalog, decoded.parts, spec.periods, spec.bit_patterns, spec.by
        ):
            assert start is not None, "follow_job refuses a job without windows"
            reading.add((owner, start), counts)
            if is_total(owner):
                reading.entries.append(LedgerEntry(ACCEPTED, owner, start, counts.total))
