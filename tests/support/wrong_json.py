"""JSON in which one place holds something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = ([], None, 1, True, {}, [[]], [None], 1.5, -1, "", "x", [{}], float("nan"), 10**400, {"id": []})
"""Lists, objects, numbers and texts, also such as JSON does not have."""


def spoiled(value: Any, depth: int = 9) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each place of a JSON value down to a depth (of lists the first two items), and the value with something else
    there."""
    for odd in ODD:
        yield (), odd
    if depth and isinstance(value, dict):
        for key, inner in value.items():
            for place, other in spoiled(inner, depth - 1):
                yield (key, *place), value | {key: other}
    if depth and isinstance(value, list):
        for at, inner in enumerate(value[:2]):
            for place, other in spoiled(inner, depth - 1):
                yield (at, *place), [*value[:at], other, *value[at + 1 :]]
