"""Checks of an estimator on small collections: its results against the linear estimate and the truth."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from uldp_transforms.ldp.alphabets import Closed, Hashed
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import ConformanceError, NoReportsError
from uldp_transforms.ldp.estimators import Empirical, Estimate, Estimator
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.sampling import WordSource

VALUES = ("ant", "bee", "cat", "dog", "elk")
TRUTH = np.array([0.4, 0.25, 0.2, 0.1, 0.05])

NUM_REPORTS = 3_000
_MANY = 10**12
_NEAR = 1e-4  # maximum distance from the truth with very many reports


def check_estimator(
    tested: type[Estimator] | Estimator,
    collections: Iterable[Collection] | None = None,
    rng: np.random.Generator | WordSource | None = None,
) -> None:
    """Compare an estimator with the linear estimate and with the truth on every collection that it supports.

    From noise-free counts it must return the truth. For drawn reports the raw frequencies and standard errors must be
    those of the linear estimate, the displayed shares must be finite and lie in their intervals, and two calls must
    agree, also after copying. Without reports it must raise ``NoReportsError``.

    Example:
        >>> from uldp_transforms.ldp.estimators import Projected
        >>> check_estimator(Projected)

    Args:
        tested: a class that can be built without arguments, or an instance.
        collections: collections whose alphabets contain ``VALUES``. None (default): closed and hashed ones with every
            mechanism that needs no fields.
        rng: source of the reports' randomness; None (default): the operating system's.

    Raises:
        ConformanceError: if the estimator has a fault; names the first one.
    """
    estimator = tested() if isinstance(tested, type) else tested
    offered = _collections() if collections is None else collections
    chosen = [of for of in offered if estimator.supports(of)]
    if not chosen:
        raise ConformanceError(f"{estimator!r} must support at least one of the collections, got none")
    for of in chosen:
        where = f"{estimator!r} on {of.alphabet.id!r} with {of.mechanism.id!r}"
        try:
            fault = next(_faults(estimator, of, rng), None)
        except Exception as error:
            raise ConformanceError(f"{where} must not raise, got {type(error).__name__}: {error}") from error
        if fault is not None:
            raise ConformanceError(f"{where} must keep the contract of estimators, got {fault}")


def _collections() -> Iterator[Collection]:
    for name in MECHANISMS:
        cls = MECHANISMS[name]
        needed = [field.name for field in cls.json_fields() if field.default is dataclasses.MISSING]
        if needed != ["epsilon"] or cls.last_is_missing or cls.names_values:
            continue
        for alphabet, num_cohorts in (
            (Closed(values=VALUES, sensitive=VALUES[::2]), 1),
            (Hashed(num_buckets=4, seed=7), 16),
        ):
            spec = {"id": "conformance", "version": 1, "alphabet": alphabet.to_json(), "num_cohorts": num_cohorts}
            yield Collection.from_json(spec | {"mechanism": {"id": name, "epsilon": 2.0}})


def _faults(estimator: Estimator, of: Collection, rng: np.random.Generator | WordSource | None) -> Iterator[str]:
    exact = estimator.estimate(of, _exact_counts(of), VALUES)
    if not np.allclose(exact.frequencies, TRUTH, rtol=0, atol=_NEAR):
        yield f"frequencies that differ from the truth for {_MANY:,} noiseless reports per cohort"
    values = [value for value, share in zip(VALUES, TRUTH) for _ in range(round(NUM_REPORTS * share))]
    counts = of.count(of.perturb(values, rng))
    estimate, linear = estimator.estimate(of, counts, VALUES), Empirical().estimate(of, counts, VALUES)
    if not np.array_equal(estimate.raw_frequencies, linear.raw_frequencies):
        yield "raw_frequencies that differ from the unbiased ones of the linear estimate"
    if not np.array_equal(estimate.standard_errors, linear.standard_errors):
        yield "standard_errors that differ from those of the linear estimate"
    yield from _faults_of_what_is_shown(estimate)
    again = copy.deepcopy(estimator).estimate(of, counts, VALUES)
    if not np.array_equal(again.frequencies, estimate.frequencies):
        yield "different frequencies for a copy of the same counts"
    if estimate.estimator != estimator.id:
        yield f"an estimate that names {estimate.estimator!r}"
    try:
        estimator.estimate(of, CohortCounts.empty(of.num_cohorts, of.num_cells), VALUES)
    except NoReportsError:
        return
    yield "an estimate without reports"


def _faults_of_what_is_shown(estimate: Estimate) -> Iterator[str]:
    if estimate.frequencies.shape != (len(VALUES),) or not np.isfinite(estimate.frequencies).all():
        yield f"frequencies that are not {len(VALUES)} finite numbers"
        return
    raw = np.clip(estimate.raw_frequencies, 0, 1)
    low, high = np.minimum(raw, estimate.frequencies), np.maximum(raw, estimate.frequencies)
    if (estimate.ci_low > low).any() or (estimate.ci_high < high).any():
        yield "intervals that do not contain the published frequencies"


def _exact_counts(of: Collection) -> CohortCounts:
    """Expected counts of each cohort for this number of reports, rounded to whole reports."""
    table = np.broadcast_to(of.alphabet.symbol_table(VALUES, of.num_cohorts), (of.num_cohorts, len(VALUES)))
    size = of.mechanism.num_symbols
    shares = np.stack([np.bincount(row, weights=TRUTH, minlength=size) for row in table])
    numbers = np.full(of.num_cohorts, _MANY)
    return CohortCounts(numbers, np.rint(_MANY * of.mechanism.response(shares)).astype(np.int64))
