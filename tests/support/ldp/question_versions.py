"""Versions of a question, with other values, mechanisms or budgets."""

from __future__ import annotations

import math

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.versions import VersionedQuestion, questions_of


def texts(size: int) -> list[str]:
    return [f"v{place:02d}" for place in range(size)]


def version(number: int, mechanism: str, epsilon: float, values: list[str], **fields: object) -> Collection:
    """A closed version; mechanisms for some sensitive values protect the first quarter."""
    alphabet: dict[str, object] = {"id": "closed", "values": values}
    if mechanism.startswith("u"):
        alphabet["sensitive"] = values[: math.ceil(len(values) / 4)]
    form = {"id": "q", "version": number, "question": "asked", "alphabet": alphabet}
    return Collection.from_json(form | {"mechanism": {"id": mechanism, "epsilon": epsilon}} | fields)


def hashed(number: int, epsilon: float, cohorts: int = 64, **alphabet: object) -> Collection:
    form = {"id": "q", "version": number, "question": "asked", "num_cohorts": cohorts}
    form["alphabet"] = {"id": "hashed", "num_buckets": 8} | alphabet
    return Collection.from_json(form | {"mechanism": {"id": "krr", "epsilon": epsilon}})


def of(*versions: Collection) -> VersionedQuestion:
    (question,) = questions_of(versions)
    return question
