"""Configurations for a file of values: every applicable mechanism, and the reasons against the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism
from uldp_transforms_planner.planning import OpenQuestion


@dataclasses.dataclass(frozen=True, kw_only=True)
class Way:
    """A mechanism with an epsilon.

    Attributes:
        mechanism: id of the mechanism.
        epsilon: epsilon of one report; None if the mechanism is not applicable for any epsilon.
        collection: collection to try; None if the mechanism is not applicable.
        reason: why it is not applicable; None if it is.
    """

    mechanism: str
    epsilon: float | None = None
    collection: Collection | None = None
    reason: str | None = None

    def drawn(self, rng: np.random.Generator) -> Collection:
        """The collection with a new random seed of its hash functions, if it has any."""
        assert self.collection is not None, "there is a reason why not"
        spec = self.collection.to_json()
        if "seed" not in spec["alphabet"]:
            return self.collection
        return Collection.from_json(spec | {"alphabet": spec["alphabet"] | {"seed": int(rng.integers(1 << 40))}})


def closed_ways(
    names: Sequence[str] | None, epsilons: Sequence[float], values: Sequence[str], sensitive: Sequence[str] | None
) -> Iterator[Way]:
    """Configurations for a known list of values; named mechanisms are also tried if all values are sensitive."""
    for name in names or MECHANISMS:
        cls = MECHANISMS[name]
        why = _why_not(cls, has_others=sensitive is not None or names is not None)
        if why is not None:
            yield Way(mechanism=name, reason=why)
            continue
        some = {} if cls.protects_all or sensitive is None else {"sensitive": list(sensitive)}
        for epsilon in epsilons:
            mechanism = {"id": name, "epsilon": epsilon}
            alphabet = {"id": "closed", "values": list(values)} | some
            spec = {"id": "evaluation", "version": 1, "alphabet": alphabet, "mechanism": mechanism}
            yield Way(mechanism=name, epsilon=epsilon, collection=Collection.from_json(spec))


def open_ways(
    names: Sequence[str] | None, epsilons: Sequence[float], question: OpenQuestion, num_reports: int
) -> Iterator[Way]:
    """Configurations for hashed texts, with the buckets and cohorts that ``uldp plan`` chooses."""
    setups = question.setups(num_reports)
    for name in names or MECHANISMS:
        why = _why_not(MECHANISMS[name], has_others=question.num_non_sensitive > 0)
        if why is not None:
            yield Way(mechanism=name, reason=why)
            continue
        for epsilon in epsilons:
            setup = setups[name](epsilon)
            if setup is None:
                few = "no collection has enough cohorts for this many candidates"
                yield Way(mechanism=name, epsilon=epsilon, reason=few)
                continue
            spec: dict[str, Any] = {"id": "evaluation", "version": 1, "num_cohorts": setup.num_cohorts}
            spec |= {"alphabet": question.named_alphabet(setup), "mechanism": setup.mechanism.to_json()}
            yield Way(mechanism=name, epsilon=epsilon, collection=Collection.from_json(spec))


def _why_not(cls: type[Mechanism], *, has_others: bool) -> str | None:
    """Why a mechanism cannot be tried on general values, some of which may be non-sensitive; None if it can."""
    fields = (field for field in cls.json_fields() if field.default is dataclasses.MISSING)
    needed = [field.name for field in fields if field.name != "epsilon"]
    if needed:
        return f"it needs {' and '.join(needed)}, which only a collection can declare"
    if cls.names_values:
        return "it needs values in an order, which those of a column need not have"
    if cls.last_is_missing:
        return "it reserves its last value for missing answers"
    if not cls.protects_all and not has_others:
        return "it protects only sensitive values, and here all values are sensitive; see --sensitive"
    return None
