"""The collections of a job, and the rows that name them."""

from __future__ import annotations

import dataclasses
import json
import pickle

import pytest

from tests.support.messages_cases import KNOWN, KRR, NOON, STRANGER, decoder, single
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ledger import ReasonCountsCoder, SumByReasonFn
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.ledger_row import LedgerRow
from uldp_transforms.rows.place import name_of
from uldp_transforms.rows.rejected_report import rejected_row

# ---------------------------------------------------------------------- registry


def test_collections_are_found_by_what_reports_carry():
    registry = CollectionCatalog(KNOWN)
    assert len(registry) == len(KNOWN)
    assert tuple(registry) == KNOWN
    for collection in KNOWN:
        assert registry.find(collection.fingerprint[:8]) is registry[collection.fingerprint] is collection


@pytest.mark.parametrize("size", [0, 7, 9, 32])
def test_nothing_else_is_found(size):
    assert CollectionCatalog(KNOWN).find(KRR.fingerprint[:size]) is None
    assert CollectionCatalog(KNOWN).find(STRANGER.fingerprint[:8]) is None


def test_old_and_new_versions_stand_side_by_side():
    new = dataclasses.replace(KRR, version=2)
    registry = CollectionCatalog([KRR, new])
    assert [registry.find(item.fingerprint[:8]) for item in (KRR, new)] == [KRR, new]
    batches, rejections, _ = decoder([KRR, new]).decode([single(KRR), single(new), single(STRANGER)])
    assert sorted(batch.fingerprint for batch in batches) == sorted([KRR.fingerprint, new.fingerprint])
    assert [rejection.reason for rejection in rejections] == [Reason.UNKNOWN_COLLECTION]


def same_prefix(collection: Collection) -> Collection:
    """Another collection whose fingerprint, by a stroke of bad luck, begins with the same 8 bytes."""
    other = dataclasses.replace(collection, version=7)
    vars(other)["fingerprint"] = collection.fingerprint[:8] + bytes(24)  # what the property has computed
    return other


@pytest.mark.parametrize(
    ("collections", "sentence"),
    [
        ([], "a job needs at least one collection, got none"),
        (
            [KRR, KRR],
            "collections of one job must have different fingerprints, got 'krr' version 1 and 'krr' version 1 with "
            "the same one",
        ),
        (
            [KRR, STRANGER, same_prefix(KRR)],
            "collections of one job must have different fingerprints, got 'krr' version 7 and 'krr' version 1 with "
            "the same one",
        ),
        (
            [KRR, dataclasses.replace(KRR, num_cohorts=4)],
            "collections of one job must differ in id or version, got 'krr' version 1 twice",
        ),
    ],
    ids=["none", "twice", "same prefix", "same name"],
)
def test_collections_that_cannot_be_told_apart(collections, sentence):
    with pytest.raises(SpecError) as caught:
        CollectionCatalog(collections)
    assert str(caught.value) == sentence


def test_collections_may_come_from_any_iterable():
    assert len(CollectionCatalog(iter(KNOWN))) == len(KNOWN)


def test_a_registry_travels_to_workers():
    again = pickle.loads(pickle.dumps(CollectionCatalog(KNOWN)))
    assert tuple(again) == KNOWN
    assert again.find(KRR.fingerprint[:8]) == KRR


# ---------------------------------------------------------------------- rows


def test_rows_name_their_collection():
    assert name_of(KRR) == {"collection_id": "krr", "collection_version": 1, "fingerprint": KRR.fingerprint.hex()}
    assert set(name_of(None).values()) == {None}


@pytest.mark.parametrize(
    ("period", "base", "start", "end"),
    [(None, None, None, None), (None, 5, None, None), (0, 60_000, 0, 60_000), (-7, 7, -7, 0)],
)
def test_rows_of_rejections_say_what_is_known(period, base, start, end):
    row = rejected_row(Rejection(Reason.TOO_OLD, 3, 99, KRR, period, NOON, "a.avro"), base)
    assert (row.reason, row.num_reports, row.message_bytes, row.source) == ("too_old", 3, 99, "a.avro")
    assert (row.window_start, row.window_end, row.received_at) == (start, end, NOON)
    assert row.collection_id == "krr"


EMPTY = LedgerRow(**name_of(None), window_start=-1, window_end=None, received=0, accepted=0, duplicates=0, rejected={})


def test_json_is_one_line_of_text_as_it_is():
    row = dataclasses.replace(EMPTY, collection_id="é\n\u2028")
    assert row.to_json().startswith('{"collection_id": "é\\n\u2028", ')
    assert json.loads(row.to_json())["window_start"] == "1969-12-31T23:59:59.999Z"
    assert row.times() == {"window_start": "1969-12-31T23:59:59.999Z"}


def test_rows_hold_finite_numbers_only():
    with pytest.raises(ValueError, match="JSON"):
        dataclasses.replace(EMPTY, rejected={"malformed": float("nan")}).to_json()


# ---------------------------------------------------------------------- sums of the ledger


def test_sums_by_reason_add_up_in_any_order():
    parts = [{"accepted": 3}, {"malformed": 1, "accepted": 2}, {}, {"too_old": 1 << 40}]
    total = {"accepted": 5, "malformed": 1, "too_old": 1 << 40}
    sums = SumByReasonFn()
    one = sums.create_accumulator()
    for part in parts:
        one = sums.add_input(one, part)
    assert sums.extract_output(one) == sums.merge_accumulators(parts) == sums.merge_accumulators(parts[::-1]) == total
    assert parts[0] == {"accepted": 3}


def test_sums_cross_between_workers():
    coder = ReasonCountsCoder()
    assert coder.is_deterministic()
    assert coder.encode({"b": 1, "a": 1 << 62}) == b'{"a": 4611686018427387904, "b": 1}'
    assert coder.decode(coder.encode({"b": 1, "a": 2})) == {"a": 2, "b": 1}
    assert type(SumByReasonFn().get_accumulator_coder()) is ReasonCountsCoder
