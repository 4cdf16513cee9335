"""Rows with the estimate of one collection in one window and pane: one row in all, or one row per value.

Annotations are real objects here, and ``Optional`` is spelled out: Beam makes schemas of nothing else.
"""

# ruff: noqa: UP045
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import Estimate, Estimator
from uldp_transforms.ldp.estimators.estimator import ANYTIME, FIXED
from uldp_transforms.ldp.repeated_people import with_repeated_people
from uldp_transforms.rows.row_identity import name_of, reports_of_a_person
from uldp_transforms.schemas import load
from uldp_transforms.version import SOFTWARE

ESTIMATE_SCHEMA = load("windowed_estimate.avsc")
VALUE_SCHEMA = load("estimated_value.avsc")


ON_TIME = "ON_TIME"
"""``pane_timing`` of the row of a window that comes when the window ends; there is one at most."""


class ValueEstimate(NamedTuple):
    """One value of an estimate; the fields are those of the Avro schema."""

    value: str
    frequency: float
    standard_error: float
    ci_low: float
    ci_high: float
    raw_frequency: float
    display_low: Optional[float] = None
    display_high: Optional[float] = None
    common_variance: Optional[float] = None
    smoothed_frequency: Optional[float] = None
    smoothed_low: Optional[float] = None
    smoothed_high: Optional[float] = None


class WindowedEstimate(NamedTuple):
    """Estimated distribution of one collection in one window and pane, as one row.

    The fields are those of ``schemas/windowed_estimate.avsc``.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import EstimateReports, ReadReportFiles
        >>> with beam.Pipeline() as pipeline:
        ...     files = pipeline | ReadReportFiles("reports*.avro")
        ...     estimated = files | EstimateReports(
        ...         collections=["C.json"], window="1d"
        ...     )
        ...     rows = estimated.estimates
        ...     _ = rows | beam.Map(lambda row: print(row.window_start))
        2001-09-09T00:00:00Z
    """

    collection_id: str
    collection_version: int
    fingerprint: str
    window_start: Optional[str]
    window_end: Optional[str]
    pane_index: int
    pane_timing: str
    num_reports: Optional[int]
    simulated: Optional[bool]
    estimator: str
    unexplained_mass: Optional[float]
    unexplained_standard_error: Optional[float]
    redistributed_mass: Optional[float]
    fit_p_value: Optional[float]
    status: str
    software: str
    estimates: Sequence[ValueEstimate]
    run: Optional[str] = None
    num_values: Optional[int] = None
    unexplained_low: Optional[float] = None
    unexplained_high: Optional[float] = None
    unexplained_status: Optional[str] = None
    interval: Optional[str] = None


class EstimatedValue(NamedTuple):
    """Estimate of one value in one window and pane, as one flat row.

    The fields are those of ``schemas/estimated_value.avsc``.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import EstimateReports, ReadReportFiles
        >>> with beam.Pipeline() as pipeline:
        ...     files = pipeline | ReadReportFiles("reports*.avro")
        ...     estimated = files | EstimateReports(
        ...         collections=["C.json"], window="1d"
        ...     )
        ...     rows = estimated.values
        ...     hiv = rows | beam.Filter(lambda row: row.value == "hiv")
        ...     _ = hiv | beam.Map(lambda row: print(row.num_reports))
        10000
    """

    collection_id: str
    collection_version: int
    fingerprint: str
    window_start: Optional[str]
    window_end: Optional[str]
    pane_index: int
    pane_timing: str
    status: str
    num_reports: Optional[int]
    simulated: Optional[bool]
    estimator: str
    value: str
    frequency: float
    standard_error: float
    ci_low: float
    ci_high: float
    raw_frequency: float
    run: Optional[str] = None
    display_low: Optional[float] = None
    display_high: Optional[float] = None
    num_values: Optional[int] = None
    common_variance: Optional[float] = None
    smoothed_frequency: Optional[float] = None
    smoothed_low: Optional[float] = None
    smoothed_high: Optional[float] = None
    interval: Optional[str] = None


def estimate_window(
    collection: Collection,
    counts: CohortCounts,
    place: dict[str, Any],
    estimator: Estimator,
    candidates: Optional[tuple[str, ...]],
    withheld: Optional[str],
    show: Optional[int] = None,
    anytime_scale: Optional[int] = None,
    entries: "Callable[[Estimate, Optional[int]], Sequence[ValueEstimate]] | None" = None,
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
    estimate: Optional[Estimate] = None
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


def value_estimates(estimate: Estimate, show: Optional[int] = None) -> list[ValueEstimate]:
    """The entries of the ``show`` values (None: all) with the largest frequencies, in the estimate's order."""
    values, columns = columns_of(estimate, show)
    return list(map(ValueEstimate, values, *(column.tolist() for column in columns)))


def columns_of(estimate: Estimate, show: Optional[int]) -> tuple[list[str], list[np.ndarray]]:
    """The values of the entries, and their first numbers in the order of the fields."""
    number = len(estimate.values) if show is None else show
    shown = estimate.largest(number)
    columns = [
        estimate.frequencies[shown],
        estimate.standard_errors[shown],
        estimate.ci_low[shown],
        estimate.ci_high[shown],
        estimate.raw_frequencies[shown],
        *estimate.display_intervals(number),
    ]
    if estimate.common_variances is not None:
        columns.append(estimate.common_variances[shown])
    return [estimate.values[i] for i in shown], columns


def reason_to_withhold(counts: CohortCounts, min_reports: int, partial: bool) -> Optional[str]:
    """The status of a window that must not have numbers: cut short, or of too few reports; None if it may."""
    if partial:
        return "partial"
    return "suppressed" if counts.total < min_reports else None


_SHARED = EstimatedValue._fields[: EstimatedValue._fields.index("value")]


def flat(row: WindowedEstimate) -> list[EstimatedValue]:
    """One row per value; none for a window without numbers."""
    shared = {name: getattr(row, name) for name in (*_SHARED, "run", "num_values", "interval")}
    return [EstimatedValue(**shared, **entry._asdict()) for entry in row.estimates]
