"""Refusals of estimates in notebooks: calls and their sentences."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp import Collection, Estimate

VALUES = [f"value {at:02}" for at in range(25)]
CLOSED = {"id": "closed", "values": VALUES}
HASHED = {"id": "hashed", "num_buckets": 8}
KRR = {"id": "krr", "epsilon": 3.0}
FIELDS: dict[str, Any] = {"id": "shown", "version": 1, "mechanism": KRR}


def estimate_of(values: list[str], alphabet: dict[str, Any] = CLOSED, candidates: list[str] | None = None) -> Estimate:
    more = {"num_cohorts": 16} if alphabet is HASHED else {}
    collection = Collection.from_json(FIELDS | {"alphabet": alphabet} | more)
    return collection.estimate(collection.count(collection.perturb(values, np.random.default_rng(1))), "eb", candidates)


def without(name: str, call: Callable[[Estimate], object]) -> Callable[[], object]:
    """A call on an estimate where a package cannot be imported."""
    real = builtins.__import__

    def importing(asked: str, *args: Any, **kwargs: Any) -> Any:
        if asked.split(".", maxsplit=1)[0] == name:
            raise ImportError(asked)
        return real(asked, *args, **kwargs)

    def calling() -> object:
        shown = estimate_of(["value 00"] * 100)
        with mock.patch.object(builtins, "__import__", importing):
            return call(shown)

    return calling


REFUSED: list[Refusal] = [
    (
        ImportError,
        without("pandas", Estimate.to_frame),
        "Estimate.to_frame needs pandas; install it, or the extra 'notebook' of this package",
    ),
    (
        ImportError,
        without("altair", Estimate.plot),
        "Estimate.plot needs altair; install the extra 'plot' of this package",
    ),
]
