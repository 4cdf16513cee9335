"""The same reports give the same numbers, bit for bit, in whatever order, bundles and engine they come."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import fastavro
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from tests.fuzz.fuzz_inputs import COLLECTIONS, Fuzzer
from tests.rigs.compare import rows as rows_of_output
from tests.support import cases, replay
from tests.support.messages_cases import KNOWN, NOON, decoder, write_files
from uldp_transforms.beam.transforms.count_reports import CountReports
from uldp_transforms.beam.transforms.decode_reports import DecodeReports
from uldp_transforms.collector.known_reports import KnownReports, to_rows
from uldp_transforms.collector.ledger_entries import received_entries
from uldp_transforms.collector.period_counts import count_periods
from uldp_transforms.jobs import estimate
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.windows import BasePeriods, TimeGate, Windows

HOUR = 3_600_000
PERMUTATIONS = 30

# ---------------------------------------------------------------------- orders and bundles, without Beam


Result = tuple[dict[Any, CohortCounts], Counter[Any], dict[bytes, bytes]]
"""Counts by collection and period; the ledger; the rows that are kept of each collection, by id."""


def collect(bundles: Sequence[list[tuple[bytes, int]]]) -> Result:
    """Decode and count bundles of (message, arrival) one after the other, with de-duplication."""
    gate = TimeGate(periods=BasePeriods(HOUR), allowed_lateness=HOUR)
    counts: dict[Any, CohortCounts] = {}
    ledger: Counter[Any] = Counter()
    kept: dict[bytes, KnownReports] = {}
    for bundle in bundles:
        arrivals = np.array([arrival for _, arrival in bundle])
        decoded = decoder(COLLECTIONS, gate=gate).decode([message for message, _ in bundle], arrivals)
        for entry in received_entries(decoded, gate.periods):
            ledger["received", entry.fingerprint, entry.period_start] += entry.num_reports
        for rejection in decoded.rejections:
            name = rejection.collection.fingerprint if rejection.collection else b""
            ledger[rejection.reason.code, name, rejection.period_start] += rejection.num_reports
        for batch in decoded.batches:
            of = next(of for of in COLLECTIONS if of.fingerprint == batch.fingerprint)
            for period, found in count_periods(of, batch, gate.periods):
                key = (batch.fingerprint, period)
                counts[key] = counts[key] + found if key in counts else found
            if len(batch.report_ids):
                rows = to_rows(batch)
                kept.setdefault(batch.fingerprint, KnownReports(rows.shape[1])).add(rows)
    return counts, ledger, {name: sorted(map(bytes, known.rows)) for name, known in kept.items()}


def test_many_orders_and_splits_give_the_same_counts() -> None:
    rng = random.Random(2026)
    messages = [m for m in Fuzzer(2026).messages(2_000) if len(m) < 50_000]
    arriving = [(message, NOON + rng.randrange(4 * HOUR)) for message in messages]
    expected = collect([arriving])
    assert sum(found.total for found in expected[0].values()) > 100  # enough to tell orders apart
    for _ in range(PERMUTATIONS):
        shuffled = rng.sample(arriving, len(arriving))
        cuts = sorted(rng.sample(range(len(shuffled)), rng.randrange(6)))
        bundles = [shuffled[a:b] for a, b in itertools.pairwise([0, *cuts, len(shuffled)])]
        assert collect(bundles) == expected


def test_counts_do_not_depend_on_how_sums_are_formed() -> None:
    """Any binary tree of additions over any split gives the sum; no operand is changed."""
    rng = random.Random(3)
    of = cases.COLLECTIONS["closed-sensitive-urap"]
    batch = of.perturb(rng.choices(cases.VALUES, k=500), np.random.default_rng(3))
    whole = of.count(batch)
    for _ in range(PERMUTATIONS):
        order = np.array(rng.sample(range(500), 500))
        parts = [of.count(batch[part]) for part in np.array_split(order, rng.randint(1, 20))]
        copies = [CohortCounts(part.num_reports.copy(), part.cells.copy()) for part in parts]
        pending = list(parts)
        while len(pending) > 1:
            first, second = (pending.pop(rng.randrange(len(pending))) for _ in range(2))
            pending.append(first + second)
        assert pending == [whole]
        assert parts == copies


# ---------------------------------------------------------------------- the main job under different engines

ENGINES = {
    "one worker": ["--runner=FnApiRunner"],
    "every bundle three times": ["--runner=FnApiRunner", "--direct_runner_bundle_repeat=2"],
    "two threads": ["--runner=FnApiRunner", "--direct_running_mode=multi_threading", "--direct_num_workers=2"],
    "five threads": ["--runner=FnApiRunner", "--direct_running_mode=multi_threading", "--direct_num_workers=5"],
    "two processes": ["--runner=FnApiRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"],
    "retrying engine": ["--runner=BundleBasedDirectRunner"],
}


CLOSED = Collection.from_json(cases.COLLECTIONS["closed-sensitive-urr"].to_json() | {"id": "closed"})
HASHED = Collection.from_json(cases.COLLECTIONS["hashed-rappor"].to_json() | {"id": "hashed"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of reports with repetitions, conflicting ids and damage."""
    folder = tmp_path_factory.mktemp("determinism")
    rng = np.random.default_rng(7)
    write_files(folder, {"closed.json": CLOSED, "hashed.json": HASHED, "candidates.txt": "\n".join(cases.VALUES)})
    for number in range(4):
        batches = [
            of.perturb(rng.choice(cases.VALUES, 300).tolist(), rng, NOON + rng.integers(-3 * HOUR, 3 * HOUR, 300))
            for of in (CLOSED, HASHED)
        ]
        batches += [ReportBatch.concatenate([batch, batch[:50]]) for batch in batches]
        records = [wire.batch_record(part[i : i + 40]) for part in batches for i in range(0, len(part), 40)]
        with (folder / f"reports-{number}.avro").open("wb") as file:
            fastavro.writer(file, wire.BATCH_SCHEMA, records, sync_interval=2_000)
    whole = (folder / "reports-3.avro").read_bytes()
    (folder / "reports-3.avro").write_bytes(whole[:-5])
    return folder


def run_job(folder: Path, output: Path, engine: Sequence[str]) -> dict[str, list[Any]]:
    options = [f"--collection={folder / name}" for name in ("closed.json", "hashed.json")]
    options += [f"--candidates={folder / 'candidates.txt'}", f"--input={folder / 'reports-*.avro'}"]
    options += [
        f"--output={output}",
        "--window=2h",
        "--slide=1h",
        "--deduplicate",
        "--write_counts",
        "--min_reports=20",
    ]
    assert estimate.main([*options, *engine]) == 7, "one file is cut off"
    return rows_of_output(output)


@pytest.fixture(scope="module")
def reference(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    rows = run_job(folder, tmp_path_factory.mktemp("reference"), ENGINES["one worker"])
    books = [json.loads(line) for line in rows["ledger.jsonl"]]
    assert sum(row["duplicates"] for row in books) > 1_000
    assert not any(row["rejected"] for row in books)
    assert [row["unread_files"] for row in books if row["unread_files"]] == [{"corrupt_block": 1}]
    assert len(rows["estimates.jsonl"]) > 10
    return rows


@pytest.mark.parametrize("engine", list(ENGINES)[1:])
def test_every_engine_writes_the_same(engine: str, folder: Path, reference: Any, tmp_path: Path) -> None:
    assert run_job(folder, tmp_path, ENGINES[engine]) == reference


# ---------------------------------------------------------------------- bundles of a stream

MESSAGES = [m for m in Fuzzer(5).messages(150) if len(m) < 50_000]
WINDOWS = Windows(size=2 * HOUR, slide=HOUR)


def stream_results(bundles: Sequence[list[bytes]]) -> tuple[Counter[Any], dict[Any, Any]]:
    """The sums of the ledger, and the last counts of each window."""
    job = replay.streaming_job(list(KNOWN), WINDOWS, allowed_lateness=HOUR, deduplicate=True)
    rows = replay.replay(job, [replay.arrive(NOON + HOUR, bundle) for bundle in bundles])
    books: Counter[Any] = Counter()
    for row in rows["ledger"]:
        key = (row.fingerprint, row.window_start)
        books.update({(*key, reason): number for reason, number in row.rejected.items()})
        for name in ("received", "accepted", "duplicates"):
            books[(*key, name)] += getattr(row, name)
    last: dict[Any, Any] = {}
    for row in sorted(rows["counts"], key=lambda row: row.pane_index):
        last[row.fingerprint, row.window_start] = (row.num_reports, row.cells)
    return +books, last


def test_bundles_of_a_stream_do_not_matter() -> None:
    expected = stream_results([MESSAGES])
    assert len(expected[1]) > 10
    rng = random.Random(6)
    for number in (2, 7):
        shuffled = rng.sample(MESSAGES, len(MESSAGES))
        bundles = [part.tolist() for part in np.array_split(np.array(shuffled, dtype=object), number)]
        assert stream_results(bundles) == expected


def test_a_shuffle_before_counting_changes_nothing() -> None:
    """The same messages decoded in one bundle, and spread over workers and bundles first."""
    rng = np.random.default_rng(8)
    times = NOON + rng.integers(-9 * HOUR, 9 * HOUR, 500)
    messages = wire.encode_reports(CLOSED.perturb(rng.choice(cases.VALUES, 500).tolist(), rng, times))
    found = []
    for spread in (beam.Map(lambda message: message), beam.Reshuffle()):
        with replay.collector() as (keep, panes):
            with beam.Pipeline(options=PipelineOptions(ENGINES["two threads"])) as pipeline:
                spec = replay.spec([CLOSED], WINDOWS, bounded=True)
                decoded = pipeline | beam.Create(messages) | "Spread" >> spread | DecodeReports(spec)
                counted = decoded.reports | CountReports(spec)
                _ = counted.counts | keep
            found.append({(key, window): counts for (key, counts), window, _ in panes})
    assert len(found[0]) > 15
    assert found[0] == found[1]


# ---------------------------------------------------------------------- many copies, many ids


def rows_of_ids(ids: np.ndarray, seed: int) -> np.ndarray:
    """Reports with these ids, (n, 27) uint8; the rest of a row is random."""
    rest = np.random.default_rng(seed).integers(0, 256, (len(ids), 11), dtype=np.uint8)
    return np.concatenate([np.ascontiguousarray(ids), rest], axis=1)


def test_one_id_sent_a_hundred_thousand_times_counts_once() -> None:
    """Equal and different copies, in one bundle or in many: the smallest stays, all others are duplicates."""
    rows = rows_of_ids(np.full((100_000, 16), 7, np.uint8), 1)
    smallest = min(map(bytes, rows))
    parts, whole = KnownReports(rows.shape[1]), KnownReports(rows.shape[1])
    duplicates = sum(parts.add(part).duplicates for part in np.array_split(rows, 50))
    assert [bytes(row) for row in parts.rows] == [smallest]
    assert duplicates == len(rows) - 1
    removed, added, more = whole.add(rows)
    assert ([bytes(row) for row in whole.rows], len(removed), len(added), more) == ([smallest], 0, 1, len(rows) - 1)


def test_different_ids_are_never_taken_for_copies() -> None:
    """Ids that differ in one bit only, or in the last byte, and many random ones."""
    rng = np.random.default_rng(2)
    near = np.zeros((128, 16), np.uint8)
    near[np.arange(128), np.arange(128) // 8] = 1 << np.arange(128) % 8
    ids = np.concatenate([near, rng.integers(0, 256, (200_000, 16), dtype=np.uint8)])
    rows = rows_of_ids(ids, 3)
    known = KnownReports(rows.shape[1])
    removed, added, duplicates = known.add(rows)
    assert (len(known), len(removed), len(added), duplicates) == (len(rows), 0, len(rows), 0)
    kept = known.rows
    removed, added, duplicates = known.add(rows)
    assert (len(removed), len(added), duplicates) == (0, 0, len(rows))
    assert np.array_equal(known.rows, kept)
