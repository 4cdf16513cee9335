"""What crosses between workers: bytes with a version, the same for the same content, whatever the counts are."""

from __future__ import annotations

import dataclasses
import gc
import tracemalloc

import numpy as np
import pytest
from apache_beam import coders
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.ldp.few_counts import in_either_form
from tests.support.messages_cases import KNOWN, NOON, URAP
from tests.support.tolerance import generator
from uldp_transforms.beam.runtime.coders import CohortCountsCoder, MixedReportsCoder, ReportBatchCoder, RunningSumCoder
from uldp_transforms.beam.transforms.count_reports import SumCountsFn
from uldp_transforms.ldp import CohortCounts, ReportBatch
from uldp_transforms.ldp.counts.running_sum import RunningSum
from uldp_transforms.messages.mixed_reports import MixedReports

COUNTS, REPORTS = CohortCountsCoder(), ReportBatchCoder()


# ---------------------------------------------------------------------- counts


# ---------------------------------------------------------------------- reports

BATCH = ReportBatch(
    fingerprint=bytes(range(32)),
    cohorts=np.array([1, 65_535], np.uint16),
    payloads=np.array([[1, 2, 3], [255, 0, 7]], np.uint8),
    event_times=np.array([NOON, -1], np.int64),
    report_ids=np.arange(32, dtype=np.uint8).reshape(2, 16),
    seeded=True,
)
ANONYMOUS = ReportBatch(
    fingerprint=bytes(32),
    cohorts=np.array([0], np.uint16),
    payloads=np.array([[9]], np.uint8),
    event_times=np.array([0], np.int64),
    report_ids=np.zeros((0, 16), np.uint8),
)
FINGERPRINT = bytes(range(32)).hex()

GOLDEN_BATCHES = {
    "with ids": (
        f"01 01 03000000 {FINGERPRINT} 04 0001020304050607 08 0100ffff 20 0010a5d4e8000000 ffffffffffffffff"
        f"40 {FINGERPRINT} 0c 010203 ff0007",
        BATCH,
    ),
    "without ids": (f"01 00 01000000 {'00' * 32} 04 {'00' * 8} 04 0000 10 {'00' * 8} 00 02 09", ANONYMOUS),
}


@pytest.mark.parametrize(("text", "batch"), GOLDEN_BATCHES.values(), ids=GOLDEN_BATCHES)
def test_golden_batches(text, batch):
    assert REPORTS.encode(batch) == bytes.fromhex(text)
    assert REPORTS.decode(bytes.fromhex(text)) == batch


@pytest.mark.parametrize("of", KNOWN, ids=lambda of: of.id)
@pytest.mark.parametrize("number", [0, 1, 1000])
@pytest.mark.parametrize("rng", [None, generator("coders")], ids=["system", "seeded"])
def test_batches_come_back(of, number, rng):
    batch = of.perturb(["0"] * number, rng, event_times=range(-number, 0))
    again = REPORTS.decode(REPORTS.encode(batch))
    assert again == batch
    assert again.payloads.shape == batch.payloads.shape
    assert again.seeded is (rng is not None)


@settings(max_examples=40)
@given(st.lists(in_either_form(), min_size=1, max_size=4))
def test_bytes_of_a_running_sum_are_those_of_its_counts(parts: list[CohortCounts]) -> None:
    running = RunningSum(parts[0])
    for part in parts[1:]:
        running.add(part)
    coder = RunningSumCoder()
    encoded = coder.encode(running)
    assert encoded == COUNTS.encode(running.snapshot())
    decoded = coder.decode(encoded)
    assert decoded is not None
    assert coder.encode(decoded) == encoded
    assert decoded.snapshot() == running.snapshot()
    assert SumCountsFn().add_input(decoded, parts[0]).snapshot() == running.snapshot() + parts[0]
    assert decoded.snapshot() == running.snapshot()
    assert coder.decode(coder.encode(None)) is None


def test_a_stored_sum_is_held_as_its_bytes() -> None:
    """500 cells of 200 reports have 8 bytes each as an array; the local engine holds the sums of all windows."""
    cells = generator("stored sums").multinomial(200, np.full(500, 1 / 500), size=1)
    encoded = RunningSumCoder().encode(RunningSum(CohortCounts(np.array([200]), cells)))
    gc.collect()
    tracemalloc.start()
    sums = [RunningSumCoder().decode(bytes(bytearray(encoded))) for _ in range(1000)]
    held = tracemalloc.get_traced_memory()[0] / len(sums)
    tracemalloc.stop()
    assert held < len(encoded) + 400 < cells.nbytes / 4


# ---------------------------------------------------------------------- both

DENSE = CohortCounts(np.array([3]), np.array([[1, 2]]))
SPARSE = CohortCounts(np.array([0]), np.zeros((1, 50), np.int64))
PATTERNS = CohortCounts(np.array([3]), np.array([[1, 2]]), np.array([2, 1, 0]))
SAMPLES = [(COUNTS, DENSE), (COUNTS, SPARSE), (COUNTS, PATTERNS), (REPORTS, BATCH), (REPORTS, ANONYMOUS)]


def arrays(value: CohortCounts | ReportBatch) -> dict[str, np.ndarray]:
    return {name: array for name, array in vars(value).items() if isinstance(array, np.ndarray)}


@pytest.mark.parametrize(("coder", "value"), SAMPLES)
def test_what_is_decoded_may_be_changed(coder, value):
    encoded = coder.encode(value)
    first, second = coder.decode(encoded), coder.decode(encoded)
    for name, array in arrays(first).items():
        others = [other for other_name, other in arrays(first).items() if other_name != name]
        assert not any(np.shares_memory(array, other) for other in [*others, *arrays(second).values()])
        array[...] = 7
    assert second == coder.decode(encoded) == value
    assert coder.encode(value) == encoded


@pytest.mark.parametrize("number", [1, 3])
def test_reports_of_several_collections_come_back(number: int) -> None:
    """As version, number of collections, fingerprints, numbers of reports and one batch."""
    batches = [URAP.perturb(["0"] * size, generator("mixed", size), [NOON] * size) for size in (2, 5, 1)[:number]]
    reports = ReportBatch.concatenate(batches)
    table = np.stack([np.full(32, place, dtype=np.uint8) for place in range(number)])
    sizes = np.array([len(batch) for batch in batches])
    encoded = MixedReportsCoder().encode(MixedReports(table, np.arange(number), sizes, reports))
    assert encoded[:5] == bytes([1, number, 0, 0, 0])
    assert encoded[5 : 5 + 36 * number] == table.tobytes() + sizes.astype("<u4").tobytes()
    found = MixedReportsCoder().decode(encoded)
    np.testing.assert_array_equal(found.table[found.owners], table)
    np.testing.assert_array_equal(found.sizes, sizes)
    assert REPORTS.encode(found.reports) == encoded[5 + 36 * number :]


@pytest.mark.parametrize(("coder", "value"), SAMPLES)
@pytest.mark.parametrize("version", [0, 4, 255])
def test_another_version_is_refused(coder, value, version):
    encoded = bytes([version]) + coder.encode(value)[1:]
    reads = "versions 1 to 3" if coder is COUNTS else "version 1"
    with pytest.raises(ValueError, match=f"^{type(coder).__name__} reads {reads}, got version {version}$"):
        coder.decode(encoded)


@pytest.mark.parametrize(("coder", "kind"), [(COUNTS, CohortCounts), (REPORTS, ReportBatch)])
def test_beam_chooses_these_coders(coder, kind):
    assert coder.is_deterministic()
    assert coder.to_type_hint() is kind
    assert type(coders.registry.get_coder(kind)) is type(coder)


def test_equal_content_has_equal_bytes():
    batch = URAP.perturb(["9"] * 9)
    assert REPORTS.encode(batch) == REPORTS.encode(batch[::-1][::-1])
    fortran = CohortCounts(np.arange(3), np.asfortranarray(np.arange(12).reshape(3, 4)))
    assert COUNTS.encode(fortran) == COUNTS.encode(CohortCounts(np.arange(3), np.arange(12).reshape(3, 4)))


@pytest.mark.parametrize("with_ids", [True, False])
def test_the_size_of_reports_is_estimated_without_encoding_them(with_ids: bool) -> None:
    batch = URAP.perturb(["1"] * 1000, generator(3), np.full(1000, NOON))
    batch = batch if with_ids else dataclasses.replace(batch, report_ids=batch.report_ids[:0])
    mixed = MixedReports.of(batch)
    exact = len(REPORTS.encode(batch)), len(MixedReportsCoder().encode(mixed))
    assert REPORTS.estimate_size(batch) == pytest.approx(exact[0], abs=100)
    assert MixedReportsCoder().estimate_size(mixed) == pytest.approx(exact[1], abs=100)
