"""Rows with the estimate of one collection in one window and pane: one row in all, or one row per value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uldp_transforms.ldp.borrowing import BorrowedShares
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import Estimate, Estimator
from uldp_transforms.ldp.estimators.anytime import confidence_of_look
from uldp_transforms.ldp.estimators.estimator import ANYTIME, FIXED
from uldp_transforms.ldp.estimators.number_estimates import QUANTILES, figures_of, limits_within
from uldp_transforms.ldp.estimators.number_sums import NumberReports, NumberSums
from uldp_transforms.ldp.repeated_people import with_repeated_people
from uldp_transforms.ldp.solvers.linear import CONFIDENCE
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_identity import Named, fields_of_group, name_of, reports_of_a_person
from uldp_transforms.rows.row_types import (
    CurveBin,
    EstimatedValue,
    MeanFigure,
    NumberFigures,
    QuantileFigure,
    ShareBelow,
    ShareFigure,
    SumFigure,
    ValueEstimate,
    WindowedEstimate,
)
from uldp_transforms.version import SOFTWARE

ON_TIME = "ON_TIME"
"""``pane_timing`` of the row that is emitted at the end of its window; there is at most one."""

Solved = tuple["Estimate | None", str]
"""An estimate, if there is one, and the status of its row."""

Entries = Callable[[Estimate, int | None], Sequence[ValueEstimate]]
"""Function that makes the entries of a row from an estimate and the maximum number of its values."""


def estimate_window(
    collection: Collection,
    counts: CohortCounts,
    place: dict[str, Any],
    estimator: Estimator,
    candidates: tuple[str, ...] | None,
    withheld: str | None,
    show: int | None = None,
    anytime_scale: int | None = None,
    limits: Sequence[float] | None = None,
    quantiles: Sequence[float] | None = None,
    entries: Entries | None = None,
    liars: float | None = None,
    borrowed: BorrowedShares | None = None,
    solved: Solved | None = None,
    group: Sequence[tuple[str, str]] = (),
) -> WindowedEstimate:
    """The row of one window and pane; without numbers if reports are too few or missing, or no estimate is possible.

    Args:
        collection: collection of the reports.
        counts: of all reports of the window so far.
        place: the fields that identify window and pane, see ``place_of``.
        estimator: estimator of the frequencies.
        candidates: canonical values to estimate in an open alphabet, besides its public values; None: these alone.
        withheld: status of a window whose numbers are withheld; None if they are not.
        show: maximum number of values in the row: those with the largest frequencies. None: all.
        anytime_scale: scale of intervals that hold jointly in all rows of the window, of which the one on time is the
            planned look; None: it has only one row.
        entries: function that makes the entries of an estimate; None: ``value_estimates``.
        liars: largest share of false reports that intervals allow for; None: they take all reports as honest.
        borrowed: shares of a group to show instead of those of its own reports; None: those of its own reports.
        solved: the result of ``solve_windows`` for this window; None: it is solved alone.
        group: (name, value) of each dimension of the people; empty: the row is about everybody.
    """
    if withheld:
        estimate, status = None, withheld
    else:
        estimate, status = solved or solve_windows([(collection, counts)], estimator, candidates)[0]
    times = reports_of_a_person(collection, place)
    estimate = estimate and _among_groups(collection, with_repeated_people(collection, estimate, times), group)
    if estimate and borrowed is not None:
        estimate = estimate.with_borrowed(borrowed.frequencies, borrowed.weight)
    if estimate and liars is not None:
        estimate = estimate.with_liars(collection, liars)
    if estimate and anytime_scale is not None:
        estimate = estimate.anytime(anytime_scale, planned=place["pane_timing"] == ON_TIME)
    total = None if withheld else counts.total
    row = row_of_estimate(collection, place, estimator.id, estimate, status, total, show, entries)
    if estimate:
        reports = [NumberReports(collection, counts, times or 1)]
        level = confidence_of_row(counts.total, anytime_scale, place)
        row = row._replace(numbers=number_figures(reports, limits, quantiles, level))
    interval = FIXED if anytime_scale is None else ANYTIME
    return row._replace(interval=interval, **fields_of_group(collection, group))


def _among_groups(collection: Collection, estimate: Estimate, group: Sequence[tuple[str, str]]) -> Estimate:
    """The estimate whose display intervals count the values of all groups by these dimensions."""
    return dataclasses.replace(estimate, num_groups=collection.num_groups_by([name for name, _ in group]))


def solve_windows(
    windows: Sequence[tuple[Collection, CohortCounts]], estimator: Estimator, candidates: tuple[str, ...] | None
) -> list[Solved]:
    """The estimates of many windows and the status of each row; windows with as many values are solved together.

    There is no estimate if it is not possible, or if there is no value to estimate. An estimate is the same, bit for
    bit, whichever windows are solved with it.

    Args:
        windows: collection and counts of each window whose numbers are not withheld.
        estimator, candidates: as for ``estimate_window``.
    """
    solved: list[Solved] = [(None, "ok")] * len(windows)
    known = [place for place, (collection, _) in enumerate(windows) if collection.alphabet.known_values]
    others = [
        place
        for place, (collection, _) in enumerate(windows)
        if not collection.alphabet.known_values and collection.alphabet.estimated_values(candidates)
    ]
    for places, asked in ((known, None), (others, candidates)):
        for place, found in zip(places, estimator.estimate_each([windows[place] for place in places], asked)):
            solved[place] = _with_status(found)
    return solved


def _with_status(found: Estimate | EstimationError) -> Solved:
    if isinstance(found, EstimationError):
        return None, found.status
    return (found, "ok") if found.converged else (None, "not_converged")


def confidence_of_row(num_reports: int, anytime_scale: int | None, place: Mapping[str, Any]) -> float:
    """Confidence of the intervals of numbers: higher where the window can have several rows."""
    if anytime_scale is None:
        return CONFIDENCE
    return float(confidence_of_look(CONFIDENCE, num_reports, anytime_scale, place["pane_timing"] == ON_TIME))


def row_of_estimate(
    owner: Named,
    place: dict[str, Any],
    estimator: str,
    estimate: Estimate | None,
    status: str,
    num_reports: int | None,
    show: int | None,
    entries: Entries | None = None,
) -> WindowedEstimate:
    """The row of an estimate; without numbers if there is none.

    Args:
        owner: the collection or question.
        place: the fields that identify window and pane.
        estimator: its id.
        estimate: None: the status says why there is none.
        status: of the row.
        num_reports: of the window; None if they are withheld.
        show: maximum number of values in the row. None: all.
        entries: function that makes the entries of an estimate; None: ``value_estimates``.
    """
    return WindowedEstimate(
        **name_of(owner),
        **place,
        num_reports=num_reports,
        simulated=None,
        estimator=estimator,
        unexplained_mass=estimate.unexplained_mass if estimate else None,
        unexplained_standard_error=estimate.unexplained_standard_error if estimate else None,
        redistributed_mass=estimate.redistributed_mass if estimate else None,
        fit_p_value=estimate.fit_p_value if estimate else None,
        status=status,
        software=SOFTWARE,
        estimates=(entries or value_estimates)(estimate, show) if estimate else [],
        num_values=len(estimate.values) if estimate else None,
        unexplained_low=estimate.unexplained_low if estimate and estimate.unexplained_status else None,
        unexplained_high=estimate.unexplained_high if estimate and estimate.unexplained_status else None,
        unexplained_status=estimate.unexplained_status if estimate else None,
        interval=estimate.interval if estimate else FIXED,
        liars=estimate.liars if estimate else None,
        borrowed=estimate.borrowed if estimate else None,
    )


def number_figures(
    reports: Sequence[NumberReports],
    limits: Sequence[float] | None,
    quantiles: Sequence[float] | None,
    confidence: float,
) -> NumberFigures:
    """Mean, quantiles and shares above limits; empty for alphabets that have no numbers.

    Args:
        reports: of one collection, or of the versions of a question.
        limits, quantiles: as for ``estimate_window``.
        confidence: of each interval.
    """
    if not reports or reports[0].model.alphabet.bin_edges is None:
        return NumberFigures()
    found = figures_of(
        NumberSums(reports),
        limits_within(limits or (), reports[0].model.alphabet),
        QUANTILES if quantiles is None else quantiles,
        confidence,
    )
    return NumberFigures(
        mean=MeanFigure() if found.mean is None else MeanFigure(**dataclasses.asdict(found.mean)),
        quantiles=tuple(QuantileFigure(**dataclasses.asdict(one)) for one in found.quantiles),
        shares_above=tuple(ShareFigure(**dataclasses.asdict(one)) for one in found.shares_above),
        curve=tuple(CurveBin(**dataclasses.asdict(one)) for one in found.curve),
        below=tuple(ShareBelow(**dataclasses.asdict(one)) for one in found.below),
        share=found.share,
        sum=SumFigure() if found.sum is None else SumFigure(**dataclasses.asdict(found.sum)),
    )


def value_estimates(estimate: Estimate, show: int | None = None) -> list[ValueEstimate]:
    """The entries of the ``show`` values (None: all) with the largest frequencies, in the estimate's order."""
    return list(EntryColumns.of_estimate(estimate, show))


def reason_to_withhold(num_reports: int, min_reports: int, partial: bool) -> str | None:
    """Status of a window whose numbers are withheld: partial, or with too few reports; None if they are not."""
    if partial:
        return "partial"
    return "suppressed" if num_reports < min_reports else None


_SHARED = [name for name in EstimatedValue._fields if name in WindowedEstimate._fields]


def flat(row: WindowedEstimate) -> list[EstimatedValue]:
    """One row per value; none for a window without numbers."""
    shared = {name: getattr(row, name) for name in _SHARED}
    return [EstimatedValue(**shared, **entry._asdict()) for entry in row.estimates]
