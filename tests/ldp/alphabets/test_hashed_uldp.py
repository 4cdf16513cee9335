"""Hashed alphabets with a public list of texts that are not sensitive, and with several hash functions.

The channel from *texts* to reports is enumerated in exact numbers: cohort c has probability 1 / C, and in it the report
is that of the text's symbol.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
from fractions import Fraction

import numpy as np
import pytest

from tests.support.cases import DECOMPOSED, UTILITY_OPTIMIZED, collection, e_below, exact_channel
from tests.support.tolerance import binomial_limits, generator, normal_limit, within
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import Hashed
from uldp_transforms.ldp.sampling import WORD

LISTED = ("n1", "né", "n3")
SENSITIVE = tuple(f"s{i}" for i in range(12))
TEXTS = (*SENSITIVE, *LISTED)
OWN = Hashed(num_buckets=3, seed=4, non_sensitive=LISTED)
SHARED = Hashed(num_buckets=3, seed=4, non_sensitive=LISTED, num_clear_buckets=2)
FIELDS = [*UTILITY_OPTIMIZED.items(), ("urap", {"inversion": "marginal"})]

both = pytest.mark.parametrize("alphabet", [OWN, SHARED], ids=["own", "shared"])


def channel_of_texts(item: Collection) -> dict[tuple[int, bytes], list[Fraction]]:
    """Exact Pr((cohort, payload) | text) for all TEXTS, for every cohort and payload."""
    payloads, rows = exact_channel(item.mechanism)
    C = item.num_cohorts
    table = item.alphabet.symbol_table(TEXTS, C)
    return {
        (cohort, payload): [row[symbol] / C for symbol in table[cohort]]
        for cohort in range(C)
        for payload, row in zip(payloads, rows)
    }


# ---------------------------------------------------------------------- the guarantee over texts


@both
@pytest.mark.parametrize(("mechanism", "fields"), FIELDS)
@pytest.mark.parametrize("num_cohorts", [2, 5])
def test_sensitive_texts_are_protected_against_all_texts(alphabet, mechanism, fields, num_cohorts):
    """Utility-optimised LDP: what a sensitive text can send it sends nearly as often as any other text."""
    item = collection(alphabet, num_cohorts, mechanism, **fields)
    channel = channel_of_texts(item)
    assert [sum(column) for column in zip(*channel.values())] == [1] * len(TEXTS)
    sensitive = len(SENSITIVE)
    clear_senders = []
    for row in channel.values():
        if any(row[:sensitive]):
            assert max(row) <= e_below(1.0) * min(row)
            assert len(set(row)) <= 2
        else:
            clear_senders.append([text for text, q in zip(LISTED, row[sensitive:]) if q])
    if alphabet is OWN:  # a clear report has one text that it can come from
        assert max(map(len, clear_senders)) == min(map(len, clear_senders)) == 1
    else:
        assert {text for senders in clear_senders for text in senders} == set(LISTED)


@both
@pytest.mark.parametrize(("mechanism", "fields"), FIELDS)
def test_no_sensitive_text_is_ever_sent_in_clear(alphabet, mechanism, fields):
    item = collection(alphabet, 16, mechanism, **fields)
    texts = [f"any text {i}" for i in range(20_000)]
    batch = item.perturb(texts, generator("never", mechanism))
    assert not item.mechanism.supports(batch.payloads)[:, alphabet.num_buckets :].any()


# ---------------------------------------------------------------------- symbols


@both
def test_listed_texts_have_clear_symbols_and_all_others_sensitive_ones(alphabet):
    many = tuple(f"text {i}" for i in range(500))
    assert (alphabet.symbol_table(many, 40) < alphabet.num_buckets).all()
    clear = alphabet.symbol_table(LISTED, 40)
    assert ((clear >= alphabet.num_buckets) & (clear < alphabet.num_symbols)).all()
    assert alphabet.num_sensitive == alphabet.num_buckets == 3
    assert alphabet.clear_values == LISTED
    assert alphabet.known_values is None


@both
def test_the_list_does_not_move_the_buckets_of_sensitive_texts(alphabet):
    plain = Hashed(num_buckets=3, seed=4).symbol_table(SENSITIVE, 9)
    np.testing.assert_array_equal(alphabet.symbol_table(SENSITIVE, 9), plain)


@both
def test_another_spelling_of_a_listed_text_is_listed(alphabet):
    cohorts = np.arange(9)
    symbols = alphabet.encode(["n" + DECOMPOSED] * 9, cohorts, 9)
    np.testing.assert_array_equal(symbols, alphabet.symbol_table(("né",), 9)[:, 0])
    assert (symbols >= alphabet.num_buckets).all()
    again = Hashed(
        **{k: v for k, v in alphabet.to_json().items() if k != "id"} | {"non_sensitive": ["n1", "n" + DECOMPOSED, "n3"]}
    )
    assert again == alphabet


# ---------------------------------------------------------------------- configuration


def test_without_a_list_the_json_form_is_what_it_was():
    assert Hashed(num_buckets=4).to_json() == {"id": "hashed", "num_buckets": 4, "seed": 0, "num_hashes": 1}


@pytest.mark.parametrize(
    "fields",
    [
        {"non_sensitive": None, "num_clear_buckets": None},
        {"non_sensitive": ["n1", "né"]},
        {"non_sensitive": ["n1", "n3", "né"]},
        {"non_sensitive": ["n1", "né", "n4"]},
        {"num_clear_buckets": None},
        {"num_clear_buckets": 3},
    ],
)
def test_the_public_list_is_part_of_the_fingerprint(fields):
    spec = collection(SHARED, 4, "urr").to_json()
    other = copy.deepcopy(spec)
    other["alphabet"] |= fields
    assert Collection.from_json(other).fingerprint != Collection.from_json(spec).fingerprint


def test_spelling_is_not_part_of_the_fingerprint():
    spec = collection(OWN, 4, "urr").to_json()
    other = copy.deepcopy(spec)
    other["alphabet"]["non_sensitive"] = ["n1", "n" + DECOMPOSED, "n3"]
    assert Collection.from_json(other).fingerprint == Collection.from_json(spec).fingerprint


# ---------------------------------------------------------------------- several hash functions


@pytest.mark.parametrize("num_hashes", [2, 3, 8])
def test_hash_function_j_of_cohort_c_takes_word_c_h_plus_j(num_hashes):
    alphabet = Hashed(num_buckets=5, seed=9, num_hashes=num_hashes)
    table = alphabet.symbol_table(("a", "é"), 6)
    assert table.shape == (6, 2, num_hashes)
    for (cohort, j), (i, text) in itertools.product(np.ndindex(6, num_hashes), enumerate(("a", "é"))):
        message = b"uldp-hash-1\x00" + (9).to_bytes(8, "little") + text.encode()
        stream = hashlib.shake_128(message).digest(8 * (cohort * num_hashes + j + 1))
        assert table[cohort, i, j] == int.from_bytes(stream[-8:], "little") * 5 >> 64


@pytest.mark.parametrize("text", ["a", "b", "c"])
def test_bits_of_a_text_follow_its_hash_functions(text):
    """From the text to the counts: own bits with probability theta, others psi, in every cohort."""
    item = collection(Hashed(num_buckets=4, seed=1, num_hashes=2), 6, "rappor")
    batch = item.perturb([text] * 60_000, generator("bits", text))
    counts = item.count(batch)
    table = item.alphabet.symbol_table((text,), 6)[:, 0]
    own = (table[:, :, np.newaxis] == np.arange(4)).any(axis=1)
    psi, kappa = float(item.mechanism.noise_rate), item.mechanism.keep_weight / WORD
    q = np.where(own, kappa + (1 - kappa) * psi, psi)
    assert within(counts.cells, binomial_limits(counts.num_reports[:, np.newaxis], q)).all()
    assert (own.sum(axis=1) == 1).any() or text != "a", "a text whose hash functions coincide somewhere"


# ---------------------------------------------------------------------- mechanisms that protect the list as well


@both
@pytest.mark.parametrize("mechanism", ["krr", "ss", "hr", "rappor"])
def test_estimates_are_right_where_listed_values_are_protected_too(mechanism: str, alphabet: Hashed) -> None:
    """What listed people add to their own symbols is no noise of the buckets of the others.

    Everybody is a candidate, so residuals are privacy noise alone, and errors are those of single symbols but for the
    few buckets, (k / (k - 1))^2 of variance for k = 2.
    """
    item, number = collection(alphabet, 24, mechanism, epsilon=2.0), 1_000_000
    rng = generator(mechanism, str(alphabet.num_clear_buckets))
    shares = np.array([0.3, 0.15, 0.1, 0.3, 0.15])
    texts = np.array([*SENSITIVE[:3], *LISTED[:2]])
    counts = item.count(item.perturb(rng.choice(texts, size=number, p=shares).tolist(), rng))
    estimate = item.estimate(counts, candidates=(*SENSITIVE[:6], *LISTED))
    held = dict(zip(texts.tolist(), shares.tolist()))
    z = (estimate.raw_frequencies - [held.get(value, 0.0) for value in estimate.values]) / estimate.standard_errors
    assert abs(z).max() < normal_limit(len(z))
    worst = item.mechanism.variances(np.eye(item.num_cells)).max()
    assert estimate.standard_errors.max() < 4 * np.sqrt(worst / number)
