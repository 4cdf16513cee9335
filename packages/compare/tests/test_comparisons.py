"""Differences, lifts and homogeneity: enumerated where they can be, simulated where not, and against other code."""

from __future__ import annotations

import dataclasses
import importlib

import numpy as np
import pytest
from scipy import stats

from packages.compare.tests.support.refused_estimates import collection, estimated
from tests.support.tolerance import binomial_limits, generator, normal_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import Estimate
from uldp_transforms.ldp.solvers.pooled_versions import PooledVersions
from uldp_transforms.rows.figures.compared_figures import clearest_first, difference_interval
from uldp_transforms_compare.comparisons import Comparison, compare, homogeneity
from uldp_transforms_compare.comparisons.compare import (
    _Looks,
    difference_at,
    lift_interval,
    noticeable_difference,
    q_values,
    selected_confidence,
)
from uldp_transforms_compare.comparisons.homogeneity import noticeable_shift
from uldp_transforms_compare.comparisons.interval_inversion import p_values_at

# ---------------------------------------------------------------------- enumerated: Warner's response, two groups


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 6.0])
@pytest.mark.parametrize(("n", "m"), [(60, 60), (60, 25)])
def test_coverage_of_all_pairs_of_counts(epsilon: float, n: int, m: int) -> None:
    """Exact sums over all pairs of counts: never below .92, in the mean over shares at least .95."""
    model = collection(2, epsilon)
    keep = float(model.mechanism.invert(CohortCounts(np.array([1]), np.array([[1, 0]])))[0][0])
    ends = []
    for size in (n, m):
        estimates = [estimated(model, [count, size - count]) for count in range(size + 1)]
        raw = np.array([one.raw_frequencies[0] for one in estimates])
        both = np.array([[end[0] for end in one.unclipped(0.95)] for one in estimates])
        ends.append((raw, both[:, 0], both[:, 1]))
    (a, low_a, high_a), (b, low_b, high_b) = ends
    low, high = difference_interval(*(np.broadcast_arrays(*(x[:, None] if i in (0, 2, 3) else x[None, :]
        for i, x in enumerate((a, b, low_a, high_a, low_b, high_b))))))  # fmt: skip
    assert keep > 1
    chance = float(np.exp(epsilon) / (np.exp(epsilon) + 1))
    shares, covered = np.linspace(0, 1, 21), []
    for p in shares:
        of_a = stats.binom.pmf(np.arange(n + 1), n, p * chance + (1 - p) * (1 - chance))
        for q in shares:
            of_b = stats.binom.pmf(np.arange(m + 1), m, q * chance + (1 - q) * (1 - chance))
            holds = (low <= p - q + 1e-12) & (high >= p - q - 1e-12)
            covered.append(float(of_a @ holds @ of_b))
    assert min(covered) >= 0.92
    assert np.mean(covered) >= 0.95


def test_a_difference_and_its_mirror_are_one() -> None:
    model = collection(4, 2.0)
    first, second = estimated(model, [300, 200, 400, 100]), estimated(model, [200, 300, 350, 50])
    there, back = compare(first, second), compare(second, first)
    np.testing.assert_allclose(there.differences, -back.differences)
    np.testing.assert_allclose(there.low, -back.high)
    np.testing.assert_allclose(there.p_values, back.p_values, rtol=1e-9)
    assert (there.low < there.differences).all() and (there.differences < there.high).all()


def test_p_values_are_where_intervals_touch_nothing() -> None:
    model = collection(4, 2.0)
    first, second = estimated(model, [500, 200, 200, 100]), estimated(model, [200, 300, 350, 250])
    found = compare(first, second)
    assert found.p_values.min() < 1e-10 and np.count_nonzero(found.p_values > 1e-10) >= 2
    for place, p_value in enumerate(found.p_values):
        if p_value < 1e-10:  # the confidence would be 1
            continue
        within, beyond = (compare(first, second, min(max(1 - p_value * f, 1e-9), 1 - 1e-12)) for f in (0.98, 1.02))
        assert within.low[place] <= 0 <= within.high[place]
        assert p_value == 1 or not beyond.low[place] <= 0 <= beyond.high[place]


def test_p_values_of_normal_intervals_are_the_normal_ones() -> None:
    """d - z to d + z touches 0 at z = |d|; below .05 standard errors a p-value is 1. None is 0, and none are
    tied until floating point ends."""
    d = np.array([0.0, 0.04, 0.06, -0.5, 1.0, -4.99, 8.19, 8.21, -30.0, 30.5, -37.0])
    expected = np.where(np.abs(d) < 0.05, 1, 2 * stats.norm.sf(np.abs(d)))
    least = p_values_at(lambda z: (np.array([100.0, 1e9]) - z, np.array([100.0, 1e9]) + z))
    assert (least > 0).all() and (least < expected.min()).all()
    np.testing.assert_allclose(p_values_at(lambda z: (d - z, d + z)), expected, rtol=1e-6)
    assert p_values_at(lambda z: (np.full(2, -np.inf), np.array([np.inf, 5.0]))).tolist() == [1, 1]


def test_the_clearest_difference_is_the_largest_in_units_of_its_error() -> None:
    """Among p-values that are equal too, as beyond floating point or in rows of earlier versions."""
    d, errors = np.array([0.3, -0.5, 0.0, 0.02, 0.4]), np.array([0.001, 0.001, 0.1, 0.01, 0.1])
    low, high = d - 1.96 * errors, d + 1.96 * errors
    p_values = p_values_at(lambda z: (d - z * errors, d + z * errors))
    for given in (p_values, np.where(p_values < 1, 2.4e-16, 1)):
        assert clearest_first(given, d, low, high).tolist() == [1, 0, 4, 3, 2]
    open_end = clearest_first(np.zeros(2), np.array([-8.0, 1.0]), np.array([-np.inf, 0.5]), np.array([-7.9, np.inf]))
    assert open_end.tolist() == [0, 1]


def test_a_frame_has_the_clearest_differences_first() -> None:
    pytest.importorskip("pandas")
    model = collection(4, 4.0)
    sizes = np.array([[40_000, 30_000, 20_000, 10_000], [10_000, 20_000, 30_000, 40_000]])
    first, second = (estimated(model, row.tolist()) for row in sizes)
    found = compare(first, second)
    z = np.abs(found.differences) / np.hypot(first.standard_errors, second.standard_errors)
    assert (z > 40).all() and found.p_values.min() > 0
    assert list(found.to_frame()["value"]) == [found.values[at] for at in np.argsort(-z)]


def test_pandas_is_imported_when_it_is_asked_for() -> None:
    assert "pandas" not in vars(importlib.import_module(q_values.__module__))


def test_estimates_that_agree_have_large_p_values() -> None:
    one = estimated(collection(3, 1.0), [400, 300, 300])
    found = compare(one, dataclasses.replace(one))
    assert found.differences.tolist() == [0, 0, 0]
    assert (found.p_values == 1).all() and (found.q_values == 1).all()


def test_values_may_be_in_another_order() -> None:
    model = collection(3, 2.0)
    spec = model.to_json()
    turned = Collection.from_json(spec | {"alphabet": {"id": "closed", "values": ["v2", "v0", "v1"]}})
    first, second = estimated(model, [500, 300, 200]), estimated(model, [300, 300, 400])
    other = estimated(turned, [400, 300, 300])
    assert other.values == ("v2", "v0", "v1")
    for name in (field.name for field in dataclasses.fields(Comparison)):
        expected, found = (getattr(compare(first, one), name) for one in (second, other))
        np.testing.assert_array_equal(found, expected)


# ---------------------------------------------------------------------- lifts


def test_lifts_are_the_published_interval() -> None:
    """Donner and Zou's formula as printed, for shares with ends above 0."""
    a, b, low_a, high_a, low_b, high_b = (np.array([x]) for x in (0.3, 0.2, 0.25, 0.36, 0.15, 0.26))
    lift, low, high = lift_interval(a, b, low_a, high_a, low_b, high_b)
    product = a * b
    printed = (product - np.sqrt(product**2 - low_a * high_b * (2 * a - low_a) * (2 * b - high_b))) / (
        high_b * (2 * b - high_b)
    )
    assert lift == pytest.approx(1.5)
    assert low == pytest.approx(printed)
    printed = (product + np.sqrt(product**2 - high_a * low_b * (2 * a - high_a) * (2 * b - low_b))) / (
        low_b * (2 * b - low_b)
    )
    assert high == pytest.approx(printed)
    assert low[0] < 1.5 < high[0]


def test_lifts_over_shares_that_may_be_nothing() -> None:
    a, b = np.array([0.3, 0.3, -0.01]), np.array([-0.01, 0.02, 0.2])
    lift, low, high = lift_interval(a, b, a - 0.05, a + 0.05, b - 0.05, b + 0.05)
    assert np.isnan([lift[0], low[0], high[0]]).all(), "the share below is not above 0"
    assert np.isinf(high[1]) and low[1] > 0, "it may be 0"
    assert low[2] == 0 and high[2] > 0 and lift[2] < 0
    nothing = lift_interval(*(np.array([x]) for x in (0.0, 0.5, 0.1, 0.2, 0.4, 0.6)))
    assert nothing[0] == nothing[1] == 0, "though its interval may begin above it"


@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_lifts_cover(epsilon: float) -> None:
    """500 pairs of groups; more misses than allowed come by chance less often than once in ten million."""
    model, rng, runs = collection(5, epsilon), generator("lifts", epsilon), 500
    p, q = np.array([0.4, 0.25, 0.2, 0.1, 0.05]), np.array([0.3, 0.3, 0.15, 0.15, 0.1])
    missed = np.zeros(5)
    for _ in range(runs):
        estimates = [drawn(model, share, 5_000, rng) for share in (p, q)]
        a, b = (one.raw_frequencies for one in estimates)
        ends = [end for one in estimates for end in one.unclipped(0.95)]
        _, low, high = lift_interval(a, b, *ends)
        missed += (low > p / q) | (high < p / q)
    assert (missed <= stats.binom.isf(1e-7, runs, 0.05)).all(), missed / runs


def drawn(model: Collection, shares: np.ndarray, number: int, rng: np.random.Generator) -> Estimate:
    """An estimate from k-RR counts that are drawn by their law."""
    odds = np.exp(float(model.mechanism.epsilon))  # type: ignore[attr-defined]  # that of k-RR
    law = (1 + (odds - 1) * shares) / (odds + len(shares) - 1)
    return estimated(model, rng.multinomial(number, law / law.sum()).tolist())


# ---------------------------------------------------------------------- many values at once


def test_q_values_are_those_of_scipy() -> None:
    for size in (1, 2, 7, 100):
        p_values = generator("q", size).random(size) ** 3
        np.testing.assert_allclose(q_values(p_values), stats.false_discovery_control(p_values))


def test_differences_are_selected_by_q_values_and_have_intervals_of_their_own_level() -> None:
    """Of 6 differences R are found at the rate .1: their level is 1 - .1 R / 6. What is noticeable is found at .1."""
    model = collection(6, 3.0)
    first, second = (
        estimated(model, cells) for cells in ([500, 300, 300, 260, 200, 150], [380, 300, 330, 300, 130, 270])
    )
    found = compare(first, second, 0.9)
    adjusted = stats.false_discovery_control(found.p_values)
    np.testing.assert_allclose(found.q_values, adjusted)
    chosen = adjusted <= 0.1
    assert 0 < chosen.sum() < 6 and (found.p_values[~chosen] < adjusted[~chosen]).any()
    ends = difference_at(first, second, 1 - 0.1 * chosen.sum() / 6)
    np.testing.assert_allclose([found.selected_low, found.selected_high], np.where(chosen, ends, np.nan))
    np.testing.assert_array_equal([found.low, found.high], difference_at(first, second, 0.9))
    np.testing.assert_allclose(found.noticeable, (found.high - found.low) / 2 * (1.645 + 0.84) / 1.645, rtol=2e-3)
    assert noticeable_difference(2 * 1.96) == pytest.approx(2.8)
    levels = [selected_confidence(np.array(marks, dtype=bool), 0.1) for marks in ([], [0, 0], [1, 0], [1, 1, 0, 1])]
    assert levels == pytest.approx([0.9, 0.95, 0.95, 0.925])


def test_few_discoveries_are_false() -> None:
    """Ten of forty values differ; of 25 pairs of groups, false discoveries are .05 of all at most, and chance."""
    model, rng = collection(40, 4.0), generator("discoveries")
    p = np.full(40, 1 / 40)
    q = p.copy()
    q[:5] += 0.008
    q[5:10] -= 0.008
    shares = []
    for _ in range(25):
        found = compare(drawn(model, p, 20_000, rng), drawn(model, q, 20_000, rng)).q_values <= 0.05
        shares.append(float(found[10:].sum() / max(found.sum(), 1)))
    assert np.mean(shares) <= 0.05 + 5 * np.std(shares) / np.sqrt(len(shares))


def test_intervals_of_selected_differences_cover() -> None:
    """Ten of forty values differ, so that what is found is small and selected; false coverage is .05 at most.

    The mean of 60 shares of intervals that miss, within its own normal limit. Ordinary intervals of what is selected
    miss more often, which shows that the test can fail.
    """
    model, rng = collection(40, 3.0), generator("selected")
    p = np.full(40, 1 / 40)
    q = p + np.repeat([0.015, -0.015, 0], [5, 5, 30])
    shares: dict[str, list[float]] = {"selected": [], "ordinary": []}
    for _ in range(60):
        found = compare(drawn(model, q, 4_000, rng), drawn(model, p, 4_000, rng))
        is_found = found.q_values <= 0.05
        assert np.isfinite(found.selected_low).tolist() == is_found.tolist()
        assert not ((found.selected_low <= 0) & (found.selected_high >= 0)).any(), "what is found is told apart from 0"
        for name, low, high in (
            ("selected", found.selected_low, found.selected_high),
            ("ordinary", found.low, found.high),
        ):
            missed = is_found & ((low > q - p) | (high < q - p))
            shares[name].append(float(missed.sum() / max(is_found.sum(), 1)))
    limit = normal_limit() * np.std(shares["selected"]) / np.sqrt(60)
    assert np.mean(shares["selected"]) <= 0.05 + limit
    assert np.mean(shares["ordinary"]) > np.mean(shares["selected"])


# ---------------------------------------------------------------------- many looks


@pytest.mark.parametrize("growth", [(1.0, 1.0), (1.0, 0.2), (2.0, 0.5)])
def test_twenty_looks_find_nothing_that_is_not_there(growth: tuple[float, float]) -> None:
    """4,000 experiments of equal groups, looked at 20 times: .05 of them at most have a p-value of .05 at some look.

    The groups grow as powers of the number of the look, because they need not grow alike. P-values for one look are
    below .05 at some look far more often. Estimates of k-RR by hand, from counts of one symbol.
    """
    rng, runs, each = generator("looks", *growth), 4000, 200
    keep, noise = np.exp(2.0) / (np.exp(2.0) + 2), 1 / (np.exp(2.0) + 2)
    sizes = np.round(each * np.arange(21)[:, None] ** np.array(growth)).astype(int)
    counted = rng.binomial(np.diff(sizes, axis=0)[:, :, None], noise + (keep - noise) / 2, (20, 2, runs)).cumsum(axis=0)
    reports = sizes[1:, :, None]
    rate = counted / reports
    difference = (rate[:, 0] - rate[:, 1]) / (keep - noise)
    errors = np.sqrt((rate * (1 - rate) / reports).sum(axis=1)) / (keep - noise)
    z = np.abs(difference) / errors
    numbers = 2 / (1 / sizes[1:]).sum(axis=1)
    p_values = np.array([_Looks(number, each).p_values(of_look) for number, of_look in zip(numbers.tolist(), z)])
    most = stats.binom.isf(1e-7, runs, 0.05)
    assert (p_values <= 0.05).any(axis=0).sum() <= most
    assert (2 * stats.norm.sf(z) <= 0.05).any(axis=0).sum() > most


# ---------------------------------------------------------------------- do groups differ at all?


@pytest.mark.parametrize("mechanism", ["krr", "ss", "rappor"])
def test_false_alarms_of_homogeneity(mechanism: str) -> None:
    """P-values of 150 quadruples of groups: how many are below 5 %, and their mean, which is 1/2 if they are even."""
    model, rng = collection(6, 1.5, mechanism), generator("homogeneity", mechanism)
    values = np.array([f"v{number}" for number in range(6)])
    p_values = []
    for _ in range(150):
        groups = [model.count(model.perturb(rng.choice(values, 800).tolist(), rng)) for _ in range(4)]
        found = homogeneity(model, groups)
        assert found is not None
        p_values.append(found.p_value)
    assert sum(p_value < 0.05 for p_value in p_values) <= binomial_limits(np.array(150), np.array(0.05))[1]
    assert abs(np.mean(p_values) - 1 / 2) <= normal_limit() / np.sqrt(12 * 150)


@pytest.mark.parametrize("mechanism", ["krr", "rappor", "ss"])
def test_homogeneity_is_the_agreement_of_as_many_versions(mechanism: str) -> None:
    """With groups of many reports, of few, whose values are merged, and of too few."""
    spec = collection(6, 2.0).to_json()
    model = Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": 2.0}})
    rng, law = generator("copies", mechanism), np.array([0.4, 0.25, 0.16, 0.1, 0.06, 0.03])
    for sizes in ((3_000, 500, 40, 7), (60, 41, 33), (20_000, 30_000), (12,) * 9):
        people = [rng.choice(model.alphabet.known_values, size, p=law).tolist() for size in sizes]
        groups = [model.count(model.perturb(each, rng)) for each in people]
        expected, found = PooledVersions([model] * len(groups)).estimate(groups).agreement, homogeneity(model, groups)
        assert (expected is None) == (found is None)
        if expected is not None and found is not None:
            assert found.degrees == expected.degrees
            assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)
            assert found.p_value == pytest.approx(expected.p_value, rel=1e-6)


def test_noticeable_shifts_have_the_power_of_pearsons_test() -> None:
    """Two groups of k-RR: noncentrality by the law of reported symbols, and scipy's noncentral chi-square law."""
    model, sizes = collection(4, 1.5), np.array([3000, 1000])
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    law = model.mechanism.response(shares)
    groups = [CohortCounts(np.array([n]), np.rint(n * law).astype(np.int64)[np.newaxis]) for n in sizes]
    d = noticeable_shift(model, groups)
    powers = []
    for value in range(4):
        moved = shares * (1 - d / (1 - shares[value]))
        moved[value] = shares[value] + d
        change = model.mechanism.response(moved) - law
        noncentrality = np.prod(sizes) / sizes.sum() * (change**2 / law).sum()
        powers.append(stats.ncx2.sf(stats.chi2.isf(0.05, 3), 3, noncentrality))
    assert min(powers) == pytest.approx(0.8, abs=0.005)
    twice = [CohortCounts(2 * group.num_reports, 2 * group.cells) for group in groups]
    assert noticeable_shift(model, twice) == pytest.approx(d / np.sqrt(2), rel=1e-3)
    more = noticeable_shift(model, groups, power=0.9)
    assert more > d
    full = CohortCounts.empty(1, 4)
    assert noticeable_shift(model, [*groups, full]) == pytest.approx(d)


def test_a_noticeable_shift_is_noticed_in_whichever_group() -> None:
    """Of three different sizes: the power is .8 for the least noticed value of the smallest, and more elsewhere."""
    model, sizes, shares = collection(4, 1.5), np.array([6000, 1500, 400]), np.array([0.4, 0.3, 0.2, 0.1])
    law = model.mechanism.response(shares)
    groups = [CohortCounts(np.array([n]), np.rint(n * law).astype(np.int64)[np.newaxis]) for n in sizes]
    d = noticeable_shift(model, groups)
    powers = np.zeros((3, 4))
    for group, value in np.ndindex(3, 4):
        moved = shares * (1 - d / (1 - shares[value]))
        moved[value] = shares[value] + d
        change = model.mechanism.response(moved) - law
        expected = law + sizes[group] / sizes.sum() * change
        apart = [change - (expected - law) if other == group else -(expected - law) for other in range(3)]
        noncentrality = sum(n * (each**2 / law).sum() for n, each in zip(sizes, apart))
        powers[group, value] = stats.ncx2.sf(stats.chi2.isf(0.05, 6), 6, noncentrality)
    assert powers[2].min() == pytest.approx(0.8, abs=0.005)
    assert powers.min() == powers[2].min() and powers[1].min() > 0.99


def test_groups_with_too_few_reports_are_not_tested_and_no_shift_is_noticed() -> None:
    model = collection(2, 1.0)
    groups = [CohortCounts(np.array([n]), np.array([[n, 0]])) for n in (300, 10)]
    assert homogeneity(model, groups) is None
    assert noticeable_shift(model, groups) == np.inf


@pytest.mark.parametrize(("mechanism", "symbol"), [("krr", 0), ("rappor", 3), ("ss", 5)])
def test_a_shift_that_is_said_to_be_noticed_is_noticed(mechanism: str, symbol: int) -> None:
    """200 triples of groups; the power is .8 for the value that is noticed least, and larger for others."""
    model, rng, sizes = collection(6, 1.5, mechanism), generator("shift", mechanism), (2000, 2000, 800)
    shares = np.full(6, 1 / 6)
    values = np.array([f"v{number}" for number in range(6)])

    def counted(n: int, p: np.ndarray) -> CohortCounts:
        return model.count(model.perturb(rng.choice(values, n, p=p).tolist(), rng))

    d = noticeable_shift(model, [counted(n, shares) for n in sizes])
    moved = shares * (1 - d / (1 - shares[symbol]))
    moved[symbol] = shares[symbol] + d
    found = 0
    for _ in range(200):
        test = homogeneity(model, [counted(n, p) for n, p in zip(sizes, (shares, shares, moved))])
        found += test is not None and test.p_value <= 0.05
    assert stats.binom.cdf(found, 200, 0.78) > 1e-7
    assert stats.binom.sf(found - 1, 200, 0.9) > 1e-7
