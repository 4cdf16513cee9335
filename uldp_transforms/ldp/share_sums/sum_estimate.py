"""Sums of shares as an estimate: each sum as a share of the way from the smallest number that it can be to the largest.

So sums have intervals, allowances for lies and for many looks, the selection of the largest, and differences, as the
shares of single values have them.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import special

from uldp_transforms.ldp.estimators import Estimate
from uldp_transforms.ldp.share_sums.share_sums import ShareSums
from uldp_transforms.ldp.solvers.intervals import ShownIntervals, possible, reaching

_LIMIT = float(special.erf(0.5**0.5))  # confidence of an interval of one standard error on each side


@dataclasses.dataclass(frozen=True, kw_only=True)
class EstimatedSum:
    """A weighted sum of shares in one window.

    Attributes:
        name: of the sum.
        is_share: whether it is the share of a set of values.
        value: unbiased and unclipped.
        low, high: confidence interval, cut to the range from ``least`` to ``most`` and extended to ``value``.
        display_value: the sum of the shares that the estimator gives, see ``estimate_of_sums``.
        display_low, display_high: interval of a set that is chosen for its size, as ``Estimate.display_intervals``; of
            sums with other weights, which nobody compares in size, that of a sum chosen beforehand. Within the range,
            and extended to ``display_value``.
        standard_error: standard deviation of ``value``; 0 for the sum of all values of a closed list.
        least, most: smallest and largest number that the sum can be.
        people_variance: part of its square that would remain if everybody reported the truth; nearly unbiased.
        common_variance: part of its square that windows of the same people share; None if there is none.
    """

    name: str
    is_share: bool
    value: float
    low: float
    high: float
    display_value: float
    display_low: float
    display_high: float
    standard_error: float
    least: float
    most: float
    people_variance: float
    common_variance: float | None


def estimate_of_sums(sums: ShareSums, estimate: Estimate) -> Estimate:
    """The M sums as shares of their ranges, for one look and honest people.

    ``frequencies`` are sums of those of the estimate, at most about a standard error from the unbiased sums: an
    estimator that shrinks many small shares is nearly right about each of them, but not about their sum, which is known
    much better than each. So a sum is not shown at the end of its interval, its error is bounded, and most of what
    shrinking saves is kept (limited translation: Efron and Morris 1972).

    Args:
        sums: of the reports of the estimate.
        estimate: of all values, as shown.
    """
    raw = sums.as_shares(sums.totals)
    low, high = possible(sums.intervals, raw, _LIMIT, strict=False)
    shown = np.clip(sums.as_shares(sums.weights @ estimate.frequencies), low, high)
    return Estimate(
        values=tuple(one.name for one in sums.sums),
        frequencies=shown,
        raw_frequencies=raw,
        standard_errors=np.sqrt(sums.variances) / sums.spans,
        intervals=ShownIntervals(sums.intervals, raw, shown),
        unclipped=sums.intervals,
        num_reports=estimate.num_reports,
        left_over=0.0,
        raw_unexplained_mass=0.0,
        unexplained_standard_error=0.0,
        unexplained_intervals=lambda _: (0.0, 0.0),
        unexplained_status=None,
        redistributed_mass=0.0,
        estimator=estimate.estimator,
        confidence=estimate.confidence,
        group=estimate.group,
        num_groups=estimate.num_groups,
    )


def figures_of_sums(sums: ShareSums, scaled: Estimate) -> list[EstimatedSum]:
    """The figures of M sums, from ``estimate_of_sums`` with all allowances."""
    plain, chosen = (scaled.ci_low, scaled.ci_high), scaled.display_intervals(len(sums.sums))
    shown = [np.where(sums.is_share, one, other) for one, other in zip(chosen, plain)]
    low, high = reaching(sums.in_units(plain[0]), sums.in_units(plain[1]), sums.totals)
    columns = {
        "value": sums.totals,
        "low": low,
        "high": high,
        "display_value": sums.in_units(scaled.frequencies),
        "display_low": sums.in_units(shown[0]),
        "display_high": sums.in_units(shown[1]),
        "standard_error": np.sqrt(sums.variances),
        "least": sums.least,
        "most": sums.most,
        "people_variance": sums.of_people,
    }
    common = [part or None for part in sums.common.tolist()]
    return [
        EstimatedSum(name=one.name, is_share=one.is_share, common_variance=part, **dict(zip(columns, numbers)))
        for one, part, *numbers in zip(sums.sums, common, *(column.tolist() for column in columns.values()))
    ]
