"""Differences of sums over chosen values between two sides: those of shares, in the units of the sums."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.share_sums.share_sums import ShareSums
from uldp_transforms.rows.figures.compared_figures import SUM, WEIGHTED_SUM, Ends
from uldp_transforms_compare.comparisons.compare import differences_of_sides
from uldp_transforms_compare.comparisons.difference_columns import Differences, Subject
from uldp_transforms_compare.comparisons.interval_inversion import ComparedSide

_IN_UNITS = ("difference", "low", "high", "noticeable")
_RATIOS = ("lift", "lift_low", "lift_high")


@dataclasses.dataclass(frozen=True, eq=False)
class ComparedSums:
    """The sums of one side.

    Attributes:
        sums: the sums.
        compared: the same as shares of their ranges, see ``estimate_of_sums``.
    """

    sums: ShareSums
    compared: ComparedSide


def differences_of_sums(
    first: ComparedSums,
    second: ComparedSums,
    confidence: float,
    anytime_scale: float | None = None,
    p_values: np.ndarray | None = None,
) -> Differences:
    """The differences of all sums; of sums with weights in their units, without lifts.

    Args:
        first, second: with the same sums.
        confidence, anytime_scale, p_values: as for ``differences_of_sides``.
    """
    of, sums = differences_of_sides(first.compared, second.compared, confidence, anytime_scale, p_values), first.sums
    columns = {name: column * sums.spans if name in _IN_UNITS else column for name, column in of.columns.items()}
    columns |= {name: np.where(sums.is_share, columns[name], np.nan) for name in _RATIOS}

    def interval(confidence: float) -> Ends:
        low, high = of.interval(confidence)
        return low * sums.spans, high * sums.spans

    subjects = [Subject(value=one.name, figure=SUM if one.is_share else WEIGHTED_SUM) for one in sums.sums]
    return Differences(subjects, columns, interval)
