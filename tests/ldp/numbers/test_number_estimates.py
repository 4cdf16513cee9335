"""Means, quantiles and shares above limits: golden values, unbiasedness by enumeration, coverage of intervals."""

from __future__ import annotations

import itertools
import math
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tests.support.ldp.number_collections import COUNTS, P, collection, one
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators.number_estimates import (
    estimate_numbers,
)
from uldp_transforms.ldp.estimators.number_sums import PARTS, NumberReports, NumberSums, QuantileTest, Ratio
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex


def test_golden_figures():
    """From an implementation in floating point; standard errors are those of the golden variances at these counts."""
    found = estimate_numbers(collection(), one(COUNTS), limits=[0.5], quantiles=[0.5])
    assert found.mean is not None
    assert found.mean.value == pytest.approx(0.344906, abs=1e-6)
    assert found.mean.half_bin == 1 / 16
    assert found.shares_above[0].value == pytest.approx(1 - 0.673764, abs=1e-6)
    [median] = found.quantiles
    assert median.low is None  # the first bin is not refuted: it has no lower end
    assert 0 < median.value < median.high < 0.5
    assert 0 < median.display_low < median.display_value < median.display_high < 0.5
    assert found.mean.display_low < found.mean.display_value < found.mean.display_high


def test_the_end_of_a_quantiles_interval_is_where_a_test_refutes_it():
    """Solved for the point inside a bin at which F is z standard errors above q, with the variance at these counts."""
    item, q = collection(), 0.5
    channel, counts = item.mechanism.response(np.eye(8)).T, np.array(COUNTS)
    weighed = channel / channel.sum(axis=1, keepdims=True)  # by the reference, equal shares of bins
    inverse = np.linalg.solve(channel.T @ weighed, weighed.T)

    def score(x: float) -> float:
        weights = np.clip(8 * x - np.arange(8), 0, 1) @ inverse
        mean = weights @ counts / counts.sum()
        return (mean - q) / math.sqrt((weights**2 @ counts / counts.sum() - mean**2) / counts.sum())

    [median] = estimate_numbers(item, one(COUNTS), quantiles=[q], smooth=False).quantiles
    assert score(median.high) == pytest.approx(1.959964, abs=0.02)
    [same] = estimate_numbers(item, one(COUNTS), quantiles=[q], confidence=0.5, smooth=False).quantiles
    assert [score(end) for end in (same.low, same.high)] == pytest.approx([-0.67449, 0.67449], abs=0.02)


def test_figures_of_every_report_average_to_the_truth():
    """E of a linear figure is the sum over outputs of its probability times the figure of that one report."""
    item = collection()
    law = item.mechanism.response(P)
    of_reports = [estimate_numbers(item, one(row), limits=[0.25, 0.3]) for row in np.eye(12, dtype=int)]
    mean = sum(share * found.mean.value for share, found in zip(law, of_reports))
    above, between = (
        sum(share * found.shares_above[place].value for share, found in zip(law, of_reports)) for place in (0, 1)
    )
    assert mean == pytest.approx(P @ (np.arange(8) + 0.5) / 8, abs=1e-12)
    assert above == pytest.approx(P[2:].sum(), abs=1e-12)
    assert between == pytest.approx(0.6 * P[2:].sum() + 0.4 * P[3:].sum(), abs=1e-12)


def test_a_sum_has_the_noise_of_its_reports_alone():
    """Its variance is the mean over people of that of their reports' weights, from the inverse of the channel."""
    item, centres = collection(), (np.arange(8) + 0.5) / 8
    channel = item.mechanism.response(np.eye(8)).T
    cells = np.rint(1e8 * (channel @ P))
    weights = (
        centres
        @ np.linalg.solve(channel.T @ np.diag(1 / channel.mean(axis=1)) @ channel, channel.T)
        / (channel.mean(axis=1))
    )
    noise = (weights**2 @ channel - (weights @ channel) ** 2) @ P
    found = estimate_numbers(item, one(cells)).sum
    assert found.value == pytest.approx(1e8 * P @ centres, rel=1e-6)
    assert found.high - found.value == pytest.approx(1.959964 * math.sqrt(1e8 * noise), rel=1e-3)
    assert found.half_bins == cells.sum() / 16
    assert estimate_numbers(item, one(cells), reports_of_a_person=3).sum == found


def test_sums_hold_as_often_as_they_say():
    """Of the same 500 people, 200 of whom have no number, in 700 windows."""
    item, held, windows = collection(others=["none"]), np.array([90, 60, 45, 30, 30, 15, 15, 15, 200]), 700
    rng, truth = generator("sums"), float(np.array([90, 60, 45, 30, 30, 15, 15, 15]) @ (np.arange(8) + 0.5) / 8)
    channel = item.mechanism.response(np.eye(9))
    drawn = sum(rng.multinomial(people, law / law.sum(), size=windows) for people, law in zip(held, channel))
    sums = [estimate_numbers(item, one(cells), smooth=False).sum for cells in drawn]
    low, high = binomial_limits(np.array([windows]), np.array([0.95]))
    assert low[0] <= sum(found.low <= truth <= found.high for found in sums) <= high[0]
    assert estimate_numbers(collection(low=1, high=1000, scale="log"), one(COUNTS)).sum is None


@pytest.mark.parametrize("of_a_person", [1, 3])
def test_what_memos_add_is_in_common(of_a_person: int):
    """The variance of the memos of k-RR alone, less that of people, from the inverse of their matrix."""
    spec = collection("krr").to_json() | {"mechanism": {"id": "krr", "epsilon": 1.0, "epsilon_inf": 2.0}}
    item = Collection.from_json(spec)
    cells = np.rint(1e8 * item.mechanism.response(P))
    found = estimate_numbers(item, one(cells), reports_of_a_person=of_a_person)
    memo = item.mechanism.memo.response(np.eye(8)).T
    for weights, figure in (((np.arange(8) + 0.5) / 8, found.mean), (np.arange(8) < 3, found.below[2])):
        whole = (np.linalg.inv(memo).T @ weights) ** 2 @ (memo @ P) - (weights @ P) ** 2
        people = weights**2 @ P - (weights @ P) ** 2
        assert figure.common_variance * cells.sum() == pytest.approx(of_a_person * (whole - people), rel=1e-3)


def test_intervals_of_a_few_people_by_enumeration():
    """Counts of 30 reports of two bins, but for rare ones: the outputs of the square wave have four probabilities."""
    item, people = collection(edges=[0, 1, 2], low=None, high=None, num_bins=None, epsilon=2.0), 30
    item = Collection.from_json(item.to_json())
    held, seen = 0.0, 0.0
    law = item.mechanism.response(np.array([0.35, 0.65]))
    logs = np.log(law)
    for outputs in itertools.combinations(range(people + 3), 3):
        ends = (-1, *outputs, people + 3)
        cells = np.array([after - before - 1 for before, after in itertools.pairwise(ends)])
        chance = math.exp(
            math.lgamma(people + 1) - sum(math.lgamma(cell + 1) for cell in cells.tolist()) + float(cells @ logs)
        )
        if chance > 1e-6:
            share = estimate_numbers(item, one(cells), limits=[1.0], smooth=False).shares_above[0]
            held, seen = held + chance * (share.low <= 0.65 <= share.high), seen + chance
    assert seen > 0.999 and 0.93 <= held <= 0.97 - (1 - seen)


MECHANISMS = ("sw", "krr", "rappor")


@pytest.mark.parametrize("others", [(), ("none",)], ids=["all-numbers", "others"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_intervals_hold_as_often_as_they_say(mechanism: str, others: tuple[str, ...]):
    """700 windows of 20,000 people: 95 % within what chance allows once in a million tests."""
    item, people, windows = collection(mechanism, others=list(others)), 20_000, 700
    rng = generator("numbers", mechanism, others)
    shares = np.append(P * 0.8, 0.2) if others else P
    limits, q = (0.25, 0.5), 0.6
    truth = (P @ (np.arange(8) + 0.5) / 8, P[2:].sum(), P[4:].sum(), 0.25 + 0.1 / 0.15 / 8)
    held = np.zeros(4)
    for cells in _cells(item, rng, shares, people, windows):
        found = estimate_numbers(
            item, CohortCounts(np.array([people]), cells[np.newaxis]), limits=limits, quantiles=[q], smooth=False
        )
        figures = (found.mean, *found.shares_above, *found.quantiles)
        held += [figure.low <= true <= figure.high for figure, true in zip(figures, truth)]
    low, high = binomial_limits(np.full(4, windows), np.full(4, 0.95))
    assert ((held >= low) & (held <= high)).all(), held


def _cells(item: Collection, rng: np.random.Generator, shares: np.ndarray, people: int, windows: int) -> np.ndarray:
    """(windows, M) counts of independent people, whose values are multinomial."""
    mechanism = item.mechanism
    if mechanism.one_place:
        return rng.multinomial(people, mechanism.response(shares), size=windows)
    held = rng.multinomial(people, shares, size=windows)  # bits: the holders and the others of each symbol
    hit, miss = (mechanism.response(np.eye(len(shares)))[0, place] for place in (0, 1))
    return rng.binomial(held, hit) + rng.binomial(people - held, miss)


def test_an_interval_of_a_limit_inside_a_bin_covers_the_whole_bin():
    found = estimate_numbers(collection(), one(COUNTS), limits=[0.375, 0.4, 0.5]).shares_above
    assert found[2].low == found[1].low
    assert found[0].high == found[1].high
    assert found[2].value < found[1].value < found[0].value


def test_nobody_has_a_number():
    item = collection("krr", epsilon=8.0, others=["none"])
    found = estimate_numbers(item, one([0] * 8 + [500]), limits=[0.5], quantiles=[0.5])
    assert (found.mean.value, found.mean.low, found.quantiles[0].value) == (None, None, None)
    assert (found.shares_above[0].value, found.shares_above[0].low) == (None, None)
    with mock.patch.object(NumberSums, "people", 0.0):
        assert NumberSums([NumberReports(item, one([9] * 9))]).quantile(0.5) is None


def test_repeated_people_and_higher_confidence_make_longer_intervals():
    lengths = [
        found.mean.high - found.mean.low
        for found in (
            estimate_numbers(collection(), one(COUNTS), **options)
            for options in ({}, {"reports_of_a_person": 4}, {"confidence": 0.99})
        )
    ]
    assert lengths[1] == pytest.approx(2 * lengths[0])
    assert lengths[2] == pytest.approx(lengths[0] * 2.575829 / 1.959964, rel=1e-6)


def test_a_declared_range_moves_symbols_and_nothing_else():
    """Where the mechanism protects everything anyway, the same people have the same figures, curve included.

    Steps towards the posterior's maximum end at a gain of 1e-4 in its logarithm, that is sqrt(2e-4) < 0.015 standard
    deviations from it; these are below 0.06 here.
    """
    rng, people = generator("ranges"), [0.05, 0.3, 0.55, 0.8, 0.95, "none"]
    plain, declared = (
        collection("krr", others=["none"], **more) for more in ({}, {"sensitive": [[0.3, 0.5], [0.9, None], "none"]})
    )
    held = [people[place] for place in rng.choice(6, 4000)]
    symbols = [item.alphabet.encode(held, np.zeros(4000, dtype=np.int64), 1) for item in (plain, declared)]
    cells = [np.bincount(of, minlength=9) for of in symbols]  # as if no report was noise
    assert cells[0].tolist() != cells[1].tolist()
    one_way, other_way = (
        estimate_numbers(item, one(counted), limits=[0.25, 0.6], quantiles=[0.1, 0.5])
        for item, counted in zip((plain, declared), cells)
    )
    for smooth, atol in ((False, 1e-9), (True, 1e-3)):
        flat = [np.array(_numbers(found, smooth), dtype=np.float64) for found in (one_way, other_way)]
        np.testing.assert_allclose(flat[0], flat[1], rtol=0, atol=atol)


def _numbers(found: Any, smooth: bool) -> list[float | None]:
    """All numbers of an estimate that are smooth, or all that are not."""
    figures = [found.mean, *found.quantiles, *found.shares_above]
    named = [item for figure in figures for item in vars(figure).items()]
    curve = [number for one in found.curve for number in vars(one).values()] if smooth else []
    return [number for name, number in named if name.startswith("display") == smooth] + curve


def test_figures_of_every_report_average_to_the_truth_where_a_range_is_sensitive():
    item = collection("usw", sensitive=[[0.5, None]])
    order = item.alphabet.symbols_in_order
    law = item.mechanism.response(P[np.argsort(order)])
    of_reports = [estimate_numbers(item, one(row), limits=[0.25, 0.5]) for row in np.eye(len(law), dtype=int)]
    mean = sum(share * found.mean.value for share, found in zip(law, of_reports))
    above = sum(share * found.shares_above[1].value for share, found in zip(law, of_reports))
    assert mean == pytest.approx(P @ (np.arange(8) + 0.5) / 8, abs=1e-12)
    assert above == pytest.approx(P[4:].sum(), abs=1e-12)


def test_where_nobody_has_a_number_there_is_no_ratio() -> None:
    assert [Ratio(0.4, people, 0.01, 0.002, 0.001).value for people in (0.0, -0.1, 0.5)] == [None, None, 0.8]


def test_sums_per_person_are_ratios_with_variances_of_dense_algebra() -> None:
    """By linearisation: (of_bins - value) / people, and 0 for other values, at the counts or the nearest shares."""
    item, cells = collection("krr", 2.0, others=["none"]), [300, 200, 150, 100, 100, 50, 50, 50, 400]
    sums, of_bins = NumberSums([NumberReports(item, one(cells))]), np.stack([np.arange(8.0), np.arange(8.0) ** 2])
    found, ratios = sums.per_person(of_bins), [sums.ratio(row) for row in of_bins]
    assert found is not None and 0.4 < ratios[0].people < 0.9
    np.testing.assert_allclose(found.values, [ratio.value for ratio in ratios])
    shares = item.mechanism.invert(one(cells))[0]
    for row, value, variance in zip(of_bins, found.values, found.variances):
        weights = np.append((row - value) / shares[:8].sum(), 0.0)
        each = [weights @ item.mechanism.covariance(at) @ weights for at in (shares, project_onto_simplex(shares))]
        assert variance == pytest.approx(max(each) / sum(cells))


@pytest.mark.parametrize("mechanism", ["krr", "sw", "ss", "urr"])
def test_numbers_far_from_zero_have_the_same_intervals(mechanism: str) -> None:
    """Seconds since 1970: squares of such numbers hide their differences."""
    found = []
    for start in (0, 1_700_000_000):
        sensitive = {"sensitive": [[start + 8, None]]} if mechanism == "urr" else {}
        item = collection(mechanism, low=start, high=start + 16, **sensitive)
        reports = item.perturb([start + number % 16 for number in range(3000)], generator("far from zero"))
        numbers = estimate_numbers(item, item.count(reports))
        mean, total = numbers.mean, numbers.sum
        widths = [mean.high - mean.low, mean.standard_error, total.high - total.low]
        widths += [] if mean.display_low is None else [mean.display_high - mean.display_low]
        found.append([mean.value - start, mean.people_variance, *widths])
    assert found[1] == pytest.approx(found[0], rel=1e-5)
    assert found[0][2] > 0.1


def test_fiellers_interval_is_where_a_sum_is_that_many_standard_errors_from_zero() -> None:
    ratio = Ratio(total=0.6, people=0.4, of_sum=0.02, of_people=0.01, covariance=0.003)
    for end in ratio.interval(1.5):
        variance = ratio.of_sum - 2 * end * ratio.covariance + end**2 * ratio.of_people
        assert abs(ratio.total - end * ratio.people) / math.sqrt(variance) == pytest.approx(1.5)


@pytest.mark.parametrize("others", [(), ("none",)])
def test_the_sum_of_memos_is_as_uncertain_as_their_people_are_few(others: tuple[str, ...]) -> None:
    """If all m reports of a person agree, a sum has m times the variance; fresh noise of each report averages out."""
    memos = {"id": "krr", "epsilon": 1.0, "epsilon_inf": 2.0}
    spec = {"id": "numbers", "version": 1, "alphabet": {"id": "ordered", "low": 10, "high": 50, "num_bins": 4}}
    spec["alphabet"]["others"] = list(others)  # type: ignore[index]  # JSON
    counts = one([3000, 2800, 2600, 2400, *[2000 for _ in others]])
    for mechanism, factor in ((memos, 4.0), ({"id": "krr", "epsilon": 1.0}, 1.0)):
        item = Collection.from_json(spec | {"mechanism": mechanism})
        once, often = (NumberSums([NumberReports(item, counts, times)]) for times in (1, 4))
        value, variance = often.total(np.array([15.0, 25.0, 35.0, 45.0]))
        assert (value, variance) == pytest.approx(
            (once.total(np.array([15.0, 25.0, 35.0, 45.0]))[0], factor * once.total(np.array([15.0, 25, 35, 45]))[1])
        )
        found, single = (
            estimate_numbers(item, counts, reports_of_a_person=times, smooth=False).sum for times in (4, 1)
        )
        assert found is not None and single is not None
        assert found.high - found.low == pytest.approx(np.sqrt(factor) * (single.high - single.low))


def test_an_end_is_none_unless_its_clamped_bin_is_refuted() -> None:
    """F - q less z errors must be above 0 at the begin of the last bin, and F - q with them below 0 after the first.

    A rearranged function may reach 0 before the last bin although it is not refuted there, where F is not monotone.
    """
    excess = np.array([-0.5, -0.3, -0.1, 0.1, 0.2, 0.3, 0.35, 0.4, 0.05, 0.45, 0.46, 0.48, 0.5])
    numbers, errors = np.linspace(0, 3, 13), np.full(13, 0.1)
    assert PARTS == 4, "three bins of four parts"
    test = QuantileTest(excess=excess, errors=errors, numbers=numbers)
    high = test.interval(1.0)[1]
    rearranged = np.interp(0.0, np.sort(excess - errors), numbers)
    assert rearranged <= numbers[-PARTS - 1] and excess[-PARTS - 1] - 0.1 < 0
    assert high is None
    mirrored = QuantileTest(excess=-excess[::-1], errors=errors, numbers=numbers)
    assert mirrored.interval(1.0)[0] is None
    sure = QuantileTest(excess=np.where(numbers == 2.0, 0.42, excess), errors=errors, numbers=numbers)
    assert sure.interval(1.0)[1] == pytest.approx(np.interp(0.0, np.sort(sure.excess - errors), numbers))
