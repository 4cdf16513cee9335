"""A collection with a dimension that the door sets, not the client."""

from __future__ import annotations

from typing import Any

from tests.support.messages_cases import numbered
from uldp_transforms.ldp import Collection

COUNTRY = {"name": "country", "values": ["DE", "FR", "\u00c9"], "set_by": "gateway"}
ARM = {"name": "arm", "values": ["control", "new"]}
NET = {"name": "net", "values": ["fast"], "set_by": "attribute"}
KEYS = (("country", "cc"),)


def of(*dimensions: dict[str, Any], num_cohorts: int = 2, name: str = "krr") -> Collection:
    spec = {"id": name, "version": 1, "alphabet": numbered(3), "mechanism": {"id": "krr", "epsilon": 1.0}}
    return Collection.from_json(spec | {"num_cohorts": num_cohorts, "dimensions": list(dimensions)})


ALL = of(ARM, COUNTRY, NET)
