"""Reports of many collections, mixed: decoded and counted together they are what they are one by one."""

from __future__ import annotations

import dataclasses
import weakref
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.support.cases import MECHANISMS_TO_TEST
from tests.support.messages_cases import KNOWN, NOON, STRANGER, long, packed, rows_of, single
from uldp_transforms.collector.ledger_entries import received_entries
from uldp_transforms.collector.period_counts import count_batches, count_periods
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import Decoded, MessageDecoder
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.windows import BasePeriods, TimeGate

pytestmark = pytest.mark.usefixtures("decoding_part")

HOUR = BasePeriods(3_600_000)


def renamed(of: Collection, number: int, **mechanism: Any) -> Collection:
    spec = of.to_json()
    return Collection.from_json(spec | {"id": f"{of.id}-{number}", "mechanism": spec["mechanism"] | mechanism})


COLLECTIONS = [renamed(of, number) for of in KNOWN for number in range(7)]
CATALOG = CollectionCatalog(COLLECTIONS)


def mixed(seed: int, each: int = 12) -> list[bytes]:
    """Single and packed reports of all collections in random order; some are wrong in several ways."""
    rng = np.random.default_rng(seed)
    messages = []
    for of in COLLECTIONS:
        times = NOON + rng.integers(-8_000_000, 8_000_000, each)
        batch = of.perturb(["0"] * each, rng, times)
        messages += wire.encode_reports(batch)
        messages += [wire.encode_batch(batch[:5]), wire.encode_batch(batch[5:], single_object=True)]
        messages += [single(of, cohort=long(9)), single(of, payload=b"\0"), packed(of)[:-1], single(STRANGER)]
        messages += [wire.encode_batch(dataclasses.replace(batch, report_ids=batch.report_ids[:0]))]
    return [messages[place] for place in rng.permutation(len(messages))]


def books(parts: list[Decoded]) -> tuple[Any, ...]:
    """What several calls found: accepted reports, refusals, numbers of reports, and the ledger."""
    refused: Counter[Any] = Counter()
    received, ledger, accepted = Counter[bytes](), Counter[Any](), Counter[Any]()
    for decoded in parts:
        accepted.update(rows_of(decoded.batches))
        received.update(decoded.num_received)
        for found in decoded.rejections:
            refused[dataclasses.replace(found, num_reports=0)] += found.num_reports
        for entry in received_entries(decoded, HOUR):
            ledger[entry._replace(num_reports=0)] += entry.num_reports
    return accepted, refused, received, ledger


@pytest.mark.parametrize("gate", [None, TimeGate(periods=HOUR, allowed_lateness=0)], ids=["files", "stream"])
@pytest.mark.parametrize("require_ids", [False, True])
def test_mixed_messages_get_the_verdicts_that_each_gets_alone(gate: TimeGate | None, require_ids: bool) -> None:
    messages = mixed(1)
    arrivals = NOON + np.arange(len(messages)) % 3
    decoder = MessageDecoder(CATALOG, gate, require_ids)
    together = decoder.decode(messages, arrivals)
    alone = [decoder.decode([message], arrivals[at : at + 1]) for at, message in enumerate(messages)]
    assert books([together]) == books(alone)
    assert together.num_received.total() > len(COLLECTIONS) * 12 * 2
    keys = [(batch.fingerprint, len(batch.report_ids) > 0) for batch in together.batches]
    assert max(Counter(keys).values()) <= 2  # of single messages, and of packed ones
    reasons = {reason for decoded in alone for reason in decoded.off_by}
    assert reasons == (set() if gate is None else {Reason.TOO_EARLY, Reason.TOO_OLD})
    assert together.off_by == {reason: max(decoded.off_by.get(reason, 0) for decoded in alone) for reason in reasons}


def added(pairs: Any) -> dict[Any, CohortCounts]:
    sums: dict[Any, CohortCounts] = {}
    for key, counts in pairs:
        sums[key] = sums[key] + counts if key in sums else counts
    return sums


@pytest.mark.parametrize("bit_patterns", [False, True])
@pytest.mark.parametrize("periods", [None, HOUR], ids=["all", "hours"])
@pytest.mark.parametrize("cohorts", [3, 60_000], ids=["full tables", "sparse ones"])
def test_counted_together_they_are_counted_one_by_one(
    periods: BasePeriods | None, bit_patterns: bool, cohorts: int
) -> None:
    of_some = [Collection.from_json(of.to_json() | {"num_cohorts": cohorts}) for of in COLLECTIONS if of.id[0] in "kr"]
    catalog, rng = CollectionCatalog(of_some), np.random.default_rng(2)
    batches = [
        of.perturb(["0"] * size, rng, NOON + rng.integers(-8_000_000, 8_000_000, size))
        for of in of_some * 2
        for size in rng.integers(1, 40, 1).tolist()
    ]
    found = list(count_batches(catalog, batches, periods, bit_patterns))
    expected = added(
        ((batch.fingerprint, start), counts)
        for batch in batches
        for start, counts in count_periods(catalog[batch.fingerprint], batch, periods, bit_patterns)
    )
    assert len(found) == len(expected) > len(of_some) // 2
    assert dict(found) == expected
    assert sum(counts.total for _, counts in found) == sum(map(len, batches))


LAYOUTS: dict[Any, list[Any]] = {}
for mechanism in MECHANISMS_TO_TEST:
    LAYOUTS.setdefault(mechanism.layout, []).append(mechanism)


def test_mechanisms_of_one_layout_check_and_count_alike() -> None:
    """Some differ in epsilon; whatever bytes come, each says of them what the first of its layout says."""
    rng = np.random.default_rng(3)
    shared = [same for same in LAYOUTS.values() if len(same) > 1]
    assert len(shared) > 5
    for first, *others in shared:
        small = rng.integers(0, 8, (400, 1), np.uint8)  # few bits, so that some payloads are valid
        payloads = rng.integers(0, 256, (400, first.payload_size), np.uint8) & small
        for other in others:
            assert other.payload_size == first.payload_size
            assert other.num_patterns == first.num_patterns
            both = [{why: mask.tolist() for why, mask in each.violations(payloads)} for each in (first, other)]
            assert both[0] == both[1]
            valid = payloads[first.is_valid(payloads)]
            groups = rng.integers(0, 3, len(valid))
            for name in ("count", "count_patterns"):
                tables = [getattr(each, name)(valid, groups, 3) for each in (first, other)]
                assert np.array_equal(*tables)


def test_collections_are_counted_in_one_pass_where_they_can_be() -> None:
    """All of one layout are, and of reports in one cell all with payloads of one size."""
    for of in CATALOG:
        passes = {CATALOG.numbered[number]: one for number, one in enumerate(CATALOG.passes.tolist())}
        together = {other for other in CATALOG if passes[other] == passes[of]}
        if of.mechanism.one_place:
            assert of.mechanism.num_cells == of.mechanism.num_symbols
            assert of.mechanism.num_patterns == 0
            alike = {
                other
                for other in CATALOG
                if other.mechanism.one_place and other.mechanism.payload_size == of.mechanism.payload_size
            }
        else:
            own = of.num_cohorts, of.mechanism.layout
            alike = {other for other in CATALOG if (other.num_cohorts, other.mechanism.layout) == own}
        assert together == alike
    assert CATALOG.numbers(np.zeros(0, "<u8")).tolist() == []


def test_reports_of_another_table_are_found_in_the_catalog() -> None:
    """Reports that came over the wire bring fingerprints of their own."""
    parts = MessageDecoder(CATALOG).decode(mixed(5)).parts
    assert max(len(part.owners) for part in parts) > 5
    for part in parts:
        sent = MixedReports(part.table[part.owners], np.arange(len(part.owners)), part.sizes, part.reports)
        assert sent.table is not CATALOG.table and np.array_equal(sent.numbers_in(CATALOG), part.owners)
        assert sent.apart() == part.apart() and len(sent) == len(part) == sum(map(len, part.apart()))
        assert dict(count_batches(CATALOG, [sent], HOUR)) == dict(count_batches(CATALOG, part.apart(), HOUR))


def test_what_is_counted_becomes_objects_one_by_one() -> None:
    """So a bundle of many collections does not hold all of their sums at once."""
    parts = MessageDecoder(CATALOG).decode(mixed(6)).parts
    made, most = list[weakref.ref[CohortCounts]](), 0
    for _, counts in count_batches(CATALOG, parts, None):
        made.append(weakref.ref(counts))
        most = max(most, sum(one() is not None for one in made))
    assert 1 <= most < len(made) // 2
