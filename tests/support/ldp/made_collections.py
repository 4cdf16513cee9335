"""Collections of tests, from an alphabet and a mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uldp_transforms.ldp import Collection


def made(alphabet: Mapping[str, Any], mechanism: Mapping[str, Any], num_cohorts: int = 1, id: str = "c") -> Collection:
    """A collection of version 1."""
    form = {"id": id, "version": 1, "alphabet": dict(alphabet), "mechanism": dict(mechanism)}
    return Collection.from_json(form | {"num_cohorts": num_cohorts})
