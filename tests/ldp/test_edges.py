"""Single cases that no other test told apart from a planted fault; see ``tests/campaigns/mutants.py``."""

from __future__ import annotations

import hashlib
import io
import math

import numpy as np
import pytest

from tests.support.ldp.made_collections import made
from tests.support.messages_cases import KRR, container, data, single
from uldp_transforms.collector.ledger_entries import received_entries
from uldp_transforms.ldp.alphabets import Tagged
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators import Estimate
from uldp_transforms.ldp.hashing import hash_words
from uldp_transforms.ldp.mechanisms.channels.missing_values import TwoStage
from uldp_transforms.ldp.mechanisms.declared_priors import MAX_VALUES, checked_priors
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.containers import read_messages
from uldp_transforms.messages.decoder import Decoded
from uldp_transforms.messages.mixed_reports import Batches, MixedReports
from uldp_transforms.rows.window_health import finding_of_fit
from uldp_transforms.windows import BasePeriods


def test_a_share_of_a_background_may_be_zero() -> None:
    alphabet = Tagged(values=("a", "b", "c"), tags=("t",), background={"t": {"a": 0.0, "b": 1.0}})
    assert alphabet.background == {"t": {"a": 0.0, "b": 1.0}}


def test_a_report_inside_the_payload_of_another_is_not_a_second_one() -> None:
    """As many places that look like a beginning as the block claims reports, and the last one ends with the block."""
    block = single(payload=data(single()))
    (lost,) = read_messages(io.BytesIO(container([(2, block)])), "a.avro")
    assert not isinstance(lost, bytes)
    assert lost.reason is Reason.CORRUPT_BLOCK


@pytest.mark.parametrize("rest", [b"\0", b"\2", b"\2\2"])
def test_a_byte_behind_the_last_block_is_a_block_that_cannot_be_read(rest: bytes) -> None:
    found = list(read_messages(io.BytesIO(container([(1, single())]) + rest), "a.avro"))
    assert found[0] == single()
    assert [lost.reason for lost in found[1:] if not isinstance(lost, bytes)] == [Reason.CORRUPT_BLOCK]


# ---------------------------------------------------------------------- hashed estimates almost without noise

PEOPLE = 1_000  # so few that collisions of hashes add little to p (1 - p) / n


def estimate(listed: float, hashed: float) -> Estimate:
    """Of a share of people with a public value, a share with "ant", and the others with values of their own."""
    alphabet = {"id": "hashed", "num_buckets": 64, "seed": 7, "non_sensitive": ["dog", "cat"]}
    collection = made(alphabet, {"id": "urr", "epsilon": 16.0}, num_cohorts=64, id="x")
    values = ["dog"] * round(PEOPLE * listed) + ["ant"] * round(PEOPLE * hashed)
    values += [f"own {i}" for i in range(PEOPLE - len(values))]
    counts = collection.count(collection.perturb(values, np.random.default_rng(1)))
    return collection.estimate(counts, candidates=["ant", "dog", "cat"])


def error_of_share(share: float) -> float:
    return math.sqrt(share * (1 - share) / PEOPLE)


def test_the_error_of_what_nobody_asked_for_is_that_of_a_share_of_people() -> None:
    """Listed and hashed candidates take people from each other: the variances of their sums do not just add up."""
    found = estimate(listed=0.4, hashed=0.3).unexplained_standard_error
    assert found == pytest.approx(error_of_share(0.3), rel=0.05)


def test_people_with_public_values_do_not_blur_hashed_ones() -> None:
    """Nine of ten are certainly not in the sensitive buckets."""
    found = estimate(listed=0.9, hashed=0.05).standard_errors[0]
    assert found == pytest.approx(error_of_share(0.05), rel=0.05)


# ---------------------------------------------------------------------- mechanisms


def test_an_epsilon_that_only_states_survive_leaves_no_signal() -> None:
    """In 64 bits "missing" is still seen at epsilon 2e-18, one answer among eight others is not."""
    with pytest.raises(SpecError, match=r"TwoStage\.epsilon must be large enough for a signal in 64-bit weights"):
        TwoStage(num_symbols=9, num_sensitive=9, epsilon=2e-18, missing_rates=(0.4, 0.6))


# ---------------------------------------------------------------------- counts and health


@pytest.mark.parametrize(("p_value", "fired"), [(0.00099, True), (0.00101, False)])
def test_the_fit_fires_below_one_in_a_thousand(p_value: float, fired: bool) -> None:
    assert finding_of_fit(p_value).fired is fired


def test_reports_with_two_verdicts_were_received_once() -> None:
    """So that the ledger, which has both verdicts, does not balance."""
    batch = KRR.perturb(["0", "1"], np.random.default_rng(1), event_times=[0, 10])
    twice, catalog = Batches([MixedReports.of(batch)] * 2), CollectionCatalog([KRR])
    entries = received_entries(Decoded(twice, [], np.array([2, 0]), {}, 2, catalog), BasePeriods(10))
    assert sum(entry.num_reports for entry in entries) == 2


def test_priors_may_be_for_exactly_as_many_values_as_is_said() -> None:
    rows = ((1 / MAX_VALUES,) * MAX_VALUES,) * 2
    assert checked_priors("X", rows, MAX_VALUES) == rows
    with pytest.raises(SpecError, match=f"cover at most {MAX_VALUES} values, got {MAX_VALUES + 1}"):
        checked_priors("X", rows, MAX_VALUES + 1)


# ---------------------------------------------------------------------- numbers that are written


def test_reasons_keep_their_numbers() -> None:
    """They stand in the compiled decoder and in stored ledgers."""
    assert {reason.code: int(reason) for reason in Reason} == {
        "accepted": 0,
        "too_large": 10, "unknown_schema": 11, "malformed": 12, "trailing_bytes": 13, "non_canonical": 14,
        "out_of_range": 15,
        "unknown_collection": 20, "cohort_range": 21, "payload_length": 22, "value_domain": 23, "padding_bits": 24,
        "impossible_report": 25, "no_report_id": 26,
        "time_range": 30, "too_early": 31, "too_old": 32,
        "bad_magic": 40, "corrupt_block": 41, "block_too_large": 42, "not_as_listed": 43,
        "unknown_codec": 44,
    }  # fmt: skip


def test_hash_words_are_the_output_of_shake_128() -> None:
    """Of the domain, the seed (8 bytes, little-endian) and the value, in words of 8 bytes."""
    for value, seed in (("ant", 0), ("\u00e9", (1 << 64) - 2)):
        text = b"uldp-hash-1\0" + seed.to_bytes(8, "little") + value.encode("utf-8")
        digest = hashlib.shake_128(text).digest(40)
        expected = [int.from_bytes(digest[place : place + 8], "little") for place in range(0, 40, 8)]
        assert hash_words([value, "bee"], seed, 5)[0].tolist() == expected
