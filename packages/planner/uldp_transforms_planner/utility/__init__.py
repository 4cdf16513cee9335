"""Theory: expected errors and guarantees of a collection before data are collected. Pure functions on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uldp_transforms.lazy_names import lazy_names

if TYPE_CHECKING:
    from uldp_transforms_planner.utility.composition import Guarantee as Guarantee
    from uldp_transforms_planner.utility.longitudinal import Way as Way
    from uldp_transforms_planner.utility.longitudinal import fresh_ways as fresh_ways
    from uldp_transforms_planner.utility.longitudinal import variance_of_mean as variance_of_mean
    from uldp_transforms_planner.utility.longitudinal import ways as ways
    from uldp_transforms_planner.utility.losses import expected_l1 as expected_l1
    from uldp_transforms_planner.utility.losses import expected_l2 as expected_l2
    from uldp_transforms_planner.utility.losses import expected_total_variation as expected_total_variation
    from uldp_transforms_planner.utility.losses import l1_without_privacy as l1_without_privacy
    from uldp_transforms_planner.utility.losses import l2_without_privacy as l2_without_privacy
    from uldp_transforms_planner.utility.losses import mean_absolute_deviation as mean_absolute_deviation
    from uldp_transforms_planner.utility.minimax import Minimax as Minimax
    from uldp_transforms_planner.utility.minimax import l2_minimax_without_privacy as l2_minimax_without_privacy
    from uldp_transforms_planner.utility.minimax import ldp_minimax as ldp_minimax
    from uldp_transforms_planner.utility.minimax import uldp_minimax as uldp_minimax
    from uldp_transforms_planner.utility.personalised import tagged_l1_bound as tagged_l1_bound
    from uldp_transforms_planner.utility.personalised import tagged_l2 as tagged_l2
    from uldp_transforms_planner.utility.poisoning import Amplification as Amplification
    from uldp_transforms_planner.utility.poisoning import amplification as amplification
    from uldp_transforms_planner.utility.theta import optimal_theta as optimal_theta
    from uldp_transforms_planner.utility.worst_case import worst_case_distribution as worst_case_distribution
    from uldp_transforms_planner.utility.worst_case import worst_case_l1 as worst_case_l1
    from uldp_transforms_planner.utility.worst_case import worst_case_l2 as worst_case_l2
else:
    _HOMES = {
        "Amplification": "poisoning",
        "Guarantee": "composition",
        "Minimax": "minimax",
        "Way": "longitudinal",
        "amplification": "poisoning",
        "expected_l1": "losses",
        "expected_l2": "losses",
        "expected_total_variation": "losses",
        "fresh_ways": "longitudinal",
        "l1_without_privacy": "losses",
        "l2_minimax_without_privacy": "minimax",
        "l2_without_privacy": "losses",
        "ldp_minimax": "minimax",
        "mean_absolute_deviation": "losses",
        "optimal_theta": "theta",
        "tagged_l1_bound": "personalised",
        "tagged_l2": "personalised",
        "uldp_minimax": "minimax",
        "variance_of_mean": "longitudinal",
        "ways": "longitudinal",
        "worst_case_distribution": "worst_case",
        "worst_case_l1": "worst_case",
        "worst_case_l2": "worst_case",
    }
    __getattr__ = lazy_names(__name__, _HOMES)

__all__ = [
    "Amplification",
    "Guarantee",
    "Minimax",
    "Way",
    "amplification",
    "expected_l1",
    "expected_l2",
    "expected_total_variation",
    "fresh_ways",
    "l1_without_privacy",
    "l2_minimax_without_privacy",
    "l2_without_privacy",
    "ldp_minimax",
    "mean_absolute_deviation",
    "optimal_theta",
    "tagged_l1_bound",
    "tagged_l2",
    "uldp_minimax",
    "variance_of_mean",
    "ways",
    "worst_case_distribution",
    "worst_case_l1",
    "worst_case_l2",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
