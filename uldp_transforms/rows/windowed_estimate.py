"""Rows with the estimate of one collection in one window and pane: one row in all, or one row per value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import Estimate, Estimator
from uldp_transforms.ldp.estimators.estimator import ANYTIME, FIXED
from uldp_transforms.ldp.repeated_people import with_repeated_people
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_identity import name_of, reports_of_a_person
from uldp_transforms.rows.row_types import EstimatedValue, ValueEstimate, WindowedEstimate
from uldp_transforms.version import SOFTWARE

ON_TIME = "ON_TIME"
"""``pane_timing`` of the row of a window that comes when the window ends; there is one at most."""


def estimate_window(
    collection: Collection,
    counts: CohortCounts,
    place: dict[str, Any],
    estimator: Estimator,
    candidates: tuple[str, ...] | None,
    withheld: str | None,
    show: int | None = None,
    anytime_scale: int | None = None,
    entries: Callable[[Estimate, int | None], Sequence[ValueEstimate]] | None = None,
) -> WindowedEstimate:
    """The row of one window and pane; without numbers if reports are too few or missing, or no estimate can be made.

    Args:
        collection: collection of the reports.
        counts: of all reports of the window so far.
        place: the fields that say which window and pane it is, see ``place_of``.
        estimator: that makes the estimate.
        candidates: canonical values to estimate in an open alphabet; None: its public ones, and no value without them.
        withheld: the status of a window that must not have numbers; None if it may.
        show: how many values the row has at most: those with the largest frequencies. None: all.
        anytime_scale: of intervals that hold in all rows of the window together, of which the one on time is the
            planned one; None: it has this one row.
        entries: makes the entries of an estimate; None: ``value_estimates``.
    """
    estimate: Estimate | None = None
    status = withheld or "ok"
    named = candidates or collection.alphabet.known_values or collection.alphabet.clear_values
    if withheld is None and named:
        try:
            asked = candidates if collection.alphabet.known_values is None else None
            estimate = estimator.estimate(collection, counts, asked)
            if not estimate.converged:
                status, estimate = "not_converged", None
        except EstimationError as error:
            status = error.status
    if estimate:
        estimate = with_repeated_people(collection, estimate, reports_of_a_person(collection, place))
    if estimate and anytime_scale is not None:
        estimate = estimate.anytime(anytime_scale, planned=place["pane_timing"] == ON_TIME)
    return WindowedEstimate(
        **name_of(collection),
        **place,
        num_reports=None if withheld else counts.total,
        simulated=None,
        estimator=estimator.id,
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
        interval=FIXED if anytime_scale is None else ANYTIME,
    )


def value_estimates(estimate: Estimate, show: int | None = None) -> list[ValueEstimate]:
    """The entries of the ``show`` values (None: all) with the largest frequencies, in the estimate's order."""
    return list(EntryColumns.of_estimate(estimate, show))


def reason_to_withhold(counts: CohortCounts, min_reports: int, partial: bool) -> str | None:
    """The status of a window that must not have numbers: cut short, or of too few reports; None if it may."""
    if partial:
        return "partial"
    return "suppressed" if counts.total < min_reports else None


_SHARED = [name for name in EstimatedValue._fields if name in WindowedEstimate._fields]


def flat(row: WindowedEstimate) -> list[EstimatedValue]:
    """One row per value; none for a window without numbers."""
    shared = {name: getattr(row, name) for name in _SHARED}
    return [EstimatedValue(**shared, **entry._asdict()) for entry in row.estimates]
