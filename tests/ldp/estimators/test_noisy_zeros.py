"""Estimates outside [0, 1] say no more than estimates of 0 or 1: their intervals are as long as those."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.support.cases import ALL_COLLECTIONS, VALUES
from tests.support.ldp.made_collections import made
from tests.support.ldp.noisy_zeros import krr, of_counts, rare
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.estimators.number_estimates import estimate_numbers
from uldp_transforms.ldp.repeated_people import with_repeated_people
from uldp_transforms.ldp.solvers.intervals import cut
from uldp_transforms.ldp.versions.pooled_estimate import pool

# ------------------------------------------------------------------------------------------------ the ends themselves


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("values", [2, 3, 16])
@pytest.mark.parametrize("reports", [20, 400, 6_423])
def test_an_upper_end_is_never_below_that_of_an_estimate_of_0_and_a_lower_one_alike(
    epsilon: float, values: int, reports: int
) -> None:
    """Of every count of a value of k-RR; that of an estimate of 0 or 1 is of the count that noise lets expect."""
    item = krr(values, epsilon)
    often, seldom = item.mechanism.response(np.eye(values)[0])[:2] * reports
    of_zero = stats.beta.ppf(0.975, seldom + 1, reports - seldom)
    at_zero = (of_zero - seldom / reports) / ((often - seldom) / reports)
    below = above = 0
    for count in np.unique(np.linspace(0, reports, 41).astype(int)).tolist():
        rest = np.full(values - 1, (reports - count) // (values - 1))
        rest[0] += reports - count - rest.sum()
        found = item.estimate(of_counts(item, count, *rest.tolist()), "projected")
        raw, low, high = found.raw_frequencies[0], found.ci_low[0], found.ci_high[0]
        display_low, display_high = found.display_intervals(values)
        assert display_low[0] <= low and high <= display_high[0]
        below, above = below + (raw < 0), above + (raw > 1)
        if raw < 0:
            assert low == 0 and high >= min(at_zero, 1) - 1e-9
        if raw > 1:
            assert high == 1 and low <= 1
    assert above and (below or seldom < reports / 40)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_no_end_moves_inwards(confidence: float) -> None:
    """Cut intervals contain the plain ones within [0, 1], so that they cover at least as often: for every count."""
    item = krr(4, 1.0)
    rng = generator("noisy zeros, outwards")
    for _ in range(200):
        found = item.estimate(of_counts(item, *rng.multinomial(90, rng.dirichlet(np.ones(4))).tolist()), "projected")
        low, high = np.clip(found.unclipped(confidence), 0, 1)
        own = found.intervals(confidence)
        assert (own[0] <= low).all() and (high <= own[1]).all()
        inside = (found.raw_frequencies >= 0) & (found.raw_frequencies <= 1)
        np.testing.assert_array_equal(own[0][inside], np.minimum(low, found.frequencies)[inside])
        np.testing.assert_array_equal(own[1][inside], np.maximum(high, found.frequencies)[inside])


@pytest.mark.parametrize("raw", [-0.3, -0.05, 0.0, 0.4, 1.0, 1.05, 1.4])
def test_a_cut_interval_is_measured_from_the_nearer_end_of_the_range(raw: float) -> None:
    low, high = cut(raw - 0.1, raw + 0.2, raw)
    nearest = min(max(raw, 0), 1)
    assert low == pytest.approx(max(nearest - 0.1, 0)) and high == pytest.approx(min(nearest + 0.2, 1))
    scaled = cut(10 + 10 * (raw - 0.1), 10 + 10 * (raw + 0.2), 10 + 10 * raw, 10, 20)
    np.testing.assert_allclose(scaled, (10 + 10 * low, 10 + 10 * high))


# ------------------------------------------------------------------------------------ every mechanism and every way


def shown_intervals(item: Collection, found: Estimate) -> Iterator[tuple[str, Estimate, np.ndarray, np.ndarray]]:
    """All intervals of an estimate: for a value chosen beforehand and for the largest, at one look and at all, with
    repeated reports."""
    ways = {"one look": found, "all looks": found.anytime(50), "repeated": with_repeated_people(item, found, 3)}
    for way, one in ways.items():
        yield way, one, one.ci_low, one.ci_high
        yield f"{way}, selected", one, *one.display_intervals(len(one.values))


def all_of_the_block(found: Estimate) -> np.ndarray | bool:
    """Which values anybody in their public block may hold, so that only the share of the block is a limit."""
    if found.in_blocks is None:
        return False
    low, high = found.in_blocks.intervals(0.95)
    return np.asarray((low <= 0) & (high >= 1))


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), reports=st.sampled_from((1, 5, 30, 300, 1000)), rank=st.floats(0, 4))
@pytest.mark.parametrize("name", sorted(ALL_COLLECTIONS))
def test_no_interval_is_short_or_leaves_out_its_own_number(name: str, seed: int, reports: int, rank: float) -> None:
    """For every mechanism and alphabet. An interval is shorter than half a standard error only if it is all of [0, 1],
    which a standard error above 2 exceeds; in a public block, only if the share within it has all of [0, 1]."""
    item, rng = ALL_COLLECTIONS[name], np.random.default_rng(seed)
    values = item.alphabet.known_values or VALUES
    weights = 1 / np.arange(1, len(values) + 1) ** rank
    people = rng.choice(list(values), reports, p=weights / weights.sum()).tolist()
    counts = item.count(item.perturb(people, rng))
    for estimator in ("projected", "eb"):
        try:
            found = item.estimate(counts, estimator, values)
        except EstimationError:
            continue
        for way, one, low, high in shown_intervals(item, found):
            assert (low <= one.frequencies).all() and (one.frequencies <= high).all(), way
            is_all = (low <= 0) & (high >= 1) | all_of_the_block(one)
            assert (is_all | (high - low >= one.standard_errors / 2)).all(), way
        rest = found.unexplained_mass
        assert rest is None or found.unexplained_low <= rest <= found.unexplained_high


def test_a_noisy_zero_of_pooled_versions_has_the_interval_of_an_estimate_of_0() -> None:
    """Of one version alone it is that of the version; of two equal ones it is shorter by the root of 2."""
    item, counts, _ = rare()
    versions = [item, krr(16, 2.0, version=2)]
    alone = pool(ESTIMATORS["projected"](), versions, [counts, CohortCounts.empty(*counts.shape)]).estimate
    both = pool(ESTIMATORS["projected"](), versions, [counts, counts]).estimate
    expected = item.estimate(counts, "projected")
    assert alone.ci_high[0] == pytest.approx(expected.ci_high[0])
    assert both.ci_low[0] == 0 and both.ci_high[0] == pytest.approx(expected.ci_high[0] / np.sqrt(2), rel=0.05)
    assert both.ci_high[0] > 1.9 * both.standard_errors[0]


# ------------------------------------------------------------------------------------- differences, lifts and figures


def ages(mechanism: str, **fields: Any) -> Collection:
    alphabet = {"id": "ordered", "low": 10, "high": 50, "num_bins": 4, **fields}
    return made(alphabet, {"id": mechanism, "epsilon": 1.0}, id="ages")


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), reports=st.integers(2, 2_000), bins=st.floats(0.05, 5), others=st.booleans())
@pytest.mark.parametrize("mechanism", ["krr", "rappor", "sw"])
def test_figures_lie_in_their_intervals_which_are_not_short(
    mechanism: str, seed: int, reports: int, bins: float, others: bool
) -> None:
    """Means, sums and shares above limits; an interval from one end of the range to the other is all there is."""
    item = ages(mechanism, **({"others": ["none"]} if others and mechanism != "sw" else {}))
    rng = np.random.default_rng(seed)
    people = rng.choice(item.alphabet.num_symbols, reports, p=rng.dirichlet(np.full(item.alphabet.num_symbols, bins)))
    values = item.alphabet.known_values
    counts = item.count(item.perturb([values[place] for place in people.tolist()], rng))
    found = estimate_numbers(item, counts, limits=[20, 30, 37], quantiles=[0.5])
    for figure in (found.mean, found.sum, *found.shares_above, *found.quantiles):
        for kind in ("", "display_"):
            value, low, high = (getattr(figure, f"{kind}{part}", None) for part in ("value", "low", "high"))
            assert value is None or low is None or low <= value
            assert value is None or high is None or value <= high
    mean = found.mean
    if mean.low is not None:
        assert mean.high - mean.low >= mean.standard_error / 2 or (mean.low <= 15 and mean.high >= 45)
    for bin_of_curve in found.curve:
        assert bin_of_curve.display_low <= bin_of_curve.share <= bin_of_curve.display_high


def test_a_text_says_below_instead_of_0_to_a_bound() -> None:
    item, counts, _ = rare()
    found = item.estimate(counts, "projected")
    assert found.frequencies[0] == found.ci_low[0] == 0
    assert f"<td>below {100 * found.display_intervals(16)[1][0]:.1f} %</td>" in found._repr_html_()
