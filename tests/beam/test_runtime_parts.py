"""Small parts between this package and Beam: names of files, keys and windows, triggers, engines, and limits."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms import trigger
from apache_beam.transforms.window import FixedWindows, GlobalWindow, IntervalWindow, Sessions, SlidingWindows, WindowFn
from apache_beam.utils.timestamp import Duration, Timestamp
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming

from tests.support.messages_cases import KRR, URAP
from uldp_transforms.beam.runtime import beam_windows, metrics, panes, worker_memory
from uldp_transforms.beam.runtime.beam_windows import CalendarWindowFn, in_window, key_and_window
from uldp_transforms.beam.runtime.coders import MixedReportsCoder, key_of_sum, owner_and_start
from uldp_transforms.beam.runtime.engines import check_calendar, check_exactly_once, clock_is_watermark
from uldp_transforms.beam.runtime.file_patterns import absolute, check_files, files_of
from uldp_transforms.beam.runtime.worker_memory import Held
from uldp_transforms.calendar_windows import CalendarWindows
from uldp_transforms.ldp import SpecError
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.windows import BasePeriods, Windows

DAY = 86_400_000


# ---------------------------------------------------------------------- files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("b.x", "a.x", "inner/deep/c.x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link.x").symlink_to(tmp_path / "a.x")
    return tmp_path


def test_files_of_a_pattern_are_sorted_and_named_in_full(folder: Path) -> None:
    assert files_of("*.x") == [f"{folder}/a.x", f"{folder}/b.x", f"{folder}/link.x"]
    assert files_of("nothing*") == []
    assert (absolute("a.x"), absolute("gs://bucket/*.x")) == (f"{folder}/a.x", "gs://bucket/*.x")


@pytest.mark.parametrize("pattern", ["*.x", "?.x", "[ab].x", "inner/*/*.x"])
def test_what_a_pattern_matches_must_be_a_file(pattern: str, folder: Path) -> None:
    """A directory, a broken link or a pipe among the files would be skipped without a word."""
    check_files("here", pattern)
    place = folder / pattern.replace("*/", "deep/").replace("*.x", "w.x").replace("?", "w").replace("[ab]", "b")
    place.unlink(missing_ok=True)
    makers: list[tuple[Callable[[], Any], str]] = [
        (place.mkdir, "the directory"),
        (lambda: place.symlink_to("nowhere"), "the broken link"),
        (lambda: os.mkfifo(place), "the special file"),
    ]
    for make, kind in makers:
        make()
        with pytest.raises(SpecError) as caught:
            check_files("here", pattern)
        assert str(caught.value) == f"here must match files that can be read, got {kind} {str(place)!r}"
        place.rmdir() if place.is_dir() else place.unlink()


@pytest.mark.parametrize(("pattern", "all_of_them"), [("**/c.x", "**c.x"), ("inner/**/*.x", "inner/***.x")])
def test_double_stars_that_skip_files_are_refused(pattern: str, all_of_them: str, folder: Path) -> None:
    """Shells and Python match ``/**/`` with ``/`` too; Beam does not, and would skip files without a word."""
    begin = str(folder / pattern).partition("**")[0]
    check_files("here", pattern)
    skipped = Path(begin, "c.x")
    skipped.touch()
    assert str(skipped) not in files_of(pattern)
    ways = f"use '{folder / all_of_them}' for all folders, or '{begin}*/{all_of_them.partition('/')[2] or all_of_them}'"
    with pytest.raises(SpecError) as caught:
        check_files("here", pattern)
    said = f"here must match all files that it seems to, but /**/ skips '{skipped}'; {ways} for those below only"
    assert str(caught.value) == said
    assert str(skipped) in files_of(all_of_them)


def test_a_name_and_a_pattern_of_a_store_are_left_to_beam(folder: Path) -> None:
    check_files("here", "inner")
    check_files("here", "gs://bucket/*")
    (folder / "gs:" / "x").mkdir(parents=True)
    check_files("here", "gs://*")
    with pytest.raises(SpecError, match="got the directory"):
        check_files("here", "gs:/*")


# ---------------------------------------------------------------------- keys and windows


@pytest.mark.parametrize("start", [0, 1, -1, -(1 << 62), 253_370_764_800_000, None])
def test_keys_of_sums_name_their_owner_and_start(start: int | None) -> None:
    """Before 1970 too; the epoch is a start like any other."""
    owner = bytes(range(32))
    key = key_of_sum(owner, start)
    assert owner_and_start(key) == (owner, start)
    assert len(key) == 32 + 8 * (start is not None)


@pytest.mark.parametrize("ends", [(0, 1), (-5, 7), (1 << 40, 1 << 41)])
def test_names_of_windows_come_back(ends: tuple[int, int]) -> None:
    window = IntervalWindow(*(Timestamp(micros=end) for end in ends))
    name = in_window(b"key", window)
    assert (key_and_window(name), len(name)) == ((b"key", window), 3 + 16)


def test_calendar_windows_may_be_later_than_their_days() -> None:
    """As those of the ledger are, which wait for work in flight; and each delay makes other windows."""
    days = CalendarWindows(size=1, unit="d", timezone="UTC")
    fn = CalendarWindowFn(days, 1_000)
    for moment, day in ((1_000, 0), (999, -1), (DAY + 999, 0), (DAY + 1_000, 1)):
        [window] = fn.assign(WindowFn.AssignContext(Timestamp(micros=1000 * moment)))
        assert (window.start.micros // 1000, window.end.micros // 1000) == (day * DAY + 1_000, (day + 1) * DAY + 1_000)
    assert fn != CalendarWindowFn(days) and fn == CalendarWindowFn(days, 1_000)
    assert hash(fn) != hash(CalendarWindowFn(days))
    assert str(fn) == f"CalendarWindowFn({days}, shift=1000)"
    assert beam_windows.beam_periods(days.periods, shift=7) == CalendarWindowFn(days, 7)
    assert beam_windows.beam_periods(BasePeriods(60_000, 5), shift=7) == FixedWindows(60, Timestamp(micros=12_000))


def test_windows_become_those_of_beam_with_their_offset() -> None:
    assert beam_windows.beam_windows(Windows(size=60_000, offset=7)) == FixedWindows(60, Timestamp(micros=7_000))
    sliding = beam_windows.beam_windows(Windows(size=60_000, slide=20_000, offset=7))
    assert sliding == SlidingWindows(Duration(60), Duration(20), Timestamp(micros=7_000))
    assert beam_windows.as_duration(1_500) == Duration(micros=1_500_000)


class OtherFixedWindows(FixedWindows):
    """May assign other windows than its parent."""


def test_windows_of_beam_become_ours() -> None:
    days = CalendarWindows(size=1, unit="d", timezone="UTC")
    ours = [None, days, Windows(size=60_000, offset=7), Windows(size=60_000, slide=25_000, offset=7)]
    assert [beam_windows.windows_of_beam(beam_windows.beam_windows(one)) for one in ours] == ours
    for other in (OtherFixedWindows(60), Sessions(60)):
        with pytest.raises(SpecError, match=rf"^windows must be fixed or sliding, got {type(other).__name__}$"):
            beam_windows.windows_of_beam(other)
    with pytest.raises(SpecError, match=r"^windows must be whole milliseconds, got 1500 microseconds$"):
        beam_windows.windows_of_beam(FixedWindows(Duration(micros=1_500)))
    assert beam_windows.windows_of_beam(FixedWindows(Duration(micros=1_000))) == Windows(size=1)
    window = beam_windows.beam_window(Windows(size=60_000), 7)
    assert (window.start, window.end) == (Timestamp(micros=7_000), Timestamp(micros=60_007_000))


@pytest.mark.parametrize("accumulating", [True, False])
def test_windows_are_assigned_with_their_trigger_and_lateness(accumulating: bool) -> None:
    when = panes.cadence(None, 0)
    into = beam_windows.window_into(FixedWindows(60), when, accumulating=accumulating, allowed_lateness=1_500)
    assert type(into.windowing) is beam_windows.QuietWindowing
    modes = trigger.AccumulationMode
    assert into.windowing.accumulation_mode == (modes.ACCUMULATING if accumulating else modes.DISCARDING)
    assert into.windowing.allowed_lateness == Duration(micros=1_500_000)
    assert into.windowing.triggerfn == when


# ---------------------------------------------------------------------- triggers and panes


@pytest.mark.parametrize(
    ("early", "late", "expected"),
    [
        (None, 0, trigger.AfterWatermark(late=trigger.AfterCount(1))),
        (None, 60_000, trigger.AfterWatermark(late=trigger.AfterProcessingTime(60))),
        (2_000, 0, trigger.AfterWatermark(trigger.AfterProcessingTime(2), trigger.AfterCount(1))),
    ],
)
def test_a_cadence_is_in_whole_seconds(early: int | None, late: int, expected: Any) -> None:
    assert str(panes.cadence(early, late)) == str(expected)


WINDOW = IntervalWindow(Timestamp(1), Timestamp(10))


@pytest.mark.parametrize(
    ("window", "index", "timing", "place"),
    [
        (WINDOW, 2, PaneInfoTiming.LATE, ("1970-01-01T00:00:01Z", "1970-01-01T00:00:10Z", 2, "LATE")),
        (WINDOW, -1, PaneInfoTiming.UNKNOWN, ("1970-01-01T00:00:01Z", "1970-01-01T00:00:10Z", 0, "ON_TIME")),
        (GlobalWindow(), 0, PaneInfoTiming.EARLY, (None, None, 0, "EARLY")),
    ],
)
def test_a_row_names_its_window_and_pane(window: Any, index: int, timing: int, place: tuple[Any, ...]) -> None:
    names = ("window_start", "window_end", "pane_index", "pane_timing")
    assert panes.place_of(window, PaneInfo(False, False, timing, index, 0), "r") == dict(zip(names, place)) | {
        "run": "r"
    }


@pytest.mark.parametrize(
    ("clock", "complete_after", "timing", "partial"),
    [
        (4_999, 0, PaneInfoTiming.ON_TIME, True),
        (5_000, 0, PaneInfoTiming.ON_TIME, False),
        (6_999, 2_000, PaneInfoTiming.LATE, True),
        (7_000, 2_000, PaneInfoTiming.LATE, False),
        (0, 0, PaneInfoTiming.EARLY, False),
        (0, None, PaneInfoTiming.ON_TIME, False),
    ],
)
def test_a_row_is_partial_up_to_five_seconds_before_it_is_complete(
    clock: int, complete_after: int | None, timing: int, partial: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window ends at 10 s, and clocks may differ by 5 s."""
    monkeypatch.setattr(panes, "now", lambda: clock)
    pane = PaneInfo(False, False, timing, 0, 0)
    assert panes.is_partial(WINDOW, pane, complete_after) is partial
    assert panes.is_partial(GlobalWindow(), pane, complete_after) is False


@pytest.mark.parametrize(("before", "cut"), [(None, False), (1_000, False), (1_001, True)])
def test_windows_that_begin_before_an_earlier_run_ended_are_cut(before: int | None, cut: bool) -> None:
    assert panes.is_cut(WINDOW, before) is cut
    assert panes.is_cut(GlobalWindow(), before) is False


# ---------------------------------------------------------------------- what workers hold


def test_what_is_held_is_let_go_after_its_time_and_above_its_number() -> None:
    time = [0.0]
    held: Held[int] = Held(seconds=10.0, clock=lambda: time[0], most=2)
    held.hold(b"a", 1)
    time[0] = 10.0
    held.hold(b"b", 2)
    assert len(held) == 2, "ten seconds are not more than ten"
    held.hold(b"a", 3)
    held.hold(b"c", 4)
    assert (held.take(b"b"), held.take(b"a"), held.take(b"c"), len(held)) == (None, 3, 4, 0)
    time[0] = 20.5
    held.hold(b"d", 5)
    time[0] = 31.0
    held.hold(b"e", 6)
    assert (held.take(b"d"), held.take(b"e")) == (None, 6)
    assert len({worker_memory.new_version() for _ in range(9)}) == 9
    assert len(worker_memory.new_version()) == worker_memory.VERSION_BYTES == 16


@pytest.mark.parametrize("owners", [1, 2])
def test_the_size_of_mixed_reports_is_that_of_their_bytes(owners: int) -> None:
    """Nearly: each collection has its fingerprint and a number of reports, behind a head of a few bytes."""
    batches = [of.perturb(["0"] * 5) for of in (KRR, URAP)[:owners]]
    mixed = MixedReports.of(batches[0])
    table = np.concatenate([MixedReports.of(batch).table for batch in batches])
    both = MixedReports(table, np.arange(owners), np.array([5] + [0] * (owners - 1)), mixed.reports)
    estimated = MixedReportsCoder().estimate_size(both)
    assert estimated == mixed.reports.num_bytes + 36 * owners
    assert abs(estimated - len(MixedReportsCoder().encode(both))) < 100


def tracker(stage: str | None) -> Any:
    """Of a worker that is in step a, with states of two steps."""
    names = [SimpleNamespace(step_name=step, number=number) for step in "ab" for number in range(2)]
    return SimpleNamespace(
        stage_name=stage,
        _states_by_name={_Hashed(name.step_name, name.number): None for name in names},
        current_state=lambda: SimpleNamespace(name=names[0]),
    )


class _Hashed(NamedTuple):
    step_name: str
    number: int


@pytest.mark.parametrize(
    ("stage", "left"), [("", ["b", "b"]), ("other", ["a", "a", "b", "b"]), (None, ["a", "a", "b", "b"])]
)
def test_a_bundle_of_the_local_engine_for_streams_forgets_the_states_of_its_own_step(
    stage: str | None, left: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tracker(stage)
    monkeypatch.setattr(metrics.statesampler, "get_current_tracker", lambda: found)
    metrics.start_bundle()
    assert [name.step_name for name in found._states_by_name] == left
    monkeypatch.setattr(metrics.statesampler, "get_current_tracker", lambda: None)
    metrics.start_bundle()


@pytest.mark.parametrize(("number", "kind", "name"), [(3, "", "received"), (3, "too_old", "rejected_too_old")])
def test_a_count_is_seen_under_its_full_name(
    number: int, kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "SEEN", Counter())
    for more in (number, 0, 1):
        metrics.count(more, name.partition("_")[0], kind)
    assert {name: number + 1} == metrics.SEEN


# ---------------------------------------------------------------------- engines


class SwitchingDirectRunner:
    """Named as an engine that uses its clock as the watermark."""


class FlinkRunner:
    """Named as an engine that has windows in Java only."""


class PrismRunner:
    """Named as an engine without these limits."""


def test_what_engines_cannot_do() -> None:
    stream, files = PipelineOptions(["--streaming"]), PipelineOptions([])
    assert clock_is_watermark(SwitchingDirectRunner(), stream)
    assert not clock_is_watermark(SwitchingDirectRunner(), files)
    assert not clock_is_watermark(PrismRunner(), stream)
    check_calendar(PrismRunner())
    with pytest.raises(SpecError, match="that supports window functions in Python, got FlinkRunner; on this runner"):
        check_calendar(FlinkRunner())


@pytest.mark.parametrize("option", ["--dataflow_service_options", "--experiments"])
def test_reports_must_not_count_twice(option: str) -> None:
    check_exactly_once(PipelineOptions([]))
    check_exactly_once(PipelineOptions([option, "streaming_mode_exactly_once"]))
    with pytest.raises(SpecError, match="must be exactly-once, because reports would count twice"):
        check_exactly_once(PipelineOptions([option, "other", option, "streaming_mode_at_least_once"]))
