"""Numbers of a question with several versions: equal to one version that has all reports, and honest if they differ."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from tests.support.estimated import estimate_question
from tests.support.ldp.number_collections import COUNTS, P, collection, one
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import EmpiricalBayes
from uldp_transforms.ldp.estimators.number_estimates import NumberEstimate, estimate_numbers, figures_of
from uldp_transforms.ldp.estimators.number_sums import NumberReports, NumberSums, _shares_of_versions
from uldp_transforms.ldp.versions import questions_of
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.rows.row_types import NumberFigures

TRUE_MEAN = float(P @ (np.arange(8) + 0.5) / 8)
PLACE: dict[str, Any] = {
    "window_start": "2001-09-09T00:00:00Z",
    "window_end": "2001-09-10T00:00:00Z",
    "pane_index": 0,
    "pane_timing": "ON_TIME",
    "run": None,
}

SMOOTHED = dict.fromkeys(("smoothed_value", "smoothed_low", "smoothed_high"))
"""Fields of figures that nobody asks for here."""


def version(number: int, item: Collection) -> Collection:
    return dataclasses.replace(item, version=number, question="delays")


def figures(*reports: NumberReports, **options: Any) -> NumberEstimate:
    return figures_of(NumberSums(reports), [0.5], [0.5, 0.9], **options)


def flat(found: Any) -> list[float]:
    """All numbers of a record, in order; NaN for None."""
    if isinstance(found, dict):
        return [number for inner in found.values() for number in flat(inner)]
    if isinstance(found, (list, tuple)):
        return [number for inner in found for number in flat(inner)]
    return [np.nan if found is None else float(found)]


def test_versions_with_the_same_channel_are_one_version() -> None:
    """A part of the reports in each of two versions: the same figures as all reports in one."""
    item, cells = collection(), np.array(COUNTS)
    part = cells // 3
    pooled = figures(*(NumberReports(item, one(own)) for own in (part, cells - part)))
    together = estimate_numbers(item, one(cells), limits=[0.5], quantiles=[0.5, 0.9])
    assert flat(dataclasses.asdict(pooled)) == pytest.approx(
        flat(dataclasses.asdict(together)), rel=1e-4, abs=1e-6, nan_ok=True
    )


def test_versions_of_other_mechanisms_are_covered_and_shorter() -> None:
    rng, runs = generator("pooled numbers"), 150
    items = [collection("sw", 1.0), collection("krr", 3.0)]
    held, shorter = np.zeros(3, dtype=int), 0
    for _ in range(runs):
        parts = [NumberReports(item, one(rng.multinomial(1000, item.mechanism.response(P)))) for item in items]
        pooled = figures(*parts, smooth=False)
        lengths = []
        for found in (pooled, figures(parts[0], smooth=False), figures(parts[1], smooth=False)):
            mean = found.mean
            assert mean is not None and mean.low is not None and mean.high is not None
            lengths.append(mean.high - mean.low)
        assert pooled.mean is not None
        share, median = pooled.shares_above[0], pooled.quantiles[0]
        held[0] += bool(pooled.mean.low <= TRUE_MEAN <= pooled.mean.high)  # type: ignore[operator]  # has ends
        held[1] += bool(share.low <= P[4:].sum() <= share.high)  # type: ignore[operator]  # as above
        held[2] += (median.low is None or median.low <= 0.25) and (median.high is None or median.high >= 0.25)
        shorter += lengths[0] < min(lengths[1:])
    assert held.min() >= binomial_limits(runs, 0.94)[0]
    assert held[:2].max() <= binomial_limits(runs, 0.97)[1]
    assert shorter == runs  # intervals of 1,000 people hardly vary


def test_weights_are_the_precisions_of_the_mean_bin_of_even_answers() -> None:
    """Other values count as the middle; a person with two reports halves what they say."""
    items, even = [collection(mechanism, 1.0, others=["none"]) for mechanism in ("krr", "rappor")], np.full(9, 1 / 9)
    reports = [NumberReports(items[0], one([400] * 9), 2), NumberReports(items[1], one([50] * 9))]
    ranks = np.append(np.arange(8) - 3.5, 0.0)
    variances = [ranks @ item.mechanism.covariance(even) @ ranks for item in items]
    precisions = np.array([3600 / 2, 450]) / variances
    np.testing.assert_allclose(_shares_of_versions(reports, 8), precisions / precisions.sum())


def test_a_row_of_a_question_has_the_pooled_figures() -> None:
    old, new = version(1, collection()), version(2, collection("krr", 3.0))
    [question] = questions_of([old, new])
    counts = {old.fingerprint: one(COUNTS), new.fingerprint: one([300, 200, 150, 100, 100, 50, 50, 50])}
    row, _ = estimate_question(
        question, counts, PLACE, EmpiricalBayes(), None, None, limits=(0.5, 7.0), quantiles=(0.5, 0.9)
    )
    parts = [NumberReports(item, counts[item.fingerprint]) for item in (old, new)]
    expected = figures(*parts)
    told = as_dict(row)["numbers"]
    assert told["mean"] == dataclasses.asdict(expected.mean) | SMOOTHED  # type: ignore[arg-type]  # has one
    assert told["shares_above"] == [dataclasses.asdict(found) | SMOOTHED for found in expected.shares_above]
    assert [bin_["share"] for bin_ in told["curve"]] == [bin_.share for bin_ in expected.curve]
    alone, _ = estimate_question(
        question, {new.fingerprint: counts[new.fingerprint]}, PLACE, EmpiricalBayes(), None, None
    )
    expected_alone = estimate_numbers(new, counts[new.fingerprint])
    mean = dataclasses.asdict(expected_alone.mean)  # type: ignore[arg-type]  # too
    assert as_dict(alone)["numbers"]["mean"] == mean | SMOOTHED
    several, _ = estimate_question(question, counts, PLACE, EmpiricalBayes(), None, None, anytime_scale=100)
    assert several.numbers.mean.high > row.numbers.mean.high  # type: ignore[operator]  # both have ends


def test_numbers_in_another_unit_are_not_pooled() -> None:
    old, new = version(1, collection(unit="s")), version(2, collection(unit="min"))
    [question] = questions_of([old, new])
    assert question.pooled == (new,)


def test_texts_in_another_order_leave_no_figures() -> None:
    """The texts' own shares are pooled all the same."""
    old, new = version(1, collection(others=["none", "error"])), version(2, collection(others=["error", "none"]))
    [question] = questions_of([old, new])
    cells = np.full(old.num_cells, 50)
    counts = {item.fingerprint: CohortCounts(np.array([cells.sum()]), cells[np.newaxis]) for item in (old, new)}
    row, _ = estimate_question(question, counts, PLACE, EmpiricalBayes(), None, None)
    assert row.status == "ok"
    assert len(row.estimates) == 10
    assert row.numbers == NumberFigures()
