"""Refusals of levels of values: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import Closed
from uldp_transforms.ldp.mechanisms import NestedLevels

SOME = {"id": "closed", "values": ["a", "b", "c", "d", "e"], "sensitive": ["a", "b", "c"]}
EVERYTHING = {"id": "closed", "values": ["a", "b", "c"]}
HASHED = {"id": "hashed", "num_buckets": 4, "non_sensitive": ["x", "y", "z"]}
FIRST, SECOND = {"epsilon": 1, "values": ["a"]}, {"epsilon": 2, "values": ["b", "c"]}
REST = {"epsilon": 1}
FOLDED = {"id": "permuted", "values": ["a", "b", "c", "d"], "num_buckets": 2, "seed": 7}
BINS = {"id": "ordered", "low": 0, "high": 10, "num_bins": 5}
CITIES = {"id": "blocks", "blocks": {"berlin": ["a", "b"], "paris": ["c", "d"]}}


def of(*levels: Any, alphabet: Any = SOME, **fields: Any) -> Callable[[], Collection]:
    """Makes a collection with these levels."""
    mechanism = {"id": "levels", "levels": list(levels)} | fields
    cohorts = {"num_cohorts": 8} if alphabet["id"] == "hashed" else {}
    return lambda: Collection.from_json(
        {"id": "q", "version": 1, "alphabet": alphabet, "mechanism": mechanism} | cohorts
    )


def other_symbols() -> Collection:
    """Levels that were made for another order of the values than that of the alphabet."""
    mechanism = NestedLevels(num_symbols=5, num_sensitive=3, levels=(FIRST, SECOND))
    alphabet = Closed(values=("a", "b", "c", "d", "e"), sensitive=("c", "b", "a"))
    return Collection(id="q", version=1, alphabet=alphabet, mechanism=mechanism)


_STRANGER = (
    "mechanism.levels must have values that are sensitive (bins as in rows, such as '[2, 4)'), or on the public list "
    "of hashed texts, and that share no bucket with other values, got "
)
_EVERY = (
    "mechanism.levels must have a level for every sensitive value (of hashed texts a first one without a list), got "
    "none for "
)
_MORE = "mechanism.levels must have epsilons that increase, got 1 after "

REFUSED: list[Refusal] = [
    (of(FIRST, SECOND, of="krr"), "mechanism.of must be one of urr, uss, urap, got 'krr'"),
    (of(FIRST, SECOND, of=["uss"]), "mechanism.of must be one of urr, uss, urap, got ['uss']"),
    (of(FIRST, SECOND, epsilon_inf=3), "mechanism takes the keys levels, of, got 'epsilon_inf'"),
    (of(SECOND, FIRST), f"{_MORE}2"),
    (of(FIRST, SECOND | {"epsilon": 1}), f"{_MORE}1"),
    (
        of(FIRST),
        "mechanism.levels must be at least 2 levels (one is the mechanism urr, uss or urap itself), got 1",
    ),
    (
        lambda: NestedLevels(num_symbols=5, num_sensitive=3, levels="ab"),
        "NestedLevels.levels must be a list of levels, got 'ab'",
    ),
    (of(1, 2), "mechanism.levels[0] must be a JSON object, got 1"),
    (of(FIRST, REST), "mechanism.levels[1] needs the key 'values', got 'epsilon'"),
    (of(FIRST | {"epsilon": 0}, SECOND), "mechanism.levels[0].epsilon must be a number in (0, 16], got 0"),
    (of(FIRST, SECOND | {"epsilon": 17}), "mechanism.levels[1].epsilon must be a number in (0, 16], got 17"),
    (
        of(FIRST | {"epsilon": 1e-20}, SECOND),
        "mechanism.levels must have epsilons with a signal in 64-bit weights, got 1e-20",
    ),
    (of(FIRST | {"values": []}, SECOND), "mechanism.levels[0].values must have at least 1 entry, got 0"),
    (of(FIRST | {"values": None}, SECOND), "mechanism.levels[0].values must be a list of texts, got None"),
    (
        of(FIRST | {"values": ["a", "b"]}, SECOND),
        "mechanism.levels together must not repeat an entry (in Unicode NFC), got 'b' twice",
    ),
    (of(FIRST | {"values": ["z"]}, SECOND), f"{_STRANGER}'z'"),
    (of(FIRST, SECOND | {"values": ["b", "c", "d"]}), f"{_STRANGER}'d'"),
    (of(FIRST, SECOND | {"values": ["b"]}), f"{_EVERY}1"),
    (
        of(REST, SECOND | {"values": ["a", "b", "c"]}),
        "mechanism.levels[0] must have values, got no list and no value that has no other level",
    ),
    (
        of(FIRST | {"values": ["a", "b"]}, SECOND | {"values": ["c"]}, alphabet=EVERYTHING),
        "mechanism.levels must have two values in the last level if none is sent in clear, got one",
    ),
    (of(FIRST | {"values": ["x"]}, SECOND | {"values": ["y"]}, alphabet=HASHED), f"{_EVERY}4"),
    (
        of(REST, SECOND | {"values": ["z"]}, alphabet=HASHED),
        "mechanism.levels must have the first texts of the public list, got later ones without these",
    ),
    (
        of(REST, SECOND | {"values": ["x"]}, alphabet=HASHED | {"num_clear_buckets": 2}),
        f"{_STRANGER}'x'",
    ),
    (of(FIRST, SECOND, alphabet=FOLDED), f"{_STRANGER}'a'"),
    (of(REST, SECOND | {"values": ["[0, 2)", "[2, 4)"]}, alphabet=BINS), f"{_STRANGER}'[0, 2)'"),
    *[
        (
            of(first, second, alphabet=CITIES),
            "mechanism.id must be one that treats all values alike, such as krr, ss or uss, for the alphabet blocks, "
            "got 'levels'",
        )
        for first, second in [(FIRST, SECOND | {"values": ["b", "c", "d"]}), (REST, SECOND), (FIRST, SECOND)]
    ],
    (
        other_symbols,
        "Collection.mechanism must have the symbols of the alphabet, got symbol 0 instead of 2 for 'a'",
    ),
]
