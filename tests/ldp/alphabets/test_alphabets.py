"""Values become symbols: what all alphabets share, and the hash family against its specification.

More about public lists in ``test_hashed_uldp``, about tags in ``test_tagged``.
"""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.clients.independent import hash_word
from tests.support import cases
from tests.support.cases import DECOMPOSED, SENSITIVE, VALUES, alphabets, golden
from tests.support.tolerance import chi_square_limits
from uldp_transforms.ldp import SpecError
from uldp_transforms.ldp.alphabets import Closed, Hashed, Ordered, Permuted, Prefixes, Tagged
from uldp_transforms.ldp.hashing import canonical, hash_words
from uldp_transforms.ldp.sampling import WORD, uniform_integers

SPECIFICATION = Path(__file__).parents[3] / "docs" / "hashing.md"


# ---------------------------------------------------------------------- an independent reading of the specification


def reference_bucket(word: int, num_buckets: int) -> int:
    return word * num_buckets >> 64


def reference_permutation(values: list[str], seed: int, cohort: int, num_buckets: int) -> list[int]:
    ranked = sorted(range(len(values)), key=lambda i: (hash_word(values[i], seed, cohort), i))
    return [ranked.index(i) % num_buckets for i in range(len(values))]


# ---------------------------------------------------------------------- golden vectors

GOLDEN_VALUES = ("ATL", "atl", "", " ", "\x00", DECOMPOSED, "\N{ANGSTROM SIGN}ngström", "日本語", "🦊", "long " * 200)
GOLDEN_SEEDS = (0, 1, WORD - 1)
GOLDEN_COHORTS = (0, 1, 20, 21, 4095)  # one block of SHAKE-128 holds 21 words
GOLDEN_BUCKETS = (2, 3, 256, 65_536)


def propose_words() -> list[dict]:
    return [
        {"value": value, "seed": seed, "cohort": cohort, "word": f"{word:016x}"}
        | {"buckets": {str(k): reference_bucket(word, k) for k in GOLDEN_BUCKETS}}
        for value in GOLDEN_VALUES
        for seed in GOLDEN_SEEDS
        for cohort in GOLDEN_COHORTS
        for word in [hash_word(value, seed, cohort)]
    ]


def propose_permutations() -> list[dict]:
    values = list(GOLDEN_VALUES[:-1])
    return [
        {"values": values, "seed": seed, "cohort": cohort, "num_buckets": k}
        | {"buckets": reference_permutation(values, seed, cohort, k)}
        for seed in GOLDEN_SEEDS
        for cohort in GOLDEN_COHORTS
        for k in (2, 4, len(values))
    ]


def golden_vectors(key: str) -> list[dict]:
    """The vectors of the golden file that have a key."""
    return [vector for vector in golden("hashing.json", propose_vectors) if key in vector]


def propose_vectors() -> list[dict]:
    return propose_words() + propose_permutations()


def test_golden_hash_words_and_buckets():
    for vector in golden_vectors("value"):
        value, seed, cohort = canonical(vector["value"]), vector["seed"], vector["cohort"]
        words = hash_words((value,), seed, cohort + 1)
        assert words.dtype == np.uint64
        assert f"{words[0, cohort]:016x}" == vector["word"], vector
        for k, bucket in vector["buckets"].items():
            table = Hashed(num_buckets=int(k), seed=seed).symbol_table((value,), cohort + 1)
            assert table[cohort].tolist() == [bucket], vector


def test_golden_permutations():
    for vector in golden_vectors("values"):
        alphabet = Permuted(values=vector["values"], num_buckets=vector["num_buckets"], seed=vector["seed"])
        table = alphabet.symbol_table(alphabet.values, vector["cohort"] + 1)
        assert table[vector["cohort"]].tolist() == vector["buckets"], vector


def test_golden_vectors_are_those_of_the_reference():
    assert golden("hashing.json", propose_vectors) == propose_vectors()


def test_missing_golden_file_fails_and_is_proposed(tmp_path, monkeypatch):
    monkeypatch.setattr(cases, "GOLDEN", tmp_path)
    with pytest.raises(pytest.fail.Exception, match="review and commit it"):
        golden("new.json", lambda: [{"a": 1}, {"a": 2}])
    assert golden("new.json", list) == [{"a": 1}, {"a": 2}]


def table_rows(heading: str) -> list[list[str]]:
    """Rows of the table below a heading of the specification; cells without their code marks."""
    section = SPECIFICATION.read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line.strip("| ") for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip(" `") for cell in line.split("|")] for line in lines[1:]]


def test_specification_lists_true_words_and_buckets():
    rows = table_rows("Golden words")
    assert len(rows) >= 6
    for value, seed, cohort, word, k, bucket in rows:
        words = hash_words((canonical(json.loads(value)),), int(seed), int(cohort) + 1)[0]
        assert f"0x{words[int(cohort)]:016x}" == word
        assert uniform_integers(words, int(k))[int(cohort)] == int(bucket)


def test_specification_lists_true_permutations():
    rows = table_rows("Golden permutations")
    assert len(rows) >= 3
    for values, seed, k, cohort, buckets in rows:
        alphabet = Permuted(values=json.loads(values), num_buckets=int(k), seed=int(seed))
        assert alphabet.symbol_table(alphabet.values, int(cohort) + 1)[int(cohort)].tolist() == json.loads(buckets)


def test_specification_names_the_constants_of_the_code():
    text = SPECIFICATION.read_text(encoding="utf-8")
    (domain,) = re.findall(r"`((?:[0-9a-f]{2} ){11}00)`", text)
    assert bytes.fromhex(domain) == b"uldp-hash-1\x00"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, WORD - 1), st.integers(0, 60))
def test_words_of_any_text_are_those_of_the_reference(value, seed, cohort):
    assert hash_words((canonical(value),), seed, cohort + 1)[0, cohort] == hash_word(value, seed, cohort)


def test_ties_of_a_permutation_are_broken_by_the_order_of_the_list(monkeypatch):
    """Equal words are too rare to be found, so they are made."""
    alphabet = Permuted(values=("a", "b", "c", "d"), num_buckets=2, seed=99)
    made = np.array([[7], [5], [7], [5]], dtype=np.uint64)
    monkeypatch.setattr("uldp_transforms.ldp.alphabets.permuted.hash_words", lambda *_: made)
    assert alphabet.symbol_table(alphabet.values, 1).tolist() == [[0, 0, 1, 1]]


# ---------------------------------------------------------------------- all alphabets


@alphabets
@settings(max_examples=15)  # of up to 30 people each
@given(data=st.data())
def test_encode_looks_symbols_up_in_the_table(alphabet, num_cohorts, data):
    people = data.draw(st.lists(st.tuples(st.sampled_from(VALUES), st.integers(0, num_cohorts - 1)), max_size=30))
    table = alphabet.symbol_table(VALUES, num_cohorts)
    table = np.broadcast_to(table, (num_cohorts, *table.shape[1:]))
    cohorts = np.array([cohort for _, cohort in people], dtype=np.uint16)
    symbols = alphabet.encode([value for value, _ in people], cohorts, num_cohorts)
    assert symbols.dtype == np.int64
    assert symbols.tolist() == [table[cohort, VALUES.index(value)].tolist() for value, cohort in people]


@alphabets
def test_symbols_lie_in_the_alphabet(alphabet, num_cohorts):
    table = alphabet.symbol_table(VALUES, num_cohorts)
    assert table.dtype == np.int64
    several = (alphabet.num_hashes,) if alphabet.num_hashes > 1 else ()
    assert table.shape in {(1, len(VALUES)), (num_cohorts, len(VALUES), *several)}
    assert set(np.unique(table)) <= set(range(alphabet.num_symbols))


@alphabets
def test_table_of_some_values_is_a_part_of_the_table_of_all(alphabet, num_cohorts):
    some = [4, 0, 2]
    table = alphabet.symbol_table(VALUES, num_cohorts)[:, some]
    np.testing.assert_array_equal(alphabet.symbol_table(tuple(VALUES[i] for i in some), num_cohorts), table)


@alphabets
def test_canonically_equal_texts_are_one_value(alphabet, num_cohorts):
    spellings = [unicodedata.normalize(form, "émeu") for form in ("NFC", "NFD")]
    assert spellings[0] != spellings[1]
    symbols = alphabet.encode(spellings * num_cohorts, np.repeat(np.arange(num_cohorts), 2), num_cohorts)
    np.testing.assert_array_equal(symbols[::2], symbols[1::2])


@alphabets
@pytest.mark.parametrize("value", [None, 1, b"ant"])
def test_values_are_text(alphabet, num_cohorts, value):
    """Or numbers, if the alphabet is made of them."""
    if alphabet.bin_edges is not None:
        assert (
            value != 1
            or alphabet.encode([1], np.zeros(1, dtype=np.int64), num_cohorts)
            == alphabet.symbols_in_order[np.searchsorted(alphabet.bin_edges[1:-1], 1, side="right")]
        )
        return
    with pytest.raises(TypeError, match=r"values must be text \(str\)"):
        alphabet.encode([value], np.zeros(1, dtype=np.int64), num_cohorts)


@alphabets
def test_values_with_a_symbol_of_their_own_share_it_with_nobody(alphabet, num_cohorts):
    own = alphabet.has_own_symbol(VALUES)
    assert (own.dtype, own.shape) == (bool, (len(VALUES),))
    table = alphabet.symbol_table((*VALUES, *(alphabet.clear_values)), num_cohorts)
    for i in np.flatnonzero(own):
        assert len(np.unique(table[:, i])) == 1
        assert set(np.flatnonzero((table == table[0, i]).any(axis=0))) <= {
            j for j, value in enumerate((*VALUES, *alphabet.clear_values)) if value == VALUES[i]
        }


@pytest.mark.parametrize(
    "alphabet",
    [
        Closed(values=("caf" + DECOMPOSED, "x")),
        Permuted(values=("caf" + DECOMPOSED, "x"), num_buckets=2),
        Tagged(values=("caf" + DECOMPOSED, "x"), tags=("t",)),
    ],
    ids=lambda alphabet: alphabet.id,
)
def test_listed_values_are_kept_in_canonical_form(alphabet):
    assert alphabet.known_values == alphabet.values == ("café", "x")


@pytest.mark.parametrize(
    "alphabet", [Closed(values=VALUES), Permuted(values=VALUES, num_buckets=2), Tagged(values=VALUES, tags=("t",))]
)
def test_closed_alphabets_refuse_strangers_without_repeating_them(alphabet):
    with pytest.raises(SpecError) as caught:
        alphabet.encode(["ant", "TOP-SECRET", "TOP-SECRET-2"], np.zeros(3, dtype=np.int64), 5)
    assert "got 2 value(s)" in str(caught.value)
    assert "TOP-SECRET" not in str(caught.value)


# ---------------------------------------------------------------------- each alphabet


def test_all_values_of_a_closed_alphabet_are_sensitive_by_default():
    alphabet = Closed(values=VALUES)
    assert (alphabet.num_symbols, alphabet.num_sensitive) == (6, 6)
    assert alphabet.symbol_table(VALUES, 9).tolist() == [[0, 1, 2, 3, 4, 5]]


def test_sensitive_values_have_the_first_symbols():
    alphabet = Closed(values=VALUES, sensitive=SENSITIVE)
    assert (alphabet.num_symbols, alphabet.num_sensitive) == (6, 3)
    assert alphabet.symbol_table(SENSITIVE, 1).tolist() == [[0, 1, 2]]
    assert alphabet.symbol_table(("cat", "dog", "émeu"), 1).tolist() == [[3, 4, 5]]
    assert alphabet.known_values == VALUES


@pytest.mark.parametrize(("num_values", "num_buckets"), [(6, 2), (6, 6), (7, 3), (100, 8)])
def test_permuted_buckets_are_balanced_within_one(num_values, num_buckets):
    values = tuple(f"value {i}" for i in range(num_values))
    alphabet = Permuted(values=values, num_buckets=num_buckets)
    sizes = [np.bincount(row, minlength=num_buckets) for row in alphabet.symbol_table(values, 50)]
    assert np.ptp(sizes, axis=1).max() == (num_values % num_buckets > 0)


def test_open_and_permuted_alphabets_protect_every_symbol():
    for alphabet in (Permuted(values=VALUES, num_buckets=3), Hashed(num_buckets=3)):
        assert alphabet.num_symbols == alphabet.num_sensitive == 3
    assert Hashed(num_buckets=3).known_values is None


MANY = tuple(f"value {i}" for i in range(300))


@pytest.mark.parametrize(
    "alphabet",
    [Hashed(num_buckets=7, seed=1), Permuted(values=MANY, num_buckets=7, seed=1)],
    ids=lambda alphabet: alphabet.id,
)
def test_neighbouring_cohorts_have_uniform_independent_buckets(alphabet):
    """Pairs of buckets in cohorts 2 i and 2 i + 1, 30,000 of them in 49 cells."""
    table = alphabet.symbol_table(MANY, 200)
    pairs = np.bincount((7 * table[::2] + table[1::2]).ravel(), minlength=49)
    expected = pairs.sum() / 49
    assert ((pairs - expected) ** 2 / expected).sum() <= chi_square_limits(48)[1]


@pytest.mark.parametrize("k", [2, 5, 1000])
def test_hashed_buckets_are_uniform(k):
    sizes = np.bincount(Hashed(num_buckets=k, seed=2).symbol_table(MANY, 200).ravel(), minlength=k)
    expected = sizes.sum() / k
    low, high = chi_square_limits(k - 1)
    assert low <= ((sizes - expected) ** 2 / expected).sum() <= high


def test_encoding_more_values_than_one_table_holds():
    alphabet, num_cohorts = Hashed(num_buckets=4), 1 << 16
    values = MANY[:70]
    cohorts = np.arange(70) * 900
    symbols = alphabet.encode(values, cohorts, num_cohorts)
    expected = [reference_bucket(hash_word(v, 0, c), 4) for v, c in zip(values, cohorts.tolist())]
    assert symbols.tolist() == expected


def test_defaults_are_those_of_published_collections() -> None:
    assert Hashed(num_buckets=4).to_json() == {"id": "hashed", "num_buckets": 4, "seed": 0, "num_hashes": 1}
    assert Permuted(values=("a", "b"), num_buckets=2).seed == 0
    assert Prefixes(num_buckets=4, tokens=("a",), lengths=(None,)).seed == 0
    assert (Ordered(low=0, high=64).num_bins, Ordered(low=0, high=64).scale) == (32, "linear")


def test_a_lookup_of_many_values_is_cut_where_the_table_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """At every size of the parts: one value, some, or all at once."""
    values, cohorts = [f"v{i % 7}" for i in range(20)], np.arange(20) % 5
    expected = Hashed(num_buckets=9).encode(values, cohorts, 5)
    for cells in (0, 5, 14, 10_000):
        monkeypatch.setattr("uldp_transforms.ldp.alphabets.alphabet._TABLE_CELLS", cells)
        monkeypatch.setattr("uldp_transforms.ldp.alphabets.hashed._WORDS_AT_ONCE", cells)
        np.testing.assert_array_equal(Hashed(num_buckets=9).encode(values, cohorts, 5), expected)


def test_small_rows_are_the_table_turned_around() -> None:
    """One row a value, also where all cohorts share it; errors name what is allowed."""
    permuted, closed = Permuted(values=tuple("abcdefg"), num_buckets=3), Closed(values=tuple("abc"))
    rows = permuted.symbol_rows(("b", "g"), 5)
    assert rows.dtype == np.uint16 and rows.flags.c_contiguous
    assert rows.tolist() == permuted.symbol_table(("b", "g"), 5).T.tolist()
    assert closed.symbol_rows(("c", "a"), 5).tolist() == [[2], [0]]
    assert closed.allowed == "one of the 3 values of the collection"
