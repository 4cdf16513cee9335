"""Refusals of a collection's noun: calls and their sentences."""

from __future__ import annotations

from tests.support.ldp.dimensions import PLAIN
from tests.support.refusals.tables import Call, Refusal
from uldp_transforms.ldp import Collection


def called(noun: object) -> Call:
    """Read a collection whose answers have this noun."""
    return lambda: Collection.from_json(PLAIN.to_json() | {"noun": noun})


def of_many(text: object) -> Call:
    """Read a collection with this plural."""
    return called({"one": "flight", "many": text})


_MANY = (
    "Collection.noun.many must be a text of 1 to 40 printable characters without \" & ' < > ` and outer white "
    "space, got "
)
REFUSED: list[Refusal] = [
    (called("flight"), "Collection.noun must be a JSON object, got 'flight'"),
    (called(["flight", "flights"]), "Collection.noun must be a JSON object, got ['flight', 'flights']"),
    (called({"one": "flight"}), "Collection.noun needs the key 'many', got 'one'"),
    (called({"one": "a", "many": "b", "two": "c"}), "Collection.noun takes the keys one, many, got 'two'"),
    (called({"one": 1, "many": "flights"}), _MANY.replace("many", "one") + "1"),
    (of_many(None), f"{_MANY}None"),
    (of_many(""), f"{_MANY}''"),
    (of_many("x" * 41), f"{_MANY}'{'x' * 41}'"),
    (of_many("flights "), f"{_MANY}'flights '"),
    (of_many("two\nlines"), f"{_MANY}'two\\nlines'"),
    (of_many("\u202eflights"), f"{_MANY}'\\u202eflights'"),
    (of_many("<b>flights</b>"), f"{_MANY}'<b>flights</b>'"),
    (of_many("\ud800"), f"{_MANY}'\\ud800'"),
]
