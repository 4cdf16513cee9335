"""Checks of what estimators use of a mechanism beside its inverse: covariances, effects of a report, outcomes, JSON.

Notation: K symbols, v of them sensitive, Y payloads that a client can send.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms_conformance.enumeration import distributions, enumerated, single_counts

_ROUNDING, _EXACT_TO = 1e-9, 1e-12


def check_moments(mechanism: Mechanism) -> Iterator[str]:
    """Second moments of the inverse must be those of the enumerated reports."""
    codes, probabilities = enumerated(mechanism)
    inverse = mechanism.invert(single_counts(mechanism, codes))
    size, shares, near = mechanism.num_symbols, distributions(mechanism.num_symbols), _near(inverse**2)
    sums = np.vstack([np.eye(size), np.ones(size), np.cos(np.arange(size)), np.arange(size) < mechanism.num_sensitive])
    for each in shares[[0, -1]]:
        covariance = (inverse.T * (probabilities @ each)) @ inverse - np.outer(each, each)
        if isinstance(mechanism, SetReportMechanism):
            yield from _private(mechanism, each, covariance, near)
        if not np.allclose(mechanism.covariance(each), covariance, rtol=_ROUNDING, atol=near):
            yield "a covariance that differs from that of the inverse"
        of_sums = np.einsum("si,ij,sj->s", sums, covariance, sums)
        if not np.allclose(mechanism.variance_of(sums, each), of_sums, rtol=_ROUNDING, atol=near * size**2):
            yield "a variance_of sums that differs from that of the inverse"
    for function in (mechanism.response, mechanism.variances):
        together, alone = function(shares[np.newaxis])[0], np.array([function(each) for each in shares])
        if not np.allclose(together, alone, rtol=_ROUNDING, atol=_near(alone)):
            yield f"a {function.__name__} of several distributions that differs from that of each"


def _private(mechanism: SetReportMechanism, shares: np.ndarray, covariance: np.ndarray, near: float) -> Iterator[str]:
    """On contrasts of sensitive symbols the covariance is the diagonal of private variances less p p^T."""
    size = mechanism.num_sensitive
    contrast, p = np.eye(size) - 1 / size, shares[:size]
    found = contrast @ (np.diag(mechanism.private_variances(shares)) - np.outer(p, p)) @ contrast
    if not np.allclose(found, contrast @ covariance[:size, :size] @ contrast, rtol=_ROUNDING, atol=near):
        yield "private_variances that differ from the covariance of the inverse"


def check_single_symbols(mechanism: Mechanism) -> Iterator[str]:
    """The inverse of single symbols must be unbiased, with the declared variance where nobody holds the symbol."""
    codes, probabilities = enumerated(mechanism)
    counts, size = single_counts(mechanism, codes), mechanism.num_symbols
    alone = mechanism.invert_alone(counts)
    if not np.allclose(probabilities.T @ alone, np.eye(size), rtol=0, atol=_near(alone) * size):
        yield "a biased invert_alone"
    for symbol in {0, mechanism.num_sensitive - 1, size - 1}:
        without = distributions(size)[-1] * (np.arange(size) != symbol)
        without /= without.sum()
        expected = (probabilities @ without) @ alone[:, symbol] ** 2
        if not np.isclose(mechanism.null_variances(without)[symbol], expected, rtol=_ROUNDING, atol=_near(alone**2)):
            yield "null_variances that differ from those of invert_alone"
            return
    if mechanism.invert(CohortCounts.empty(2, mechanism.num_cells)).any():
        yield "an inverse of no reports that is not 0"


def check_effects(mechanism: Mechanism) -> Iterator[str]:
    """No report may move a frequency by more than the stated effects, which some report must reach."""
    inverse = mechanism.invert(single_counts(mechanism, enumerated(mechanism)[0]))
    for stated, expected, name in (
        (mechanism.largest_effects, inverse.max(axis=0), "largest_effects"),
        (mechanism.smallest_effects, inverse.min(axis=0), "smallest_effects"),
    ):
        if stated is not None and not np.allclose(stated, expected, rtol=_ROUNDING, atol=_ROUNDING * _scale(inverse)):
            yield f"{name} that differ from those of the reports"


def check_outcomes(mechanism: Mechanism) -> Iterator[str]:
    """Outcomes of reports, if there are any, must be the channel up to a factor."""
    codes, probabilities = enumerated(mechanism)
    outcomes = mechanism.outcomes_of_reports(codes, np.arange(len(codes)))
    if outcomes is None:
        return
    if sorted(outcomes.cohorts.tolist()) != list(range(len(codes))) or set(outcomes.counts.tolist()) != {1}:
        yield "outcomes that do not count each report once"
        return
    computed, expected = outcomes.base[:, np.newaxis] + outcomes.rows.toarray(), probabilities[outcomes.cohorts]
    factor = expected.max(axis=1, keepdims=True) / computed.max(axis=1, keepdims=True)
    if not np.allclose(computed * factor, expected, rtol=_ROUNDING, atol=0):
        yield "outcomes of reports that are not proportional to the channel"


def check_json(mechanism: Mechanism) -> Iterator[str]:
    """The JSON form must make an equal mechanism."""
    fields = {key: value for key, value in mechanism.to_json().items() if key != "id"}
    sizes = {name: getattr(mechanism, name) for name in ("num_symbols", "num_sensitive", "num_others")}
    if type(mechanism)(**sizes, **fields) != mechanism:
        yield "a JSON form that makes another mechanism"


def _scale(numbers: np.ndarray) -> float:
    return float(np.abs(numbers).max())


def _near(numbers: np.ndarray) -> float:
    """Tolerance for rounding of sums of these numbers."""
    return _EXACT_TO * _scale(numbers)
