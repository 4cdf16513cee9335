"""Refusals of pooled estimates: calls and their sentences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.support.ldp.question_versions import hashed, of, texts, version
from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.errors import NoReportsError
from uldp_transforms.ldp.estimators import ESTIMATORS


def pooled(versions: Sequence[Collection], counts: Sequence[CohortCounts], estimator: str = "empirical", asked=None):
    by_fingerprint = {one.fingerprint: each for one, each in zip(versions, counts)}
    return of(*versions).estimate(by_fingerprint, ESTIMATORS[estimator](), asked)


def counted(cells: Sequence[int]) -> CohortCounts:
    return CohortCounts(np.array([sum(cells)], np.int64), np.array([cells], np.int64))


TAGGED = {"id": "tagged", "values": ["a", "b"], "tags": ["t"], "sensitive": ["a"]}
REFUSED: list[Refusal] = [
    (
        lambda: version(1, "krr", 1.0, ["a", "b"], question="No"),
        "Collection.question must be 1 to 64 of the characters a-z, 0-9, '.', '_' and '-', got 'No'",
    ),
    (
        lambda: of(version(1, "krr", 1.0, texts(3)), hashed(2, 1.0)),
        "question 'asked' must have only closed alphabets or only open ones, got both",
    ),
    (
        lambda: of(version(1, "urr", 1.0, ["a", "b"], alphabet=TAGGED)),
        "question 'asked' must have collections without tags, because nobody knows how people of another version "
        "would have used them; got 'q' version 1",
    ),
    (
        lambda: of(version(1, "krr", 1.0, texts(3))).check_estimator(ESTIMATORS["em"]()),
        "question 'asked' needs an estimator that decodes pooled estimates, such as eb or projected, got 'em'",
    ),
    (
        NoReportsError,
        lambda: pooled([version(1, "krr", 1.0, texts(3))], [counted([0, 0, 0])]),
        "the versions of this question have no reports",
    ),
    (
        NoReportsError,
        lambda: of(version(1, "krr", 1.0, texts(3))).estimate({}, ESTIMATORS["empirical"]()),
        "no pooled version of this question has reports",
    ),
]
