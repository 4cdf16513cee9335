"""The laws of estimators: what each estimate of one collection must keep, as sentences about the first fault."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import warnings
from collections.abc import Iterator

import numpy as np

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError, NoReportsError
from uldp_transforms.ldp.estimators import Empirical, Estimate, Estimator
from uldp_transforms.ldp.estimators.estimator import PostProcessed
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.ldp.sampling import WordSource
from uldp_transforms.ldp.solvers.intervals import ShownIntervals
from uldp_transforms.ldp.solvers.linear import estimate_linear
from uldp_transforms.ldp.solvers.question import LinearEstimate, ask

VALUES = ("ant", "bee", "cat", "dog", "elk")
TRUTH = np.array([0.4, 0.25, 0.2, 0.1, 0.05])

NUM_REPORTS = 3_000
FEW = (1, 2, 3, 6, 12, 40)
"""Numbers of reports that need not suffice for an estimate."""

_MANY = 10**12
_NEAR, _ROUNDING = 1e-4, 1e-9  # maximum distances from the truth with very many reports: iterative, or by a formula
_PIECES, _HALVINGS = 32, 30  # of a line along which a continuous estimator has no jumps
_JUMP = 1e-6  # largest change of shares over a piece that was halved so often


def laws_of_estimators(
    estimator: Estimator, of: Collection, rng: np.random.Generator | WordSource | None
) -> Iterator[str]:
    """The faults of an estimator on a collection whose alphabet contains ``VALUES``; none if it keeps all laws."""
    counts, batch = _drawn(of, NUM_REPORTS, rng)
    estimate, linear = estimator.estimate(of, counts, VALUES), Empirical().estimate(of, counts, VALUES)
    yield from _of_fields(estimate, linear)
    yield from _of_shares(estimate)
    yield from _of_intervals(estimate, linear)
    yield from _of_truth(estimator, of)
    yield from _of_reports(estimator, of, counts, batch)
    yield from _of_repetition(estimator, of, counts, estimate)
    yield from _of_values(estimator, of, counts, estimate)
    yield from _of_order(estimator, of, counts, estimate)
    yield from _of_few_reports(estimator, of, rng)
    if estimator.is_continuous:
        yield from _of_continuity(estimator, of, counts)


def _drawn(
    of: Collection, number: int, rng: np.random.Generator | WordSource | None
) -> tuple[CohortCounts, ReportBatch]:
    """Reports of this number of people, whose values have the shares of TRUTH as nearly as whole people can."""
    places = np.searchsorted(np.cumsum(TRUTH), (np.arange(number) + 0.5) / number)
    batch = of.perturb([VALUES[place] for place in places.tolist()], rng)
    return of.count(batch), batch


def _of_shares(estimate: Estimate) -> Iterator[str]:
    """Shares are a distribution with the unlisted values, unless they are the unbiased ones; intervals contain them."""
    size, shares = len(estimate.values), estimate.frequencies
    if shares.shape != (size,) or not np.isfinite(shares).all():
        yield f"frequencies that are not {size} finite numbers"
        return
    if not np.isfinite(estimate.left_over):
        yield "a left_over that is not a finite number"
    if not np.array_equal(shares, estimate.raw_frequencies):
        total = float(shares.sum() + estimate.left_over)
        if abs(total - 1) > _ROUNDING:
            yield f"frequencies that sum to {total:.9g} with those of other values instead of 1"
        if min(shares.min(), estimate.left_over) < -_ROUNDING:
            yield "frequencies below 0"
    raw = np.clip(estimate.raw_frequencies, 0, 1)
    low, high = np.minimum(raw, shares), np.maximum(raw, shares)
    if (estimate.ci_low > low).any() or (estimate.ci_high < high).any():
        yield "intervals that do not contain the published frequencies"


def _of_truth(estimator: Estimator, of: Collection) -> Iterator[str]:
    """Very many noiseless reports give the truth, and no unlisted value."""
    exact = estimator.estimate(of, _exact_counts(of), VALUES)
    near = _ROUNDING if isinstance(estimator, PostProcessed) else _NEAR
    truth = np.zeros(len(of.alphabet.estimated_values(VALUES)))
    truth[: len(VALUES)] = TRUTH  # nobody has a further value of a public list
    if not np.allclose(exact.frequencies, truth, rtol=0, atol=near) or abs(exact.left_over) > len(VALUES) * near:
        yield f"frequencies that differ from the truth for {_MANY:,} noiseless reports per cohort"


def _exact_counts(of: Collection) -> CohortCounts:
    """Expected counts of each cohort for this number of reports, rounded to whole reports."""
    table = np.broadcast_to(of.alphabet.symbol_table(VALUES, of.num_cohorts), (of.num_cohorts, len(VALUES)))
    size = of.mechanism.num_symbols
    shares = np.stack([np.bincount(row, weights=TRUTH, minlength=size) for row in table])
    numbers = np.full(of.num_cohorts, _MANY)
    return CohortCounts(numbers, np.rint(_MANY * of.mechanism.response(shares)).astype(np.int64))


def _of_fields(estimate: Estimate, linear: Estimate) -> Iterator[str]:
    """All but the shares is that of the linear estimate."""
    for field in ("raw_frequencies", "standard_errors"):
        if not np.array_equal(getattr(estimate, field), getattr(linear, field)):
            yield f"{field} that differ from those of the linear estimate"
    for field in ("raw_unexplained_mass", "unexplained_standard_error", "unexplained_status", "fit_p_value"):
        if getattr(estimate, field) != getattr(linear, field):
            yield f"{field} that differs from that of the linear estimate"


def _of_intervals(estimate: Estimate, linear: Estimate) -> Iterator[str]:
    """Intervals are those of the linear estimate, extended to contain the shares."""
    for confidence in (CONFIDENCE, 0.999):
        ends = ShownIntervals(linear.unclipped, linear.raw_frequencies, estimate.frequencies)(confidence)
        if not all(map(np.array_equal, estimate.intervals(confidence), ends)):
            yield f"{confidence:.1%} intervals that differ from those of the linear estimate"


def _of_reports(estimator: Estimator, of: Collection, counts: CohortCounts, batch: ReportBatch) -> Iterator[str]:
    """The reports themselves give shares that keep the same law."""
    if estimator.refusal(of, reports=True) is None:
        yield from _of_shares(estimator.estimate_reports(of, counts, batch, VALUES))


def _of_values(estimator: Estimator, of: Collection, counts: CohortCounts, estimate: Estimate) -> Iterator[str]:
    """The requested values and the public ones in their order; of a complete list, picked from that of all values."""
    stated = (estimate.estimator, estimate.num_reports)
    if stated != (estimator.id, counts.total):
        yield f"an estimate that names {stated[0]!r} and {stated[1]:,} reports"
    asked = VALUES[3:0:-1]
    some = estimator.estimate(of, counts, asked)
    if (estimate.values, some.values) != tuple(map(of.alphabet.estimated_values, (VALUES, asked))):
        yield "values other than those requested"
        return
    if of.alphabet.known_values is None:
        yield from _of_shares(some)
        return
    everything = estimator.estimate(of, counts)
    if everything.values != of.alphabet.known_values or everything.left_over != 0:
        yield "an estimate of all values that lists others"
        return
    shares = dict(zip(everything.values, everything.frequencies.tolist()))
    if some.frequencies.tolist() != [shares[value] for value in asked]:
        yield "frequencies of some values that differ from those in the estimate of all"
    if abs(some.left_over - sum(shares[value] for value in shares.keys() - set(asked))) > _ROUNDING:
        yield "a left_over that is not the sum of the other frequencies"


def _of_order(estimator: Estimator, of: Collection, counts: CohortCounts, estimate: Estimate) -> Iterator[str]:
    """The order in which values are requested changes no share."""
    turned = estimator.estimate(of, counts, VALUES[::-1])
    shares = [dict(zip(each.values, each.frequencies.tolist())) for each in (estimate, turned)]
    near = _ROUNDING if isinstance(estimator, PostProcessed) else _NEAR
    if max(abs(shares[0][value] - shares[1][value]) for value in shares[0]) > near:
        yield "different frequencies for the same values in another order"


def _of_repetition(estimator: Estimator, of: Collection, counts: CohortCounts, estimate: Estimate) -> Iterator[str]:
    """Equal counts give equal shares: of a copy, of the model alone, together with other windows, and twice as many."""
    model = Model(**{field.name: getattr(of, field.name) for field in dataclasses.fields(Model)})
    again = [(copy.deepcopy(estimator).estimate(of, counts, VALUES), "for a copy of the same counts")]
    again += [(estimator.estimate(model, counts, VALUES), "for the model of the collection")]
    other, nothing = _exact_counts(of), CohortCounts.empty(of.num_cohorts, of.num_cells)
    together = estimator.estimate_each([(of, other), (of, counts), (of, nothing)], VALUES)
    if [type(each) for each in together] != [Estimate, Estimate, NoReportsError]:
        yield "estimates of several windows that are not an estimate or an error each"
    again += [(each, "together with other windows") for each in together[1:2] if isinstance(each, Estimate)]
    for each, when in again:
        if not np.array_equal(each.frequencies, estimate.frequencies):
            yield f"different frequencies {when}"
    if isinstance(estimator, PostProcessed):
        twice = estimator.estimate(of, counts + counts, VALUES).frequencies
        if not np.allclose(twice, estimate.frequencies, rtol=0, atol=_ROUNDING):
            yield "different frequencies for twice as many equal reports"


def _of_few_reports(
    estimator: Estimator, of: Collection, rng: np.random.Generator | WordSource | None
) -> Iterator[str]:
    """Any number of reports gives an estimate, or an EstimationError, and no warning."""
    for number in FEW:
        counts, _ = _drawn(of, number, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                yield from _of_shares(estimator.estimate(of, counts, VALUES))
            except EstimationError:
                continue
    try:
        estimator.estimate(of, CohortCounts.empty(of.num_cohorts, of.num_cells), VALUES)
    except NoReportsError:
        return
    yield "an estimate without reports"


def _of_continuity(estimator: Estimator, of: Collection, counts: CohortCounts) -> Iterator[str]:
    """Shares have no jump on a line through the linear estimate, if each value has a symbol of its own.

    The piece of the line with the largest change is halved again and again, always taking the half with the larger
    change: a jump keeps its size, while any other change vanishes.
    """
    question = ask(of, counts, VALUES)
    if not question.of_symbols:
        return
    linear = estimate_linear(question)
    way = np.cos(np.arange(len(linear.raw))) * np.abs(linear.raw).max()

    def at(place: float) -> tuple[float, np.ndarray]:
        return place, estimator.shares(question, _moved(linear, place * way))[0]

    line = [at(place) for place in np.linspace(-1, 1, _PIECES + 1)]
    low, high = max(itertools.pairwise(line), key=_change)
    for _ in range(_HALVINGS):
        middle = at((low[0] + high[0]) / 2)
        low, high = max((low, middle), (middle, high), key=_change)
    if _change((low, high)) > _JUMP:
        yield "frequencies that jump, although is_continuous is True"


def _change(piece: tuple[tuple[float, np.ndarray], tuple[float, np.ndarray]]) -> float:
    """Largest change of shares between the ends of a piece."""
    (_, low), (_, high) = piece
    return float(np.abs(high - low).max())


def _moved(linear: LinearEstimate, step: np.ndarray) -> LinearEstimate:
    """The linear estimate with other unbiased frequencies (U,)."""
    names = ("raw", "joint", "frequencies")
    return dataclasses.replace(linear, **{name: getattr(linear, name) + step for name in names})
