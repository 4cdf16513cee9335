"""Rows of health: what the sentinels say of each window, for every collection, and nothing of small windows."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from fastavro.validation import validate

from tests.support import cases, replay
from tests.support.estimated import estimate_window
from tests.support.messages_cases import KRR, URAP
from tests.support.tolerance import generator
from uldp_transforms import EstimateDistribution
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.sentinels import examine
from uldp_transforms.messages import wire
from uldp_transforms.rows.json_and_avro import as_dict, to_avro, to_json
from uldp_transforms.rows.row_identity import name_of, span_of
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA, HEALTH_SCHEMA, WindowHealth
from uldp_transforms.rows.window_health import finding_of_fit, health_of_window
from uldp_transforms.windows import Windows

MINUTE = 60_000
PLACE = {**span_of(0, 1), "pane_index": 0, "pane_timing": "ON_TIME"}
PERIOD = 10 * MINUTE


def health(
    collections: list[Collection], pairs: list[tuple[bytes, CohortCounts]], min_reports: int = 1
) -> list[WindowHealth]:
    """The rows of counts, in no order."""
    with replay.collector() as (collect, rows):
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            spec = replay.spec(collections, None, candidates=cases.VALUES, min_reports=min_reports)
            _ = (pipeline | beam.Create(pairs) | EstimateDistribution(spec)).health | collect
        return [row for row, _, _ in rows]


def of_cohorts(*num_reports: int) -> CohortCounts:
    """Counts of KRR in which each symbol was reported equally often."""
    numbers = np.array(num_reports, dtype=np.int64)
    return CohortCounts(numbers, np.repeat(numbers[:, np.newaxis] // 3, 3, axis=1))


# equal cohorts, and cohorts that no honest clients choose: both without chance
EVEN, ONE_COHORT = of_cohorts(300, 300, 300), of_cohorts(900, 0, 0)


@pytest.mark.parametrize(
    ("counts", "min_reports", "status"),
    [
        pytest.param(EVEN, 900, "ok", id="ok"),
        pytest.param(ONE_COHORT, 900, "alarm", id="alarm"),
        pytest.param(EVEN, 901, "suppressed", id="suppressed"),
        pytest.param(ONE_COHORT, 901, "suppressed", id="no alarm of a window that is suppressed"),
        pytest.param(of_cohorts(3, 0, 0), 1, "ok", id="too few to judge"),
        pytest.param(of_cohorts(0, 0, 0), 1, "suppressed", id="none"),
    ],
)
def test_every_count_makes_a_row(counts: CohortCounts, min_reports: int, status: str) -> None:
    """And one of too few reports has no numbers."""
    (row,) = health([KRR], [(KRR.fingerprint, counts)], min_reports)
    findings = [] if status == "suppressed" else [dataclasses.asdict(found) for found in examine(KRR, counts)]
    place = {"window_start": None, "window_end": None, "pane_index": 0, "pane_timing": "ON_TIME"}
    number = None if status == "suppressed" else counts.total
    expected = WindowHealth(**name_of(KRR), **place, num_reports=number, status=status, findings=findings)
    assert as_dict(row) == expected._asdict() | {"dimensions": []}
    assert validate(to_avro(row, HEALTH_SCHEMA), HEALTH_SCHEMA, strict=True)
    assert json.loads(to_json(row))["findings"] == findings
    assert any(found["fired"] for found in findings) == (status == "alarm")


def test_an_alarm_says_which_sentinel_fired_and_what_it_means() -> None:
    (row,) = health([KRR], [(KRR.fingerprint, ONE_COHORT)])
    fired = {found.name: found for found in row.findings if found.fired}
    assert "cohorts" in fired
    assert fired["cohorts"].p_value < 1e-9
    assert {found.sentence for found in row.findings if not found.fired} <= {"Nothing unusual."}
    assert all(found.sentence.endswith(".") for found in row.findings)


OPEN = Collection.from_json(
    {
        "id": "open",
        "version": 1,
        "alphabet": {"id": "hashed", "num_buckets": 8},
        "mechanism": {"id": "krr", "epsilon": 3.0},
        "num_cohorts": 64,
    }
)


@pytest.mark.parametrize(
    ("values", "status"),
    [(cases.VALUES, "ok"), ([*cases.VALUES, "unlisted", "unlisted"], "misfit")],
    ids=["complete", "a frequent value is not listed"],
)
def test_the_fit_of_the_candidates_is_a_finding(values: list[str], status: str) -> None:
    """That honest clients with listed values make a p-value below a thousandth is as rare as that."""
    rng = generator("fit", len(values))
    counts = OPEN.count(OPEN.perturb(rng.choice(values, 20_000).tolist(), rng))
    (row,) = health([OPEN], [(OPEN.fingerprint, counts)])
    *others, fit = row.findings
    assert row.status == status
    assert [found.name for found in others] == [found.name for found in examine(OPEN, counts)]
    assert (fit.name, fit.fired) == ("fit", status == "misfit")
    assert fit.p_value == OPEN.estimate(counts, "projected", cases.VALUES).fit_p_value
    assert ("not listed" in fit.sentence) == fit.fired


def test_an_alarm_is_more_than_a_misfit() -> None:
    rng = generator("alarm and misfit")
    batch = OPEN.perturb(["unlisted"] * 20_000, rng)
    (row,) = health([OPEN], [(OPEN.fingerprint, OPEN.count(batch[np.flatnonzero(batch.cohorts > 31)]))])
    fired = {found.name for found in row.findings if found.fired}
    assert (row.status, fired) == ("alarm", {"cohorts", "fit"})


@pytest.mark.parametrize(
    ("p_value", "statistic", "fired"),
    [(0.5, 0.0, False), (0.0013498980316300933, 3.0, False), (0.0, 37.0, True), (1.0, -8.2, False)],
)
def test_the_statistic_of_the_fit_is_a_z_score(p_value: float, statistic: float, fired: bool) -> None:
    found = finding_of_fit(p_value)
    assert (found.fired, found.p_value) == (fired, p_value)
    assert found.statistic == pytest.approx(statistic, abs=0.1)  # a number that JSON can hold, also at the ends


def test_every_collection_has_rows_that_can_be_written() -> None:
    """Of one report, of honest ones, of one many times and of one cohort: no error, and p-values that are some."""
    collections = [Collection.from_json(of.to_json() | {"id": name}) for name, of in cases.ALL_COLLECTIONS.items()]
    pairs, expected = [], []
    for of in collections:
        rng = generator("health", of.id)
        batch = of.perturb(rng.choice(cases.VALUES, 400).tolist(), rng)
        alone = batch[np.flatnonzero(batch.cohorts == batch.cohorts[0])]
        for part in (batch[:1], batch, batch[np.zeros(300, np.int64)], alone):
            pairs.append((of.fingerprint, of.count(part)))
            expected.append((of.id, len(part)))
    rows = health(collections, pairs)
    assert sorted((row.collection_id, row.num_reports) for row in rows) == sorted(expected)
    for row in rows:
        assert row.status in ("ok", "alarm", "misfit")
        assert validate(to_avro(row, HEALTH_SCHEMA), HEALTH_SCHEMA, strict=True)
        assert all(0 <= found["p_value"] <= 1 for found in json.loads(to_json(row))["findings"])


def chosen_reports(of: Collection, rng: np.random.Generator) -> ReportBatch:
    """What an attacker may send: valid reports, all alike, or of two kinds, or of any, in one cohort or in all."""
    payloads = np.array([np.frombuffer(payload, np.uint8) for payload in of.mechanism.channel()[0]])
    number = int(rng.choice([1, 2, 3, 64, 512]))
    kinds = rng.integers(len(payloads), size=int(rng.choice([1, 2, len(payloads)])))
    cohorts = rng.integers(of.num_cohorts, size=number if rng.integers(2) else 1)
    return ReportBatch(
        of.fingerprint,
        np.broadcast_to(cohorts, number).astype(np.uint16),
        payloads[rng.choice(kinds, number)],
        np.zeros(number, np.int64),
        np.zeros((0, 16), np.uint8),
    )


SMALL = {name: of for name, of in cases.ALL_COLLECTIONS.items() if of.mechanism.num_symbols <= 12}


@pytest.mark.parametrize("draws", [1, pytest.param(12, marks=pytest.mark.slow)])
@pytest.mark.parametrize("of", SMALL.values(), ids=SMALL)
def test_reports_that_are_chosen_never_stop_a_job(of: Collection, draws: int) -> None:
    """Every estimator makes rows that can be written, of any valid reports."""
    rng = generator("chosen", of.id, of.mechanism.id)
    candidates = None if of.alphabet.known_values else tuple(cases.VALUES)
    estimators = [ESTIMATORS[name]() for name in ESTIMATORS if ESTIMATORS[name]().supports(of)]
    for _ in range(draws):
        counts = of.count(chosen_reports(of, rng), bit_patterns=True)
        for estimator in estimators:
            row = estimate_window(of, counts, PLACE, estimator, candidates, None)
            assert validate(to_avro(row, ESTIMATE_SCHEMA), ESTIMATE_SCHEMA, strict=True)
            health_row = health_of_window(of, counts, PLACE, None, row.fit_p_value)
            assert validate(to_avro(health_row, HEALTH_SCHEMA), HEALTH_SCHEMA, strict=True)
            for written in (to_json(row), to_json(health_row)):  # neither has infinities
                assert json.loads(written)["collection_id"] == of.id


@pytest.mark.parametrize("slide", [None, PERIOD // 2], ids=["fixed", "sliding"])
def test_each_pane_of_a_stream_has_both_rows(slide: int | None) -> None:
    """An estimate and what the sentinels say of it belong together by collection, window and pane."""
    windows = Windows(size=PERIOD, slide=slide)
    rng = generator("panes")
    late = (
        1_000_000_000_000 // PERIOD * PERIOD
    )  # far from 1970: the clock of this engine, which starts there, is not it
    batches = [of.perturb(["1"] * 60, rng, late + np.arange(60)) for of in (KRR, URAP)]
    parts = [[wire.encode_batch(batch[start : start + 20]) for batch in batches] for start in (0, 20, 40)]
    events: list[Any] = [replay.arrive(late, parts[0]), replay.clock(2 * MINUTE), replay.clock(2 * MINUTE)]
    events += [replay.arrive(late, parts[1]), replay.watermark(late + PERIOD)]
    events += [replay.arrive(late + PERIOD, parts[2])]
    job = replay.streaming_job([KRR, URAP], windows, allowed_lateness=PERIOD, early_every=MINUTE, min_reports=30)
    rows = replay.replay(job, events)
    names = ("fingerprint", "window_start", "window_end", "pane_index", "pane_timing", "num_reports")
    estimated, judged = (
        sorted([getattr(row, name) for name in names] + [row.status == "suppressed"] for row in rows[kind])
        for kind in ("estimates", "health")
    )
    assert estimated == judged
    assert {row.pane_timing for row in rows["health"]} == {"EARLY", "ON_TIME", "LATE"}
    assert {row.status for row in rows["health"] if row.pane_timing == "EARLY"} == {"suppressed"}
