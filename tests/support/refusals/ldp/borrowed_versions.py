"""Refusals of versions that borrow: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.ldp.question_versions import version
from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import NoReportsError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.versions.borrowed_versions import borrow_versions

PAIR = (version(1, "krr", 1.0, list("abcd")), version(2, "ss", 2.0, list("dbca")))


def refused(*versions: Collection, decoder: str = "eb") -> Callable[[], Any]:
    return lambda: borrow_versions(versions, {}, [{}], ESTIMATORS[decoder]())  # type: ignore[arg-type]  # not each is a Decoder


REFUSED: list[Refusal] = [
    (
        refused(*PAIR, decoder="threshold"),
        "borrow_versions needs an estimator whose shares are a continuous function of the unbiased ones, such as eb or "
        "projected, got collection 'q' and 'threshold'",
    ),
    (NoReportsError, refused(*PAIR), "the versions of this question have no reports"),
]
