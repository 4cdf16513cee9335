"""Expected errors of the unbiased, unclipped estimate: sums of absolute and of squared differences over symbols.

All results follow from ``Mechanism.variances``, so a new mechanism needs no code here. There are three models of the
origin of values and of the reference of the estimate:

    population            n people are drawn independently from p; compared with p
    sample                exactly these n people; compared with their own histogram f
    without_replacement   n people out of N, all different; compared with the histogram of the N

Theorems use the first model, simulations over known inputs the second, and surveys the third. They differ by the
sampling term: p (1 - p) / n, none, and p (1 - p) / n (N - n) / (N - 1).

Source: Kairouz, Bonawitz and Ramage 2016 and Murakami and Kawamoto 2019 (losses); docs/utility.md (derivations).
"""

from __future__ import annotations

import numpy as np
import scipy

from uldp_transforms.ldp.checks import describe, require_int
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms_planner.utility.arguments import (
    MAX_REPORTS,
    require_distribution,
    require_one_symbol,
    require_reports,
)

POPULATION, SAMPLE, WITHOUT_REPLACEMENT = "population", "sample", "without_replacement"
NORMAL, EXACT = "normal", "exact"


def expected_l2(
    mechanism: Mechanism,
    frequencies: np.ndarray,
    num_reports: int,
    *,
    model: str = POPULATION,
    population_size: int | None = None,
) -> np.ndarray:
    """Expected sum of squared errors over all symbols; exact for every number of reports.

    Args:
        mechanism: mechanism with one symbol per value.
        frequencies: (..., K) summing to 1; the p or f of the model.
        num_reports: n.
        model: "population", "sample" or "without_replacement".
        population_size: N; required for "without_replacement", and only there.

    Returns:
        (...).

    Raises:
        SpecError: if an argument is out of range.
    """
    variances = _model_variances(mechanism, frequencies, num_reports, model, population_size)
    losses: np.ndarray = variances.sum(axis=-1) / num_reports
    return losses


def expected_l1(
    mechanism: Mechanism,
    frequencies: np.ndarray,
    num_reports: int,
    *,
    model: str = POPULATION,
    population_size: int | None = None,
    method: str = NORMAL,
) -> np.ndarray:
    """Expected sum of absolute errors over all symbols.

    "normal" approximates every estimate as normal, with a mean absolute error of sqrt(2 / pi) standard errors; it is
    exact only in the limit of many reports. "exact" is exact for every number of reports. It is available in the
    population model where the estimate of each symbol is a function of one binomial count: always if all symbols are
    sensitive, for urr, for uss with subset_size 1, and for urap with the marginal inversion. It is refused in all other
    cases (tsp; urap and uss, which use the information of clear reports about sensitive symbols).

    Args: see ``expected_l2``; method: "normal" or "exact".

    Returns:
        (...).

    Raises:
        SpecError: if an argument is out of range, or if "exact" is not available.

    Source: de Moivre's mean absolute deviation ("exact"); the "normal" form is that of the papers.
    """
    if method not in (NORMAL, EXACT):
        raise SpecError(f'expected_l1.method must be "{NORMAL}" or "{EXACT}", got {describe(method)}')
    variances = _model_variances(mechanism, frequencies, num_reports, model, population_size)
    if method == NORMAL:
        losses: np.ndarray = np.sqrt(2 / (np.pi * num_reports)) * np.sqrt(np.maximum(variances, 0)).sum(axis=-1)
        return losses
    if model != POPULATION or not isinstance(mechanism, SetReportMechanism) or not mechanism.has_binomial_estimates:
        raise SpecError(
            f'expected_l1.method can be "{EXACT}" only in the model "{POPULATION}" and where each estimate follows '
            f'from one count, got the model "{model}" and {type(mechanism).__name__}'
        )
    counted = np.clip(mechanism.response(np.asarray(frequencies, dtype=np.float64)), 0, 1)
    sensitive = np.arange(mechanism.num_symbols) < mechanism.num_sensitive
    slopes = np.where(sensitive, mechanism.delta, mechanism.kappa)
    exact: np.ndarray = (mean_absolute_deviation(num_reports, counted) / slopes).sum(axis=-1) / num_reports
    return exact


def expected_total_variation(
    mechanism: Mechanism,
    frequencies: np.ndarray,
    num_reports: int,
    *,
    model: str = POPULATION,
    population_size: int | None = None,
    method: str = NORMAL,
) -> np.ndarray:
    """Half of ``expected_l1``: the largest difference between the probabilities of any set of values."""
    return (
        expected_l1(mechanism, frequencies, num_reports, model=model, population_size=population_size, method=method)
        / 2
    )


def l2_without_privacy(frequencies: np.ndarray, num_reports: int) -> np.ndarray:
    """``expected_l2`` in the population model if people revealed their values: (1 - sum of p**2) / n."""
    require_reports("l2_without_privacy.num_reports", num_reports)
    p = require_distribution("l2_without_privacy.frequencies", frequencies)
    losses: np.ndarray = (p * (1 - p)).sum(axis=-1) / num_reports
    return losses


def l1_without_privacy(frequencies: np.ndarray, num_reports: int) -> np.ndarray:
    """``expected_l1`` in the population model if people revealed their values; exact for every number of reports."""
    require_reports("l1_without_privacy.num_reports", num_reports)
    p = require_distribution("l1_without_privacy.frequencies", frequencies)
    losses: np.ndarray = mean_absolute_deviation(num_reports, p).sum(axis=-1) / num_reports
    return losses


def mean_absolute_deviation(trials: np.ndarray | int, probability: np.ndarray | float) -> np.ndarray:
    """E |X - n m| for binomial X: 2 n m (1 - m) Pr(Y = r) with Y of n - 1 trials and r = floor(n m).

    The probability of one outcome is accurate for any n; differences of logarithms of factorials are not.

    Args:
        trials: n, integers from 1; broadcast against ``probability``.
        probability: m in [0, 1].

    Returns:
        The broadcast shape.

    Source: de Moivre 1730.
    """
    n, m = np.broadcast_arrays(np.asarray(trials, dtype=np.float64), np.asarray(probability, dtype=np.float64))
    deviations: np.ndarray = 2 * n * m * (1 - m) * scipy.stats.binom.pmf(np.minimum(np.floor(n * m), n - 1), n - 1, m)
    return deviations


def _model_variances(
    mechanism: Mechanism, frequencies: np.ndarray, num_reports: int, model: str, population_size: int | None
) -> np.ndarray:
    """(..., K): n times the variance of each symbol's estimate under a model."""
    require_one_symbol("expected loss: mechanism", mechanism)
    p = require_distribution("expected loss: frequencies", frequencies, mechanism.num_symbols)
    require_reports("expected loss: num_reports", num_reports)
    if model not in (POPULATION, SAMPLE, WITHOUT_REPLACEMENT):
        raise SpecError(
            f'expected loss: model must be "{POPULATION}", "{SAMPLE}" or "{WITHOUT_REPLACEMENT}", got {describe(model)}'
        )
    variances, drawn = mechanism.variances(p), p * (1 - p)
    if model == WITHOUT_REPLACEMENT:
        require_int("expected loss: population_size", population_size, max(2, num_reports), MAX_REPORTS)
        assert population_size is not None
        reduced: np.ndarray = variances - drawn * ((num_reports - 1) / (population_size - 1))
        return reduced
    if population_size is not None:
        raise SpecError(
            f'expected loss: population_size must be absent in the model "{model}", got {describe(population_size)}'
        )
    return variances - drawn if model == SAMPLE else variances
