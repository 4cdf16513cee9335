"""The row of an estimate in one window and pane: one row in all, or one row per value."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from uldp_transforms.ldp.estimators import Estimate
from uldp_transforms.ldp.estimators.anytime import confidence_of_look
from uldp_transforms.ldp.estimators.estimator import FIXED
from uldp_transforms.ldp.estimators.number_estimates import QUANTILES, figures_of, limits_within
from uldp_transforms.ldp.estimators.number_sums import NumberReports, NumberSums
from uldp_transforms.ldp.share_sums import ShareSums
from uldp_transforms.ldp.share_sums.sum_estimate import figures_of_sums
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_identity import Named, name_of
from uldp_transforms.rows.row_types import (
    CurveBin,
    EstimatedValue,
    MeanFigure,
    NumberFigures,
    QuantileFigure,
    ShareBelow,
    ShareFigure,
    ShareInBlock,
    SumFigure,
    SumOfShares,
    ValueEstimate,
    WindowedEstimate,
)
from uldp_transforms.version import SOFTWARE

ON_TIME = "ON_TIME"
"""``pane_timing`` of the row that is emitted at the end of its window; there is at most one."""

EARLY, LATE = "EARLY", "LATE"
"""The same of rows before and after it."""


def confidence_of_row(
    confidence: float, num_reports: int, anytime_scale: int | None, place: Mapping[str, Any]
) -> float:
    """Confidence of the intervals of numbers: higher where the window can have several rows."""
    if anytime_scale is None:
        return confidence
    return float(confidence_of_look(confidence, num_reports, anytime_scale, place["pane_timing"] == ON_TIME))


def row_of_estimate(
    owner: Named,
    place: dict[str, Any],
    estimator: str,
    estimate: Estimate | None,
    status: str,
    num_reports: int | None,
    show: int | None,
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
        estimates=value_estimates(estimate, show) if estimate else [],
        num_values=len(estimate.values) if estimate else None,
        unexplained_low=estimate.unexplained_low if estimate and estimate.unexplained_status else None,
        unexplained_high=estimate.unexplained_high if estimate and estimate.unexplained_status else None,
        unexplained_status=estimate.unexplained_status if estimate else None,
        interval=estimate.interval if estimate else FIXED,
        liars=estimate.liars if estimate else None,
        borrowed=estimate.borrowed if estimate else None,
        in_blocks=shares_in_blocks(estimate, show) if estimate else (),
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
        limits, quantiles: as in ``Asked``.
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


def row_sums(sums: ShareSums, as_shares: Estimate) -> tuple[SumOfShares, ...]:
    """The sums of a row; arguments as for ``figures_of_sums``."""
    return tuple(SumOfShares(**dataclasses.asdict(one)) for one in figures_of_sums(sums, as_shares))


def value_estimates(estimate: Estimate, show: int | None = None) -> Sequence[ValueEstimate]:
    """The entries of the ``show`` values (None: all) with the largest frequencies, in the estimate's order."""
    return EntryColumns.of_estimate(estimate, show)


def shares_in_blocks(estimate: Estimate, show: int | None = None) -> tuple[ShareInBlock, ...]:
    """The shares of the same values within their public blocks; none without blocks."""
    number = len(estimate.values) if show is None else show
    columns = estimate.columns_in_blocks(number)
    if not columns:
        return ()
    values = [estimate.values[place] for place in estimate.largest(number).tolist()]
    blocks, reports, *ends = (column.tolist() for column in columns.values())
    cells = zip(*([None if math.isnan(share) else share for share in column] for column in ends))
    return tuple(ShareInBlock(*row, *own) for *row, own in zip(values, blocks, reports, cells))


_SHARED = [name for name in EstimatedValue._fields if name in WindowedEstimate._fields]


def flat(row: WindowedEstimate) -> list[EstimatedValue]:
    """One row per value; none for a window without numbers."""
    shared = {name: getattr(row, name) for name in _SHARED}
    return [EstimatedValue(**shared, **entry._asdict()) for entry in row.estimates]
