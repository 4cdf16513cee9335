"""What each mechanism declares of itself, and its schema as it is published."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cases import MECHANISM_CASES
from tests.support.protection_lists import LISTS, members
from uldp_transforms.ldp.mechanisms import MECHANISMS, DeclaredChannel, Mechanism, UtilityOptimizedRappor
from uldp_transforms.schemas import load

TRAITS = {  # and the mechanisms that have them
    "protects_all": {"krr", "rappor", "ss", "agrr", "aoue", "tsp", "up", "hr", "channel", "sw"},
    "last_is_missing": {"tsp", "up"},
    "independent_bits": {"rappor", "urap", "aoue"},
    "one_place": {"krr", "urr", "agrr", "tsp", "up", "channel", "sw", "usw"},
    "names_values": {"agrr", "aoue", "tsp", "channel", "sw", "usw", "levels"},
    "has_closed_form": {"krr", "urr", "agrr", "up"},
}


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_each_mechanism_has_its_traits(name: str) -> None:
    cls = MECHANISMS[name]
    assert [trait for trait in TRAITS if getattr(cls, trait)] == [
        trait for trait, names in TRAITS.items() if name in names
    ]
    assert cls.max_hashes == (16 if name == "rappor" else 1)
    assert cls.alike_in_blocks is (name not in ("channel", "sw", "usw", "levels"))


def test_a_new_mechanism_has_no_traits_until_it_declares_them() -> None:
    assert not any(getattr(Mechanism, flag) for flag in TRAITS)
    assert (Mechanism.max_hashes, Mechanism.alike_in_blocks) == (1, True)


def resolved(entry: Any, definitions: dict[str, Any]) -> Any:
    """A schema with the definitions in place of references to them."""
    if isinstance(entry, dict) and "$ref" in entry:
        return definitions[entry["$ref"].rsplit("/", 1)[1]]
    return {key: resolved(inner, definitions) for key, inner in entry.items()} if isinstance(entry, dict) else entry


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_its_schema_is_the_published_one(name: str) -> None:
    definitions = load("collection.schema.json")["$defs"]
    assert resolved(definitions[name], definitions) == MECHANISMS[name].json_schema()


@pytest.mark.parametrize(("num_sensitive", "pairs"), [(2, 1), (256, 256 * 255 // 2), (257, 0)])
def test_pairs_of_up_to_256_bits_are_counted(num_sensitive: int, pairs: int) -> None:
    mechanism = UtilityOptimizedRappor(num_symbols=300, num_sensitive=num_sensitive, epsilon=1.0)
    assert mechanism.num_patterns == num_sensitive + 1 + pairs


# ---------------------------------------------------------------------- what reports reveal

DIRECT = (("1", "0"), ("0", "1"))
FORCED_YES = (("1/2", "0"), ("1/2", "1"))  # only one symbol sends output 0
RULES_OUT = (("1/2", "1/2", "0"), ("1/2", "0", "1/2"), ("0", "1/2", "1/2"))  # every output has two senders
INFINITE = [
    DeclaredChannel(num_symbols=len(matrix[0]), num_sensitive=1, matrix=matrix)
    for matrix in (DIRECT, FORCED_YES, RULES_OUT)
]


def reveals(of: Mechanism) -> bool:
    """Whether a report has one possible sender, by enumeration of the channel."""
    return any(sum(share > 0 for share in row) == 1 for row in of.channel()[1])


def test_forced_answers_reveal_and_rules_of_exclusion_do_not() -> None:
    assert [of.sends_clear for of in INFINITE] == [True, True, False]
    assert all(of.caveats[0].startswith("No epsilon holds: output 0 rules out symbol") for of in INFINITE)


def test_pages_put_each_mechanism_in_one_list() -> None:
    """TSP reveals whether an answer is missing, where the declared rates need no noise: its own caveat says so."""
    assert sorted(name for each in LISTS for name in members(each)) == sorted(MECHANISMS)
    assert members("some reports are in clear") == ["urr", "urap", "uss", "uhr", "usw", "levels"]
    assert members("epsilon is derived") == ["channel"]
    clear = [of for of in MECHANISM_CASES["tsp"] if of.sends_clear]
    assert clear and all("is missing is reported in clear" in of.caveats[0] for of in clear)
