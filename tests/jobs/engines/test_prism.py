"""Batches and streams on Prism, a portable engine with real watermarks; ``make prism`` builds it."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.utils.windowed_value import PaneInfoTiming

from tests.rigs import compare, prism
from tests.rigs.job import make_reports, run
from tests.support import cases, live, replay
from tests.support.beam import same_counts as same
from tests.support.messages_cases import KRR
from uldp_transforms import CalendarWindows
from uldp_transforms.beam.transforms.release_once import ReleaseOnce
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.jobs.sinks import RowFiles
from uldp_transforms.messages import wire
from uldp_transforms.windows import Windows

pytestmark = pytest.mark.skipif(prism.missing() is not None, reason=str(prism.missing()))

STREAM = PipelineOptions([*prism.options(), "--streaming"])


def test_files_give_the_rows_of_the_local_engine(tmp_path: Path) -> None:
    for form in ("single", "packed"):
        make_reports(tmp_path, form, 5000)
    reports, local, output = str(tmp_path / "*.avro"), tmp_path / "local", tmp_path / "prism"
    run(tmp_path, reports, local, [])
    run(tmp_path, reports, output, prism.options())
    assert compare.differences(output, local) == []
    assert len(compare.rows(output)["estimates.jsonl"]) == 20  # 200,000 s: 19 base periods of 3 hours


@pytest.mark.parametrize("windows", [pytest.param(same.WINDOWS[name], id=name) for name in ("fixed", "uneven")])
@pytest.mark.parametrize("deduplicate", [False, True])
def test_stream_equals_numpy(windows: Windows, deduplicate: bool) -> None:
    """Late reports, duplicates and panes as on the engine of ``tests.beam.state.test_same_counts``."""
    rng = np.random.default_rng([windows.step, deduplicate])
    batches = same.random_reports(rng, 0)
    sent = same.sent_twice(batches, rng) if deduplicate else batches
    messages = same.as_messages(sent, "mixed", rng)
    spec = same.specification(windows, deduplicate=deduplicate, bounded=False)
    with replay.collector() as (collect_counts, panes), replay.collector() as (collect_ledger, ledger):
        with beam.Pipeline(options=STREAM) as pipeline:
            source = replay.stream(list(same.random_events(messages, rng, 0)))
            counted = same.count(pipeline | source, spec)
            _ = counted.counts | "Counts" >> collect_counts
            _ = counted.ledger | "Ledger" >> collect_ledger
        same.check(panes, ledger, sent, windows)
    timings = Counter(pane.timing for _, _, pane in panes)
    assert timings[PaneInfoTiming.ON_TIME] and timings[PaneInfoTiming.LATE]


@pytest.mark.parametrize("slide", [None, 1])
def test_a_stream_in_weeks_of_a_place(slide: int | None) -> None:
    """Windows that Prism has no form of: it takes them from Python. One of them lacks an hour."""
    windows = CalendarWindows(size=7, slide=slide, unit="d", timezone="Europe/Berlin")
    before, day = 1_711_306_800_000, 86_400_000  # Sunday evening, a week before clocks are put forward
    rng = np.random.default_rng(7)
    times = np.sort(rng.integers(before, before + 9 * day, 300))
    messages = wire.encode_reports(KRR.perturb(["1"] * 300, rng, times))
    events = []
    for number in range(10):
        end = before + number * day
        events += [replay.arrive(end, messages[np.searchsorted(times, end - day) : np.searchsorted(times, end)])]
        events += [replay.watermark(end)]
    with replay.collector() as (collect, panes):
        with beam.Pipeline(options=STREAM) as pipeline:
            spec = replay.spec([KRR], windows, bounded=False, allowed_lateness=day)
            counted = same.count(pipeline | replay.stream(events), spec)
            _ = counted.counts | "Counts" >> collect
        found = {
            (window.start.micros // 1000, window.end.micros // 1000): counts.total
            for (_, counts), window, _ in sorted(panes, key=lambda seen: seen[2].index)
        }
    expected = Counter(start for time in times.tolist() for start in windows.starts_around(time))
    assert found == {(start, windows.end_of(start)): number for start, number in expected.items()}
    assert 167 * 3_600_000 in {end - start for start, end in found}


MINUTE, HOUR = 60_000, 3_600_000
BEGIN = 400_000 * HOUR


def test_what_waits_for_the_clock_is_written(tmp_path: Path) -> None:
    """Twenty late reports are one row more, and all estimates are in one file.

    Prism puts late reports of a TestStream together anyway; ``tests.campaigns.cadence_prism`` shows both. The clock of
    a TestStream begins at 0, and timers are set by that of the worker.
    """
    one = wire.encode_reports(KRR.perturb(["1"] * 23, np.random.default_rng(3), np.full(23, BEGIN)))
    events = [replay.arrive(BEGIN + MINUTE, one[:3]), replay.watermark(BEGIN + HOUR + MINUTE)]
    for number, message in enumerate(one[3:]):
        after = BEGIN + HOUR + MINUTE + 1000 * (number + 1)
        events += [replay.arrive(after, [message]), replay.watermark(after)]
    events += [replay.clock(time.time_ns() // 1_000_000 + HOUR)]
    fields = {"allowed_lateness": HOUR, "late_every": MINUTE, "options": STREAM}
    job = replay.streaming_job([KRR], Windows(size=HOUR), **fields)
    sink = RowFiles(str(tmp_path), unbounded=True, forms=RowForms(), flush_every=MINUTE)
    replay.run(dataclasses.replace(job, sinks=(sink,)), events)
    assert [row["num_reports"] for row in live.rows(tmp_path, "estimates")] == [3, 23]
    assert len(list(tmp_path.glob("estimates-*.jsonl"))) == 1


@pytest.mark.parametrize("windows", [pytest.param(same.WINDOWS[name], id=name) for name in ("fixed", "uneven")])
def test_each_window_is_released_once(windows: Windows) -> None:
    """Though Prism forgets the state of a window at its end: what waits for its release is not state of the window."""
    rng = np.random.default_rng([windows.step, 5])
    sent = same.sent_twice(same.random_reports(rng, 0), rng)
    spec = same.specification(windows, deduplicate=True, bounded=False, release="final")
    with replay.collector() as (collect_counts, released), replay.collector() as (collect_ledger, ledger):
        with beam.Pipeline(options=STREAM) as pipeline:
            source = replay.stream(list(same.random_events(same.as_messages(sent, "mixed", rng), rng, 0)))
            counted = same.count(pipeline | source, spec)
            _ = counted.counts | ReleaseOnce(spec) | "Counts" >> collect_counts
            _ = counted.ledger | "Ledger" >> collect_ledger
        same.check(released, ledger, sent, windows)
        rows = Counter((fingerprint, window.start) for (fingerprint, _), window, _ in released)
    assert set(rows.values()) == {1}


def test_the_main_job_releases_the_rows_of_the_local_engine() -> None:
    rng = np.random.default_rng(6)
    sent = same.sent_twice(same.random_reports(rng, 0), rng)
    events = list(same.random_events(same.as_messages(sent, "mixed", rng), rng, 0))
    fields = {"release": "final", "deduplicate": True, "allowed_lateness": same.DAY, "candidates": cases.VALUES}
    local, prism = (
        replay.replay(
            replay.streaming_job(same.COLLECTIONS, same.WINDOWS["fixed"], options=options, min_reports=1, **fields),
            events,
        )
        for options in (None, STREAM)
    )
    for kind in ("estimates", "health"):
        rows = [sorted(each[kind], key=lambda row: (row.fingerprint, row.window_start)) for each in (local, prism)]
        assert rows[0] == rows[1]
    assert len(local["estimates"]) > 5
    assert replay.sum_ledger(local["ledger"]) == replay.sum_ledger(prism["ledger"])
