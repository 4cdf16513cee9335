"""Refusals of fields: ``constructed.yaml`` has those of each class, and its sentence."""

from __future__ import annotations

from typing import Any

from tests.support.cases import COLLECTIONS
from tests.support.refusals.tables import rows_in
from uldp_transforms.ldp import Budget, Collection
from uldp_transforms.ldp.alphabets import ALPHABETS
from uldp_transforms.ldp.mechanisms import MECHANISMS

_REGISTERED = [table[name] for table in (ALPHABETS, MECHANISMS) for name in table]
CLASSES: dict[str, Any] = {cls.__name__: cls for cls in (Budget, *_REGISTERED)}


def constructed(name: str, fields: dict[str, Any]) -> Any:
    """An object of a class; a collection is ``closed-krr`` with other fields."""
    if name == "Collection":
        return Collection.from_json(COLLECTIONS["closed-krr"].to_json() | fields)
    return CLASSES[name](**fields)


REFUSED = [*rows_in(__file__, constructed)]
