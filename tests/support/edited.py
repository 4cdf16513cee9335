"""JSON objects of which one value was changed, at a dotted path."""

from __future__ import annotations

import copy
from typing import Any

ABSENT = object()
"""Instead of a value: the key is taken out."""


def edited(spec: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with another value at a path such as ``"sampler.weights.0"``, or without its key."""
    result = copy.deepcopy(spec)
    *parents, last = path.split(".")
    inner: Any = result
    for key in parents:
        inner = inner[_key(inner, key)]
    if value is ABSENT:
        del inner[_key(inner, last)]
    else:
        inner[_key(inner, last)] = value
    return result


def _key(inner: Any, name: str) -> str | int:
    return int(name) if isinstance(inner, list) else name
