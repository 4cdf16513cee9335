"""The planner: expected errors of a question for every possible collection, before data are collected."""

from uldp_transforms_planner.planning.closed_question import ClosedQuestion as ClosedQuestion
from uldp_transforms_planner.planning.hashed_errors import best_num_buckets as best_num_buckets
from uldp_transforms_planner.planning.hashed_errors import cohorts_needed as cohorts_needed
from uldp_transforms_planner.planning.hashed_errors import cohorts_to_distinguish as cohorts_to_distinguish
from uldp_transforms_planner.planning.hashed_errors import distinguishable_share as distinguishable_share
from uldp_transforms_planner.planning.hashed_errors import hashed_variance as hashed_variance
from uldp_transforms_planner.planning.open_question import OpenQuestion as OpenQuestion
from uldp_transforms_planner.planning.planning import Plan as Plan
from uldp_transforms_planner.planning.planning import PlanRow as PlanRow
from uldp_transforms_planner.planning.planning import least_epsilon as least_epsilon
from uldp_transforms_planner.planning.planning import plan as plan
from uldp_transforms_planner.planning.planning import reports_for_half_width as reports_for_half_width

__all__ = [
    "ClosedQuestion",
    "OpenQuestion",
    "Plan",
    "PlanRow",
    "best_num_buckets",
    "cohorts_needed",
    "cohorts_to_distinguish",
    "distinguishable_share",
    "hashed_variance",
    "least_epsilon",
    "plan",
    "reports_for_half_width",
]
