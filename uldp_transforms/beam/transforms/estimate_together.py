"""EstimateTogether: the rows of everybody and of all groups of a window, which borrow from one another."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import PCollection
from apache_beam.transforms import userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming, WindowedValue

from uldp_transforms.beam.runtime import engines, metrics
from uldp_transforms.beam.runtime.beam_windows import ParDoInto, in_window, key_and_window
from uldp_transforms.beam.runtime.coders import KEYED_BYTES, KEYED_COUNTS, CohortCountsCoder
from uldp_transforms.beam.runtime.inputs import mark, require_spec, spec_for
from uldp_transforms.beam.runtime.panes import due_and_kept
from uldp_transforms.beam.transforms.smooth_estimates import KEYED_ROWS, Rows
from uldp_transforms.beam.transforms.window_samples import WindowSamples, measured_rows
from uldp_transforms.collector.owners import Owners
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.messages.group_keys import fingerprint_of
from uldp_transforms.spec.job_spec import JobSpec

_COUNTS = CohortCountsCoder()
_PART = struct.Struct("<??IHH")
_NUMBER = struct.Struct("<QH")
_GATHER = 1
"""Seconds of processing time in which early panes of a window are gathered."""


class EstimateTogether(beam.PTransform[PCollection[tuple[bytes, CohortCounts]], PCollection[tuple[bytes, Rows]]]):
    """Estimates each collection and question of the job together with all its groups, so that groups can borrow.

    Input: as for ``EstimateDistribution``, which applies this transform itself.

    Output: pairs of the key of a collection or question, or of one of their groups, and the two rows of a window: one
    for each pane of counts, except that a question has one for all versions whose panes come together. Over files there
    is one pane. In a stream, those on time come at the end of the window (or with the release of final results); early
    ones wait a second for others, and late ones for those that arrive with them. All groups borrow, but only those with
    a new pane have a row.

    A stream keeps counts in state of the global window, under a key that names collection and window, for the reasons
    that ``ReleaseOnce`` gives.

    Args:
        spec: specification of the job.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = require_spec("EstimateTogether", spec)

    def expand(self, counts: PCollection[tuple[bytes, CohortCounts]]) -> PCollection[tuple[bytes, Rows]]:
        spec = spec_for("EstimateTogether", self._spec, counts, KEYED_COUNTS, windowed=True)
        named = counts | "OfFamilies" >> beam.ParDo(_OfFamiliesFn(spec)).with_output_types(KEYED_BYTES)
        rows: PCollection[tuple[bytes, Rows]]
        if spec.bounded:
            rows = named | "Families" >> beam.GroupByKey() | "Estimate" >> beam.ParDo(_FamilyFn(spec))
        else:
            free = named | "InNoWindow" >> beam.WindowInto(GlobalWindows())
            rows = free | "HoldFamilies" >> ParDoInto(_HoldFamilyFn(spec), counts.windowing)
        rows.element_type = KEYED_ROWS
        mark(spec, rows)
        return rows


class _Part(NamedTuple):
    """Counts under a key, as they wait for the others of their family.

    Attributes:
        waits: whether they are in no row yet.
        is_early: whether their pane is before the end of the window.
        pane: index of their pane.
        owner: key of a collection or question, or of one of their groups.
        version: key of the counts; those of a question are of several collections.
        counts: their bytes.
    """

    waits: bool
    is_early: bool
    pane: int
    owner: bytes
    version: bytes
    counts: bytes

    @property
    def place(self) -> tuple[bytes, bytes]:
        """What later panes of the same counts have in common."""
        return self.owner, self.version

    def to_bytes(self) -> bytes:
        """Flags, pane and lengths of the keys, little-endian; then keys and counts."""
        head = _PART.pack(self.waits, self.is_early, self.pane, len(self.owner), len(self.version))
        return head + self.owner + self.version + self.counts

    @classmethod
    def from_bytes(cls, encoded: bytes) -> _Part:
        """Reverse ``to_bytes``."""
        waits, is_early, pane, owner, version = _PART.unpack_from(encoded)
        begin, end = _PART.size + owner, _PART.size + owner + version
        return cls(waits, is_early, pane, encoded[_PART.size : begin], encoded[begin:end], encoded[end:])


class _OfFamiliesFn(beam.DoFn):
    """Counts of a pane under the fingerprint of their collection, and of its question; in a stream with the window."""

    def __init__(self, spec: JobSpec):
        self._owners, self._bounded = Owners(spec), spec.bounded

    def process(
        self,
        sums: tuple[bytes, CohortCounts | None],
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[tuple[bytes, bytes]]:
        version, counts = sums
        if counts is None:
            return
        is_early, encoded = pane.timing == PaneInfoTiming.EARLY, _COUNTS.encode(counts)
        for owner in (version, self._owners.in_question(version)):
            if owner is not None:
                family = fingerprint_of(owner)
                part = _Part(True, is_early, max(pane.index, 0), owner, version, encoded)
                yield family if self._bounded else in_window(family, window), part.to_bytes()


class _Family:
    """Makes the rows of everybody and of all groups in one window."""

    def __init__(self, spec: JobSpec):
        self._samples = WindowSamples(spec)
        self._asked = spec.asked()

    def rows(self, parts: Iterable[_Part], window: Any, panes: Mapping[bytes, Any]) -> Iterator[tuple[bytes, Rows]]:
        """The rows by key.

        Args:
            parts: one for each version of a key.
            window: Beam's.
            panes: Beam's, by the keys that have rows; the others are only borrowed from, and must have been estimated
                or not at the same time as these.
        """
        counts: dict[bytes, dict[bytes, CohortCounts]] = {}
        for part in sorted(parts, key=lambda each: each.place):
            decoded = _COUNTS.decode(part.counts)
            if decoded is not None and not self._samples.owners.is_group_of_nobody(part.owner):
                counts.setdefault(part.owner, {})[fingerprint_of(part.version)] = decoded
        [*_, any_pane] = panes.values()
        samples = {
            owner: self._samples.sample(owner, own, window, panes.get(owner, any_pane)) for owner, own in counts.items()
        }
        shown = [owner for owner in samples if owner in panes]
        found = measured_rows([*samples.values()], self._asked, {samples[owner] for owner in shown})
        for owner, rows in zip(shown, found):
            if samples[owner].owner.question is None:
                metrics.count(1, metrics.WINDOWS, rows[0].status)
            yield owner, rows


class _FamilyFn(beam.DoFn):
    """Files: all counts of a family in a window together."""

    def __init__(self, spec: JobSpec):
        self._family = _Family(spec)

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(
        self,
        element: tuple[bytes, Iterable[bytes]],
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[tuple[bytes, Rows]]:
        parts = [_Part.from_bytes(part) for part in element[1]]
        yield from self._family.rows(parts, window, {part.owner: pane for part in parts})


@dataclasses.dataclass
class _Emitted:
    """State of a family and window: the number of panes by key, and whether those on time are among them."""

    panes: dict[bytes, int]
    on_time: bool = False

    @classmethod
    def from_bytes(cls, encoded: bytes | None) -> _Emitted:
        """Reverse ``to_bytes``; nothing emitted if there are no bytes."""
        if not encoded:
            return cls({})
        panes, at = {}, 1
        while at < len(encoded):
            number, length = _NUMBER.unpack_from(encoded, at)
            at += _NUMBER.size + length
            panes[encoded[at - length : at]] = number
        return cls(panes, bool(encoded[0]))

    def to_bytes(self) -> bytes:
        """Whether some were on time; then number, length and bytes of each key, little-endian."""
        keys = (_NUMBER.pack(number, len(key)) + key for key, number in self.panes.items())
        return bytes([self.on_time]) + b"".join(keys)

    def next_pane(self, owner: bytes, *, is_early: bool) -> PaneInfo:
        """The pane of a key that is emitted now."""
        index = self.panes.get(owner, 0)
        self.panes[owner] = index + 1
        timing = PaneInfoTiming.LATE if self.on_time else PaneInfoTiming.ON_TIME
        return PaneInfo(
            is_first=index == 0,
            is_last=False,
            timing=PaneInfoTiming.EARLY if is_early else timing,
            index=index,
            nonspeculative_index=-1 if is_early else index,
        )


class _HoldFamilyFn(beam.DoFn):
    """Streams: the latest counts under each key; those with a new pane are estimated, with all that they borrow from.

    Late panes set the timer of the window's end again, which then fires after their bundle.
    """

    PARTS = userstate.BagStateSpec("parts", coders.BytesCoder())
    EMITTED = userstate.ReadModifyWriteStateSpec("emitted", coders.BytesCoder())
    SOON = userstate.TimerSpec("soon", TimeDomain.REAL_TIME)
    DUE = userstate.TimerSpec("due", TimeDomain.WATERMARK)
    FORGET = userstate.TimerSpec("forget", TimeDomain.WATERMARK)

    def __init__(self, spec: JobSpec):
        self._family = _Family(spec)
        self._due, self._keep = due_and_kept(spec)

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(
        self,
        element: tuple[bytes, bytes],
        parts: Any = beam.DoFn.StateParam(PARTS),
        soon: Any = beam.DoFn.TimerParam(SOON),
        due: Any = beam.DoFn.TimerParam(DUE),
        forget: Any = beam.DoFn.TimerParam(FORGET),
    ) -> Iterable[Any]:
        name, part = element
        window = key_and_window(name)[1]
        parts.add(part)
        forget.set(window.end + self._keep)
        due.set(window.end + self._due)
        if _Part.from_bytes(part).is_early:
            soon.set(Timestamp(engines.processing_time() + _GATHER))
        return ()

    @userstate.on_timer(SOON)
    def early(
        self,
        name: Any = beam.DoFn.KeyParam,
        parts: Any = beam.DoFn.StateParam(PARTS),
        emitted: Any = beam.DoFn.StateParam(EMITTED),
    ) -> Iterator[WindowedValue]:
        yield from self._emit(name, parts, emitted, is_due=False)

    @userstate.on_timer(DUE)
    def on_time_or_late(
        self,
        name: Any = beam.DoFn.KeyParam,
        parts: Any = beam.DoFn.StateParam(PARTS),
        emitted: Any = beam.DoFn.StateParam(EMITTED),
    ) -> Iterator[WindowedValue]:
        yield from self._emit(name, parts, emitted, is_due=True)

    @userstate.on_timer(FORGET)
    def forget(
        self, parts: Any = beam.DoFn.StateParam(PARTS), emitted: Any = beam.DoFn.StateParam(EMITTED)
    ) -> Iterable[Any]:
        parts.clear()
        emitted.clear()
        return ()

    def _emit(self, name: bytes, parts: Any, emitted: Any, *, is_due: bool) -> Iterator[WindowedValue]:
        """The rows of what waits; before the end of the window, of early panes alone."""
        held = sorted(map(_Part.from_bytes, parts.read()), key=lambda part: part.pane)
        said = _Emitted.from_bytes(emitted.read())
        latest = {part.place: part for part in held if not part.waits}
        waiting = [part for part in held if part.waits]
        for is_early in (True, False) if is_due else (True,):
            turn = [part for part in waiting if part.is_early == is_early]
            while turn:
                oldest = {part.place: part for part in reversed(turn)}
                turn = [part for part in turn if oldest[part.place] is not part]
                latest |= {place: part._replace(waits=False) for place, part in oldest.items()}
                yield from self._rows(name, latest, said, {part.owner for part in oldest.values()}, is_early=is_early)
        said.on_time |= is_due
        emitted.write(said.to_bytes())
        parts.clear()
        for part in [*latest.values(), *(part for part in waiting if not (is_due or part.is_early))]:
            parts.add(part.to_bytes())

    def _rows(
        self, name: bytes, latest: Mapping[Any, _Part], said: _Emitted, owners: Iterable[bytes], *, is_early: bool
    ) -> Iterator[WindowedValue]:
        """The rows of these keys from the latest counts, each as the next pane of its key."""
        window = key_and_window(name)[1]
        panes = {owner: said.next_pane(owner, is_early=is_early) for owner in owners}
        moment = window.max_timestamp() if is_early else window.end + self._due
        for owner, rows in self._family.rows(latest.values(), window, panes):
            yield WindowedValue((owner, rows), moment, (window,), panes[owner])
