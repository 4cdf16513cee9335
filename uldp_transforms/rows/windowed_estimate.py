"""The estimate of one collection in one window and pane: as one row, and as one row a value.

Annotations are real objects here, and ``Optional`` is spelled out: Beam makes schemas of nothing else.
"""

# ruff: noqa: UP045
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from apache_beam import coders

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import Estimate, Estimator
from uldp_transforms.rows.place import name_of
from uldp_transforms.schemas import load
from uldp_transforms.version import __version__

ESTIMATE_SCHEMA = load("windowed_estimate.avsc")
VALUE_SCHEMA = load("estimated_value.avsc")

SOFTWARE = f"uldp_transforms {__version__}"


class ValueEstimate(NamedTuple):
    """One value of an estimate; the fields are those of the Avro schema."""

    value: str
    frequency: float
    standard_error: float
    ci_low: float
    ci_high: float
    raw_frequency: float


class WindowedEstimate(NamedTuple):
    """The estimated distribution of one collection in one window; the fields are those of the Avro schema."""

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


class EstimatedValue(NamedTuple):
    """One value in one window, with all that says which; the fields are those of the Avro schema."""

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


coders.registry.register_coder(WindowedEstimate, coders.RowCoder)
coders.registry.register_coder(EstimatedValue, coders.RowCoder)


def estimate_window(
    collection: Collection,
    counts: CohortCounts,
    place: dict[str, Any],
    estimator: Estimator,
    candidates: Optional[tuple[str, ...]],
    withheld: Optional[str],
) -> WindowedEstimate:
    """The row of one window and pane; without numbers if reports are too few or missing, or no estimate can be made.

    Args:
        collection: what the reports were made for.
        counts: of all reports of the window so far.
        place: the fields that say which window and pane it is, see ``place_of``.
        estimator: that makes the estimate.
        candidates: canonical values to estimate in an open alphabet; None: its public ones, and no value without them.
        withheld: the status of a window that must not have numbers; None if it may.
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
        estimates=value_estimates(estimate) if estimate else [],
    )


def value_estimates(estimate: Estimate) -> list[ValueEstimate]:
    """One entry per value, in the estimate's order."""
    columns = (
        estimate.values,
        estimate.frequencies.tolist(),
        estimate.standard_errors.tolist(),
        estimate.ci_low.tolist(),
        estimate.ci_high.tolist(),
        estimate.raw_frequencies.tolist(),
    )
    return list(map(ValueEstimate._make, zip(*columns)))


def reason_to_withhold(counts: CohortCounts, min_reports: int, partial: bool) -> Optional[str]:
    """The status of a window that must not have numbers: cut short, or of too few reports; None if it may."""
    if partial:
        return "partial"
    return "suppressed" if counts.total < min_reports else None


_NUM_SHARED = EstimatedValue._fields.index("value")


def flat(row: WindowedEstimate) -> list[EstimatedValue]:
    """One row per value; none for a window without numbers."""
    shared = tuple(getattr(row, name) for name in EstimatedValue._fields[:_NUM_SHARED])
    return [EstimatedValue._make((*shared, *entry, row.run)) for entry in row.estimates]
