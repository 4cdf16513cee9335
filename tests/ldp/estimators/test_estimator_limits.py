"""Limits and formulas of estimators by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate, SpecError
from uldp_transforms.ldp.estimators import display as display_module
from uldp_transforms.ldp.estimators import estimator as estimator_module
from uldp_transforms.ldp.estimators import expectation_maximization as em_module
from uldp_transforms.ldp.estimators.estimator import check_liars
from uldp_transforms.ldp.estimators.log_smooth import (
    Fit,
    Posterior,
    fit_log_smooth,
    fit_scales,
    mixture,
    second_differences,
)
from uldp_transforms.ldp.estimators.number_estimates import (
    check_limits,
    check_quantiles,
    weights_above,
)
from uldp_transforms.ldp.solvers.question import ask

VALUES = ["ant", "bee", "cat", "dog"]


def closed(mechanism: str = "krr", epsilon: float = 2.0) -> Collection:
    alphabet = {"id": "closed", "values": VALUES, "sensitive": VALUES[:2]}
    return made(alphabet, {"id": mechanism, "epsilon": epsilon})


def counted(*cells: int) -> CohortCounts:
    return CohortCounts(np.array([sum(cells)]), np.array([cells]))


def hashed(*people: str, candidates: tuple[str, ...]) -> Estimate:
    alphabet = {"id": "hashed", "num_buckets": 8, "seed": 5}
    item = made(alphabet, {"id": "krr", "epsilon": 5.0}, num_cohorts=16)
    return item.estimate(item.count(item.perturb(list(people), generator("estimator limits"))), "eb", candidates)


# ---------------------------------------------------------------------- estimators


def test_packages_of_notebooks_are_imported_when_they_are_asked_for() -> None:
    for module in (display_module, estimator_module):
        assert not {"altair", "pandas"} & set(vars(module)), module


@pytest.mark.parametrize("is_open", [False, True])
def test_unlisted_values_are_one_more_unknown_where_there_may_be_some(is_open: bool) -> None:
    """Spread evenly over the sensitive buckets."""
    folded = {"id": "permuted", "values": VALUES, "num_buckets": 3, "seed": 5}
    alphabet = {"id": "hashed", "num_buckets": 8, "seed": 5} if is_open else folded
    item = made(alphabet, {"id": "krr", "epsilon": 2.0}, num_cohorts=3)
    counts = item.count(item.perturb(VALUES * 3, generator("unlisted unknown")))
    question = ask(item, counts, tuple(VALUES[:3]) if is_open else None)
    outcomes = item.mechanism.outcomes_of_counts(counts)
    assert outcomes is not None and question.open == is_open and not question.of_symbols
    rows, table = em_module._rows(question, outcomes).toarray(), question.table(question.own >= 0)
    given = outcomes.rows.toarray()
    for row, symbols, cohort in zip(rows, given, outcomes.cohorts):
        expected = symbols[table[cohort]].tolist()
        np.testing.assert_allclose(row, expected + [symbols.mean()] * is_open, rtol=1e-12)


def test_shares_of_liars_are_from_nobody_to_nearly_everybody() -> None:
    check_liars("x", closed(), 0)
    check_liars("x", closed(), 0.999)
    for share in (-1e-9, 1, "0.1"):
        with pytest.raises(SpecError, match=r"^x must have a share in \[0, 1\), got"):
            check_liars("x", closed(), share)  # type: ignore[arg-type]  # a text among them


# ---------------------------------------------------------------------- figures of numbers


def ages(mechanism: str = "krr", epsilon: float = 2.0, **alphabet: Any) -> Collection:
    spec = {"id": "ordered", "low": 10, "high": 50, "num_bins": 4} | alphabet
    return made(spec, {"id": mechanism, "epsilon": epsilon}, id="ages")


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


# ---------------------------------------------------------------------- the smooth posterior

CHANNEL = ages("sw", num_bins=8).mechanism.response(np.eye(8)).T
INNER, ENDS = second_differences(8, 8, {0, 7}), second_differences(8, 8, set())[[0, -1]]


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
