"""Reports of several collections in shared columns: parts of them are what batches alone are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.support.messages_cases import KRR, NOON, STRANGER, UP
from uldp_transforms.ldp import ReportBatch
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.mixed_reports import Batches, MixedReports

ITEMS = [KRR, STRANGER, UP]
"""With payloads of one byte."""
CATALOG = CollectionCatalog(ITEMS)
SIZES = (2, 1, 4)


def batches() -> list[ReportBatch]:
    """In the order of the catalog; each report has a time of its own."""
    times = NOON + np.arange(sum(SIZES))
    ends = np.cumsum(SIZES)
    return [
        of.perturb(["0"] * size, event_times=times[end - size : end])
        for of, size, end in zip(CATALOG.numbered, SIZES, ends)
    ]


def mixed() -> tuple[MixedReports, list[ReportBatch]]:
    alone = batches()
    columns = [
        np.concatenate([getattr(batch, name) for batch in alone])
        for name in ("cohorts", "payloads", "event_times", "report_ids")
    ]
    return MixedReports(CATALOG.table, np.arange(3), np.array(SIZES), ReportBatch.of_columns(b"", *columns)), alone


def test_reports_are_parted_by_collection() -> None:
    together, alone = mixed()
    assert together.apart() == alone
    assert [batch.fingerprint for batch in together.apart()] == [of.fingerprint for of in CATALOG.numbered]
    assert (len(together), len(MixedReports.of(alone[2]))) == (7, 4)
    assert MixedReports.of(alone[2]).apart() == [alone[2]]


@pytest.mark.parametrize("bounds", [[0, 3], [0, 1, 3], [0, 1, 2, 3], [1, 2], [2, 3], [1, 1 + 2]], ids=str)
def test_parts_between_bounds_are_those_of_their_collections(bounds: list[int]) -> None:
    together, alone = mixed()
    parts = together.between(bounds)
    assert [part.apart() for part in parts] == [alone[first:last] for first, last in itertools.pairwise(bounds)]


def test_collections_have_their_numbers_in_another_catalog() -> None:
    together, _ = mixed()
    assert together.numbers_in(CATALOG) is together.owners
    other = CollectionCatalog(ITEMS[::-1])
    found = together.numbers_in(other)
    assert [other.numbered[number] for number in found.tolist()] == CATALOG.numbered
    assert together.between([1, 3])[0].numbers_in(other).tolist() == found[1:].tolist()


def test_batches_are_a_sequence_of_the_reports_of_all_parts() -> None:
    together, alone = mixed()
    found = Batches([together, MixedReports.of(alone[0])])
    assert len(found) == 4 and list(found) == [*alone, alone[0]] == found
    assert found[1] == alone[1] and found[2:] == [alone[2], alone[0]]
    assert found not in (alone, 5)
