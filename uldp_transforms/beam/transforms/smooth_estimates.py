"""SmoothEstimates: add smoothed frequencies, which also use neighbouring windows, to the rows of each window."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam import coders, typehints
from apache_beam.pvalue import PCollection
from apache_beam.transforms import userstate
from apache_beam.transforms.window import GlobalWindows, IntervalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.beam_windows import ParDoInto
from uldp_transforms.beam.runtime.inputs import NamedOutputs, require_spec, spec_for
from uldp_transforms.collector.owners import Owners
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.sentinels import Finding
from uldp_transforms.rows.entry_columns import packed, unpacked, with_list
from uldp_transforms.rows.row_types import WindowedEstimate, WindowHealth
from uldp_transforms.rows.samples.smoothed_owners import filter_window, smooth_windows
from uldp_transforms.rows.window_health import with_change
from uldp_transforms.rows.window_history import bounds_of
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import now

Rows = tuple[WindowedEstimate, WindowHealth]
KEYED_ROWS = typehints.Tuple[bytes, typehints.Tuple[WindowedEstimate, WindowHealth]]
"""Type hint of pairs of the key of counts and the two rows of a window."""

_ROWS = typehints.Tuple[WindowedEstimate, WindowHealth]
_KEYED_BYTES = typehints.Tuple[bytes, bytes]


class _SmoothedWindows(NamedTuple):
    estimates: PCollection[WindowedEstimate]
    health: PCollection[WindowHealth]


class SmoothedWindows(NamedOutputs, _SmoothedWindows):
    """Outputs of ``SmoothEstimates``."""

    __slots__ = ()

    owner, example = "SmoothEstimates", "windows.estimates"


class SmoothEstimates(beam.PTransform[PCollection[tuple[bytes, Rows]], SmoothedWindows]):
    """Smooth the frequencies of each window with those of its neighbours, and detect changes.

    Input: pairs of a key of counts (the fingerprint of a collection or question; of a group with its number) and the
    two rows of a window, in the windows of the job. ``EstimateDistribution`` produces these pairs, and applies this
    transform itself if ``JobSpec.smooth`` is true.

    Output: one row of each kind per input, in its window. Entries of ``estimates`` have ``smoothed_frequency``,
    ``smoothed_low`` and ``smoothed_high``. Over files they use all windows of the collection or group; in a stream, the
    window itself and those before it. ``health`` has the finding ``change``, which in the row of a group is the only
    one. Rows without numbers pass unchanged.

    A stream keeps the numbers of the last 64 windows of each collection and group, and a summary of older ones. A late
    pane replaces the entry of its window and so corrects all later rows; rows that were already emitted stay as they
    are. Late panes of older windows pass without smoothed numbers. So do windows that have not begun yet by the
    machine's clock plus ``future_skew``: otherwise a sender who controls the arrival time could displace the recent
    windows.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import CountReports, EstimateDistribution
        >>> from uldp_transforms import JobSpec
        >>> from uldp_transforms.ldp import Collection
        >>> spec = JobSpec.of(
        ...     collections=["C.json"], window="1d", smooth=True
        ... )
        >>> collection = Collection.from_json("C.json")
        >>> days = [86_400_000 * (day % 3) for day in range(3000)]
        >>> batch = collection.perturb(["flu"] * 3000, event_times=days)
        >>> with beam.Pipeline() as pipeline:
        ...     counted = pipeline | beam.Create([batch]) | CountReports(spec)
        ...     windows = counted.counts | EstimateDistribution(spec)
        ...     entries = windows.estimates | beam.FlatMap(
        ...         lambda row: row.estimates
        ...     )
        ...     frequent = entries | beam.Filter(
        ...         lambda entry: entry.smoothed_frequency > 0.5
        ...     )
        ...     _ = frequent | beam.Map(lambda entry: print(entry.value))
        flu
        flu
        flu

    Args:
        spec: specification of the job.

    Raises:
        SpecError: if ``JobSpec.smooth`` is false.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = require_spec("SmoothEstimates", spec)
        if not spec.smooth:
            raise SpecError("SmoothEstimates needs a JobSpec with smooth=True, got smooth=False")

    def expand(self, rows: PCollection[tuple[bytes, Rows]]) -> SmoothedWindows:
        spec = spec_for("SmoothEstimates", self._spec, rows, KEYED_ROWS, windowed=True)
        free = rows | "InNoWindow" >> beam.WindowInto(GlobalWindows()).with_output_types(KEYED_ROWS)
        if spec.bounded:
            series = (
                free
                | "Pack" >> beam.MapTuple(_packed).with_output_types(_KEYED_BYTES)
                | "OfCollection" >> beam.GroupByKey()
            )
            smoothed = series | "Smooth" >> ParDoInto(_SmoothFn(spec), rows.windowing)
        else:
            smoothed = free | "Filter" >> ParDoInto(_FilterFn(spec), rows.windowing)
        smoothed.element_type = _ROWS
        return SmoothedWindows(
            smoothed | "Estimates" >> beam.Map(_first).with_output_types(WindowedEstimate),
            smoothed | "Health" >> beam.Map(_second).with_output_types(WindowHealth),
        )

    def display_data(self) -> dict[str, Any]:
        return {"alarm_every": self._spec.alarm_every}


def _packed(fingerprint: bytes, rows: Rows) -> tuple[bytes, bytes]:
    """Encode the entries of a row as arrays for transport between workers, because rows have hundreds of entries."""
    return fingerprint, packed(*rows)


def _first(rows: Rows) -> WindowedEstimate:
    return with_list(rows[0])


def _second(rows: Rows) -> WindowHealth:
    return rows[1]


class _SmoothFn(beam.DoFn):
    """Smooth all windows of an owner together."""

    def __init__(self, spec: JobSpec):
        self._owners = Owners(spec)
        self._alarm_every = spec.alarm_every

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(self, element: tuple[bytes, Iterable[bytes]]) -> Iterator[WindowedValue]:
        pairs = list(map(unpacked, element[1]))
        results = smooth_windows(self._owners.of(element[0]), [row for row, _ in pairs], self._alarm_every)
        for (row, change), (_, health) in zip(results, pairs):
            yield _in_window(row, health, change, MIN_TIMESTAMP)


class _FilterFn(beam.DoFn):
    """Smooth one window at a time, in order of arrival."""

    NEIGHBOURS = userstate.ReadModifyWriteStateSpec("neighbours", coders.BytesCoder())

    def __init__(self, spec: JobSpec):
        self._owners = Owners(spec)
        self._alarm_every = spec.alarm_every
        self._skew = spec.future_skew

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(
        self,
        element: tuple[bytes, Rows],
        timestamp: Any = beam.DoFn.TimestampParam,
        neighbours: Any = beam.DoFn.StateParam(NEIGHBOURS),
    ) -> Iterator[WindowedValue]:
        key, (row, health) = element
        if bounds_of(row)[0] > now() + self._skew:
            yield _in_window(row, health, None, timestamp)
            return
        later, row, change = filter_window(self._owners.of(key), neighbours.read(), row, self._alarm_every)
        if later is not None:
            neighbours.write(later)
        yield _in_window(row, health, change, timestamp)


def _in_window(row: WindowedEstimate, health: WindowHealth, change: Finding | None, moment: Timestamp) -> WindowedValue:
    """Both rows in their own window, with a timestamp not before ``moment``."""
    if change is not None:
        metrics.count(change.fired, metrics.ALARMS, change.name)
        health = with_change(health, change)
    window, end = _interval(*bounds_of(row))
    return WindowedValue((with_list(row), health), end if moment is MIN_TIMESTAMP else max(moment, end), (window,))


@functools.lru_cache(maxsize=4096)  # shared by collections with the same windows
def _interval(start: int, end: int) -> tuple[IntervalWindow, Timestamp]:
    """The window from start to end, in milliseconds, and its last timestamp."""
    window = IntervalWindow(Timestamp(micros=1000 * start), Timestamp(micros=1000 * end))
    return window, window.max_timestamp()
