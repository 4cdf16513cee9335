"""Counts what is new in a source and estimates the windows that are due; nothing that matters is kept in memory."""

from __future__ import annotations

import contextlib
import math
import time as timing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from uldp_transforms.collector.ledger_entries import LedgerEntry, ledger_rows
from uldp_transforms.collector.owners import Owners
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.messages.group_keys import is_total
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.rejected_report import rejected_row
from uldp_transforms.rows.samples.sample import Sample
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.spec.row_forecast import RowForecast
from uldp_transforms.windows import now
from uldp_transforms_follow.follow_reading import Reading
from uldp_transforms_follow.known_ids_state import KnownIdsState
from uldp_transforms_follow.row_outbox import put_rows, rows_of_windows, samples_of, write_outbox
from uldp_transforms_follow.state import FollowState, PendingWindow

if TYPE_CHECKING:
    from uldp_transforms_follow.smoothing_state import SmoothingState

MOST_BYTES = 1 << 25
"""Bytes of collected row files that are written at once."""

WINDOWS_AT_ONCE = 256
"""Maximum number of windows that are estimated in one transaction."""

ENTRIES_AT_ONCE = 1 << 17
"""Maximum number of values in all rows of these windows, unless one window has more: an entry takes about 1 kB until it
is in the outbox."""


def windows_at_once(spec: JobSpec) -> int:
    """Number of windows of a job that are estimated in one transaction."""
    return max(1, min(WINDOWS_AT_ONCE, ENTRIES_AT_ONCE // max(1, RowForecast.of(spec).entries)))


def _seconds() -> float:
    """Time by a clock that nobody sets."""
    return timing.monotonic()


def _nothing(point: str) -> None:
    """Default of ``Follower.reached``."""


class Source(Protocol):
    """Reports that arrive while a job runs. It reads from the state what was counted before.

    Attributes:
        seen_until: time before which everything arrived that ``news`` has returned, in milliseconds since 1970; None:
            not known yet.
    """

    seen_until: int | None

    def news(self, time: int) -> Iterator[Reading]:
        """What is not counted yet, in parts, each of which is committed before the next is requested.

        Args:
            time: the current time in milliseconds since 1970.
        """

    def close(self) -> None:
        """End all connections."""


def _smoothing_of(state: FollowState, spec: JobSpec) -> SmoothingState:
    from uldp_transforms_follow.smoothing_state import SmoothingState  # noqa: PLC0415  # few jobs smooth

    return SmoothingState(state, spec)


class Follower:
    """One pass after another over the same source and state.

    Args:
        source: source of the reports.
        directory: output directory, which this process has locked.
        spec: specification of the job, with windows and run.
        state: state of the directory.
        forms: in which rows are written.
        late_every: milliseconds for which late reports of a window are collected before its next row.
        early_every: the same for reports of a window before its end; None: it has no rows before its end.
        flush_every: milliseconds for which rows are collected before they are written together.
        reached: called with the name of each point at which a kill must lose nothing; for tests.
        clock: the current time in milliseconds since 1970.
    """

    def __init__(
        self,
        source: Source,
        directory: str,
        spec: JobSpec,
        state: FollowState,
        *,
        forms: RowForms,
        late_every: int,
        early_every: int | None = None,
        flush_every: int = 0,
        reached: Callable[[str], None] = _nothing,
        clock: Callable[[], int] = now,
    ):
        self._source = source
        self._directory = directory
        self._spec = spec
        self._state = state
        self._late_every = late_every
        self._early_every = early_every
        self._forms = forms
        self._flush_every = flush_every / 1000
        self._rows_since: float | None = -math.inf  # rows of an earlier start are due
        self._reached = reached
        self._clock = clock
        self._at_once = windows_at_once(spec)
        self._owners = Owners(spec)
        self._questions = {one.fingerprint: [q.fingerprint] for q in spec.questions for one in q.pooled}
        self._members = {one.fingerprint: [one.fingerprint] for one in spec.collections}
        self._ids = KnownIdsState(state, spec) if spec.deduplicate else None
        self._smoothing = _smoothing_of(state, spec) if spec.smooth else None
        self._members |= {q.fingerprint: [one.fingerprint for one in q.pooled] for q in spec.questions}

    def step(self) -> None:
        """Count what is new, and estimate the windows that are due.

        Raises:
            OSError, sqlite3.Error: if the source or the directory cannot be read or written.
            KafkaReadError: if a topic cannot be read.
        """
        self._flush()
        time = self._clock()
        for reading in self._source.news(time):
            self._count(reading)
        if self._source.seen_until is None:
            return
        due = self._state.pending(self._source.seen_until, time, self._late_every, self._early_every)
        for first in range(0, len(due), self._at_once):
            with self._state:
                self._estimate(due[first : first + self._at_once])
                self._reached("before estimates are committed")
            self._reached("after estimates are committed")
            self._flush()
        if self._ids is not None:
            self._ids.forget(self._source.seen_until)
            self._reached("after ids are forgotten")

    def finish(self) -> None:
        """Write the rows that are still collected; raises OSError, sqlite3.Error."""
        write_outbox(self._state, self._directory, self._reached)

    def _flush(self) -> None:
        """Write the collected rows if they are due: the first of them is old enough, or there are many."""
        if self._flush_every:
            size = self._state.outbox_bytes()
            if self._rows_since is None and size:
                self._rows_since = _seconds()
            if self._rows_since is None or (size < MOST_BYTES and _seconds() - self._rows_since < self._flush_every):
                return
            self._rows_since = None
        write_outbox(self._state, self._directory, self._reached)

    def _count(self, reading: Reading) -> None:
        """Commit a part of the source: manifest, counts, windows and the rows of the ledger in one transaction."""
        self._reached("before counts are committed")
        spec, state = self._spec, self._state
        with state, self._counted_once(reading):
            for file in reading.files:
                state.list_file(file)
            state.advance(reading.offsets, reading.times)
            state.add(reading.counts)
            state.touch(self._windows_of(reading), self._clock())
            found: list[LedgerEntry | Rejection] = [*reading.entries, *reading.rejections]
            rejected = [rejected_row(rejection, spec.periods, spec.run) for rejection in reading.rejections]
            self._put({"ledger": ledger_rows(found, spec), "rejected": rejected})
            self._reached("in the transaction of counts")
        self._reached("after counts are committed")
        self._flush()

    @contextlib.contextmanager
    def _counted_once(self, reading: Reading) -> Iterator[None]:
        """Count the reports of a part of the source that are new, in the transaction that is open."""
        if self._ids is None:
            yield
            return
        try:
            counts, entries = self._ids.count_new(reading.reports)
            for period, change in counts.items():
                reading.add(period, change)
            reading.entries += entries
            self._reached("after ids are remembered")
            yield
        except BaseException:
            self._ids.drop_memory()
            raise

    def _windows_of(self, reading: Reading) -> set[tuple[bytes, int, int]]:
        """Fingerprint, start and end of the windows of collections and questions that contain counted reports."""
        windows = self._spec.windows
        assert windows is not None, "follow_job refuses a job without windows"
        return {
            (name, start, windows.end_of(start))
            for fingerprint, period in reading.counts
            if is_total(fingerprint)
            for start in windows.starts_around(period)
            for name in (fingerprint, *self._questions.get(fingerprint, ()))
        }

    def _estimate(self, due: list[PendingWindow]) -> None:
        """Put the rows of windows into the outbox; windows of collections that the job no longer has stay pending."""
        simulated, samples = self._state.simulated(), list[Sample]()
        for window in due:
            if counts := self._counts_of(window):
                samples += samples_of(self._spec, self._owners, window, counts, simulated=simulated)
                self._state.estimated(window)
        if samples:
            rows: Mapping[str, Sequence[Any]] = rows_of_windows(self._spec, samples, with_counts=self._forms.counts)
            if self._smoothing is not None:
                rows = self._smoothing.smooth((sample.owner for sample in samples), rows)
            self._put(rows)

    def _put(self, rows: Mapping[str, Sequence[Any]]) -> None:
        """Put rows by kind into the outbox, in the transaction that is open."""
        put_rows(self._state, str(self._spec.run), rows, self._forms)

    def _counts_of(self, window: PendingWindow) -> dict[bytes, CohortCounts]:
        """Counts of a window by key: of its collection, or of all versions of its question, each with its groups."""
        found: dict[bytes, CohortCounts] = {}
        for fingerprint in self._members.get(window.fingerprint, ()):
            counts = self._state.counts_between(fingerprint, window.start, window.stop)
            if counts is not None:
                found[fingerprint] = counts
                if self._spec.by and fingerprint in self._spec.catalog.grouped:
                    found |= self._state.groups_between(fingerprint, window.start, window.stop)
        return found
