"""This library's current solution to the paper's questions: the planner's collection and the estimator ``eb``."""

from __future__ import annotations

import functools

from labs.experiments.kairouz import inputs
from uldp_transforms.ldp import Collection
from uldp_transforms_planner.planning.closed_question import ClosedQuestion
from uldp_transforms_planner.planning.open_question import OpenQuestion
from uldp_transforms_planner.planning.planning import plan
from uldp_transforms_planner.utility import ldp_minimax

OURS = "planner, eb"
DECODER = "eb"


@functools.lru_cache(maxsize=256)
def planned(size: int, number: int, epsilon: float, *, closed: bool) -> Collection:
    """The planner's recommendation for these numbers of values and people; it does not know the frequencies.

    Every value of a closed alphabet is sensitive, and has a symbol of its own; all people hold one of the candidates of
    an open one.
    """
    if closed:
        question = ClosedQuestion(num_values=size, num_sensitive=size, names=inputs.names(size), max_cohorts=1)
        return Collection.from_json(plan(question, epsilon, number).collection)
    return Collection.from_json(plan(OpenQuestion(num_candidates=size, unlisted_share=0.0), epsilon, number).collection)


def bound(size: int, number: int, epsilon: float) -> float:
    """The least worst expected squared l2 loss of any epsilon-LDP mechanism, for many people (Ye and Barg 2018)."""
    return ldp_minimax(size, epsilon).risk / number
