"""Refusals of groups that borrow: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.messages_cases import KRR, LISTED, TAGGED
from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.borrowing import borrow
from uldp_transforms.ldp.estimators import ESTIMATORS


def refused(of: Collection, estimator: str = "eb") -> Callable[[], Any]:
    empty = CohortCounts.empty(of.num_cohorts, of.num_cells)
    return lambda: borrow(of, empty, [empty], ESTIMATORS[estimator]())


NUMBERS = Collection.from_json(
    {
        "id": "ages",
        "version": 1,
        "alphabet": {"id": "ordered", "edges": [0, 10, 20]},
        "mechanism": {"id": "krr", "epsilon": 1},
    }
)
REFUSED: list[Refusal] = [
    (
        refused(KRR, "em"),
        "borrow needs an estimator whose shares are a continuous function of the unbiased ones, such as eb or "
        "projected, got collection 'krr' and estimator 'em'",
    ),
    (
        refused(LISTED),
        "borrow needs a list of all values, each with a symbol of its own, got collection 'listed' and estimator 'eb'",
    ),
    (refused(NUMBERS), "borrow needs values that are not numbers, got collection 'ages' and estimator 'eb'"),
    (
        refused(TAGGED),
        "borrow needs values that clients name, without tags, got collection 'tagged' and estimator 'eb'",
    ),
]
