"""Refusals of public blocks: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import Blocks

CITIES = {"berlin": ["mitte", "tegel"], "paris": ["nord", "sud"]}
SITES = {"blocks": ["a.org", "b.org"], "members": {"id": "hashed", "num_buckets": 4}}


def of(blocks: Any = CITIES, mechanism: Any = None, dimensions: Any = None, **fields: Any) -> Callable[[], Any]:
    spec = {"id": "places", "version": 1, "num_cohorts": 2, "dimensions": dimensions}
    spec["alphabet"] = {"id": "blocks", "blocks": blocks} | fields
    spec["mechanism"] = {"id": "krr", "epsilon": 1.0} | (mechanism or {})
    return lambda: Collection.from_json(spec)


def alphabet(blocks: Any = CITIES, **fields: Any) -> Callable[[], Any]:
    return lambda: Blocks(blocks=blocks, **fields)


_LEAST = (
    "Blocks.blocks must have at least two values in every block, because a block of one value says the value in "
    "clear; or leave that value out of Blocks.sensitive; got one in 'mini'"
)
_TREATED = (
    "mechanism.id must be one that treats all values alike, such as krr, ss or uss, for the alphabet blocks, got "
)
REFUSED: list[Refusal] = [
    (alphabet({"mini": ["dorf"], **CITIES}), _LEAST),
    (alphabet({"mini": ["dorf"], **CITIES}, sensitive=["dorf", "nord"]), _LEAST),
    (
        of({"mini": ["dorf"], **CITIES}, sensitive=["nord"]),
        "mechanism.id must be one that protects sensitive values only, such as urr, if a block has none, got 'krr'",
    ),
    (
        alphabet({"berlin": ["mitte", "sud"], "paris": ["nord", "sud"]}),
        "Blocks.blocks: values of all blocks must not repeat an entry (in Unicode NFC), got 'sud' twice",
    ),
    (alphabet({"berlin": ["mitte", "tegel"]}), "Blocks.blocks: names must have at least 2 entries, got 1"),
    (
        alphabet({"a b": ["x", "y"], "a  b": ["z", "w"]}),
        "Blocks.blocks: names must differ in more than white space and invisible characters, got 'a  b' beside 'a b'",
    ),
    (
        alphabet({"a": ["x", "y"], "b": ["x ", "z"]}),
        "Blocks.blocks: values of all blocks must differ in more than white space and invisible characters, got "
        "'x ' beside 'x'",
    ),
    (alphabet(sensitive=[]), "Blocks.sensitive must have at least 1 entry, got 0"),
    (alphabet({**CITIES, "rome": "est"}), "Blocks.blocks: values of 'rome' must be a list of texts, got 'est'"),
    (
        alphabet(["berlin", "paris"]),
        "Blocks.blocks must be an object {block: values}, or a list of blocks beside Blocks.members, got "
        "['berlin', 'paris']",
    ),
    (alphabet(sensitive=["west"]), "Blocks.sensitive must contain only values of Blocks.blocks, got 'west'"),
    (
        alphabet(CITIES, members=SITES["members"]),
        "Blocks.blocks must be a list beside Blocks.members, got {'berlin': ['mitte', 'tegel'], 'paris': "
        "['nord', 'sud']}",
    ),
    (
        alphabet(**SITES, sensitive=["a.org"]),
        "Blocks.sensitive must be absent beside Blocks.members, whose non_sensitive lists the other texts, got "
        "['a.org']",
    ),
    (
        alphabet(["a.org", "b.org/x"], members=SITES["members"]),
        "Blocks.blocks must have no '/', which ends their names, got 'b.org/x'",
    ),
    (
        alphabet(["a.org", "b.org"], members={"id": "closed", "values": ["x", "y"]}),
        "Blocks.members.id must be hashed, because blocks whose members are the same list are a dimension of a "
        "collection of that list, with shares and numbers for each; got 'closed'",
    ),
    (
        alphabet(["a.org", "b.org"], members=SITES["members"] | {"non_sensitive": ["c.org/x"]}),
        "Blocks.members.non_sensitive must be texts such as a.org/..., which begin with a block, got 'c.org/x'",
    ),
    (
        alphabet([str(number) for number in range(65537)], members=SITES["members"]),
        "Blocks.blocks must be at most 65,536 blocks, got 65,537",
    ),
    (
        of(dimensions=[{"name": "city", "values": ["paris", "berlin"]}]),
        "Collection.dimensions must not repeat the blocks of the alphabet, which each report states already, got "
        "the dimension 'city' with the same values",
    ),
    (of(mechanism={"id": "sw"}), f"{_TREATED}'sw'"),
    (of(mechanism={"id": "up"}), f"{_TREATED}'up'"),
    (
        of(mechanism={"epsilon_inf": 2.0}),
        "mechanism.epsilon_inf must be absent for the alphabet blocks, because memos do not hide that a "
        "block changes, got 2.0",
    ),
    (
        lambda: of(**SITES)().perturb(["c.org/x", "a.org"]),
        "a value must be a text such as a.org/..., which begins with one of the 2 blocks, got 1 other text(s)",
    ),
    (
        lambda: of(**SITES)().alphabet.estimated_values(["a.org/x", "c.org/x"]),
        "a candidate must be a text such as a.org/..., which begins with one of the 2 blocks, got 1 other text(s)",
    ),
    (lambda: of()().perturb(["west"]), "Blocks.blocks lists 4 values, got 1 value(s) outside this list"),
]
