"""What each mechanism declares of itself, and its schema as it is published."""

from __future__ import annotations

from typing import Any

import pytest

from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism, UtilityOptimizedRappor
from uldp_transforms.schemas import load

TRAITS = {  # and the mechanisms that have them
    "protects_all": {"krr", "rappor", "ss", "agrr", "aoue", "tsp", "up", "hr", "channel", "sw"},
    "last_is_missing": {"tsp", "up"},
    "independent_bits": {"rappor", "urap", "aoue"},
    "one_place": {"krr", "urr", "agrr", "tsp", "up", "channel", "sw", "usw"},
    "names_values": {"agrr", "aoue", "tsp", "channel", "sw", "usw"},
    "has_closed_form": {"krr", "urr", "agrr", "up"},
}


@pytest.mark.parametrize("name", list(MECHANISMS))
def test_each_mechanism_has_its_traits(name: str) -> None:
    cls = MECHANISMS[name]
    assert [trait for trait in TRAITS if getattr(cls, trait)] == [
        trait for trait, names in TRAITS.items() if name in names
    ]
    assert cls.max_hashes == (16 if name == "rappor" else 1)
    assert cls.alike_in_blocks is (name not in ("channel", "sw", "usw"))


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
