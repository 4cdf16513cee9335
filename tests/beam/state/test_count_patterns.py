"""Bit patterns on their way through the jobs: windows, copies, releases, updates; health rows are those of numpy."""

from __future__ import annotations

import dataclasses
import itertools
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apache_beam.utils.timestamp import Timestamp

from tests.support import replay
from tests.support.messages_cases import BATCH, KRR, URAP, collection, container, numbered
from tests.support.tolerance import generator
from uldp_transforms.beam.transforms.count_reports import SumCountsFn, _CountBundleFn
from uldp_transforms.collector.period_counts import count_periods
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.ldp.counts.running_sum import RunningSum
from uldp_transforms.ldp.sentinels import examine
from uldp_transforms.messages import wire
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.spec.spec_fields import CORRECTED, FINAL
from uldp_transforms.windows import BasePeriods, Windows, rfc3339

MINUTE = 60_000
PERIOD = 10 * MINUTE
DAY = 1440 * MINUTE

RAPPOR = collection("bits", numbered(7), "rappor")
ALL = [KRR, URAP, RAPPOR]
WINDOWS = {
    "fixed": Windows(size=PERIOD),
    "sliding": Windows(size=2 * PERIOD, slide=PERIOD),
}
windows_of_both_kinds = pytest.mark.parametrize("windows", WINDOWS.values(), ids=WINDOWS)

Key = tuple[str, str]
"""Fingerprint and start of the window."""


def some_reports(of: Collection, n: int, *seed: object) -> ReportBatch:
    rng = generator("patterns", of.id, *seed)
    return of.perturb(rng.choice(["0", "1", "2"], n).tolist(), rng, rng.integers(0, 3 * PERIOD, n))


def in_conflict(batch: ReportBatch, of: Collection) -> ReportBatch:
    """Other reports with the same ids in the same periods: of two the smaller one counts."""
    moments = batch.event_times // PERIOD * PERIOD + 7
    other = of.perturb(["1"] * len(batch), generator("conflict", of.id), moments)
    return dataclasses.replace(other, report_ids=batch.report_ids)


def smaller(batch: ReportBatch, other: ReportBatch) -> ReportBatch:
    """Of two reports with one id the one whose time, cohort and payload are smaller as bytes."""

    def row(of: ReportBatch, i: int) -> bytes:
        time = int(of.event_times[i]).to_bytes(8, "little", signed=True)
        return time + int(of.cohorts[i]).to_bytes(2, "little") + of.payloads[i].tobytes()

    parts = [min((batch, other), key=lambda of: row(of, i))[i : i + 1] for i in range(len(batch))]
    return ReportBatch.concatenate(parts)


def expected(batches: Sequence[ReportBatch], windows: Windows) -> dict[Key, list[dict[str, Any]]]:
    """Findings of each window, from the reports of that window alone."""
    found: dict[Key, list[dict[str, Any]]] = {}
    for of, batch in zip(ALL, batches):
        for start in range(-windows.size, 4 * PERIOD, windows.step):
            inside = (start <= batch.event_times) & (batch.event_times < start + windows.size)
            if inside.any():
                counts = of.count(batch[inside], bit_patterns=True)
                findings = [dataclasses.asdict(finding) for finding in examine(of, counts)]
                found[of.fingerprint.hex(), rfc3339(start)] = findings
    return found


def last_findings(rows: Sequence[Any]) -> dict[Key, list[dict[str, Any]]]:
    """The findings of the last pane of each window."""
    in_order = sorted(rows, key=lambda row: row.pane_index)
    return {(row.fingerprint, row.window_start): as_dict(row)["findings"] for row in in_order}


def names(findings: dict[Key, list[dict[str, Any]]], of: Collection) -> set[str]:
    return {entry["name"] for (text, _), found in findings.items() if text == of.fingerprint.hex() for entry in found}


# ---------------------------------------------------------------------- whole jobs


@windows_of_both_kinds
@pytest.mark.parametrize("bit_patterns", [True, False])
def test_files_have_the_findings_of_numpy(windows: Windows, bit_patterns: bool, tmp_path: Path) -> None:
    batches = [some_reports(of, 300) for of in ALL]
    blocks = [(1, wire.encode_batch(part)) for batch in batches for part in (batch[:100], batch[100:])]
    (tmp_path / "in.avro").write_bytes(container(blocks, BATCH))
    job = replay.file_job(ALL, windows, f"{tmp_path}/*.avro", bit_patterns=bit_patterns)
    findings = last_findings(replay.replay(job)["health"])
    inside = {"histogram", "pairs"} if bit_patterns else set()
    assert names(findings, KRR) & {"histogram", "pairs"} == set()
    assert names(findings, URAP) & {"histogram", "pairs"} == names(findings, RAPPOR) & {"histogram", "pairs"} == inside
    if bit_patterns:
        assert findings == expected(batches, windows)


@windows_of_both_kinds
@pytest.mark.parametrize("release", [CORRECTED, FINAL])
def test_streams_have_the_findings_of_numpy_with_copies_and_conflicts(windows: Windows, release: str) -> None:
    """Half of the reports after the on-time pane; reports that were counted are taken back, with their patterns."""
    batches = [some_reports(of, 60) for of in ALL]
    others = [in_conflict(batch, of) for of, batch in zip(ALL, batches)]
    events = []
    for moment, parts in ((3 * PERIOD, batches), (3 * PERIOD, batches), (6 * PERIOD, others)):
        events += [replay.arrive(moment, [wire.encode_batch(part) for part in parts]), replay.watermark(moment)]
    job = replay.streaming_job(
        ALL,
        windows,
        allowed_lateness=DAY,
        deduplicate=True,
        bit_patterns=True,
        release=release,
        write_counts=True,
    )
    rows = replay.replay(job, events)
    kept = [smaller(*pair) for pair in zip(batches, others)]
    assert any((one.payloads != other.payloads).any() for one, other in zip(kept, batches))
    assert last_findings(rows["health"]) == expected(kept, windows)
    assert {name for row in rows["counts"] for name in row._fields} & {"patterns", "bit_patterns"} == set()


# ---------------------------------------------------------------------- the parts


@pytest.mark.parametrize("max_cells", [1, 300, 1 << 22])
@pytest.mark.parametrize("of", ALL, ids=lambda of: of.id)
def test_patterns_of_periods_are_those_of_each_alone(of, max_cells, monkeypatch):
    monkeypatch.setattr("uldp_transforms.collector.period_counts._MAX_CELLS", max_cells)
    batch = some_reports(of, 200)
    counted = dict(count_periods(of, batch, BasePeriods(MINUTE), bit_patterns=True))
    periods = batch.event_times // MINUTE
    assert counted == {
        period * MINUTE: of.count(batch[periods == period], bit_patterns=True) for period in np.unique(periods).tolist()
    }


def test_a_bundle_of_many_periods_and_pairs_takes_bounded_memory():
    """32,640 pairs in each of 1,000 periods are 250 MiB, of which a worker holds an eighth before it hands them on."""
    of = collection("pairs", numbered(256), "rappor")
    n = 1_000
    batch = of.perturb(["0"] * n, generator("many pairs"), np.arange(n) * DAY)
    counter = _CountBundleFn(replay.spec([of], Windows(size=DAY), bit_patterns=True))
    counter.start_bundle()
    tracemalloc.start()
    handed_on = sum(1 for _ in itertools.chain(counter.process(batch, Timestamp(0)), counter.finish_bundle()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert handed_on == 2 * n  # sums, and what they add to the ledger
    assert peak < 150 << 20


def test_a_job_that_is_updated_has_no_patterns_of_a_part():
    """A window that was counted without them in part is examined without them, not with wrong ones."""
    batch = some_reports(RAPPOR, 90)
    before, after = RAPPOR.count(batch[:40]), RAPPOR.count(batch[40:], bit_patterns=True)
    sums = SumCountsFn()
    total = sums.extract_output(sums.merge_accumulators([RunningSum(before), RunningSum(after), None]))
    assert total == RAPPOR.count(batch)
    assert not {finding.name for finding in examine(RAPPOR, total)} & {"histogram", "pairs"}
