"""``--release final``: one row a window, with all of its panes, and never before the allowed lateness has passed."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.test_stream import Event
from apache_beam.transforms.window import FixedWindows
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming, WindowedValue

from tests.support import replay
from tests.support.messages_cases import KRR, URAP
from tests.support.tolerance import generator
from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.transforms.release_once import ReleaseOnce
from uldp_transforms.jobs.estimate.options import Job
from uldp_transforms.jobs.sinks import Output, Sink
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_types import WindowedEstimate
from uldp_transforms.spec.spec_fields import CORRECTED, FINAL
from uldp_transforms.windows import Windows

MINUTE = 60_000
PERIOD = 10 * MINUTE
COLLECTIONS = [KRR, URAP]
GARBAGE = b"\x02garbage"

FIXED = Windows(size=PERIOD)
SLIDING = Windows(size=2 * PERIOD, slide=PERIOD)


def one(moment: int, of: Collection = KRR) -> list[bytes]:
    """A message of one report."""
    return wire.encode_reports(of.perturb(["1"], generator("release", of.id, moment), [moment]))


def job_of(windows: Windows, kind: str, **fields: Any) -> Job:
    return replay.streaming_job(COLLECTIONS, windows, release=kind, allowed_lateness=5 * MINUTE, **fields)


def rows_of(windows: Windows, events: Sequence[Event], kind: str, **fields: Any) -> dict[str, list[Any]]:
    return replay.replay(job_of(windows, kind, **fields), events)


def both(windows: Windows, events: Sequence[Event], **fields: Any) -> tuple[list[Any], list[Any]]:
    """Rows of estimates of the same stream, as they come and once."""
    return tuple(  # type: ignore[return-value]  # of two kinds, so two rows
        rows_of(windows, events, kind, **fields)["estimates"] for kind in (CORRECTED, FINAL)
    )


def last_panes(rows: Sequence[WindowedEstimate]) -> list[WindowedEstimate]:
    """Of each window the row with the highest index."""
    last: dict[Any, WindowedEstimate] = {}
    for row in sorted(rows, key=lambda row: row.pane_index):
        last[row.fingerprint, row.window_start] = row
    return [last[key] for key in sorted(last)]


def without_ends(row: WindowedEstimate) -> WindowedEstimate:
    """The row without the ends of its intervals."""
    none = {"ci_low": 0.0, "ci_high": 0.0, "display_low": None, "display_high": None}
    return row._replace(
        estimates=[entry._replace(**none) for entry in row.estimates], unexplained_low=None, unexplained_high=None
    )


# ---------------------------------------------------------------------- which row


def random_events(rng: np.random.Generator) -> list[Event]:
    """Reports of half an hour in eight bundles, some of them late; the watermark is behind, or ahead by seconds."""
    events: list[Event] = []
    arrival = watermark = PERIOD
    for _ in range(8):
        n = int(rng.integers(5, 20))
        batch = COLLECTIONS[rng.integers(2)].perturb(["1"] * n, rng, arrival - rng.integers(-MINUTE, PERIOD, n))
        events.append(replay.arrive(arrival, [wire.encode_batch(batch)]))
        arrival += int(rng.integers(1, 5 * MINUTE))
        after = arrival + int(rng.integers(-3 * MINUTE, MINUTE))
        if after > watermark:
            watermark = after
            events.append(replay.watermark(watermark))
    return events


@pytest.mark.parametrize(("windows", "deduplicate"), [(FIXED, False), (SLIDING, True)], ids=["fixed", "sliding, once"])
def test_the_row_is_that_of_the_last_pane(windows: Windows, deduplicate: bool) -> None:
    """In everything but its place among the panes, and its intervals, which are for one look."""
    rng = generator("last pane", windows.size, deduplicate)
    corrected, final = both(windows, random_events(rng), deduplicate=deduplicate, min_reports=10)
    expected = [row._replace(pane_index=0, pane_timing="ON_TIME", interval="fixed") for row in last_panes(corrected)]
    found = sorted(final, key=lambda row: (row.fingerprint, row.window_start))
    assert list(map(without_ends, found)) == list(map(without_ends, expected))
    for row, longer in zip(found, expected):
        assert all(
            there.ci_low <= here.ci_low <= here.ci_high <= there.ci_high
            for here, there in zip(row.estimates, longer.estimates)
        )
    assert len(corrected) > len(final) > 2


def test_health_and_counts_are_released_once_too() -> None:
    events = random_events(generator("health and counts"))
    rows = rows_of(FIXED, events, FINAL, write_counts=True)
    places = [sorted((row.fingerprint, row.window_start) for row in rows[name]) for name in ("estimates", "health")]
    assert places[0] == places[1] == sorted((row.fingerprint, row.window_start) for row in rows["counts"])
    assert len(set(places[0])) == len(places[0])


class _AsPaneFn(beam.DoFn):
    """Makes of two bytes a pane with that index and that number of reports."""

    def process(
        self, numbers: bytes, window=beam.DoFn.WindowParam, timestamp=beam.DoFn.TimestampParam
    ) -> Iterator[Any]:
        index, total = numbers
        counts = CohortCounts(np.array([total, 0, 0]), np.array([[total, 0, 0], [0] * 3, [0] * 3]))
        pane = PaneInfo(False, False, PaneInfoTiming.LATE, index, index)
        yield WindowedValue((KRR.fingerprint, counts), timestamp, (window,), pane)


def totals_of(events: Sequence[Event]) -> list[int]:
    """Numbers of reports that ``ReleaseOnce`` releases of panes that come as the events say."""
    windowing = beam.WindowInto(FixedWindows(PERIOD // 1000), allowed_lateness=60 * MINUTE // 1000)
    pairs = beam.typehints.Tuple[bytes, CohortCounts]
    with replay.collector() as (collect, released):
        with beam.Pipeline(options=replay.stream_options()) as pipeline:
            panes = pipeline | replay.stream(events) | windowing | beam.ParDo(_AsPaneFn()).with_output_types(pairs)
            _ = panes | ReleaseOnce(replay.spec([KRR], FIXED, allowed_lateness=5 * MINUTE, release=FINAL)) | collect
        assert {(window.start.micros, window.end.micros) for _, window, _ in released} <= {(0, 1000 * PERIOD)}
        return [counts.total for (_, counts), _, _ in released]


@pytest.mark.parametrize("order", list(itertools.permutations([0, 1, 10])))
def test_panes_are_added_up_in_any_order(order: tuple[int, ...]) -> None:
    """Each has what came since the one before; an engine may deliver them in any order."""
    assert totals_of([replay.arrive(0, [bytes([index, index + 5])]) for index in order]) == [5 + 6 + 15]


def test_a_released_window_is_forgotten_when_nothing_of_it_can_come() -> None:
    """No engine hands on a pane ten minutes after the release; that it counts shows that nothing is kept till then."""
    released = PERIOD + 5 * MINUTE + MINUTE
    pane, again, much_later = (replay.arrive(0, [bytes([index, index + 5])]) for index in range(3))
    dropped = [pane, replay.watermark(released + 1), again]
    assert totals_of(dropped) == [5]
    assert totals_of([*dropped, replay.watermark(released + 8 * MINUTE), much_later]) == [5]
    assert totals_of([*dropped, replay.watermark(released + 10 * MINUTE), much_later]) == [5, 7]


# ---------------------------------------------------------------------- when


class Log(Sink):
    """Keeps estimates and rejected reports, as they come, in one list."""

    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, collect: replay.Collect):
        self._collect = collect

    @classmethod
    def of(cls, args: Any, source: Any, options: Any) -> None:
        return None

    def write(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            if output.name in ("estimates", "rejected"):
                _ = output.rows | f"Log_{output.name}" >> self._collect


def log_of(windows: Windows, watermarks: Sequence[int], before: Sequence[Event], **fields: Any) -> list[Any]:
    """What came out in order: names of watermarks, after each, and numbers of reports of released windows."""
    events = [*before]
    for moment in watermarks:
        events += [replay.watermark(moment), replay.arrive(0, [GARBAGE])]
    with replay.collector() as (collect, log):
        replay.run(dataclasses.replace(job_of(windows, FINAL, **fields), sinks=(Log(collect),)), events)
    seen = iter(watermarks)
    return [row.num_reports if isinstance(row, WindowedEstimate) else next(seen) for row, _, _ in log]


@pytest.mark.parametrize(
    ("start", "slack", "margin"),
    [
        (0, 10 * MINUTE, MINUTE),
        (-PERIOD, 2 * MINUTE, MINUTE),
        (100_000 * PERIOD, MINUTE, MINUTE // 2),
        (0, 2, 1),
    ],
)
def test_windows_are_released_to_the_millisecond(start: int, slack: int, margin: int) -> None:
    """At the end, plus the lateness, plus a margin of a minute or of half the slack."""
    end = start + PERIOD
    moment = end + 5 * MINUTE + margin
    before = [replay.arrive(end, one(start) + one(end - 1)), replay.watermark(end - 1), replay.arrive(end, one(start))]
    log = log_of(FIXED, [end, end + 5 * MINUTE, moment - 1, moment, moment + 1], before, lateness_slack=slack)
    assert log == [end, end + 5 * MINUTE, moment - 1, 3, moment, moment + 1]


def test_sliding_windows_are_released_one_by_one() -> None:
    lateness = 6 * MINUTE  # and the margin
    ends = [PERIOD, 2 * PERIOD, 3 * PERIOD]
    before = [replay.arrive(PERIOD, one(0) + one(1) + one(PERIOD))]
    log = log_of(SLIDING, [moment + lateness + step for moment in ends for step in (-1, 0)], before)
    expected = [(end + lateness - 1, number, end + lateness) for end, number in zip(ends, (2, 3, 1))]
    assert log == [moment for three in expected for moment in three]


def test_a_watermark_that_jumps_releases_everything_once() -> None:
    """Over the ends of windows and all that follows: at the end of a stream it does."""
    before = [replay.arrive(PERIOD, one(0) + one(PERIOD) + one(PERIOD + 1))]
    log = log_of(FIXED, [100 * PERIOD, 200 * PERIOD], before)
    assert sorted(log[:2]) == [1, 2]
    assert log[2:] == [100 * PERIOD, 200 * PERIOD]


def test_late_reports_of_a_window_without_others_wait_too() -> None:
    before = [replay.watermark(PERIOD + 4 * MINUTE), replay.arrive(PERIOD + 4 * MINUTE, one(0))]
    moment = PERIOD + 6 * MINUTE
    assert log_of(FIXED, [moment - 1, moment], before) == [moment - 1, 1, moment]


# ---------------------------------------------------------------------- what comes after the release

LATE_ARRIVALS: list[Event] = [
    replay.arrive(PERIOD, one(0) + one(1)),
    replay.watermark(PERIOD + 8 * MINUTE),  # the window is released
    replay.arrive(PERIOD + 4 * MINUTE, one(2)),  # and this one had arrived before
    replay.arrive(PERIOD + 4 * MINUTE, one(3)),
    replay.watermark(3 * PERIOD),
]


def test_a_pane_after_the_release_is_dropped_and_the_ledger_shows_it() -> None:
    """The runner's watermark ran ahead of what had arrived by more than the margin."""
    corrected = rows_of(FIXED, LATE_ARRIVALS, CORRECTED)["estimates"]
    assert [row.num_reports for row in last_panes(corrected)] == [4]
    rows = rows_of(FIXED, LATE_ARRIVALS, FINAL)
    assert [row.num_reports for row in rows["estimates"]] == [2]
    entries = rows["ledger"]
    assert not replay.unbalanced(entries)
    assert sum(replay.sum_ledger(entries).values(), Counter()) == Counter(received=4, accepted=4)


class Counters:
    """In place of Beam's, which on this engine hold what the first bundle of a step counted."""

    numbers: ClassVar[Counter[tuple[str, ...]]] = Counter()

    def __init__(self, *name: str):
        self._name = name

    def inc(self, number: int) -> None:
        self.numbers[self._name] += number


def test_panes_after_the_release_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics.Metrics, "counter", Counters)
    Counters.numbers.clear()
    assert [row.num_reports for row in rows_of(FIXED, LATE_ARRIVALS, FINAL)["estimates"]] == [2]
    assert Counters.numbers["uldp", "after_release"] == 2
