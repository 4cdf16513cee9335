"""Collections and counts that liars may have been in."""

from __future__ import annotations

from typing import Any

import numpy as np

from uldp_transforms.ldp import CohortCounts, Collection

VALUES = {"id": "closed", "values": list("abcde")}
SOME = VALUES | {"sensitive": ["a", "b", "c"]}
TWO = {"id": "closed", "values": ["no", "yes"]}
CLOSED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "krr": (VALUES, {"id": "krr", "epsilon": 1.0}),
    "two": (TWO, {"id": "krr", "epsilon": 1.0}),
    "urr": (SOME, {"id": "urr", "epsilon": 1.0}),
    "ss": (VALUES, {"id": "ss", "epsilon": 1.0, "subset_size": 2}),
    "uss": (SOME, {"id": "uss", "epsilon": 1.0, "subset_size": 2}),
    "rappor": (VALUES, {"id": "rappor", "epsilon": 1.0}),
    "urap": (SOME, {"id": "urap", "epsilon": 1.0}),
    "hr": (VALUES, {"id": "hr", "epsilon": 1.0}),
    "memos": (VALUES, {"id": "krr", "epsilon": 1.0, "epsilon_inf": 2.0}),
}


def of(alphabet: dict[str, Any], mechanism: dict[str, Any], **fields: Any) -> Collection:
    return Collection.from_json({"id": "c", "version": 1, "alphabet": alphabet, "mechanism": mechanism} | fields)


def counts_of(collection: Collection, payloads: np.ndarray) -> CohortCounts:
    cells = collection.mechanism.count(payloads, np.zeros(len(payloads), dtype=np.int64), 1)
    return CohortCounts(np.array([len(payloads)]), cells)
