"""Which shares the rows of groups show if they borrow from all reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from uldp_transforms.ldp.borrowing.borrow import BorrowedShares, borrow
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import Estimator
from uldp_transforms.ldp.model import Model

K = TypeVar("K")


def borrowed_shares(
    model: Model,
    total: CohortCounts | None,
    groups: Mapping[K, CohortCounts],
    estimator: Estimator,
    min_reports: int,
) -> dict[K, BorrowedShares]:
    """The shares of the groups of one window; none for groups with too few reports, whose rows have no numbers.

    Args:
        model: the collection of the reports.
        total: counts of all reports; None: unknown, and nothing is borrowed.
        groups: counts of the groups.
        estimator: of the shares.
        min_reports: of the job.
    """
    shown = {group: counts for group, counts in groups.items() if counts.total >= max(min_reports, 1)}
    if total is None or not shown:
        return {}
    try:
        return dict(zip(shown, borrow(model, total, list(shown.values()), estimator)))
    except EstimationError:
        return {}  # the rows say why there is no estimate
