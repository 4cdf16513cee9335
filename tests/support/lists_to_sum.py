"""Collections of twelve values, over every kind of list, of which sums are estimated."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from uldp_transforms.ldp import Collection

K = 12
VALUES = tuple(f"v{at:02}" for at in range(K))
ZIPF = 1 / np.arange(1, K + 1) / (1 / np.arange(1, K + 1)).sum()
CLOSED: dict[str, Any] = {"id": "closed", "values": list(VALUES)}
HALF: dict[str, Any] = CLOSED | {"sensitive": list(VALUES[:6])}
HASHED: dict[str, Any] = {"id": "hashed", "num_buckets": 8}
PERMUTED: dict[str, Any] = {"id": "permuted", "values": list(VALUES), "num_buckets": 6}
PUBLIC = [VALUES[9], VALUES[2], VALUES[11]]
LISTED: dict[str, Any] = PERMUTED | {"num_buckets": 5, "sensitive": [value for value in VALUES if value not in PUBLIC]}
BLOCKS: dict[str, Any] = {"id": "blocks", "blocks": {"a": VALUES[:5], "b": VALUES[5:9], "c": VALUES[9:]}}
PARTLY: dict[str, Any] = BLOCKS | {"sensitive": [*VALUES[:3], *VALUES[5:8]]}
LEVELS = [{"epsilon": 0.8, "values": list(VALUES[:3])}, {"epsilon": 2.0, "values": list(VALUES[3:8])}]

ALPHABETS = {
    "closed": CLOSED,
    "half": HALF,
    "hashed": HASHED,
    "permuted": PERMUTED,
    "listed": LISTED,
    "blocks": BLOCKS,
    "partly": PARTLY,
    "leveled": CLOSED | {"sensitive": list(VALUES[:8])},
}


@functools.cache
def collection(mechanism: str, epsilon: float = 1.5, of: str = "closed", **fields: Any) -> Collection:
    alphabet = ALPHABETS[of]
    more = {"num_cohorts": 32} if alphabet["id"] in ("hashed", "permuted") else {}
    named = {"id": mechanism} | ({"levels": LEVELS, "of": "urap"} if mechanism == "levels" else {"epsilon": epsilon})
    spec = {"id": of, "version": 1, "alphabet": alphabet, "mechanism": named | fields}
    return Collection.from_json(spec | more)
