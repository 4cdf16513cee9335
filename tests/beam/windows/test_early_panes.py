"""Which rows carry intervals for one look, and which carry intervals that hold in all rows of a window together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import replay
from tests.support.messages_cases import KRR, URAP
from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.rows.windowed_estimate import flat
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.spec.spec_fields import FINAL
from uldp_transforms.windows import Windows

MINUTE = 60_000
PERIOD = 10 * MINUTE
START = 1_000_000_000_000 // PERIOD * PERIOD  # far from 1970: the clock of this engine, which starts there, is not it
COLLECTIONS = [KRR, URAP]


BATCHES = [of.perturb(["1"] * 120, generator("early panes"), START + np.arange(120)) for of in COLLECTIONS]
PART = 40  # reports of a collection that come together


def rows_of(**fields: Any) -> list[Any]:
    """Estimates of a stream whose window is looked at before its end, at its end, and when late reports came."""
    first, second, third = (
        [wire.encode_batch(batch[start : start + PART]) for batch in BATCHES] for start in (0, PART, 2 * PART)
    )
    events = [replay.arrive(START, first), replay.clock(2 * MINUTE), replay.clock(2 * MINUTE)]
    events += [replay.arrive(START, second), replay.watermark(START + PERIOD), replay.arrive(START + PERIOD, third)]
    job = replay.streaming_job(COLLECTIONS, Windows(size=PERIOD), allowed_lateness=PERIOD, **fields)
    return replay.replay(job, events)["estimates"]


def ends_of(row: Any) -> list[tuple[float, ...]]:
    return [(entry.ci_low, entry.ci_high, entry.display_low, entry.display_high) for entry in row.estimates]


def estimate_of(row: Any) -> Any:
    """What the library makes of the reports that are in a row."""
    item, batch = next(pair for pair in zip(COLLECTIONS, BATCHES) if pair[0].fingerprint.hex() == row.fingerprint)
    return item.estimate(item.count(batch[: row.num_reports]), row.estimator)


def same_ends(row: Any, estimate: Any) -> bool:
    expected = [estimate.ci_low, estimate.ci_high, *estimate.display_intervals(len(estimate.values))]
    return np.array_equal(np.array(ends_of(row)), np.transpose(expected))


@pytest.mark.parametrize(
    ("fields", "timings"),
    [({"early_every": MINUTE, "min_reports": 30}, {"EARLY", "ON_TIME", "LATE"}), ({}, {"ON_TIME", "LATE"})],
    ids=["early panes", "none"],
)
def test_intervals_of_a_window_that_can_have_several_rows_hold_in_all_of_them(fields: Any, timings: set[str]) -> None:
    rows = rows_of(**fields)
    assert {row.pane_timing for row in rows} == timings
    assert {row.interval for row in rows} == {"anytime"}
    assert sum(row.pane_timing == "ON_TIME" for row in rows) == len(COLLECTIONS)
    for row in rows:
        assert {entry.interval for entry in flat(row)} == {"anytime"}
        estimate = estimate_of(row)
        planned = row.pane_timing == "ON_TIME"
        assert same_ends(row, estimate.anytime(fields.get("min_reports", 1), planned))
        assert not same_ends(row, estimate.anytime(fields.get("min_reports", 1), not planned))
        assert not same_ends(row, estimate)


def test_the_one_row_of_a_window_is_for_one_look() -> None:
    rows = rows_of(release=FINAL)
    assert [(row.pane_timing, row.interval, row.num_reports) for row in rows] == [("ON_TIME", "fixed", 3 * PART)] * 2
    assert all(same_ends(row, estimate_of(row)) for row in rows)


def test_rows_without_numbers_say_the_kind_too() -> None:
    assert {(row.status, row.interval) for row in rows_of(min_reports=1000)} == {("suppressed", "anytime")}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"bounded": True}, None),
        ({"bounded": True, "min_reports": 7}, None),
        ({"bounded": False, "release": FINAL}, None),
        ({"bounded": False}, 100),
        ({"bounded": False, "min_reports": 7, "early_every": MINUTE}, 7),
    ],
)
def test_a_specification_says_which(fields: dict[str, Any], expected: int | None) -> None:
    assert JobSpec(collections=(KRR,), windows=Windows(size=PERIOD), **fields).anytime_scale == expected


def test_a_stream_of_windows_of_several_client_windows_has_rows() -> None:
    """People may report several times in a window, and the window can have several rows: both widen its intervals."""
    asked = Collection.from_json(KRR.to_json() | {"client_window": "10m"})
    batch = asked.perturb(["0", "1"] * 60, generator("several client windows"), np.full(120, START))
    events = [replay.arrive(START, [wire.encode_batch(batch)]), replay.watermark(START + 9 * PERIOD)]
    job = replay.streaming_job([asked], Windows(size=3 * PERIOD), allowed_lateness=PERIOD)
    (row,) = replay.replay(job, events)["estimates"]
    job = replay.streaming_job([asked], Windows(size=PERIOD), allowed_lateness=PERIOD)
    (once,) = replay.replay(job, events)["estimates"]
    assert (row.status, row.interval, row.num_reports) == ("ok", "anytime", 120)
    for long, short in zip(row.estimates, once.estimates, strict=True):
        assert long.ci_low <= short.ci_low and long.ci_high >= short.ci_high
        assert long.standard_error >= short.standard_error
    assert row.estimates[0].standard_error > 1.1 * once.estimates[0].standard_error
