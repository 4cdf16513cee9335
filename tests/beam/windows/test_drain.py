"""Windows that a drain cuts short say so, have no numbers, and are whole again with the counts of the next job."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apache_beam.testing.test_stream import Event
from apache_beam.transforms.window import GlobalWindow, IntervalWindow
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming

from tests.support import replay
from tests.support.messages_cases import KRR, write_files
from tests.support.tolerance import generator
from uldp_transforms.beam.runtime import panes
from uldp_transforms.beam.runtime.panes import CLOCK_SKEW, Withholding, is_cut, is_partial
from uldp_transforms.jobs.reestimate import reestimate_command as reestimate
from uldp_transforms.messages import wire
from uldp_transforms.spec.spec_fields import CORRECTED, FINAL
from uldp_transforms.windows import Windows

MINUTE = 60_000
PERIOD = 10 * MINUTE
WINDOWS = Windows(size=PERIOD)
RELEASE = PERIOD + 6 * MINUTE  # of the first window, with --release final


def messages(n: int, moment: int) -> list[bytes]:
    return wire.encode_reports(KRR.perturb(["1"] * n, generator("drain", n, moment), np.full(n, moment)))


def rows_of(monkeypatch: pytest.MonkeyPatch, moment: int, events: Sequence[Event], **fields: Any) -> dict[str, Any]:
    """Of a stream that ends, as after a drain, at a moment of the clock."""
    monkeypatch.setattr(panes, "now", lambda: moment)
    job = replay.streaming_job([KRR], WINDOWS, allowed_lateness=5 * MINUTE, **fields)
    rows = replay.replay(job, events)
    return {name: sorted(rows[name], key=lambda row: row.window_start) for name in ("estimates", "health", "counts")}


def test_the_clock_decides_to_the_millisecond(monkeypatch: pytest.MonkeyPatch) -> None:
    window, on_time = IntervalWindow(0, 600), PaneInfo(True, False, PaneInfoTiming.ON_TIME, 0, 0)
    for moment, delay, expected in [
        (PERIOD - CLOCK_SKEW - 1, 0, True),
        (PERIOD - CLOCK_SKEW, 0, False),
        (PERIOD - CLOCK_SKEW, 1, True),
        (PERIOD - CLOCK_SKEW + 1, 1, False),
        (0, None, False),
    ]:
        monkeypatch.setattr(panes, "now", lambda moment=moment: moment)
        assert is_partial(window, on_time, delay) == expected


@pytest.mark.parametrize(
    ("timing", "expected"),
    [
        (PaneInfoTiming.EARLY, False),
        (PaneInfoTiming.ON_TIME, True),
        (PaneInfoTiming.LATE, True),
        (PaneInfoTiming.UNKNOWN, True),
    ],
)
def test_early_panes_promise_nothing(timing: int, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes, "now", lambda: 0)
    assert is_partial(IntervalWindow(0, 600), PaneInfo(True, False, timing, 0, 0), 0) == expected
    assert not is_partial(GlobalWindow(), PaneInfo(True, False, timing, 0, 0), 0)


def test_the_clock_is_that_of_the_machine() -> None:
    assert 1_767_225_600_000 < panes.now() < 4_102_444_800_000  # after 2026, before 2100


def test_a_window_that_is_over_and_not_released_yet_is_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Late reports of it would have counted."""
    rows = rows_of(monkeypatch, RELEASE - CLOCK_SKEW - 1, [replay.arrive(PERIOD, messages(7, 0))], release="final")
    assert [row.status for row in rows["estimates"] + rows["health"]] == ["partial", "partial"]
    assert [row.complete for row in rows["counts"]] == [False]


@pytest.mark.parametrize(("kind", "first_end"), [(CORRECTED, PERIOD), (FINAL, RELEASE)], ids=["corrected", "final"])
def test_open_windows_of_a_drained_job_are_partial(kind: str, first_end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first window is over, the second is not: no number of it but its counts leaves the job."""
    events = [replay.arrive(PERIOD, messages(7, 0) + messages(9, PERIOD))]
    rows = rows_of(monkeypatch, first_end, events, release=kind, min_reports=1)
    assert [(row.status, row.num_reports) for row in rows["estimates"]] == [("ok", 7), ("partial", None)]
    assert [(row.status, row.num_reports) for row in rows["health"]] == [("ok", 7), ("partial", None)]
    assert rows["estimates"][1].estimates == rows["health"][1].findings == []
    assert rows["estimates"][1].unexplained_mass is None
    assert [(row.complete, sum(row.num_reports)) for row in rows["counts"]] == [(True, 7), (False, 9)]


def test_windows_that_begin_before_the_end_of_an_earlier_run_are_cut() -> None:
    for moment, expected in ((-1, False), (0, False), (1, True), (PERIOD + 1, True)):
        assert is_cut(IntervalWindow(0, 600), moment) == expected
    assert not is_cut(IntervalWindow(0, 600), None)
    assert not is_cut(GlobalWindow(), PERIOD)


@pytest.mark.parametrize(("size", "clock", "begin", "expected"), [
    (7, 600, 0, None), (6, 600, 0, "suppressed"),
    (7, 599, 0, "partial"), (7, 600, -1, "partial"), (6, 599, -1, "partial"),
])  # fmt: skip
def test_what_withholds_the_numbers_of_a_window(
    size: int, clock: int, begin: int, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few reports, a clock before its end, or an earlier run that has some of them; few reports are said last."""
    monkeypatch.setattr(panes, "now", lambda: 1000 * clock - CLOCK_SKEW)
    rule = Withholding(min_reports=7, complete_after=0, partial_before=0)
    on_time = PaneInfo(True, False, PaneInfoTiming.ON_TIME, 0, 0)
    assert rule.reason(size, IntervalWindow(begin, 600), on_time) == expected


@pytest.mark.parametrize("release", [CORRECTED, FINAL])
def test_cut_windows_are_partial_in_every_row(release: str) -> None:
    """In early panes and late ones, long after their end by the clock; their counts say that their end was seen."""
    early = {"early_every": MINUTE} if release == CORRECTED else {}
    events = [replay.arrive(PERIOD, messages(7, 0) + messages(9, PERIOD)), replay.clock(2 * MINUTE)]
    events += [replay.watermark(PERIOD), replay.arrive(PERIOD + MINUTE, messages(8, 1)), replay.watermark(3 * PERIOD)]
    job = replay.streaming_job(
        [KRR], WINDOWS, allowed_lateness=5 * MINUTE, release=release, partial_before=1, run="second", **early
    )
    rows = replay.replay(job, events)
    assert {row.run for kind in rows.values() for row in kind} == {"second"}
    for kind in ("estimates", "health"):
        first, second = ([row for row in rows[kind] if row.window_start.startswith(start)] for start in STARTS)
        assert {(row.status, row.num_reports) for row in first} == {("partial", None)}
        assert {(row.status, row.num_reports) for row in second} == {("ok", 9)}
        assert len(first) == (1 if release == FINAL else 3)
    assert all(row.complete for row in rows["counts"])
    assert {row.window_start for row in rows["values"]} == {f"{STARTS[1]}:00Z"}


STARTS = ("1970-01-01T00:00", "1970-01-01T00:10")


def test_a_partial_window_of_few_reports_is_partial(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing of their number."""
    rows = rows_of(monkeypatch, 0, [replay.arrive(0, messages(7, 0))], min_reports=100)
    assert [row.status for row in rows["estimates"] + rows["health"]] == ["partial", "partial"]


def test_what_two_jobs_counted_makes_the_whole_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"krr.json": KRR})
    first, second = messages(120, 0), messages(80, PERIOD - 1)

    def run(name: str, moment: int, parts: list[bytes]) -> list[Any]:
        monkeypatch.setattr(panes, "now", lambda: moment)
        (tmp_path / name).mkdir()
        fields: dict[str, Any] = {"allowed_lateness": 5 * MINUTE, "min_reports": 1, "write_counts": True}
        job = replay.streaming_job([KRR], WINDOWS, output=str(tmp_path / name), **fields)
        replay.run(job, [replay.arrive(PERIOD, parts)])
        paths = (tmp_path / name).glob("estimates-*.jsonl")
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    [drained] = run("drained", MINUTE, first)
    [rest] = run("rest", PERIOD, second)
    [whole] = run("whole", PERIOD, first + second)
    assert [row["status"] for row in (drained, rest, whole)] == ["partial", "ok", "ok"]
    argv = "--collection krr.json drained rest --min_reports 1 --output again"
    assert reestimate.main(shlex.split(argv)) == 0
    [row] = [json.loads(line) for line in (tmp_path / "again/estimates.jsonl").read_text().splitlines()]
    assert {name for name in row if row[name] != whole[name]} == {"interval", "estimates"}  # it is the window's one row
    assert (row["interval"], whole["interval"]) == ("fixed", "anytime")
    for again, once in zip(row["estimates"], whole["estimates"]):
        assert once["ci_low"] <= again["ci_low"] <= again["ci_high"] <= once["ci_high"]
        ends = ("ci_low", "ci_high", "display_low", "display_high")
        assert {name for name in again if again[name] != once[name]} <= set(ends)
    assert row["num_reports"] == 200
