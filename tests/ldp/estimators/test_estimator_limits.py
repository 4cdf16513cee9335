"""Limits and formulas of estimators by hand, and what notebooks show, letter by letter."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate, SpecError
from uldp_transforms.ldp.comparisons import compare as compare_module
from uldp_transforms.ldp.estimators import display as display_module
from uldp_transforms.ldp.estimators import estimator as estimator_module
from uldp_transforms.ldp.estimators import expectation_maximization as em_module
from uldp_transforms.ldp.estimators.display import _percent, _shown, facts, sentences
from uldp_transforms.ldp.estimators.empirical_bayes import _given_total, _share_of_many
from uldp_transforms.ldp.estimators.estimator import Problem, check_liars, everybody, interval_around
from uldp_transforms.ldp.estimators.few_values import shares_beside_noise, shares_of_few
from uldp_transforms.ldp.estimators.log_smooth import (
    SCALES,
    Fit,
    Posterior,
    fit_log_smooth,
    fit_scales,
    mixture,
    second_differences,
)
from uldp_transforms.ldp.estimators.number_estimates import (
    Numbers,
    check_limits,
    check_quantiles,
    estimate_numbers,
    weights_above,
)
from uldp_transforms.ldp.estimators.number_sums import NumberReports, NumberSums
from uldp_transforms.ldp.estimators.threshold import Threshold
from uldp_transforms.ldp.solvers.fitted_prior import Noisy
from uldp_transforms.ldp.solvers.question import ask

VALUES = ["ant", "bee", "cat", "dog"]


def closed(mechanism: str = "krr", epsilon: float = 2.0) -> Collection:
    alphabet = {"id": "closed", "values": VALUES, "sensitive": VALUES[:2]}
    spec = {"id": "c", "version": 1, "alphabet": alphabet}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": epsilon}})


def counted(*cells: int) -> CohortCounts:
    return CohortCounts(np.array([sum(cells)]), np.array([cells]))


def hashed(*people: str, candidates: tuple[str, ...]) -> Estimate:
    alphabet = {"id": "hashed", "num_buckets": 8, "seed": 5}
    spec = {"id": "c", "version": 1, "alphabet": alphabet, "num_cohorts": 16}
    item = Collection.from_json(spec | {"mechanism": {"id": "krr", "epsilon": 5.0}})
    return item.estimate(item.count(item.perturb(list(people), generator("estimator limits"))), "eb", candidates)


# ---------------------------------------------------------------------- estimators


def test_packages_of_notebooks_are_imported_when_they_are_asked_for() -> None:
    for module in (display_module, estimator_module, compare_module):
        assert not {"altair", "pandas"} & set(vars(module)), module


@pytest.mark.parametrize(("size", "share"), [(2, 0), (12, 0), (13, 1 / 12), (18, 0.5), (24, 1), (40, 1)])
def test_priors_are_fitted_to_more_than_twelve_values(size: int, share: float) -> None:
    problem: Any = SimpleNamespace(linear=SimpleNamespace(null_errors=np.zeros(size)))
    assert _share_of_many(problem) == pytest.approx(share)


def test_an_iteration_has_converged_within_a_hundredth(monkeypatch: pytest.MonkeyPatch) -> None:
    """And takes 2,000 steps at most."""
    found = closed().estimate(counted(40, 30, 20, 10), "em")
    gaps = {None: True, 0.0: True, 0.01: True, 0.0101: False}
    assert {gap: dataclasses.replace(found, likelihood_gap=gap).converged for gap in gaps} == gaps
    asked: list[Any] = []
    monkeypatch.setattr(em_module, "maximize", lambda *rest: asked.append(rest[1:]) or (np.full(4, 0.25), 0.0))
    closed().estimate(counted(40, 30, 20, 10), "em")
    [(start, tolerance, steps)] = asked
    assert (tolerance, steps) == (0.01, 2000) and start.sum() == pytest.approx(1)


@pytest.mark.parametrize("is_open", [False, True])
def test_unlisted_values_are_one_more_unknown_where_there_may_be_some(is_open: bool) -> None:
    """Spread evenly over the sensitive buckets."""
    folded = {"id": "permuted", "values": VALUES, "num_buckets": 3, "seed": 5}
    alphabet = {"id": "hashed", "num_buckets": 8, "seed": 5} if is_open else folded
    spec = {"id": "c", "version": 1, "alphabet": alphabet, "num_cohorts": 3}
    item = Collection.from_json(spec | {"mechanism": {"id": "krr", "epsilon": 2.0}})
    counts = item.count(item.perturb(VALUES * 3, generator("unlisted unknown")))
    question = ask(item, counts, tuple(VALUES[:3]) if is_open else None)
    outcomes = item.mechanism.outcomes_of_counts(counts)
    assert outcomes is not None and question.open == is_open and not question.of_symbols
    rows, table = em_module._rows(question, outcomes).toarray(), question.table(question.own >= 0)
    given = outcomes.rows.toarray()
    for row, symbols, cohort in zip(rows, given, outcomes.cohorts):
        expected = symbols[table[cohort]].tolist()
        np.testing.assert_allclose(row, expected + [symbols.mean()] * is_open, rtol=1e-12)


def test_an_interval_around_a_share_has_students_law_and_stays_a_share() -> None:
    half = stats.t.isf(0.05, 6) * 0.1
    assert interval_around(0.4, 0.1, 6.0, 0.9) == pytest.approx((0.4 - half, 0.4 + half))
    assert interval_around(0.4, 0.1, np.inf, 0.9) == pytest.approx((0.4 - 0.1644854, 0.4 + 0.1644854))
    assert interval_around(-0.4, 0.1, 6.0, 0.9) == pytest.approx((0, half))  # as that of 0
    assert interval_around(1.4, 0.1, 6.0, 0.9) == pytest.approx((1 - half, 1))
    assert interval_around(0.5, 9.0, 6.0, 0.9) == (0, 1)
    assert interval_around(0.4, 0.1, 6.0, 0.9, shown=0.9) == pytest.approx((0.4 - half, 0.9))


def test_counted_holders_are_multinomial_given_how_many_they_are() -> None:
    """Three values of 30, 50 and 120 holders, each told with the probability 1/2 by 1,000 people, are .35 of all."""
    slope = np.full(4, 1 / 500)
    noisy = Noisy(np.array([0.06, 0.1, -0.3, 0.24]), np.full(4, 1e-4), slope, 1000.0)
    given = _given_total(noisy, np.array([True, True, False, True]), 0.35)
    scale = 0.35 / 0.4
    np.testing.assert_allclose(given.estimates, scale * np.array([0.06, 0.1, 0.24]))
    np.testing.assert_allclose(given.null, scale**2 * 1e-4)
    np.testing.assert_allclose(given.slope, scale / 500)
    assert given.trials == pytest.approx(200) and given.estimates.sum() == pytest.approx(0.35)


def problem(raw: list[float], rest_error: float, errors: list[float], *, is_open: bool = True) -> Problem:
    linear: Any = SimpleNamespace(
        raw=np.array(raw),
        joint=np.array(raw) + 0.01,
        null_errors=np.array(errors),
        rest_is_noise=rest_error > 0.1,
        rest_standard_error=rest_error,
    )
    return Problem(linear=linear, own=np.zeros(len(raw), dtype=bool), open=is_open, num_reports=1000)


def test_everybody_is_listed_or_not_and_a_rest_that_is_noise_is_nobody() -> None:
    assert everybody(problem([0.5, 0.2], 0.01, [0.1, 0.1])) == pytest.approx([0.5, 0.2, 0.3])
    assert everybody(problem([0.5, 0.2], 0.5, [0.1, 0.1])) == pytest.approx([0.5, 0.2, 0])
    assert everybody(problem([0.5, 0.2], 0.5, [0.1, 0.1], is_open=False)) == pytest.approx([0.5, 0.2])
    kept = Threshold().decode(problem([0.5, 0.2], 0.01, [0.01, 0.5]))
    assert kept == pytest.approx([0.5, 0.25, 0.25]), "the rest is never significant"


def test_shares_of_few_values_beside_noise_are_a_mean_over_fifty_shares_of_the_rest() -> None:
    """By enumeration of the rest: 0 with the weight 1, and the middles of 50 equal parts with .7, or .18 / s if s is
    small, together; each with its nearest distribution."""
    for scale in (1.0, 0.02):
        estimates, variances = np.array([0.3, 0.2, 0.1]), scale * np.array([0.02, 0.03, 0.01])
        odds = max(0.7, 0.18 / np.sqrt(variances.sum()))
        total, shares = 0.0, np.zeros(3)
        for place in range(-1, 50):
            listed = 1.0 if place < 0 else 1 - (place + 0.5) / 50
            low, high = -1e4, 1e4
            for _ in range(200):  # the nearest one is max(estimate + x variance, 0)
                middle = (low + high) / 2
                more = np.maximum(estimates + middle * variances, 0).sum() < listed
                low, high = (middle, high) if more else (low, middle)
            nearest = np.maximum(estimates + low * variances, 0)
            weight = np.exp(-((nearest - estimates) ** 2 / variances).sum() / 2) * (1 if place < 0 else odds / 50)
            total, shares = total + weight, shares + weight * nearest
        np.testing.assert_allclose(shares_beside_noise(estimates, variances), shares / total, rtol=1e-6)
    found = shares_of_few(problem([0.3, 0.2, 0.1], 0.5, [0.1] * 3), variances)
    np.testing.assert_allclose(found, [*shares_beside_noise(estimates, variances), 1 - found[:3].sum()])


def test_shares_of_liars_are_from_nobody_to_nearly_everybody() -> None:
    check_liars("x", closed(), 0)
    check_liars("x", closed(), 0.999)
    for share in (-1e-9, 1, "0.1"):
        with pytest.raises(SpecError, match=r"^x must have a share in \[0, 1\), got"):
            check_liars("x", closed(), share)  # type: ignore[arg-type]  # a text among them


# ---------------------------------------------------------------------- what notebooks show


def test_shares_are_shown_with_a_digit_and_small_ones_with_their_first() -> None:
    shown = {0.0312: "3.1 %", 0.0: "0.0 %", 1.0: "100.0 %", 0.001: "0.1 %", 0.00099: "0.10 %", 0.0005: "0.05 %"}
    shown |= {-0.0004: "-0.04 %", 0.0015: "0.1 %", 1.2e-8: "0.000001 %", 1e-8: "0.0 %", 5e-9: "0.0 %"}
    assert {share: _percent(share) for share in shown} == shown


def test_figures_are_shown_with_two_digits_of_half_their_interval() -> None:
    assert _shown([1.2345, 1.2, 1.3], 1, "") == ("1.234", "(1.200 to 1.300)")
    assert _shown([0.12345, 0.1, 0.2], 100, " %") == ("12.3 %", "(10.0 % to 20.0 %)")
    assert _shown([1234.5, 1000.0, 1500.0], 1, "") == ("1234", "(1000 to 1500)")
    assert _shown([0.5, None, 0.75], 1, " s") == ("0.50 s", "(open to 0.75 s)")
    assert _shown([40.0, 30.0, None], 1, "") == ("40", "(30 to open)")
    assert _shown([0.0, None, None], 1, "") == ("0.0", "(open to open)")
    assert _shown([-5.0, -5.0, -5.0], 1, "") == ("-5.0", "(-5.0 to -5.0)")
    assert _shown([None, None, None], 1, "") == ("unknown", "")


def test_sentences_say_how_many_values_there_are_and_what_is_not_listed() -> None:
    found = hashed(*["a"] * 300, *["b"] * 100, candidates=("a", "b"))
    assert found.left_over == found.unexplained_low == 0 < found.unexplained_high
    assert sentences(found) == [
        "400 reports, estimator eb: 2 values.",
        "Intervals are adjusted for the selection of the largest values and valid for one look.",
        f"Unlisted values: 0.0 % (below {_percent(found.unexplained_high)}).",
    ]
    assert sentences(found, 1)[0] == "400 reports, estimator eb: the 1 largest of 2 values."
    assert sentences(found, 2)[0] == "400 reports, estimator eb: 2 values."
    one = dataclasses.replace(found, values=("a",), group={"arm": "new", "town": "x"}, num_reports=4000)
    assert sentences(one)[0] == "arm new, town x: 4,000 reports, estimator eb: 1 value."
    hidden = dataclasses.replace(found, unexplained_status="too_uncertain", interval="anytime")
    assert sentences(hidden)[1].endswith("and valid at all looks together.")
    high = _percent(found.unexplained_high)
    assert sentences(hidden)[2] == f"Unlisted values: too uncertain to estimate (0.0 % to {high})."
    assert sentences(dataclasses.replace(found, values=("v",) * 21))[0].endswith("the 20 largest of 21 values.")
    assert facts(hidden)["unexplained_mass"] is None and "group" not in facts(hidden)
    complete = closed().estimate(counted(40, 30, 20, 10), "eb")
    assert len(sentences(complete)) == 2 and "unexplained_low" not in facts(complete)


def test_charts_have_thin_intervals_below_dots() -> None:
    drawn = closed().estimate(counted(40, 30, 20, 10), "eb").plot().to_dict()
    rule = {"type": "rule", "color": "#9cc3e6", "strokeWidth": 4}
    point = {"type": "point", "color": "#0a63b0", "filled": True, "size": 50, "opacity": 1}
    assert [layer["mark"] for layer in drawn["layer"]] == [rule, point]
    axis = drawn["layer"][0]["encoding"]["y"]["axis"]
    assert (drawn["width"], axis["labelLimit"], axis.keys()) == (420, 240, {"labelLimit", "labelExpr"})
    assert drawn["layer"][1]["encoding"]["x"]["axis"] == {"format": ".3~%"}


def test_bins_of_the_scale_log_are_drawn_at_their_geometric_middles() -> None:
    alphabet = {"id": "ordered", "low": 1, "high": 100, "num_bins": 4, "scale": "log", "others": ["none"]}
    spec = {"id": "c", "version": 1, "alphabet": alphabet, "mechanism": {"id": "krr", "epsilon": 4.0}}
    item = Collection.from_json(spec)
    held = [2.0] * 300 + [20.0] * 200 + [60.0] * 100
    found = item.estimate(item.count(item.perturb(held, generator("log bins"))), "eb")
    drawn = found.plot().to_dict()
    bars = next(rows for rows in drawn["datasets"].values() if "begin" in rows[0])
    edges = 10.0 ** np.array([0, 0.5, 1, 1.5, 2])
    for row, begin, end in zip(sorted(bars, key=lambda row: row["begin"]), edges, edges[1:]):
        assert (row["begin"], row["end"]) == pytest.approx((begin, end), rel=1e-3)
        assert row["middle"] == pytest.approx(np.sqrt(begin * end), rel=1e-3) and row["zero"] == 0
    assert drawn["width"] == 420 and drawn["layer"][2]["mark"] == {"type": "rule", "strokeDash": [4, 3]}
    scales = [layer["encoding"]["x"].get("scale") for layer in drawn["layer"]]
    assert {"type": "log", "domain": pytest.approx([1, 100])} in [scale for scale in scales if scale]
    linear = Collection.from_json(spec | {"alphabet": alphabet | {"scale": "linear", "low": 0}})
    plain = linear.estimate(linear.count(linear.perturb(held, generator("linear bins"))), "eb").plot().to_dict()
    bars = next(rows for rows in plain["datasets"].values() if "begin" in rows[0])
    assert sorted(row["middle"] for row in bars) == pytest.approx([12.5, 37.5, 62.5, 87.5])


# ---------------------------------------------------------------------- figures of numbers


def ages(mechanism: str = "krr", epsilon: float = 2.0, **alphabet: Any) -> Collection:
    spec = {"id": "ordered", "low": 10, "high": 50, "num_bins": 4} | alphabet
    return Collection.from_json(
        {"id": "ages", "version": 1, "alphabet": spec, "mechanism": {"id": mechanism, "epsilon": epsilon}}
    )


@pytest.mark.parametrize(
    ("edges", "limits"),
    [([0, 1], ()), ([0, 1, 2], (1,)), ([0, 1, 2, 3], (1, 2)), (list(range(13)), (3, 6, 9))],
)
def test_a_quarter_of_the_bins_lies_between_limits(edges: list[float], limits: tuple[float, ...]) -> None:
    model: Any = SimpleNamespace(alphabet=SimpleNamespace(bin_edges=np.array(edges, dtype=float)))
    assert Numbers(model=model, counts=counted(1)).limits == limits


def test_limits_lie_between_inner_edges_and_quantiles_between_nothing_and_all() -> None:
    check_limits([20, 40, 30.5], [ages().alphabet])
    check_quantiles([1e-9, 1 - 1e-9])
    for limit in (19.999, 40.001, "20"):
        with pytest.raises(SpecError, match=r"limits must be numbers from 20\.0 to 40\.0, between inner edges, got"):
            check_limits([limit], [ages().alphabet])
    for q in (0, 1, "0.5"):
        with pytest.raises(SpecError, match=r"quantiles must be numbers in \(0, 1\), got"):
            check_quantiles([q])
    assert weights_above(np.array([0.0, 1, 3, 4]), 2.5).tolist() == [0, 0.25, 1]


def test_intervals_of_figures_stay_within_what_they_can_be_but_for_the_figure() -> None:
    """Everybody reports the first bin, or the last one: unbiased means and shares are beyond all bins.

    They say no more than figures at the end of the range: from there their intervals are as long as they are.
    """
    first, last = (
        estimate_numbers(ages(), counted(*cells), limits=[20], quantiles=[0.5], smooth=False)
        for cells in ((400, 0, 0, 0), (0, 0, 0, 400))
    )
    assert first.mean is not None and last.mean is not None and first.sum is not None and last.sum is not None
    assert first.mean.value is not None and first.mean.value < 15 and first.mean.low == first.mean.value
    assert first.mean.high is not None and first.mean.standard_error is not None
    assert first.mean.high == pytest.approx(15 + 1.96 * first.mean.standard_error, rel=1e-3)
    assert last.mean.value is not None and last.mean.value > 45 and last.mean.high == last.mean.value
    assert last.mean.low is not None and last.mean.low < 45
    assert (first.sum.low, last.sum.high) == (first.sum.value, last.sum.value) and first.mean.half_bin == 5
    assert first.sum.high > 400 * 15 and last.sum.low < 400 * 45
    assert (first.sum.half_bins, last.sum.half_bins) == (2000, 2000)
    [below], [above] = first.shares_above, last.shares_above
    assert below.value is not None and below.value < 0 and below.low == below.value
    assert below.high is not None and 0 < below.high < 0.2
    assert above.value is not None and above.value > 1 and above.high == above.value
    assert above.low is not None and 0.8 < above.low < 1
    none = estimate_numbers(ages(others=["none"]), counted(0, 0, 0, 0, 400), limits=[20], smooth=False)
    assert none.sum is not None and none.sum.value < 0 and none.sum.low == none.sum.value and none.sum.high > 0
    negative = estimate_numbers(ages(low=-50, high=-10, others=["none"]), counted(0, 0, 0, 0, 400), smooth=False)
    assert negative.sum is not None and negative.sum.value > 0 and negative.sum.high == negative.sum.value
    assert negative.sum.low < 0


def test_quantiles_are_compared_at_four_points_of_each_bin() -> None:
    test = NumberSums([NumberReports(ages(), counted(40, 30, 20, 10))]).quantile(0.5)
    assert test is not None
    np.testing.assert_allclose(test.numbers, np.linspace(10, 50, 17))
    assert test.excess[[0, -1]] == pytest.approx([-0.5, 0.5])


def test_a_row_without_quantiles_of_its_own_has_three() -> None:
    numbers = Numbers(model=ages(), counts=counted(40, 30, 20, 10))
    assert [one.q for one in numbers.figures(smooth=False).quantiles] == [0.1, 0.5, 0.9]


# ---------------------------------------------------------------------- the smooth posterior

CHANNEL = ages("sw", num_bins=8).mechanism.response(np.eye(8)).T
INNER, ENDS = second_differences(8, 8, {0, 7}), second_differences(8, 8, set())[[0, -1]]


def test_scales_are_half_powers_of_ten_and_end_bins_bend_by_two_more() -> None:
    np.testing.assert_allclose(SCALES, 10.0 ** np.arange(-3.5, 2, 0.5))
    at = Posterior(CHANNEL, np.ones(len(CHANNEL)), INNER, ENDS)
    smoothness = INNER.T @ INNER / 0.09 + ENDS.T @ ENDS / (0.09 + 4)
    np.testing.assert_allclose(at.smoothness(0.3), smoothness)
    np.testing.assert_allclose(at.prior(0.3), smoothness + 1e-3 * np.eye(8))
    assert at.normalization(0.3) == pytest.approx(-4 * np.log(0.3) - np.log(0.09 + 4))


def test_a_mixture_is_flat_in_the_scale_and_pulled_three_times() -> None:
    """The mean is flat in its logarithm; each scale adds its covariance, its distance, and nine squares of its pull."""
    rng = generator("mixture")
    fits = []
    for scale, evidence in ((0.1, 0.3), (1.0, -0.5), (10.0, -2.0)):
        p, pull = rng.dirichlet(np.ones(4)), rng.normal(0, 0.01, 4)
        fits.append(Fit(scale=scale, evidence=evidence, frequencies=p, covariance=0.001 * np.eye(4), pull=pull))
    found, evidence = mixture(fits), np.array([fit.evidence for fit in fits])
    mean = special.softmax(evidence) @ np.array([fit.frequencies for fit in fits])
    weights = np.exp(evidence) * np.array([0.1, 1, 10])
    expected = np.zeros((4, 4))
    for weight, fit in zip(weights / weights.sum(), fits):
        away = fit.frequencies - mean
        expected += weight * (fit.covariance + np.outer(away, away) + 9 * np.outer(fit.pull, fit.pull))
    np.testing.assert_allclose(found.frequencies, mean)
    np.testing.assert_allclose(found.covariance, expected)
    assert found.scale == 10


def test_rougher_scales_are_left_out_when_their_evidence_is_negligible() -> None:
    """Less than the best by 12, and by what the roughest scale may weigh more."""
    law = stats.norm.pdf(np.linspace(-1, 1, 8)) / stats.norm.pdf(np.linspace(-1, 1, 8)).sum()
    at = Posterior(CHANNEL, 1e5 * CHANNEL @ law, INNER, ENDS)
    scales = 10.0 ** np.arange(-3, 20, 0.5)
    every = [fit_scales(at, [scale])[0].evidence for scale in scales]
    best, kept = -np.inf, 0
    for scale, evidence in zip(scales, every):
        best, kept = max(best, evidence), kept + 1
        if evidence < best - 12 - np.log(scales[-1] / scale):
            break
    assert 3 < kept < len(scales)
    found = fit_scales(at, scales)
    assert len(found) == kept
    np.testing.assert_allclose([fit.evidence for fit in found], every[:kept], atol=0.02)


def test_a_million_million_reports_have_a_posterior() -> None:
    item = ages("sw", num_bins=8)
    for more, known in ((0, True), (1, False)):
        cells = np.full(item.num_cells, 10**12 // item.num_cells)
        cells[0] += 10**12 - cells.sum() + more
        assert (fit_log_smooth(item, counted(*cells.tolist())) is not None) == known
