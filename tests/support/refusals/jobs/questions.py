"""Refusals of versions of a question in jobs: calls and their sentences."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.support.messages_cases import KRR
from tests.support.refusals.tables import Refusal
from uldp_transforms import JobSpec
from uldp_transforms.beam.transforms.pool_versions import PoolVersions
from uldp_transforms.ldp import Collection

OLD = dataclasses.replace(KRR, id="diet", question="diet")


def job(*collections: Collection, **fields: Any) -> JobSpec:
    return JobSpec(collections=collections, **fields)


REFUSED: list[Refusal] = [
    (lambda: PoolVersions(job(KRR)), "PoolVersions needs a collection that names a question, got none"),
    (
        lambda: job(OLD, estimator="em"),
        "question 'diet' needs an estimator that decodes pooled estimates, such as eb or projected, got 'em'",
    ),
]
