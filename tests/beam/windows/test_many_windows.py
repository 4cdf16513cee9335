"""Time and memory are linear in the windows of a collection: what is added up has a key of its own for each window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.trigger import MergeableStateAdapter
from apache_beam.transforms.window import IntervalWindow, SlidingWindows
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import PaneInfoTiming

from tests.support import replay
from tests.support.messages_cases import KRR, container, write_files
from tests.support.tolerance import generator
from uldp_transforms import CalendarWindows, CountReports, DecodeReports
from uldp_transforms.beam.runtime.beam_windows import beam_windows
from uldp_transforms.beam.runtime.coders import key_of_sum, owner_and_start
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_types import RejectedReport
from uldp_transforms.spec.spec_fields import FINAL
from uldp_transforms.windows import Windows

MINUTE = 60_000
START = 1_000_000_020_000 // (60 * MINUTE) * 60 * MINUTE
FIXED, SLIDING = Windows(size=MINUTE), Windows(size=3 * MINUTE, slide=2 * MINUTE, offset=MINUTE)

BERLIN = CalendarWindows(size=1, unit="d", timezone="Europe/Berlin")
APIA = CalendarWindows(size=7, slide=1, unit="d", timezone="Pacific/Apia")


def reports_of(number: int, start: int = START) -> list[bytes]:
    """One packed message with a report in each of so many minutes."""
    times = start + MINUTE * np.arange(number)
    return [wire.encode_batch(KRR.perturb(["1"] * number, generator("many windows", number), times))]


def windows_of_keys(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many windows Beam's triggers find for a key, each time that they look through all of them, from now on."""
    found: list[int] = []
    known_windows = MergeableStateAdapter.known_windows

    def noted(state: MergeableStateAdapter) -> list[Any]:
        windows = known_windows(state)
        found.append(len(windows))
        return windows

    monkeypatch.setattr(MergeableStateAdapter, "known_windows", noted)
    return found


# ---------------------------------------------------------------------- what it costs


@pytest.mark.parametrize("fields", [{}, {"release": FINAL}, {"deduplicate": True}], ids=["corrected", "final", "once"])
@pytest.mark.parametrize("windows", [FIXED, SLIDING], ids=["fixed", "sliding"])
def test_each_key_of_a_stream_has_one_window(windows, fields, monkeypatch):
    """A local engine walks over all windows of a key for each timer: that was quadratic."""
    looks: list[int] = []
    for number in (20, 40):
        found = windows_of_keys(monkeypatch)
        lateness = 2 * number * MINUTE
        job = replay.streaming_job([KRR], windows, allowed_lateness=lateness, **fields)
        moment = START + number * MINUTE
        late = [replay.arrive(moment + 1, reports_of(number))]
        events = [replay.arrive(moment, reports_of(number)), replay.watermark(moment + MINUTE), *late]
        rows = replay.replay(job, [*events, replay.watermark(moment + 2 * lateness + 30 * MINUTE)])
        assert len({row.window_start for row in rows["estimates"]}) >= number // 2
        assert max(found) <= 2  # two in the ledger only: reports by their arrival, and windows by their end
        looks.append(len(found))
        monkeypatch.undo()
    assert looks[1] <= 2 * looks[0]


@pytest.mark.parametrize("windows", [None, FIXED, SLIDING], ids=["all", "fixed", "sliding"])
@pytest.mark.parametrize("deduplicate", [False, True], ids=["all", "once"])
def test_sums_of_files_are_added_up_without_triggers(windows, deduplicate, monkeypatch, tmp_path):
    write_files(
        tmp_path, {"in.avro": container([(1, message) for message in reports_of(40)], schema=wire.BATCH_SCHEMA)}
    )
    found = windows_of_keys(monkeypatch)
    rows = replay.replay(replay.file_job([KRR], windows, str(tmp_path / "in.avro"), deduplicate=deduplicate))
    assert sum(row.received for row in rows["ledger"]) == 40
    assert found == []


def test_only_as_many_windows_are_open_as_the_gate_lets_through():
    """Reports of 5,000 minutes arrive at once; those of other windows are refused, and the ledger has them."""
    for windows in (FIXED, SLIDING, Windows(size=5 * MINUTE, slide=MINUTE)):
        job = replay.streaming_job([KRR], windows, allowed_lateness=30 * MINUTE)
        arrival = START + 2500 * MINUTE + 17
        rows = replay.replay(job, [replay.arrive(arrival, reports_of(5000)), replay.watermark(arrival + 1)])
        assert len({row.window_start for row in rows["estimates"]}) == job.spec.open_windows < 41
        refused: Counter[str] = Counter()
        for row in rows["rejected"]:
            assert isinstance(row, RejectedReport)
            refused[row.reason] += 1
        accepted = sum(row.accepted for row in rows["ledger"])
        assert set(refused) == {"too_early", "too_old"}
        assert (
            sum(row.received for row in rows["ledger"])
            == 5000
            == accepted + sum(sum(row.rejected.values()) for row in rows["ledger"])
        )


# ---------------------------------------------------------------------- what others see


@pytest.mark.parametrize("windows", [FIXED, SLIDING, BERLIN, APIA], ids=["fixed", "sliding", "days", "weeks"])
@pytest.mark.parametrize("start", [START, -7 * MINUTE], ids=["2001", "before 1970"])
@pytest.mark.parametrize(
    "options",
    [
        ["--runner=FnApiRunner"],
        ["--runner=BundleBasedDirectRunner"],
        ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"],
    ],
    ids=lambda options: options[0][9:],
)
def test_counts_of_files_are_in_beams_windows_as_its_own_grouping_puts_them(windows, start, options, tmp_path):
    """In the window, at its last moment, in its only pane; so a step behind can group by window again."""
    spec = replay.spec([KRR], windows)
    pipeline = beam.Pipeline(options=PipelineOptions(options))
    decoded = pipeline | beam.Create(reports_of(9, start)).with_output_types(bytes) | DecodeReports(spec)
    counts = (decoded.reports | CountReports(spec)).counts
    assert counts.windowing.windowfn == beam_windows(windows)
    path = str(tmp_path / "seen")
    _ = counts | "Once" >> beam.ParDo(_Write(f"{path}-once"))
    _ = counts | beam.GroupByKey() | beam.MapTuple(_added) | "Twice" >> beam.ParDo(_Write(f"{path}-twice"))
    pipeline.run().wait_until_finish()
    minutes = start + MINUTE * np.arange(9)
    totals = Counter(first for minute in minutes.tolist() for first in windows.starts_around(minute))
    lines = [
        f"{KRR.fingerprint.hex()} {n} {first} {windows.end_of(first)} True 0 {ON_TIME}" for first, n in totals.items()
    ]
    for name in ("once", "twice"):
        assert sorted(Path(f"{path}-{name}").read_text().splitlines()) == sorted(lines)


ON_TIME = PaneInfoTiming.to_string(PaneInfoTiming.ON_TIME)


def _added(key: bytes, sums: Any) -> tuple[bytes, Any]:
    (counts,) = sums
    return key, counts


class _Write(beam.DoFn):
    def __init__(self, path: str):
        self._path = path

    def process(
        self,
        element: Any,
        window: Any = beam.DoFn.WindowParam,
        timestamp: Any = beam.DoFn.TimestampParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> None:
        key, counts = element
        start, end = window.start.micros // 1000, window.end.micros // 1000
        at_end = 0 <= (window.end - timestamp).micros <= 1000  # between workers times are whole milliseconds
        with open(self._path, "a") as file:
            index, timing = pane.index, PaneInfoTiming.to_string(pane.timing)
            file.write(f"{key.hex()} {counts.total} {start} {end} {at_end} {index} {timing}\n")


@pytest.mark.parametrize(
    "windows",
    [FIXED, SLIDING, Windows(size=7, slide=3, offset=2), Windows(size=90_000, slide=60_000, offset=59_999)],
)
@pytest.mark.parametrize("moment", [0, 1, -1, START, -START, 253_370_764_800_000])
def test_a_moment_is_in_the_windows_that_beam_says(windows, moment):
    window_fn = beam.transforms.window
    context = window_fn.WindowFn.AssignContext(Timestamp(micros=1000 * moment))
    offset = Timestamp(micros=1000 * windows.offset)
    size, step = (window_fn.Duration(micros=1000 * length) for length in (windows.size, windows.step))
    beams: Sequence[IntervalWindow] = SlidingWindows(size, step, offset).assign(context)
    assert list(windows.starts_around(moment)) == [window.start.micros // 1000 for window in beams]


@pytest.mark.parametrize("start", [None, 0, -1, START, -START, (1 << 63) - 1])
def test_keys_of_sums_come_back(start):
    assert owner_and_start(key_of_sum(KRR.fingerprint, start)) == (KRR.fingerprint, start)
