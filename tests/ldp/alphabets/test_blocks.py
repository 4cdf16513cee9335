"""Values in public blocks: their order, symbols and JSON form."""

from __future__ import annotations

import json

import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import Blocks, Hashed


def of(blocks: object, **fields: object) -> Collection:
    spec = {"id": "places", "version": 1, "num_cohorts": 4, "alphabet": {"id": "blocks", "blocks": blocks} | fields}
    return Collection.from_json(json.loads(json.dumps(spec | {"mechanism": {"id": "uss", "epsilon": 1.0}})))


def test_the_order_of_the_keys_of_an_object_has_no_meaning() -> None:
    one = of({"paris": ["nord", "sud"], "berlin": ["mitte", "tegel"]})
    other = of({"berlin": ["mitte", "tegel"], "paris": ["nord", "sud"]})
    assert one == other and one.fingerprint == other.fingerprint
    assert one.alphabet.known_values == ("mitte", "tegel", "nord", "sud")
    assert of({"berlin": ["tegel", "mitte"], "paris": ["nord", "sud"]}).fingerprint != one.fingerprint
    assert of({"berlin": ["mitte", "nord"], "paris": ["tegel", "sud"]}).fingerprint != one.fingerprint


def test_sensitive_symbols_of_all_blocks_come_first() -> None:
    alphabet = Blocks(blocks={"a": ["p", "q", "r"], "b": ["s", "t"]}, sensitive=("r", "t", "p"))
    assert alphabet.block_sizes == ((3, 2), (2, 1)) and (alphabet.num_symbols, alphabet.num_sensitive) == (5, 3)
    table = alphabet.symbol_table(("p", "r", "t", "q", "s"), 1)
    assert table.tolist() == [[0, 1, 2, 3, 4]] and alphabet.client_rule["symbols"] == ["p", "r", "t", "q", "s"]


def test_texts_are_hashed_whole_into_the_buckets_of_their_block() -> None:
    members = Hashed(num_buckets=5, seed=3)
    alphabet = Blocks(blocks=["a.org", "b.org"], members=members)
    texts = ("a.org/x", "b.org/x", "b.org")
    expected = members.symbol_table(texts, 8) + np.array([0, 5, 5])
    np.testing.assert_array_equal(alphabet.symbol_table(texts, 8), expected)
    assert [alphabet.block_of(text) for text in (*texts, "c.org/x", "a.organ", "")] == [0, 1, 1, -1, -1, -1]


def test_a_block_has_the_listed_texts_that_begin_with_it() -> None:
    members = Hashed(num_buckets=4, non_sensitive=("b/x", "a/y", "b"), num_clear_buckets=2)
    alphabet = Blocks(blocks=["a", "b", "c"], members=members)
    assert [one.clear_values for one in alphabet.block_members] == [("a/y",), ("b/x", "b"), ()]
    assert alphabet.block_sizes == ((6, 4), (6, 4), (4, 4))
    assert not alphabet.has_own_symbol(("b/x",)).any()
    with_own = Blocks(blocks=["a", "b", "c"], members=Hashed(num_buckets=4, non_sensitive=("b/x", "a/y", "b")))
    assert with_own.has_own_symbol(("b/x", "b/z", "b")).tolist() == [True, False, True]
    assert with_own.symbol_table(("a/y", "b/x", "b"), 2).tolist() == [[12, 13, 14]] * 2


def test_the_json_form_gives_an_equal_alphabet() -> None:
    for item in (of({"b": ["x", "y"], "a": ["z", "w"]}), of(["b", "a"], members={"id": "hashed", "num_buckets": 3})):
        again = Collection.from_json(json.loads(json.dumps(item.to_json())))
        assert again == item and hash(again) == hash(item) and again.alphabet.to_json() == item.alphabet.to_json()
