"""Sums over windows: smoothed in their units, in files and streams, and changes that are found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uldp_transforms import JobSpec
from uldp_transforms.ldp import Collection
from uldp_transforms.rows.entry_columns import packed, unpacked
from uldp_transforms.rows.row_types import SumOfShares, WindowedEstimate, WindowHealth
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Owner, Sample
from uldp_transforms.rows.smoothed_rows import filter_row, smooth_rows
from uldp_transforms.rows.window_history import Neighbours
from uldp_transforms.windows import rfc3339

DAY = 86_400_000
VALUES = [f"v{at}" for at in range(6)]
SUMS = {"two": VALUES[:2], "all": {"match": "*"}, "cost": {"weights": {"v0": 10, "v1": 2, "v2": -5}}}
ITEM = Collection.from_json(
    {
        "id": "foods",
        "version": 1,
        "alphabet": {"id": "closed", "values": VALUES},
        "mechanism": {"id": "krr", "epsilon": 2.0},
    }
)
BEFORE, AFTER = np.array([0.3, 0.2, 0.1, 0.1, 0.2, 0.1]), np.array([0.05, 0.05, 0.3, 0.2, 0.2, 0.2])


def days(shares: Sequence[np.ndarray], people: int = 4_000) -> tuple[list[WindowedEstimate], list[WindowHealth]]:
    rng, samples = np.random.default_rng(9), []
    for day, each in enumerate(shares):
        counts = ITEM.count(ITEM.perturb(rng.choice(VALUES, people, p=each).tolist(), rng))
        place = {
            "window_start": rfc3339(day * DAY),
            "window_end": rfc3339((day + 1) * DAY),
            "pane_index": 0,
            "pane_timing": "ON_TIME",
            "run": None,
        }
        samples.append(Sample(owner=Owner(named=ITEM), place=place, counts={ITEM.fingerprint: counts}))
    asked = JobSpec.of(collections=[ITEM], window="1d", sums=SUMS, bounded=True).asked()
    found = list(rows_of(samples, asked))
    return [one.estimate for one in found], [one.health for one in found]


def named(row: WindowedEstimate) -> dict[str, SumOfShares]:
    return {one.name: one for one in row.sums}


def test_sums_are_smoothed_in_their_units() -> None:
    rows, _ = days([BEFORE] * 10)
    truth = {"two": 0.5, "cost": 10 * 0.3 + 2 * 0.2 - 5 * 0.1}
    for row, _ in smooth_rows(rows, 1.0, 1_000):
        found = named(row)
        assert found["all"].smoothed_value is None, "it is the same in all windows"
        for name, true in truth.items():
            one = found[name]
            assert one.smoothed_low is not None and one.smoothed_high is not None and one.smoothed_value is not None
            assert one.least <= one.smoothed_low < one.smoothed_value < one.smoothed_high <= one.most
            assert one.smoothed_high - one.smoothed_low < one.high - one.low
            assert abs(one.smoothed_value - true) < 6 * one.standard_error


def test_a_stream_smooths_them_as_it_goes_and_keeps_them_in_bytes() -> None:
    rows, _ = days([BEFORE] * 6)
    held, whole = Neighbours.of([], 1.0), [row for row, _ in smooth_rows(rows, 1.0, 1_000)]
    for row in rows:
        held, shown, _ = filter_row(Neighbours.from_bytes(held.to_bytes()), row, 1_000)
    for name in ("two", "cost"):
        last, expected = named(shown)[name], named(whole[-1])[name]
        np.testing.assert_allclose(last[-3:], expected[-3:], rtol=1e-6)
    [sums] = held.figures
    assert sums.values == ("sum two", "sum cost") and len(sums) == 6


def test_sums_of_another_job_begin_anew() -> None:
    """A job that is started again with other names keeps the shares and the sums that it still has."""
    rows, _ = days([BEFORE] * 4)
    other = [row._replace(sums=tuple(one._replace(name=f"new {one.name}") for one in row.sums)) for row in rows]
    held = Neighbours.of([], 1.0)
    for row in rows[:3]:
        held, _, _ = filter_row(held, row, 1_000)
    held, _, _ = filter_row(held, other[3], 1_000)
    [sums] = held.figures
    assert (len(held), len(sums), sums.values) == (4, 1, ("sum new two", "sum new cost"))


def test_a_change_of_sums_is_found_and_said_in_their_units() -> None:
    rows, _ = days([BEFORE] * 12 + [AFTER] * 2)
    findings = [finding for _, finding in smooth_rows(rows, 1.0, 1_000)]
    assert not any(finding.fired for finding in findings[:12] if finding)
    changed = findings[12]
    assert changed is not None and changed.fired
    assert "Sums moved: " in changed.sentence and "'two' -" in changed.sentence and "'all'" not in changed.sentence
    assert "percentage points" in changed.sentence and "'cost' -" in changed.sentence


def test_rows_between_two_steps_keep_their_sums() -> None:
    rows, health = days([BEFORE])
    row, same = unpacked(packed(rows[0], health[0]))
    assert row == rows[0] and same == health[0]
    assert isinstance(row.sums[0], SumOfShares)
