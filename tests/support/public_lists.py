"""Open alphabets with public lists, reports of them, and what every program's rows of them must be."""

from __future__ import annotations

import functools
from typing import Any

from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

PERIOD = 600_000
NOON = 1_700_000_400_000
PUBLIC = ("tea", "milk", "juice")
CANDIDATES = tuple(f"secret {i:02}" for i in range(20))
SHARES = {"tea": 0.4, "milk": 0.2, "juice": 0.1, "secret 00": 0.2, "secret 07": 0.1}
VALUES = (*CANDIDATES, *PUBLIC)


def of_alphabet(name: str, version: int = 1, **alphabet: Any) -> Collection:
    spec = {
        "id": name,
        "version": version,
        "alphabet": {"num_buckets": 12, "non_sensitive": list(PUBLIC)} | alphabet,
        "mechanism": {"id": "urr", "epsilon": 3.0},
        "num_cohorts": 32,
    }
    if alphabet["id"] == "hashed":
        spec["question"] = "drinks"
        spec["dimensions"] = [{"name": "arm", "values": ["a", "b"]}]
    return Collection.from_json(spec)


DRINKS = of_alphabet("drinks", id="hashed")
NEWER = of_alphabet("newer", 2, id="hashed", num_buckets=10)
WORDS = of_alphabet("words", id="prefixes", tokens=["secret", "tea"], lengths=[1, None])
COLLECTIONS = {"drinks": DRINKS, "newer": NEWER, "words": WORDS}
OPTIONS = " ".join(f"--collection {name}.json" for name in COLLECTIONS) + " --candidates candidates.txt"


def arms(of: Collection, number: int) -> dict[str, list[str]] | None:
    return {"arm": (["a", "b"] * number)[:number]} if of.dimensions else None


@functools.cache
def messages() -> list[bytes]:
    """Packs with the reports of two windows, 12,000 a collection."""
    rng, found = generator("public lists"), []
    for of in COLLECTIONS.values():
        values = rng.choice(list(SHARES), 12_000, p=list(SHARES.values())).tolist()
        times = (NOON + rng.integers(0, 2 * PERIOD, 12_000)).tolist()
        found.append(wire.encode_batch(of.perturb(values, rng, times, arms(of, 12_000))))
    return found


ROWS = 2 * (3 + 1) + 2 * 2 * (2 + 1)
"""Of two windows: of each collection and the question, and of two groups of two collections and the question."""


def check(rows: list[dict[str, Any]], number: int) -> None:
    """Every row has the candidates and the public list, and nobody is unexplained but by noise."""
    assert len(rows) == number
    for row in rows:
        assert (row["status"], row["num_values"]) == ("ok", len(VALUES))
        entries = {entry["value"]: entry for entry in row["estimates"]}
        assert set(entries) == set(VALUES)
        for value, entry in entries.items():  # 8 standard errors: 1 in 10**15
            assert abs(entry["raw_frequency"] - SHARES.get(value, 0)) < 8 * entry["standard_error"]
        if row["unexplained_mass"] is not None:
            assert row["unexplained_mass"] < 8 * row["unexplained_standard_error"]
