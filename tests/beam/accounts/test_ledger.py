"""The ledger: every report that came in is accepted, a duplicate or refused, and what is lost on the way shows."""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.test_stream import ElementEvent, Event
from apache_beam.transforms.window import GlobalWindow, TimestampedValue
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Duration, Timestamp
from fastavro.validation import validate

from tests.support import replay
from tests.support.messages_cases import (
    BATCH,
    GOOD,
    KRR,
    REPORT,
    STRANGER,
    URAP,
    container,
    data,
    long,
    packed,
    single,
    write_files,
)
from tests.support.tolerance import generator
from uldp_transforms import SummarizeLedger
from uldp_transforms.beam.runtime.coders import timestamp_of
from uldp_transforms.beam.transforms import deduplicate, ledger, transit
from uldp_transforms.beam.transforms.count_reports import SumCountsFn
from uldp_transforms.collector import period_counts as counting
from uldp_transforms.collector.known_reports import Changes, KnownReports
from uldp_transforms.collector.ledger_entries import LedgerEntry, ledger_rows
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.records.ledger_sums import imbalance, missing, summary, sums_of
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.ldp.counts.running_sum import RunningSum
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.json_and_avro import to_avro, to_json
from uldp_transforms.rows.rejected_report import rejected_row
from uldp_transforms.rows.row_identity import span_of
from uldp_transforms.rows.row_types import LEDGER_SCHEMA, REJECTED_SCHEMA, LedgerRow, WindowedEstimate
from uldp_transforms.spec.spec_fields import CORRECTED, FINAL
from uldp_transforms.windows import BasePeriods, Windows, rfc3339

MINUTE = 60_000
PERIOD = 10 * MINUTE
COLLECTIONS = [KRR, URAP]

# ---------------------------------------------------------------------- whole jobs

Message = tuple[bytes, int]
"""A message, and the number of reports in it, 0 if nobody can know."""


def good(rng: np.random.Generator) -> Iterator[Message]:
    for of in COLLECTIONS:
        times = rng.integers(0, 3 * PERIOD, 40)
        batch = of.perturb(["1"] * 40, rng, times)
        yield from ((message, 1) for message in wire.encode_reports(batch[:15]))
        yield wire.encode_batch(batch[15:30]), 15
        yield wire.encode_batch(batch[30:]), 10
        nameless = ReportBatch(**vars(batch[:4]) | {"report_ids": np.zeros((0, 16), np.uint8)})
        yield wire.encode_batch(nameless), 4


def bad() -> Iterator[Message]:
    """Some of every kind; in packed ones good and bad reports stand side by side."""
    moment, name = PERIOD + 7, bytes(15)
    yield from ((message, 0) for message in (b"", b"\x02garbage", b"hello", single() + b"\0", packed()[:-1]))
    yield from (
        (single(**field), 1) for field in ({"cohort": long(9)}, {"payload": data(b"")}, {"payload": data(b"9")})
    )
    yield single(STRANGER), 1
    yield packed(STRANGER), 2
    yield packed(URAP, payloads=data(b"")), 2
    yield single(event_time=long(1 << 62)), 1
    rows = [(cohort, moment, name + bytes([cohort]), GOOD["urap"]) for cohort in range(6)]
    yield packed(URAP, rows), 6


def traffic(rng: np.random.Generator) -> list[Message]:
    """Good and bad messages, some of them twice, in random order."""
    messages = [*good(rng), *bad()]
    messages += [messages[index] for index in rng.integers(0, len(messages), 30)]
    return [messages[index] for index in rng.permutation(len(messages))]


def check(rows: dict[str, list[Any]], received: int, windows: Windows | None) -> None:
    """The three equations: of each place, of the whole run, and between ledger and estimates."""
    entries: list[LedgerRow] = rows["ledger"]
    assert not replay.unbalanced(entries)
    sums = replay.sum_ledger(entries)
    assert sum(bins["received"] for bins in sums.values()) == received
    refused: Counter[str] = Counter()
    for row in rows["rejected"]:
        refused[row.reason] += row.num_reports
    bins = sum(sums.values(), Counter())
    assert Counter({reason: bins[reason] for reason in refused}) == refused
    assert bins.total() - bins["received"] == bins["accepted"] + bins["duplicates"] + refused.total()
    accepted = {place: bins["accepted"] for place, bins in sums.items()}
    last: dict[Any, WindowedEstimate] = {}
    for row in sorted(rows["estimates"], key=lambda row: row.pane_index):
        last[row.fingerprint, row.window_start] = row
    for (fingerprint, start), row in last.items():
        first, end = (None if text is None else timestamp_of(text).micros // 1000 for text in (start, row.window_end))
        base = [None] if windows is None else map(rfc3339, range(first, end, windows.base))
        assert row.num_reports == sum(accepted.get((fingerprint, period), 0) for period in base)
    covered = sum(row.num_reports for row in last.values())
    assert covered == bins["accepted"] * (1 if windows is None else windows.size // windows.step)
    assert all(validate(to_avro(row, LEDGER_SCHEMA), LEDGER_SCHEMA, strict=True) for row in entries)


FIXED = Windows(size=PERIOD)
SLIDING = Windows(size=2 * PERIOD, slide=PERIOD)


@pytest.mark.parametrize(
    ("windows", "deduplicate"), [(None, True), (FIXED, False), (FIXED, True), (SLIDING, False), (SLIDING, True)]
)
def test_files_balance(windows: Windows | None, deduplicate: bool, tmp_path: Path) -> None:
    """Blocks that cannot be read are no reports, on both sides."""
    messages = traffic(generator("ledger", "files", deduplicate))
    blocks: dict[bytes, list[Message]] = {b"\x02": [], b"\x04": []}
    for message, number in messages:
        blocks.get(message[:1], []).append((message, number))
    singles, batches = blocks.values()
    write_files(
        tmp_path,
        {
            "single.avro": container([(1, message) for message, _ in singles], REPORT),
            "packed.avro": container([(1, message) for message, _ in batches], BATCH),
            "foreign.avro": container([(1, b"\x02")], "int"),
            "broken.avro": container([(1, single()), (9, single()), (1, single())]),
            "empty.avro": b"",
        },
    )
    job = replay.file_job(COLLECTIONS, windows, f"{tmp_path}/*.avro", deduplicate=deduplicate)
    rows = replay.replay(job)
    check(rows, sum(number for _, number in singles + batches) + 2, windows)
    assert all(not replay.unbalanced([row]) for row in rows["ledger"]), "of files each single row balances"
    assert any(row.duplicates for row in rows["ledger"]) == deduplicate


@pytest.mark.parametrize(
    ("windows", "release", "deduplicate"),
    [
        (FIXED, CORRECTED, False),
        (SLIDING, CORRECTED, True),
        (FIXED, FINAL, True),
        (SLIDING, FINAL, False),
    ],
)
def test_streams_balance(windows: Windows, release: str, deduplicate: bool) -> None:
    """Whenever messages arrive, with the watermark behind them, or ahead by less than the slack, or the margin."""
    ahead = 5 * MINUTE if release == CORRECTED else MINUTE
    rng = generator("ledger", "stream", release, deduplicate)
    messages = traffic(rng)
    events: list[Event] = []
    arrival, watermark = PERIOD, 0
    for part in np.array_split(np.arange(len(messages)), 12):
        events.append(replay.arrive(arrival, [messages[index][0] for index in part]))
        arrival += int(rng.integers(1, 5 * MINUTE))
        after = int(rng.integers(arrival - 5 * MINUTE, arrival + ahead))
        if after > watermark:
            watermark = after
            events.append(replay.watermark(watermark))
    job = replay.streaming_job(
        COLLECTIONS, windows, allowed_lateness=5 * MINUTE, deduplicate=deduplicate, release=release
    )
    rows = replay.replay(job, events)
    check(rows, sum(number for _, number in messages), windows)
    reasons = {reason for row in rows["ledger"] for reason in (*row.rejected, *row.unread_messages)}
    assert {"too_old", "too_early", "malformed", "unknown_collection", "cohort_range"} <= reasons
    assert any(row.duplicates for row in rows["ledger"]) == deduplicate


# ---------------------------------------------------------------------- what is lost shows


def loses_a_report(
    of: Collection, batch: ReportBatch, periods: BasePeriods | None, bit_patterns: bool
) -> Iterator[tuple[int, CohortCounts]]:
    yield from count_periods(of, batch[:-1], periods, bit_patterns)


def counts_a_report_twice(
    of: Collection, batch: ReportBatch, periods: BasePeriods | None, bit_patterns: bool
) -> Iterator[tuple[int, CohortCounts]]:
    yield from count_periods(of, ReportBatch.concatenate([batch, batch[:1]]), periods, bit_patterns)


def loses_a_part(batch: ReportBatch, periods: BasePeriods | None, num_parts: int) -> Iterator[tuple[bytes, bytes]]:
    yield from list(split(batch, periods, num_parts))[1:]


def forgets_duplicates(known: KnownReports, new: np.ndarray) -> Changes:
    return add(known, new)._replace(duplicates=0)


def loses_a_refusal(found: LedgerEntry | Rejection) -> tuple[str, dict[str, int]]:
    key, numbers = entry(found)
    return (key, {}) if "cohort_range" in numbers else (key, numbers)


def loses_what_it_judges(decoder: MessageDecoder, *parts: Any) -> MixedReports:
    judged = judge(decoder, *parts)
    sizes = np.append(judged.sizes[:-1], judged.sizes[-1] - 1)
    return dataclasses.replace(judged, sizes=sizes, reports=judged.reports[:-1])


def leaves_a_message_out(decoder: MessageDecoder, *parts: Any) -> Iterator[Any]:
    *data, which, verdicts = parts
    yield from split_singles(decoder, *data, which[1:], verdicts)


count_periods, split, add, entry = counting.count_periods, deduplicate._split, KnownReports.add, ledger.entry_of
judge, split_singles = MessageDecoder._judge, MessageDecoder._split_singles


def test_a_time_of_arrival_without_a_name_is_none() -> None:
    """A source may let its senders choose it, and a row must not stop the job."""
    epoch = "1970-01-01T00:00:00Z"
    for received, expected in ((-(1 << 60), None), (0, epoch), (253_370_764_800_000, None), (None, None)):
        row = rejected_row(Rejection(Reason.TOO_OLD, 1, 35, KRR, 0, received), BasePeriods(MINUTE))
        assert row.received_at == expected
        assert to_json(row)
        assert to_avro(row, REJECTED_SCHEMA)


def loses_one_at_the_end(sums: SumCountsFn, accumulator: RunningSum) -> CohortCounts:
    counts = accumulator.snapshot()
    fewer = counts.num_reports - (np.arange(len(counts.num_reports)) == counts.num_reports.argmax())
    return CohortCounts(fewer, counts.cells)


BROKEN = [
    pytest.param(SumCountsFn, "extract_output", loses_one_at_the_end, "", id="a report lost in the windows"),
    pytest.param(MessageDecoder, "_judge", loses_what_it_judges, "", id="a report lost by the decoder"),
    pytest.param(MessageDecoder, "_split_singles", leaves_a_message_out, "", id="a message lost by the decoder"),
    pytest.param(counting, "count_periods", loses_a_report, "", id="a lost report"),
    pytest.param(counting, "count_periods", counts_a_report_twice, "", id="a report counted twice"),
    pytest.param(deduplicate, "_split", loses_a_part, "--deduplicate", id="a lost part"),
    pytest.param(KnownReports, "add", forgets_duplicates, "--deduplicate", id="lost duplicates"),
    pytest.param(ledger, "entry_of", loses_a_refusal, "", id="a lost refusal"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with reports of one hour, each of them twice, and one with a wrong cohort."""
    batch = KRR.perturb(["0", "1"] * 10, generator("broken"), np.arange(20))
    messages = wire.encode_reports(batch) * 2 + [single(cohort=long(9))]
    write_files(tmp_path, {"krr.json": KRR, "in.avro": container([(1, message) for message in messages])})
    monkeypatch.chdir(tmp_path)
    return tmp_path


WINDOWED = "--collection krr.json --input in.avro --output out --window 1h"


@pytest.mark.parametrize(
    ("options", "summary"), [("", "40 accepted"), ("--deduplicate", "20 accepted + 20 duplicates")]
)
@pytest.mark.usefixtures("folder")
def test_without_a_loss_the_same_job_succeeds(options: str, summary: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert estimate.main(shlex.split(f"{WINDOWED} {options}")) == 0
    said = f"estimate: 41 received = {summary} + 1 rejected (cohort_range 1)\n"
    assert capfd.readouterr() == ("", said)


@pytest.mark.parametrize(("module", "name", "broken", "options"), BROKEN)
def test_a_loss_ends_the_job_with_another_code(
    module: Any,
    name: str,
    broken: Callable[..., Any],
    options: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """And says where."""
    monkeypatch.setattr(module, name, broken)
    assert estimate.main(shlex.split(f"{WINDOWED} {options}")) == 3
    out, err = capfd.readouterr()
    *_, last = err.splitlines()
    unplaced = broken in (loses_a_refusal, loses_what_it_judges, leaves_a_message_out)
    wrong = "too many" if broken is counts_a_report_twice else "lost"
    number = {loses_a_part: 2, forgets_duplicates: 20}.get(broken, 1)
    window = "None to None" if unplaced else f"{rfc3339(0)} to {rfc3339(60 * MINUTE)}"
    of = None if broken is leaves_a_message_out else "krr"
    said = f"estimate: the ledger does not balance for collection {of!r}, window {window}: reports {wrong}: {number}"
    assert last == f"{said}; do not use this output"
    assert out == ""
    assert (folder / "out" / "estimates.jsonl").exists()


@pytest.mark.parametrize(
    ("row", "balances"),
    [
        ({"received": 0, "accepted": 0, "duplicates": 0, "rejected": {}}, True),
        ({"received": 9, "accepted": 3, "duplicates": 2, "rejected": {"too_old": 1, "malformed": 3}}, True),
        ({"received": 9, "accepted": 9, "duplicates": 1, "rejected": {}}, False),
        ({"received": 9, "accepted": 3, "duplicates": 2, "rejected": {"too_old": 3}}, False),
        ({"received": 10, "accepted": 3, "duplicates": 2, "rejected": {"too_old": 4}}, False),
    ],
)
def test_rows_that_do_not_balance_are_found(row: dict[str, Any], balances: bool) -> None:
    assert (missing(row) == 0) == balances


@pytest.mark.parametrize(
    ("received", "in_transit", "collection", "expected"),
    [
        (5, 0, "krr", []),
        (5, None, "krr", []),
        (6, 0, "krr", ["reports lost: 1"]),
        (3, 0, None, ["reports too many: 2"]),
        (5, 2, "krr", ["windows lost: 2"]),
        (5, -1, None, ["files or messages too many: 1"]),
        (9, 7, None, ["reports lost: 4", "files or messages lost: 7"]),
    ],
)
def test_what_was_lost_is_said(
    received: int, in_transit: int | None, collection: str | None, expected: list[str]
) -> None:
    """Rows of earlier jobs had no field ``in_transit``."""
    row = {
        "collection_id": collection,
        "received": received,
        "accepted": 3,
        "duplicates": 1,
        "rejected": {"too_old": 1},
    }
    assert imbalance(row | {"in_transit": in_transit}) == expected
    assert in_transit or imbalance(row) == expected


def test_the_summary_of_a_job() -> None:
    place = dict.fromkeys(("collection_id", "collection_version", "window_start", "window_end"))
    rows = [
        place | {"received": 9, "accepted": 3, "duplicates": 2, "rejected": {"too_old": 1, "malformed": 3}},
        place | {"received": 7, "accepted": 3, "duplicates": 0, "rejected": {"malformed": 4}},
    ]
    assert summary(sums_of(rows)) == ("16 received = 6 accepted + 2 duplicates + 8 rejected (malformed 7, too_old 1)")
    rows[0] |= {"duplicates": 0}
    assert summary(sums_of(rows)) == "16 received = 6 accepted + 8 rejected (malformed 7, too_old 1)"
    assert summary(sums_of([])) == "0 received = 0 accepted + 0 rejected"


# ---------------------------------------------------------------------- sums

ENTRIES: list[LedgerEntry | Rejection] = [
    *(
        LedgerEntry(name, of.fingerprint, start, number)
        for of in COLLECTIONS
        for start in (None, 0, -PERIOD, 1_000 * PERIOD)
        for name, number in (("received", 7), ("accepted", 5), ("accepted", -2), ("duplicates", 2), ("duplicates", 1))
    ),
    LedgerEntry("received", b"", None, 3),
    *(LedgerEntry("in_transit", b"", None, number) for number in (5, -2, -1)),
    *(LedgerEntry("in_transit", KRR.fingerprint, 7 * PERIOD, number) for number in (1, -1)),
    *(Rejection(reason, 1, 9) for reason in (Reason.MALFORMED, Reason.MALFORMED, Reason.TOO_LARGE)),
    *(Rejection(Reason.TOO_OLD, 1, 9, of, start) for of in COLLECTIONS for start in (0, -PERIOD, 1_000 * PERIOD)),
]


def expected_row(of: Collection | None, start: int | None) -> LedgerRow:
    """What the entries above add up to, worked by hand."""
    numbers = {"received": 7, "accepted": 3, "duplicates": 3, "rejected": {} if start is None else {"too_old": 1}}
    if of is None:
        numbers = {"received": 3, "accepted": 0, "duplicates": 0, "rejected": {"malformed": 2, "too_large": 1}}
    name = (None, None, None) if of is None else (of.id, of.version, of.fingerprint.hex())
    named = dict(zip(("collection_id", "collection_version", "fingerprint"), name))
    return LedgerRow(**named, **span_of(start, PERIOD), **numbers, in_transit=2 if of is None else 0)


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_entries_add_up_in_any_order_and_from_any_stage(parts: int) -> None:
    rng = generator("entries", parts)
    stages: list[list[LedgerEntry | Rejection]] = [[] for _ in range(parts)]
    for index in rng.permutation(len(ENTRIES)):
        stages[rng.integers(parts)].append(ENTRIES[index])
    with replay.collector() as (collect, rows):
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            inputs = tuple(
                pipeline | f"Stage{i}" >> beam.Create(stage, reshuffle=False) for i, stage in enumerate(stages)
            )
            _ = inputs | SummarizeLedger(replay.spec(COLLECTIONS, FIXED)) | collect
        found = sorted((row for row, _, _ in rows), key=repr)
    expected = [expected_row(of, start) for of in COLLECTIONS for start in (None, 0, -PERIOD, 1_000 * PERIOD)]
    assert found == sorted([*expected, expected_row(None, None)], key=repr)
    assert all(list(row.rejected) == sorted(row.rejected) for row in found)


def test_entries_in_memory_make_the_same_rows() -> None:
    """In the order of their collections and periods; what adds up to nothing has no row."""
    rows = ledger_rows(ENTRIES, dataclasses.replace(replay.spec(COLLECTIONS, FIXED), run="r"))
    expected = [expected_row(of, start) for of in COLLECTIONS for start in (None, 0, -PERIOD, 1_000 * PERIOD)]
    expected = [row._replace(run="r") for row in (*expected, expected_row(None, None))]
    assert sorted(rows, key=repr) == sorted(expected, key=repr)
    assert [row.fingerprint or "" for row in rows] == sorted(row.fingerprint or "" for row in rows)


def test_sums_cross_between_workers_as_the_same_bytes() -> None:
    coder = ledger.SumByReasonFn().get_accumulator_coder()
    assert coder.encode({"too_old": -1, "accepted": 2}) == b'{"accepted": 2, "too_old": -1}'
    assert coder.decode(coder.encode({"too_old": -1})) == {"too_old": -1}
    assert coder.is_deterministic()


def test_an_entry_waits_for_work_in_flight_and_at_most_for_ever() -> None:
    entry = ("key", {"accepted": 1})
    for moment, expected in ((Timestamp(7), Timestamp(67)), (MAX_TIMESTAMP, MAX_TIMESTAMP)):
        settled = ledger._settled(entry, Duration(60), moment)
        assert (settled.value, settled.timestamp) == (entry, expected)


def test_what_is_in_no_window_is_entered_at_the_end_of_time() -> None:
    """And never later, where a lateness is added to it."""
    window, counts = GlobalWindow(), KRR.count(KRR.perturb(["0"]))
    for moment in (Timestamp(7), MAX_TIMESTAMP):
        entry = transit._counts_entry((KRR.fingerprint, counts), Duration(60), window, moment)
        assert entry.value == LedgerEntry("in_transit", KRR.fingerprint, None, 1)
        assert window.max_timestamp() <= entry.timestamp <= MAX_TIMESTAMP


# ---------------------------------------------------------------------- whatever bundles an engine makes


def sent_over_time(*, deduplicate: bool) -> list[tuple[int, bytes]]:
    """Messages and when they come: for three periods every few seconds, some of them late, too old, or garbage."""
    rng, found = generator(__name__), []
    begin = 400_000 * PERIOD
    for number, arrival in enumerate(range(begin, begin + 3 * PERIOD, MINUTE // 4)):
        event_time = arrival - (0, 0, PERIOD, 4 * PERIOD)[number % 4]
        of = COLLECTIONS[number % 2]
        batch = of.perturb(["1"] * 3, rng, [event_time] * 3)
        messages = [b"garbage", wire.encode_batch(batch), *wire.encode_reports(batch[:1])]
        found += [(arrival, message) for message in messages[: None if deduplicate else 2]]
    return found


def in_bundles(sent: list[tuple[int, bytes]], size: int) -> list[Event]:
    """Bundles of so many messages, whose times of arrival are in several periods."""
    timed = [TimestampedValue(message, replay.timestamp(arrival)) for arrival, message in sent]
    return [ElementEvent(timed[begin : begin + size]) for begin in range(0, len(timed), size)]


@pytest.mark.parametrize("margin", [MINUTE, PERIOD // 20])
@pytest.mark.parametrize("deduplicate", [False, True])
def test_rows_of_a_stream_are_the_same_in_whatever_bundles_messages_come(deduplicate: bool, margin: int) -> None:
    """So a job that goes on from a checkpoint, and reads in other portions, writes the same rows once more."""
    sent = sent_over_time(deduplicate=deduplicate)
    job = replay.streaming_job(
        COLLECTIONS,
        Windows(size=PERIOD),
        allowed_lateness=2 * PERIOD,
        lateness_slack=2 * margin,
        deduplicate=deduplicate,
    )
    found = [sorted(replay.replay(job, in_bundles(sent, size))["ledger"], key=str) for size in (1, 7, 50, len(sent))]
    assert all(rows == found[0] for rows in found)
    periods = {row.window_start for row in found[0]}
    assert len(found[0]) > len(periods) > 5  # several rows of a period: what came in each period of arrival
