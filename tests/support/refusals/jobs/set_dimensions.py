"""Refusals of dimensions that the door sets: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.support.messages.set_dimensions import ALL, ARM, KEYS, of
from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp import Collection
from uldp_transforms.messages.set_groups import SetGroups


def door(keys: Sequence[tuple[str, str]], *collections: Collection) -> Callable[[], SetGroups]:
    return lambda: SetGroups(collections or (ALL,), "gateway", tuple(keys))


REFUSED: list[Refusal] = [
    (door([]), "--dimension must say what gives 'country' (set_by gateway), got none"),
    (door([*KEYS, ("arm", "x")]), "--dimension must name a dimension with set_by gateway: country, got 'arm'"),
    (
        door(KEYS, of(ARM)),
        "--dimension must name a dimension with set_by gateway: the collections have none, got 'country'",
    ),
    (door([*KEYS, *KEYS]), "--dimension must give each dimension once, got 'country' twice"),
]
