"""Small studies whose reports all programs of the table read: collections, and the messages of their people."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence

import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

HOUR = 3_600_000
START = 999_993_600_000
"""Start of the first window: 2001-09-09T00:00:00Z."""

WINDOWS = 2
"""Number of windows of an hour."""

PEOPLE = 240
"""Reports of each collection in each window."""

ARM = {"dimensions": [{"name": "arm", "values": ["control", "new"]}]}
FOODS = ("rice", "bread", "meat", "fish")
TEXTS = ("anna", "bern", "abba", "rabe")
WORDS = ("banana", "cherry")
TOKENS = ["ba", "na", "che", "rry", "el", "der"]


@dataclasses.dataclass(frozen=True)
class Study:
    """Collections that one job counts, and the values of their people, the most frequent one first."""

    of: tuple[Collection, ...]
    values: Sequence[str]
    people: int = PEOPLE


def _collection(name: str, alphabet: dict[str, object], mechanism: dict[str, object], **more: object) -> Collection:
    chosen = mechanism if "levels" in mechanism else {"epsilon": 4.0} | mechanism
    spec = {"id": name, "version": 1, "alphabet": alphabet, "mechanism": chosen}
    return Collection.from_json(spec | more)


BLOCKS = {"id": "blocks", "blocks": {"plants": ["rice", "bread"], "animals": ["meat", "fish"]}}
CLOSED: dict[str, object] = {"id": "closed", "values": list(FOODS)}
MINUTES = {"id": "ordered", "low": 0, "high": 120, "num_bins": 6, "unit": "min"}
PREFIXES = {"id": "prefixes", "num_buckets": 24, "tokens": TOKENS, "lengths": [1, None]}
MEMOS = {"id": "krr", "epsilon": 3.0, "epsilon_inf": 4.0}

LEVELS = [{"epsilon": 0.3, "values": ["meat"]}, {"epsilon": 8.0, "values": ["rice", "bread"]}]

STUDIES = {
    "foods": Study((_collection("foods", CLOSED, {"id": "krr"}, **ARM),), FOODS),
    "dishes": Study((_collection("dishes", BLOCKS, {"id": "krr"}, **ARM),), FOODS),
    "minutes": Study((_collection("minutes", MINUTES, {"id": "sw"}, **ARM),), ("24", "31.5", "70", "119")),
    "hosts": Study(
        (_collection("hosts", {"id": "hashed", "num_buckets": 8}, {"id": "krr"}, num_cohorts=16, **ARM),), TEXTS
    ),
    "words": Study((_collection("words", PREFIXES, {"id": "krr"}, num_cohorts=64),), WORDS, people=3_000),
    "diet": Study(
        (
            _collection("diet", CLOSED, {"id": "krr"}, question="diet", **ARM),
            _collection("diet", CLOSED, {"id": "ss"}, question="diet", **ARM | {"version": 2}),
        ),
        FOODS,
    ),
    "leveled": Study(
        (_collection("leveled", CLOSED | {"sensitive": list(FOODS[:3])}, {"id": "levels", "levels": LEVELS}, **ARM),),
        FOODS,
    ),
    "bits": Study((_collection("bits", CLOSED, {"id": "rappor"}, **ARM),), FOODS),
    "memos": Study((_collection("memos", CLOSED, MEMOS, client_window="30m", **ARM),), FOODS),
    "fresh": Study((_collection("memos", CLOSED, MEMOS, client_window="1h", **ARM),), FOODS),
}
"""``memos`` and ``fresh`` differ in how often a person reports in a window of an hour: twice, and once."""


@functools.cache
def messages(name: str, start: int = START, windows: int = WINDOWS) -> tuple[bytes, ...]:
    """One message for each collection and window, and one of a collection that nobody declared."""
    found = list(_messages(STUDIES[name], start, windows))
    stranger = bytearray(found[0])
    stranger[1] ^= 0xFF
    return (*found, bytes(stranger))


def _messages(study: Study, start: int, windows: int) -> Iterator[bytes]:
    rng = np.random.default_rng(45)
    weights = 1 / np.arange(1, len(study.values) + 1)
    for collection in study.of:
        for window in range(windows):
            arms = rng.choice(["control", "new"], study.people)
            places = rng.choice(len(study.values), study.people, p=weights / weights.sum()) + (arms == "new")
            values = [study.values[place % len(study.values)] for place in places]
            times = np.full(study.people, start + window * HOUR)
            dimensions = {"arm": arms.tolist()} if collection.dimensions else None
            yield wire.encode_batch(collection.perturb(values, rng, times, dimensions))
