"""Smoothing in jobs: files and streams, late panes, missing windows, what is forgotten, and attacks that ring."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.metrics.metric import MetricsFilter
from apache_beam.runners.pipeline_context import PipelineContext
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from scipy import stats

from tests.support import replay
from tests.support.estimated import estimate_window
from tests.support.messages_cases import container
from tests.support.rows.smoothed_rows import DAY, HASHED, KRR, SHARES, VALUES, closed, rows_of
from tests.support.tolerance import generator
from uldp_transforms import EstimateReports
from uldp_transforms.beam.transforms.smooth_estimates import _FilterFn
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.ldp.sentinels import Finding
from uldp_transforms.ldp.smoothing import Law, Past, change_of, filtered, judge, smoothed, track
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_identity import span_of
from uldp_transforms.rows.row_types import WindowedEstimate, WindowHealth
from uldp_transforms.rows.smoothed_rows import HORIZON, filter_row, horizon_of, smooth_rows
from uldp_transforms.rows.window_health import health_of_window, with_change
from uldp_transforms.rows.window_history import Neighbours, bounds_of, jump_of
from uldp_transforms.spec.spec_fields import LATE_EVERY
from uldp_transforms.windows import Windows


def smoothed_numbers(row: Any) -> np.ndarray:
    names = ("smoothed_frequency", "smoothed_low", "smoothed_high")
    return np.array([[getattr(entry, name) for name in names] for entry in row.estimates], dtype=float)


# ----------------------------------------------------------------------------------------------- rows alone


def test_rows_in_any_order_give_the_same() -> None:
    rng = generator("neighbours")
    rows = rows_of(KRR, range(12), rng)
    order = rng.permutation(12)
    inner = [row for row, _ in smooth_rows(rows, jump_of(KRR), 1000)]
    outer = [row for row, _ in smooth_rows([rows[i] for i in order], jump_of(KRR), 1000)]
    assert outer == [inner[i] for i in order]


def test_smoothed_entries_are_a_distribution_within_intervals() -> None:
    for row, change in smooth_rows(rows_of(KRR, range(12), generator("entries")), jump_of(KRR), 1000):
        frequency, low, high = smoothed_numbers(row).T
        assert frequency.sum() == pytest.approx(1)
        assert (frequency >= 0).all()
        assert ((low >= 0) & (low <= frequency) & (frequency <= high) & (high <= 1)).all()
        own = np.array([entry.ci_high - entry.ci_low for entry in row.estimates])
        assert (high - low).mean() < own.mean()
        assert change is not None and change.name == "change"


def test_missing_windows_are_steps() -> None:
    rows = rows_of(KRR, [0, 1, 5, 6], generator("missing"))
    assert Neighbours.of(rows).series().steps.tolist() == [1, 1, 4, 1]


def test_days_have_weekdays_and_other_windows_have_none() -> None:
    """A day of 23 hours, when summer time begins, is a day too."""
    rows = rows_of(KRR, [3, 4, 5, 10, 12], generator("weekdays"), people=200)
    assert Neighbours.of(rows).series().phases.tolist() == [0, 1, 2, 0, 2]
    hour = 3_600_000
    later = [
        row._replace(**span_of(day * DAY - (day > 4) * hour, DAY - (day == 4) * hour))
        for day, row in zip((3, 4, 5), rows)
    ]
    assert Neighbours.of(later).series().phases.tolist() == [0, 1, 2]
    weeks = [row._replace(**span_of(7 * day * DAY, 7 * DAY)) for day, row in enumerate(rows)]
    assert Neighbours.of(weeks).series().phases is None


def test_a_job_over_files_finds_the_week() -> None:
    """Saturdays and Sundays half as many people have v0; with the weekday the same rows are nearer to the truth."""
    rng, shares = generator("week"), np.tile(SHARES, (7, 1))
    shares[5:, 0], shares[5:, 1] = SHARES[0] / 2, SHARES[1] + SHARES[0] / 2
    rows, of = [], closed(epsilon=4.0)
    for day in range(42):
        counts = of.count(of.perturb(rng.choice(VALUES, 2000, p=shares[day % 7]).tolist(), rng))
        place = span_of(day * DAY, DAY) | {"pane_index": 0, "pane_timing": "ON_TIME", "run": None}
        rows.append(estimate_window(of, counts, place, ESTIMATORS["projected"](), None, None))
    hours = [row._replace(**span_of(day * DAY // 24, DAY // 24)) for day, row in enumerate(rows)]
    truth = np.tile(shares, (6, 1))
    errors = []
    for windows in (rows, hours):
        found = [smoothed_numbers(row)[:, 0] for row, _ in smooth_rows(windows, jump_of(of), 1000)]
        errors.append(((np.array(found)[:, :2] - truth[:, :2]) ** 2).sum())
    assert errors[0] < errors[1] / 1.5


def test_rows_without_numbers_are_handed_through() -> None:
    rows = rows_of(KRR, range(4), generator("through"))
    rows[2] = rows[2]._replace(status="suppressed", estimates=[], num_reports=None)
    results = list(smooth_rows(rows, 1.0, 1000))
    assert results[2] == (rows[2], None)
    assert Neighbours.of(rows).series().steps.tolist() == [1, 1, 2]
    assert list(smooth_rows(rows[2:3], 1.0, 1000)) == results[2:3]
    windows = Neighbours.of([], 1.0)
    assert filter_row(windows, rows[2], 1000) == (windows, rows[2], None)


def test_values_may_come_later() -> None:
    """A value that only some windows have is smoothed over these."""
    rows = rows_of(KRR, range(12), generator("later"))
    few = [row._replace(estimates=row.estimates[:5]) for row in rows[:6]] + rows[6:]
    results = list(smooth_rows(few, 1.0, 1000))
    assert [len(row.estimates) for row, _ in results] == [5] * 6 + [20] * 6
    assert all(np.isfinite(smoothed_numbers(row)).all() for row, _ in results)
    windows = Neighbours.of([], 1.0)
    for row in few:
        windows, shown, _ = filter_row(windows, row, 1000)
        assert np.isfinite(smoothed_numbers(shown)).all()


def test_the_state_of_a_stream_comes_back_from_bytes() -> None:
    windows = Neighbours.of([], 2.5)
    for row in rows_of(HASHED, range(9), generator("bytes")):
        windows, _, _ = filter_row(windows, row, 1000, horizon=5)
    again = Neighbours.from_bytes(windows.to_bytes())
    for field in dataclasses.fields(Neighbours):
        if field.name != "alarm":
            np.testing.assert_array_equal(getattr(again, field.name), getattr(windows, field.name))
    np.testing.assert_array_equal(again.alarm.evidence, windows.alarm.evidence)
    for field in dataclasses.fields(windows.alarm.memory):
        kept = getattr(windows.alarm.memory, field.name)
        np.testing.assert_array_equal(getattr(again.alarm.memory, field.name), kept)
        assert kept.any()
    assert windows.gone == 4 * DAY
    assert len(windows) == 5


@pytest.mark.parametrize(("version", "more"), [(2, 8), (3, 0), (4, 0)])
def test_the_state_of_a_stream_of_older_versions_goes_on_with_its_windows(version: int, more: int) -> None:
    """Version 2 had eight numbers more of what is gone, versions 3 and 4 others for the alarm, which learns anew."""
    windows, rows = Neighbours.of([], 2.5), rows_of(KRR, range(10), generator("older versions"))
    for row in rows[:9]:
        windows, _, _ = filter_row(windows, row, 1000, horizon=5)
    told = json.dumps({"values": windows.values, "windows": 5, "gone": windows.gone, "jump": 2.5}).encode()
    whole = np.concatenate([windows.spans.ravel(), windows.num_reports]).astype("<i8").tobytes()
    past = np.concatenate([windows.past, np.full((more, 20), 7.0)])
    cells = np.concatenate([past, windows.raw, windows.variances, windows.common]).astype("<f8").tobytes()
    alarm = b"\x07" * ({2: 0, 3: 528, 4: 232}[version] * 20)
    again = Neighbours.from_bytes(bytes([version]) + len(told).to_bytes(4, "little") + told + whole + cells + alarm)
    fresh = dataclasses.replace(windows, alarm=Past.empty(20))
    assert again.to_bytes() == fresh.to_bytes()
    [(later, upgraded, change), (_, kept, _)] = (filter_row(one, rows[9], 1000, horizon=5) for one in (again, windows))
    assert upgraded == kept, "smoothed numbers are those of a stream that was not stopped"
    assert change is not None and change.p_value == 1, "nothing is judged before the alarm has seen 8 windows"
    assert Neighbours.from_bytes(later.to_bytes()).to_bytes() == later.to_bytes()


def test_long_lists_keep_fewer_windows() -> None:
    assert [horizon_of(size) for size in (0, 1, 8_192, 8_193, 131_072, 1 << 20)] == [64, 64, 64, 63, 4, 4]


def test_a_stream_ends_where_a_filter_over_all_windows_ends() -> None:
    rows = rows_of(KRR, [0, 1, 2, 4, 5, 6, 7, 9], generator("ends"))
    windows = Neighbours.of([], jump_of(KRR))
    for row in rows:
        windows, shown, _ = filter_row(windows, row, 1000)
    series = Neighbours.of(rows, jump_of(KRR)).series()
    found, expected = smoothed_numbers(shown), filtered(series, len(rows) - 1)
    outside = expected.means[0] - np.clip(expected.means[0], 0, 1)  # the half towards [0, 1] begins at 0 or 1
    low = np.clip(expected.low[0] - np.maximum(outside, 0), 0, 1)
    high = np.clip(expected.high[0] - np.minimum(outside, 0), 0, 1)
    np.testing.assert_allclose(found[:, 1], np.minimum(low, found[:, 0]))
    np.testing.assert_allclose(found[:, 2], np.maximum(high, found[:, 0]))
    np.testing.assert_array_equal(smoothed(series).means[-1:], expected.means)


def test_what_is_forgotten_is_still_known() -> None:
    """With the same law the filter of the last windows and of what is left of the others is that of all."""
    rows = rows_of(KRR, [0, 1, 2, 4, 5, 6, 7, 9, 10, 12, 13], generator("forgotten"))
    whole = Neighbours.of(rows, 1.0)
    law = whole.series().law()
    course, alarms = track(whole.series(), law, 1e-5, 1e-4), judge(whole.series(), 1000)
    short = whole.forget(course, 1000, 4)
    series = short.series()
    later = track(series, Law(law.shares, law.noise[-4:], law.people[-4:]), 1e-5, 1e-4)
    assert len(short) == 4
    for name in ("expected", "level", "variance"):
        np.testing.assert_allclose(getattr(later, name)[-1], getattr(course, name)[-1], err_msg=name)
    assert judge(series, 1000, short.alarm).p_value.tolist() == alarms.p_value[-4:].tolist()
    assert alarms.p_value[-1] < 1


def test_a_stream_that_keeps_four_windows_is_alarmed_as_one_that_keeps_all() -> None:
    """A change is judged by all earlier windows; four alone would never be enough to judge anything."""
    rows = rows_of(KRR, range(16), generator("few are kept"), people=5000, moved=14)
    whole, few, p_values = Neighbours.of(rows, jump_of(KRR)), Neighbours.of([], jump_of(KRR)), []
    for row in rows:
        few, _, change = filter_row(few, row, 1000, horizon=4)
        assert change is not None
        p_values.append(change.p_value)
    np.testing.assert_allclose(p_values, judge(whole.series(), 1000).p_value, rtol=1e-3)
    assert min(p_values) < 1e-3


def test_what_windows_have_in_common_is_no_noise_of_each() -> None:
    """A row's standard error contains it; a series has it beside its variances, so that it counts once."""
    rows = rows_of(KRR, range(3), generator("in common"), people=500)
    parts = (0.5, 0.25, -0.1)  # of the whole variance; an estimate below 0 says that there is none
    rows = [
        row._replace(estimates=[e._replace(common_variance=part * e.standard_error**2) for e in row.estimates])
        for part, row in zip(parts, rows)
    ]
    series = Neighbours.of(rows).series()
    whole = np.array([[entry.standard_error for entry in row.estimates] for row in rows]) ** 2
    np.testing.assert_allclose(series.variances, np.array([[0.5], [0.75], [1.0]]) * whole)
    np.testing.assert_allclose(series.common, np.array(parts) @ whole / 3)


def test_intervals_of_changes_hold_for_all_values_at_once() -> None:
    """At 95 %: each of the 20 values, at each of the beginnings compared, at 1 - .05 / 20 / looks."""
    rows = rows_of(KRR, range(22), generator("at once"), people=5000, moved=20)
    windows = Neighbours.of(rows, jump_of(KRR))
    series = windows.series()
    alarms = judge(series, 1000)
    [moved] = np.flatnonzero(alarms.moved[20])
    change = change_of(series, alarms, 20, np.array([moved]))
    half = stats.norm.isf(0.05 / 2 / 20 / change.looks[0]) * change.error[0]
    _, finding = list(smooth_rows(rows, jump_of(KRR), 1000))[20]
    assert finding is not None
    low, high = (f"{100 * (change.size[0] + end):+.2f}" for end in (-half, half))
    assert f"({low} to {high})" in finding.sentence


def test_a_late_pane_corrects_what_comes_after_it() -> None:
    rows = rows_of(KRR, range(10), generator("late"))
    first = rows_of(KRR, [3], generator("late too"), people=150)[0]

    def end(order: Sequence[WindowedEstimate]) -> WindowedEstimate:
        windows = Neighbours.of([], 1.0)
        for row in order:
            windows, shown, _ = filter_row(windows, row, 1000)
        return shown

    corrected = end([*rows[:3], first, *rows[4:8], rows[3]._replace(pane_index=1), rows[8], rows[9]])
    assert corrected == end(rows)
    assert corrected != end([*rows[:3], first, *rows[4:]])


def test_panes_of_forgotten_windows_are_handed_through() -> None:
    rows = rows_of(KRR, range(8), generator("too late"))
    windows = Neighbours.of([], 1.0)
    for row in rows:
        windows, _, _ = filter_row(windows, row, 1000, horizon=4)
    assert filter_row(windows, rows[3], 1000, horizon=4) == (windows, rows[3], None)
    assert filter_row(windows, rows[4], 1000, horizon=4)[2] is not None


def test_a_value_that_one_in_twenty_reports_falsely_rings() -> None:
    """k-RR at epsilon 1, 5,000 reports a day; from day 20 on 5 % more that all say v7. It rings on that day."""
    for name, run in (("files", 0), ("files", 1), ("stream", 0)):
        rows = rows_of(KRR, range(30), generator("attack", run), people=5000, moved=20)
        if name == "files":
            changes = [change for _, change in smooth_rows(rows, jump_of(KRR), 1000)]
        else:
            windows, changes = Neighbours.of([], jump_of(KRR)), []
            for row in rows:
                windows, _, change = filter_row(windows, row, 1000)
                changes.append(change)
        assert [day for day, change in enumerate(changes) if change is not None and change.fired] == [20]
        told = changes[20]
        assert told is not None
        assert told.p_value < 1e-3
        assert told.sentence.startswith("Shares moved, in percentage points: 'v7' +")


# ----------------------------------------------------------------------------------------------- jobs


def batches_of(days: Sequence[int], rng: np.random.Generator, people: int = 300) -> list[ReportBatch]:
    times = [day * DAY + rng.integers(0, DAY, people) for day in days]
    return [KRR.perturb(rng.choice(VALUES, people, p=SHARES).tolist(), rng, of_day) for of_day in times]


def write(path: Path, batches: Sequence[ReportBatch]) -> None:
    path.write_bytes(container([(1, message) for batch in batches for message in wire.encode_reports(batch)]))


def in_time(rows: Sequence[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: (bounds_of(row)[0], row.pane_index))


def without_smoothing(row: Any) -> Any:
    bare = [entry._replace(smoothed_frequency=None, smoothed_low=None, smoothed_high=None) for entry in row.estimates]
    return WindowedEstimate._make(row._replace(estimates=bare))


def test_a_job_over_files_smooths_both_ways(tmp_path: Path) -> None:
    path = tmp_path / "in.avro"
    write(path, batches_of([0, 1, 2, 4, 5, 6, 7, 8, 9, 10], generator("files")))
    plain = replay.replay(replay.file_job([KRR], Windows(size=DAY), str(path)))
    rows = replay.replay(replay.file_job([KRR], Windows(size=DAY), str(path), smooth=True, alarm_every=50))
    assert replay.unbalanced(rows["ledger"]) == []
    estimates = in_time(rows["estimates"])
    assert len(estimates) == 10
    assert [without_smoothing(row) for row in estimates] == in_time(plain["estimates"])
    expected = list(smooth_rows(in_time(plain["estimates"]), jump_of(KRR), 50))
    assert estimates == [row for row, _ in expected]
    health = in_time(rows["health"])
    assert [row.findings[-1]._asdict() for row in health] == [vars(change) for _, change in expected]
    assert [row._replace(findings=row.findings[:-1]) for row in health] == in_time(plain["health"])
    values = {(row.window_start, row.value): row.smoothed_low for row in rows["values"]}
    assert values == {(row.window_start, e.value): e.smoothed_low for row in estimates for e in row.estimates}


def test_a_stream_filters_and_late_panes_correct() -> None:
    messages = list(map(wire.encode_batch, batches_of(range(10), generator("stream"))))
    late = list(map(wire.encode_batch, batches_of([3], generator("late stream"), 500)))
    job = replay.streaming_job([KRR], Windows(size=DAY), smooth=True, allowed_lateness=20 * DAY)
    events = []
    for day, message in enumerate(messages):
        if day == 8:
            events.append(replay.arrive(day * DAY + 2, late))
        events += [replay.arrive((day + 1) * DAY - 1, [message]), replay.watermark((day + 1) * DAY + 1)]
    rows = replay.replay(job, events)
    assert replay.unbalanced(rows["ledger"]) == []
    estimates = in_time(rows["estimates"])
    assert [row.pane_index for row in estimates] == [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    windows = Neighbours.of([], jump_of(KRR))
    order = [0, 1, 2, 3, 5, 6, 7, 8, 4, 9, 10]  # as they came
    for place in order:
        windows, expected, _ = filter_row(windows, without_smoothing(estimates[place]), 1000)
        assert json.dumps(expected._asdict(), default=list) == json.dumps(estimates[place]._asdict(), default=list)
    assert all(row.findings[-1].name == "change" for row in rows["health"])
    assert len(rows["health"]) == len(estimates)


def unremarkable(row: WindowedEstimate) -> WindowHealth:
    """The row of health beside a row."""
    shared = {name: getattr(row, name) for name in WindowHealth._fields if name in row._fields and name != "status"}
    return WindowHealth(**shared, status="ok", findings=[])


class Cell:
    """State of one key."""

    def __init__(self) -> None:
        self.content: bytes | None = None

    def read(self) -> bytes | None:
        return self.content

    def write(self, content: bytes) -> None:
        self.content = content


def test_windows_of_the_future_do_not_make_a_stream_forget_the_present() -> None:
    """As many as it keeps, in years to come: somebody who chooses the arrival time could have stopped all alarms."""
    rows = rows_of(KRR, range(HORIZON + 6), generator("future"), people=200)
    far = [row._replace(**span_of((400_000 + day) * DAY, DAY)) for day, row in enumerate(rows)]
    filter_fn, state = _FilterFn(replay.spec([KRR], Windows(size=DAY), bounded=False, smooth=True)), Cell()
    key = KRR.fingerprint
    for row in far:
        [out] = filter_fn.process((key, (row, unremarkable(row))), MIN_TIMESTAMP, state)
        assert out.value == (row, unremarkable(row))
    assert state.content is None
    [out] = filter_fn.process((key, (rows[0], unremarkable(rows[0]))), MIN_TIMESTAMP, state)
    shown, health = out.value
    assert np.isfinite(smoothed_numbers(shown)).all()
    assert health.findings[-1].name == "change"


def test_an_alarm_is_in_the_health_row_and_in_a_metric(tmp_path: Path) -> None:
    rng = generator("metric")
    path = tmp_path / "in.avro"
    fakes = KRR.perturb(["v7"] * 3000, rng, 12 * DAY + np.arange(3000))
    write(path, [*batches_of(range(12), rng), fakes])
    lists = replay.Lists()
    job = replay.file_job([KRR], Windows(size=DAY), str(path), smooth=True)
    result = replay.run(dataclasses.replace(job, sinks=(lists,)))
    last = in_time(lists.rows()["health"])[-1]
    assert last.status == "change"
    assert last.findings[-1].fired
    assert "'v7' +" in last.findings[-1].sentence
    counted = result.metrics().query(MetricsFilter().with_name("alarms_change"))["counters"]
    assert [counter.committed for counter in counted] == [1]


@pytest.mark.parametrize(("status", "fired", "after"), [
    ("ok", True, "change"), ("ok", False, "ok"), ("misfit", True, "misfit"), ("alarm", True, "alarm"),
])  # fmt: skip
def test_a_change_ranks_below_what_is_worse(status: str, fired: bool, after: str) -> None:
    place = span_of(0, DAY) | {"pane_index": 0, "pane_timing": "ON_TIME", "run": None}
    row = health_of_window(KRR, KRR.count(KRR.perturb(["v1"] * 200)), place, None, None)._replace(status=status)
    finding = Finding(name="change", statistic=1.0, p_value=0.5, fired=fired, sentence="s")
    found = with_change(row, finding)
    assert (found.status, found.findings[-1].name) == (after, "change")
    assert list(found.findings[:-1]) == row.findings


@pytest.mark.parametrize("bounded", [True, False])
def test_names_of_steps_and_what_is_grouped_stay(bounded: bool) -> None:
    """A running stream finds its state by the names; rows go between workers by schema or packed, never pickled."""
    job = replay.streaming_job([KRR], Windows(size=DAY), smooth=True)
    pipeline = beam.Pipeline(options=replay.stream_options())
    messages = pipeline | (beam.Create([b""]) if bounded else replay.stream([]))
    windows = messages | EstimateReports(dataclasses.replace(job.spec, bounded=bounded, late_every=LATE_EVERY))
    assert (windows.estimates.element_type, windows.health.element_type) == (WindowedEstimate, WindowHealth)
    proto = pipeline.to_runner_api()
    coders = PipelineContext(proto.components).coders
    above = "EstimateReports/EstimateDistribution/"
    steps = {step.unique_name.removeprefix(above): step for step in proto.components.transforms.values()}
    own = {name for name in steps if name.count("/") <= 1 and name.startswith("SmoothEstimates/")}
    step = "OfCollection" if bounded else "Filter"
    assert own == {f"SmoothEstimates/{name}" for name in ("InNoWindow", step, "Estimates", "Health")} | (
        {"SmoothEstimates/Pack", "SmoothEstimates/Smooth"} if bounded else set()
    )
    (grouped,) = steps[f"SmoothEstimates/{step}"].inputs.values()
    coder = str(coders.get_by_id(proto.components.pcollections[grouped].coder_id))
    assert coder.startswith("TupleCoder[BytesCoder, " + ("BytesCoder" if bounded else "TupleCoder["))
    assert "Pickle" not in coder
