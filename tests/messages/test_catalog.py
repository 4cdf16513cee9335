"""The collections of a job, found by what reports carry."""

from __future__ import annotations

import dataclasses
import itertools
import pickle

import numpy as np
import pytest

from tests.support.messages_cases import KNOWN, KRR, NEW, RAPPOR, STRANGER, decoder, single
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.catalog import CollectionCatalog, catalog_of


def test_collections_are_found_by_what_reports_carry():
    catalog = CollectionCatalog(KNOWN)
    assert len(catalog) == len(KNOWN)
    assert tuple(catalog) == KNOWN
    for collection in KNOWN:
        assert catalog.find(collection.fingerprint[:8]) is catalog[collection.fingerprint] is collection


def test_a_catalog_travels_as_text_and_is_made_once_where_it_arrives():
    """Each step of a job brings it; a process has one of the same collections, whatever order its steps come in."""
    catalog = CollectionCatalog(KNOWN)
    first, second = (pickle.loads(pickle.dumps(catalog)) for _ in range(2))
    assert first is second is not catalog
    assert tuple(first) == KNOWN
    assert [of.fingerprint for of in first.numbered] == [of.fingerprint for of in catalog.numbered]
    assert first.passes.tolist() == catalog.passes.tolist()
    other = pickle.loads(pickle.dumps(CollectionCatalog(KNOWN[:2])))
    assert tuple(other) == KNOWN[:2]
    assert catalog_of(KNOWN) is catalog_of(tuple(KNOWN)) is not catalog_of(KNOWN[:2])


@pytest.mark.parametrize("size", [0, 7, 9, 32])
def test_nothing_else_is_found(size):
    assert CollectionCatalog(KNOWN).find(KRR.fingerprint[:size]) is None
    assert CollectionCatalog(KNOWN).find(STRANGER.fingerprint[:8]) is None


def test_old_and_new_versions_stand_side_by_side():
    new = dataclasses.replace(KRR, version=2)
    catalog = CollectionCatalog([KRR, new])
    assert [catalog.find(item.fingerprint[:8]) for item in (KRR, new)] == [KRR, new]
    batches, rejections, *_ = decoder([KRR, new]).decode([single(KRR), single(new), single(STRANGER)])
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


@pytest.mark.parametrize("turn", range(3))
def test_collections_are_numbered_by_the_size_of_payloads_pass_and_layout(turn):
    """Whatever their order: what is counted together stands together, and each table says what its collection is."""
    items = [*KNOWN, *NEW, dataclasses.replace(KRR, version=2), dataclasses.replace(RAPPOR, version=2)]
    catalog = CollectionCatalog([*items[turn:], *items[:turn]])
    assert sorted(catalog.fingerprints) == sorted([*(of.fingerprint for of in items), b""])
    assert catalog.fingerprints[-1] == b""
    for number, of in enumerate(catalog.numbered):
        mechanism = of.mechanism
        assert catalog.number(of.fingerprint[:8]) == number
        assert catalog.fingerprints[number] == catalog.table[number].tobytes() == of.fingerprint
        assert catalog.payload_sizes[number] == mechanism.payload_size
        assert catalog.shapes[number].tolist() == [of.num_cohorts, of.num_cells]
        assert (catalog.strata[number], tuple(catalog.tails[number])) == (of.num_strata, mechanism.tail)
    for first, second in itertools.pairwise(range(len(items))):
        one, other = catalog.numbered[first].mechanism, catalog.numbered[second].mechanism
        same_layout = one.layout == other.layout and catalog.shapes[first, 0] == catalog.shapes[second, 0]
        same_pass = same_layout or (one.one_place and other.one_place and one.payload_size == other.payload_size)
        assert one.payload_size <= other.payload_size
        assert catalog.layouts[second] - catalog.layouts[first] == (not same_layout)
        assert catalog.passes[second] - catalog.passes[first] == (not same_pass)
    for labels in (catalog.layouts, catalog.passes):
        assert labels[0] == 0
    assert (np.diff(catalog.prefixes.astype(np.float64)) > 0).all()
    assert [catalog.numbered[number].fingerprint[:8] for number in catalog.by_prefix.tolist()] == [
        int(prefix).to_bytes(8, "little") for prefix in catalog.prefixes
    ]


def test_numbers_of_many_prefixes_are_those_of_each():
    catalog = CollectionCatalog(KNOWN)
    known = [int.from_bytes(of.fingerprint[:8], "little") for of in (*KNOWN, *KNOWN[:2])]
    for prefixes in (
        [*known, 0, (1 << 64) - 1],
        [0, 0],
        [(1 << 64) - 1] * 2,
        [known[3]] * 3,
        [known[0], known[0] + 1],
        [],
    ):
        found = catalog.numbers(np.array(prefixes, dtype="<u8"))
        assert found.tolist() == [catalog.number(prefix.to_bytes(8, "little")) for prefix in prefixes]
    assert catalog.number(bytes(8)) == -1


def test_a_catalog_knows_which_collections_have_groups():
    grouped = Collection.from_json(KRR.to_json() | {"version": 3, "dimensions": [{"name": "arm", "values": ["a"]}]})
    assert CollectionCatalog([KRR, grouped]).grouped == {grouped.fingerprint}
