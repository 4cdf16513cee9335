"""Refusals of dimensions in jobs: calls and their sentences."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.support import cases
from tests.support.ldp.dimensions import GROUPED, PLAIN, SPEC
from tests.support.refusals.tables import Refusal
from uldp_transforms import JobSpec
from uldp_transforms.ldp import Collection

WIDE = Collection.from_json(
    SPEC | {"id": "wide", "dimensions": [{"name": "arm", "values": list(map(str, range(40)))}], "num_cohorts": 3}
)
OTHERWISE = Collection.from_json(
    SPEC
    | {"id": "otherwise", "dimensions": [{"name": "country", "values": ["DE"]}]}
    | {"mechanism": {"id": "rappor", "epsilon": 2.0}}
)
COLLECTIONS = [GROUPED, WIDE, OTHERWISE, dataclasses.replace(PLAIN, id="plain")]


def of(**fields: Any) -> Any:
    return lambda: JobSpec.of(**{"collections": [GROUPED, COLLECTIONS[3]]} | fields)


_NAMED = "JobSpec.by must name dimensions that a collection of the job has"
REFUSED: list[Refusal] = [
    (of(by=["arm", "arm"]), "JobSpec.by must name each dimension once, got arm, arm"),
    (of(by="arm,planet"), f"{_NAMED} (arm, country), got arm, planet"),
    (of(by="arm", collections=[PLAIN]), f"{_NAMED} (none has any), got arm"),
    (of(by=5), "JobSpec.by must be a list of names, or a text such as country,arm, got 5"),
    (of(by=[5]), "JobSpec.by must be a list of names, or a text such as country,arm, got (5,)"),
    (
        of(by="arm", discover=True, collections=[GROUPED, cases.COLLECTIONS["prefixes-krr"]]),
        "JobSpec.by cannot be combined with JobSpec.discover, which searches all reports together, got both",
    ),
    (of(by="arm", discover=True), "JobSpec.discover needs a collection with the alphabet prefixes, got closed, closed"),
]
