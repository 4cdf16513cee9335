"""PoolVersions: estimate each question from the counts of all its versions, window by window."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import PCollection
from apache_beam.transforms import userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming, WindowedValue

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.beam_windows import ParDoInto, in_window, key_and_window
from uldp_transforms.beam.runtime.coders import KEYED_BYTES, KEYED_COUNTS, CohortCountsCoder
from uldp_transforms.beam.runtime.inputs import mark, require_spec, spec_for
from uldp_transforms.beam.runtime.panes import due_and_kept
from uldp_transforms.beam.transforms.smooth_estimates import KEYED_ROWS, Rows
from uldp_transforms.beam.transforms.window_samples import WindowSamples, measured_rows
from uldp_transforms.collector.owners import Owners
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.group_keys import fingerprint_of
from uldp_transforms.spec.job_spec import JobSpec

_FINGERPRINT = 32
_INDEX = 8  # bytes
_PANES = struct.Struct("<Q?")
_VERSION = struct.Struct("<32sQQ")
_COUNTS = CohortCountsCoder()


class PoolVersions(beam.PTransform[PCollection[tuple[bytes, CohortCounts]], PCollection[tuple[bytes, Rows]]]):
    """Estimates each question of the job from all its versions, unless groups borrow: then ``EstimateTogether`` does.

    Input: pairs of a collection's fingerprint and the counts of all its reports in the window so far, as for
    ``EstimateDistribution``, which applies this transform itself.

    Output: pairs of a question's fingerprint and the two rows of a window, in the windows of the job. Over files, one
    pair per question and window. In a stream, the pair on time comes at the end of the window (or with the release of
    final results), from the latest counts of each version; an early or late pane of any version makes one more pair.

    A stream keeps the latest counts of each version, and the number of panes, in state of the global window under a key
    that names question and window, for the reasons that ``ReleaseOnce`` gives.

    Args:
        spec: specification of the job.

    Raises:
        SpecError: if no collection names a question.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = require_spec("PoolVersions", spec)
        if not spec.questions:
            raise SpecError("PoolVersions needs a collection that names a question, got none")

    def expand(self, counts: PCollection[tuple[bytes, CohortCounts]]) -> PCollection[tuple[bytes, Rows]]:
        pooled: PCollection[tuple[bytes, Rows]]
        spec = spec_for("PoolVersions", self._spec, counts, KEYED_COUNTS, windowed=True)
        owners = Owners(spec)
        if spec.bounded:
            named = counts | "OfQuestion" >> beam.FlatMap(_of_question, owners).with_output_types(KEYED_BYTES)
            pooled = named | "Versions" >> beam.GroupByKey() | "Estimate" >> beam.ParDo(_PoolFn(spec))
        else:
            named = counts | "NameWindows" >> beam.FlatMap(_of_window, owners).with_output_types(KEYED_BYTES)
            free = named | "InNoWindow" >> beam.WindowInto(GlobalWindows())
            pooled = free | "HoldVersions" >> ParDoInto(_HoldVersionsFn(spec), counts.windowing)
        pooled.element_type = KEYED_ROWS
        mark(spec, pooled)
        return pooled


def _of_question(sums: tuple[bytes, CohortCounts | None], owners: Owners) -> Iterator[tuple[bytes, bytes]]:
    """The counts of a version or of its group under the key of the question; nothing for other collections."""
    question = owners.in_question(sums[0])
    if question is not None and sums[1] is not None:
        yield question, fingerprint_of(sums[0]) + _COUNTS.encode(sums[1])


def _of_window(
    sums: tuple[bytes, CohortCounts | None],
    owners: Owners,
    window: Any = beam.DoFn.WindowParam,
    pane: Any = beam.DoFn.PaneInfoParam,
) -> Iterator[tuple[bytes, bytes]]:
    """The same under the name of question and window, after the pane's timing and index."""
    for question, counts in _of_question(sums, owners):
        is_early = pane.timing == PaneInfoTiming.EARLY
        yield in_window(question, window), bytes([is_early]) + max(pane.index, 0).to_bytes(_INDEX, "big") + counts


class _Estimator:
    """Makes the pooled rows of one window."""

    def __init__(self, spec: JobSpec):
        self._samples = WindowSamples(spec)
        self._asked = spec.asked()

    def asks_for(self, question: bytes) -> bool:
        """Whether the job still has this question and group."""
        return not self._samples.owners.is_group_of_nobody(question)

    def rows(self, question: bytes, versions: Iterable[bytes], window: Any, pane: Any) -> Rows:
        """The rows from the counts of versions, each after the version's fingerprint."""
        decoded = ((version[:_FINGERPRINT], _COUNTS.decode(version[_FINGERPRINT:])) for version in versions)
        counts = {version: counts for version, counts in decoded if counts is not None}
        [rows] = measured_rows([self._samples.sample(question, counts, window, pane)], self._asked)
        return rows


class _PoolFn(beam.DoFn):
    """Files: all versions of a window together."""

    def __init__(self, spec: JobSpec):
        self._estimator = _Estimator(spec)

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(
        self,
        element: tuple[bytes, Iterable[bytes]],
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[tuple[bytes, Rows]]:
        yield element[0], self._estimator.rows(*element, window, pane)


@dataclasses.dataclass
class _Held:
    """State of one question and window: counts by version with the index of their pane, and what was emitted."""

    versions: dict[bytes, tuple[int, bytes]]
    panes: int = 0
    on_time: bool = False

    @classmethod
    def from_bytes(cls, encoded: bytes | None) -> _Held:
        """Reverse ``to_bytes``; nothing held if there are no bytes."""
        if not encoded:
            return cls({})
        panes, on_time = _PANES.unpack_from(encoded)
        held, at = cls({}, panes, on_time), _PANES.size
        while at < len(encoded):
            version, index, length = _VERSION.unpack_from(encoded, at)
            at += _VERSION.size
            held.versions[version] = index, encoded[at : at + length]
            at += length
        return held

    def to_bytes(self) -> bytes:
        """Panes and timing, then fingerprint, index, length and counts of each version; little-endian."""
        versions = [_VERSION.pack(key, index, len(counts)) + counts for key, (index, counts) in self.versions.items()]
        return _PANES.pack(self.panes, self.on_time) + b"".join(versions)

    def put(self, index: int, version: bytes) -> bool:
        """Replace an earlier pane of the version; False if this is the earlier one."""
        name = version[:_FINGERPRINT]
        if name in self.versions and self.versions[name][0] > index:
            return False
        self.versions[name] = index, version[_FINGERPRINT:]
        return True


class _HoldVersionsFn(beam.DoFn):
    """Streams: the latest counts of each version, estimated on time, and again with each early or late pane."""

    HELD = userstate.ReadModifyWriteStateSpec("held", coders.BytesCoder())
    DUE = userstate.TimerSpec("due", TimeDomain.WATERMARK)
    FORGET = userstate.TimerSpec("forget", TimeDomain.WATERMARK)

    def __init__(self, spec: JobSpec):
        self._estimator = _Estimator(spec)
        self._due, self._keep = due_and_kept(spec)

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(
        self,
        element: tuple[bytes, bytes],
        timestamp: Any = beam.DoFn.TimestampParam,
        state: Any = beam.DoFn.StateParam(HELD),
        due: Any = beam.DoFn.TimerParam(DUE),
        forget: Any = beam.DoFn.TimerParam(FORGET),
    ) -> Iterator[WindowedValue]:
        name, pane = element
        held = _Held.from_bytes(state.read())
        if not held.put(int.from_bytes(pane[1 : 1 + _INDEX], "big"), pane[1 + _INDEX :]):
            return
        _, window = key_and_window(name)
        forget.set(window.end + self._keep)
        if not held.on_time:
            due.set(window.end + self._due)
        if held.on_time or pane[0]:
            timing = PaneInfoTiming.LATE if held.on_time else PaneInfoTiming.EARLY
            yield self._emit(name, held, timing, max(timestamp, window.max_timestamp()) if held.on_time else timestamp)
        state.write(held.to_bytes())

    @userstate.on_timer(DUE)
    def on_time(
        self,
        name: Any = beam.DoFn.KeyParam,
        state: Any = beam.DoFn.StateParam(HELD),
    ) -> Iterator[WindowedValue]:
        held = _Held.from_bytes(state.read())
        if held.versions and not held.on_time and self._estimator.asks_for(key_and_window(name)[0]):
            held.on_time = True
            yield self._emit(name, held, PaneInfoTiming.ON_TIME, key_and_window(name)[1].end + self._due)
            state.write(held.to_bytes())

    @userstate.on_timer(FORGET)
    def forget(self, state: Any = beam.DoFn.StateParam(HELD)) -> Iterable[Any]:
        state.clear()
        return ()

    def _emit(self, name: bytes, held: _Held, timing: int, moment: Timestamp) -> WindowedValue:
        """The rows of the latest counts, as the next pane of the window."""
        question, window = key_and_window(name)
        pane = PaneInfo(
            is_first=held.panes == 0,
            is_last=False,
            timing=timing,
            index=held.panes,
            nonspeculative_index=-1 if timing == PaneInfoTiming.EARLY else held.panes,
        )
        held.panes += 1
        versions = (key + counts for key, (_, counts) in held.versions.items())
        return WindowedValue(
            (question, self._estimator.rows(question, versions, window, pane)), moment, (window,), pane
        )
