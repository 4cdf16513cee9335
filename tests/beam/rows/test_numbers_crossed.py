"""Numbers with what else rows can be: several panes of a window, people who report several times, memos."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.support import replay
from tests.support.estimated import estimate_window
from tests.support.ldp.number_collections import P, collection
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import Empirical
from uldp_transforms.ldp.estimators.anytime import confidence_of_look
from uldp_transforms.ldp.estimators.number_estimates import estimate_numbers
from uldp_transforms.messages import wire
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.rows.row_identity import span_of
from uldp_transforms.rows.row_types import NumberFigures
from uldp_transforms.windows import Windows

MINUTE = 60_000
PERIOD = 10 * MINUTE
START = 1_000_000_000_000 // PERIOD * PERIOD
DAY = 86_400_000
DAYS, PEOPLE, RUNS = 3, 600, 150
CENTRES = (np.arange(8) + 0.5) / 8
SMOOTHED = dict.fromkeys(("smoothed_value", "smoothed_low", "smoothed_high"))
"""Fields of figures that this job does not ask for."""


def test_figures_of_all_panes_are_of_the_reports_so_far() -> None:
    """Each with intervals that hold in all rows of the window together, as those of the shares do."""
    item, part, scale = collection(), 200, 50
    batch = item.perturb(
        generator("panes of numbers").random(3 * part), generator("panes"), START + np.arange(3 * part)
    )
    first, second, third = ([wire.encode_batch(batch[at : at + part])] for at in range(0, 3 * part, part))
    events = [replay.arrive(START, first), replay.clock(2 * MINUTE), replay.clock(2 * MINUTE)]
    events += [replay.arrive(START, second), replay.watermark(START + PERIOD), replay.arrive(START + PERIOD, third)]
    options: dict[str, Any] = {"early_every": MINUTE, "min_reports": scale, "limits": (0.5,), "quantiles": (0.5, 0.9)}
    job = replay.streaming_job([item], Windows(size=PERIOD), allowed_lateness=PERIOD, **options)
    rows = replay.replay(job, events)["estimates"]
    assert {row.pane_timing for row in rows} == {"EARLY", "ON_TIME", "LATE"}
    for row in rows:
        level = float(confidence_of_look(0.95, row.num_reports, scale, row.pane_timing == "ON_TIME"))
        counts = item.count(batch[: row.num_reports])
        found = estimate_numbers(item, counts, limits=[0.5], quantiles=[0.5, 0.9], confidence=level)
        told, expected = as_dict(row)["numbers"], dataclasses.asdict(found)
        assert told["mean"] == pytest.approx(expected["mean"] | SMOOTHED)
        for name in ("quantiles", "shares_above"):
            assert told[name] == [one | SMOOTHED for one in expected[name]]
        assert told["below"] == list(expected["below"])
        assert level > 0.95


def repeating(mechanism: dict[str, Any]) -> Collection:
    return Collection.from_json(collection().to_json() | {"mechanism": mechanism, "client_window": "1d"})


def counts_of(item: Collection, rng: np.random.Generator) -> CohortCounts:
    """Of people with one value each, who report it on every day; with memos, from one memo."""
    symbols, mechanism = rng.choice(8, PEOPLE, p=P), item.mechanism
    if item.mechanism.id == "sw":
        sent = [item.perturb(CENTRES[symbols], rng) for _ in range(DAYS)]
        counts = [item.count(batch) for batch in sent]
        return sum(counts[1:], counts[0])
    memo: Any = mechanism
    kept = rng.random(PEOPLE) < memo.memo.kappa
    memos = np.where(kept, symbols, rng.integers(0, 8, PEOPLE))
    cells = np.zeros((1, 8), dtype=np.int64)
    for _ in range(DAYS):
        repeated = rng.random(PEOPLE) < memo.repeat_weight / 2**64
        cells += np.bincount(np.where(repeated, memos, rng.integers(0, 8, PEOPLE)), minlength=8)
    return CohortCounts(cells.sum(axis=1), cells)


@pytest.mark.parametrize(
    "mechanism",
    [{"id": "sw", "epsilon": 4.0}, {"id": "krr", "epsilon": 3.0, "epsilon_inf": 4.0}],
    ids=["fresh noise", "memos"],
)
def test_people_who_repeat_are_covered(mechanism: dict[str, Any]) -> None:
    """Windows of three days of clients that report daily: intervals are those of the worst case."""
    item, rng = repeating(mechanism), generator("numbers of repeating people", mechanism["id"])
    place = {**span_of(0, DAYS * DAY), "pane_index": 0, "pane_timing": "ON_TIME"}
    held = np.zeros(4, dtype=int)
    mean, above = float(P @ CENTRES), float(P[4:].sum())
    for _ in range(RUNS):
        row = estimate_window(item, counts_of(item, rng), place, Empirical(), None, None, limits=(0.5,))
        figures: Any = (row.numbers.mean, row.numbers.shares_above[0])
        for at, (one, truth) in enumerate(zip(figures, (mean, above))):
            held[at] += one.low <= truth <= one.high
            held[2 + at] += one.display_low <= truth <= one.display_high
    assert held[:2].min() >= binomial_limits(RUNS, 0.95)[0]
    assert held[2:].min() >= binomial_limits(RUNS, 0.9)[0]


def test_a_day_of_repeating_people_has_the_intervals_of_one_report() -> None:
    item = repeating({"id": "sw", "epsilon": 4.0})
    counts = counts_of(item, generator("one day"))
    lengths = []
    for days in (1, DAYS):
        place = {**span_of(0, days * DAY), "pane_index": 0, "pane_timing": "ON_TIME"}
        found: Any = estimate_window(item, counts, place, Empirical(), None, None).numbers
        assert found != NumberFigures()
        lengths.append(found.mean.high - found.mean.low)
    assert lengths[1] / lengths[0] == pytest.approx(DAYS**0.5)
