"""Decoding: one verdict for every report, the right one, and never an exception."""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.fuzz import check_messages
from tests.support.compiled_part import NUMPY, decoding_with
from tests.support.messages_cases import (
    BATCH_HEADER,
    GOOD,
    ID,
    KNOWN,
    KRR,
    NOON,
    REPORT_HEADER,
    SCHEMAS,
    STRANGER,
    URAP,
    data,
    decoder,
    long,
    num_reports,
    packed,
    padded,
    refused,
    rows_of,
    single,
    truncations,
)
from tests.support.together import together
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import MAX_BLOCK_BYTES
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, BasePeriods, TimeGate

pytestmark = pytest.mark.usefixtures("decoding_part")

# ---------------------------------------------------------------------- single reports

ELEVEN_BYTES = b"\x80" * 10 + b"\x01"
BIT_65 = b"\xff" * 9 + b"\x02"

Fault = tuple[str, bytes, str, Collection | None]
"""What is wrong, the message, the reason, and the collection if it was established."""


def faults_of_bytes() -> Iterator[Fault]:
    """What is wrong before anybody asks what the report says; it then belongs to no collection."""
    good, marked = single(), REPORT_HEADER + single()
    yield "empty", b"", "malformed", None
    for part in truncations(good):
        yield f"cut after {len(part)} bytes", part, "malformed", None
    for part in truncations(marked):
        reason = "malformed" if len(part) > 10 else "unknown_schema"
        yield f"marked, cut after {len(part)} bytes", part, reason, None
    for extra in (b"\0", b"\x02", b"\xff"):
        yield f"one byte more: {extra.hex()}", good + extra, "trailing_bytes", None
        yield f"marked, one byte more: {extra.hex()}", marked + extra, "trailing_bytes", None
    yield "twice", good + good, "trailing_bytes", None
    for field, encoded in (("event_time", long(NOON)), ("cohort", long(1)), ("payload", long(1))):
        behind = b"\x02" if field == "payload" else b""
        for name, bad in (("padded", padded(encoded)), ("eleven bytes", ELEVEN_BYTES), ("65 bits", BIT_65)):
            yield f"{field} {name}", single(**{field: bad + behind}), "non_canonical", None
    for cohort in (1 << 31, -(1 << 31) - 1, (1 << 63) - 1, -(1 << 63)):
        yield f"cohort {cohort}", single(cohort=long(cohort)), "out_of_range", None
    for size in (-1, -(1 << 31), -(1 << 63), 2, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1):
        yield f"payload length {size}", single(payload=long(size) + b"\x02"), "malformed", None


def faults_of_schema() -> Iterator[Fault]:
    good = single()
    for what, message in {
        "another fingerprint": b"\xc3\x01" + bytes(8) + good,
        "another marker": b"\xc3\x02" + REPORT_HEADER[2:] + good,
        "big-endian fingerprint": b"\xc3\x01" + REPORT_HEADER[:1:-1] + good,
        "marked twice": REPORT_HEADER * 2 + good,
        "report marked as batch": BATCH_HEADER + good,
        "batch marked as report": REPORT_HEADER + packed(),
        "JSON": json.dumps({"form": 1, "cohort": 1, "payload": "\u0002"}).encode(),
        "form padded": b"\x82\x00" + good[1:],
        "form 0": b"\x00" + good[1:],
        "form 3": b"\x06" + good[1:],
        "form -1": b"\x01" + good[1:],
        "a container file": b"Obj\x01" + good,
        "text": b"hello",
    }.items():
        yield what, message, "unknown_schema", None
    yield "form 1 of a schema with a text", b"\x02" + data(b"a" * 60), "malformed", None
    yield "form 1 of a schema with a fixed", b"\x02" + b"\x02" * 60, "trailing_bytes", None


def faults_of_meaning() -> Iterator[Fault]:
    """What the bytes say cannot be; a report that names another job's collection still belongs to none."""
    yield "unknown collection", single(STRANGER), "unknown_collection", None
    yield "no collection", single(collection=bytes(8)), "unknown_collection", None
    yield "unknown collection, other payload", single(STRANGER, payload=data(b"")), "unknown_collection", None
    for cohort in (-1, -(1 << 31), 3, 1 << 16, (1 << 31) - 1):
        yield f"cohort {cohort}", single(cohort=long(cohort)), "cohort_range", KRR
    for of in KNOWN:
        size = len(GOOD[of.id])
        for other in {0, 1, size - 1, size + 1, 100} - {size}:
            yield f"{of.id} payload of {other} bytes", single(of, payload=data(bytes(other))), "payload_length", of
        for why, payload in bad_payloads(of):
            yield f"{of.id} payload {payload.hex()}", single(of, payload=data(payload)), why, of
    for moment in (MIN_EVENT_TIME - 1, MAX_EVENT_TIME, -(1 << 63), (1 << 63) - 1):
        yield f"time {moment}", single(event_time=long(moment)), "time_range", KRR


BAD_CLEAR = [  # 3 bits and a clear field up to 7
    *(("padding_bits", bytes([1 << bit, 0])) for bit in range(3, 8)),
    *(("value_domain", bytes([0, clear])) for clear in (8, 128, 255)),
    *(("impossible_report", bytes([bits, clear])) for bits in (1, 2, 7) for clear in (1, 7)),
]


def bad_payloads(of: Collection) -> list[tuple[str, bytes]]:
    """Payloads of the right length that no client sends, with their reasons."""
    return {
        "krr": [("value_domain", bytes([symbol])) for symbol in (3, 4, 128, 255)],
        "urr": [("value_domain", struct.pack("<H", symbol)) for symbol in (300, 301, 0x8000, 0xFFFF)],
        "rappor": [("padding_bits", bytes([0, 1 << bit])) for bit in range(2, 8)],
        "urap": BAD_CLEAR,
        "ss": [("padding_bits", bytes([3, 1 << bit])) for bit in range(2, 8)]
        + [("impossible_report", struct.pack("<H", bits)) for bits in (0, 1, 0x003, 0x00F, 0x3FF)],
        "uss": BAD_CLEAR + [("impossible_report", bytes([bits, 0])) for bits in (0, 1, 4, 7)],
    }[of.id]


def faults_of_order() -> Iterator[Fault]:
    """Two things wrong at once: the first check that fails gives the reason."""
    late = long(1 << 62)
    yield "length before schema", b"", "malformed", None
    yield "schema before bytes", b"\x06", "unknown_schema", None
    yield "padding before length", single(cohort=padded(long(1)), payload=long(9)), "non_canonical", None
    yield "trailing before range", single(cohort=long(1 << 40)) + b"\0", "trailing_bytes", None
    yield "range before collection", single(STRANGER, cohort=long(1 << 40)), "out_of_range", None
    yield "collection before cohort", single(STRANGER, cohort=long(3)), "unknown_collection", None
    yield "payload length before cohort", single(payload=data(b""), cohort=long(3)), "payload_length", KRR
    yield "cohort before payload", single(payload=data(b"\x03"), cohort=long(3)), "cohort_range", KRR
    yield "padding bits before domain", single(URAP, payload=data(b"\xff\xff")), "padding_bits", URAP
    yield "domain before impossible", single(URAP, payload=data(b"\x01\xff")), "value_domain", URAP
    yield "payload before time", single(payload=data(b"\x03"), event_time=late), "value_domain", KRR


SINGLES = [*faults_of_bytes(), *faults_of_schema(), *faults_of_meaning(), *faults_of_order()]


@together(("message", "reason", "of"), [pytest.param(*row, id=name) for name, *row in SINGLES])
def test_a_bad_report_has_one_reason(message, reason, of):
    batches, rejections, *_ = decoder().decode([message])
    assert not batches
    assert rejections == [refused(reason, len(message), of)]


@pytest.mark.parametrize("of", KNOWN, ids=lambda of: of.id)
@pytest.mark.parametrize("head", [b"", REPORT_HEADER], ids=["plain", "marked"])
def test_a_good_report_is_accepted_as_it_came(of, head):
    batches, rejections, *_ = decoder().decode([head + single(of)])
    assert not rejections
    assert rows_of(batches) == {(of.fingerprint[:8], (1, NOON, ID, GOOD[of.id])): 1}
    assert batches[0].fingerprint == of.fingerprint
    assert wire.encode_reports(batches[0]) == [single(of)]


@pytest.mark.parametrize(
    "field",
    [
        {"event_time": long(MIN_EVENT_TIME)},
        {"event_time": long(MAX_EVENT_TIME - 1)},
        {"event_time": long(-1)},
        {"cohort": long(0)},
        {"cohort": long(2)},
        {"report_id": bytes(16)},
        {"payload": data(b"\0")},
    ],
    ids=str,
)
def test_the_last_good_values_are_accepted(field):
    message = single(**field)
    batches, rejections, *_ = decoder().decode([message])
    assert not rejections
    assert wire.encode_reports(batches[0]) == [message]


def test_every_reason_of_messages_is_in_the_tables():
    below = {"too_large", "too_early", "too_old", "no_report_id"}
    reasons = {reason for _, _, reason, _ in SINGLES} | below
    assert reasons == {reason.code for reason in Reason if 10 <= reason < 40}


def test_the_page_about_reasons_lists_all_of_them_in_order():
    page = (SCHEMAS.parent / "docs" / "reasons.md").read_text(encoding="utf-8")
    table = page.partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", table, flags=re.MULTILINE)
    assert [row[0] for row in rows] == [reason.code for reason in Reason]
    assert all(map(all, rows))
    assert f"{wire.MAX_MESSAGE_BYTES:,} bytes" in page
    assert f"{MAX_BLOCK_BYTES >> 20} MiB" in page


# ---------------------------------------------------------------------- size


@pytest.mark.parametrize("make", [single, packed])
@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("excess", [-1, 0, 1])
def test_messages_above_the_cap_are_not_looked_at(make, head, excess):
    field, start = ("payload", REPORT_HEADER) if make is single else ("payloads", BATCH_HEADER)
    start *= head
    size = wire.MAX_MESSAGE_BYTES + excess
    missing = size - len(start + make(**{field: long(size)}))
    message = start + make(**{field: data(bytes(missing))})
    assert len(message) == size
    batches, rejections, *_ = decoder().decode([message, single()])
    assert num_reports(batches, []) == 1
    looked_at = Rejection(Reason.PAYLOAD_LENGTH, 1 if make is single else 2, size, KRR)
    assert rejections == [looked_at if excess <= 0 else refused("too_large", size)]


# ---------------------------------------------------------------------- arrival

HOUR = 3_600_000
GATE = TimeGate(periods=BasePeriods(HOUR), allowed_lateness=60_000, future_skew=5_000)


@pytest.mark.parametrize("start", [0, NOON // HOUR * HOUR, -HOUR, MIN_EVENT_TIME // HOUR * HOUR + HOUR])
@pytest.mark.parametrize("make", [single, packed], ids=["single", "packed"])
@pytest.mark.parametrize(
    ("moment", "arrival", "reason"),
    [
        (0, HOUR + 60_000 - 1, None),
        (0, HOUR + 60_000, "too_old"),
        (HOUR - 1, HOUR + 60_000 - 1, None),
        (HOUR - 1, HOUR + 60_000, "too_old"),
        (HOUR - 1, 100 * HOUR, "too_old"),
        (5_000, 0, None),
        (5_001, 0, "too_early"),
        (HOUR - 1, -100 * HOUR, "too_early"),
    ],
)
def test_the_gate_is_exact_to_the_millisecond(make, start, moment, arrival, reason):
    """Times are counted from the start of a period, which is also what the rejection names."""
    row = (1, start + moment, ID, b"\x02")
    message = packed(rows=[row]) if make is packed else single(event_time=long(row[1]))
    batches, rejections, *_ = decoder(gate=GATE).decode([message], np.array([start + arrival]))
    if reason is None:
        assert not rejections
        assert rows_of(batches) == {(KRR.fingerprint[:8], row): 1}
    else:
        assert not batches
        assert rejections == [Rejection(Reason[reason.upper()], 1, len(message), KRR, start, start + arrival)]


def test_times_out_of_range_come_before_the_gate():
    messages = [single(event_time=long(t)) for t in (MIN_EVENT_TIME - 1, MAX_EVENT_TIME, -(1 << 63), (1 << 63) - 1)]
    _, rejections, *_ = decoder(gate=GATE).decode(messages, np.full(4, NOON))
    assert {(r.reason, r.period_start, r.arrival_time) for r in rejections} == {(Reason.TIME_RANGE, None, NOON)}
    assert num_reports([], rejections) == 4


def test_a_flood_is_a_row_for_each_size_and_millisecond():
    """Not for each message: otherwise a small compressed block could be a gigabyte of rows."""
    messages = [single(STRANGER)] * 5_000 + [b"\x02garbage"] * 3_000 + [packed(STRANGER)] * 2_000
    arrivals = NOON + np.arange(10_000) % 2
    decoded = decoder(gate=GATE).decode(messages, arrivals)
    rejections, received = decoded.rejections, decoded.num_received
    assert sorted((r.reason.code, r.num_reports, r.num_messages, r.arrival_time - NOON) for r in rejections) == [
        (*numbers, moment)
        for numbers in (("malformed", 0, 1_500), ("unknown_collection", 2_000, 0), ("unknown_collection", 2_500, 0))
        for moment in (0, 1)
    ]
    assert received == {b"": 9_000}
    assert len(decoder().decode(messages)[1]) == 3


def test_arrival_is_named_in_every_rejection():
    messages = [b"", single(STRANGER), single(cohort=long(3)), packed(KRR, cohorts=data(b"1"))]
    _, rejections, *_ = decoder(gate=GATE).decode(messages, NOON + np.arange(4))
    assert sorted(rejection.arrival_time for rejection in rejections) == [NOON, NOON + 1, NOON + 2, NOON + 3]


def test_late_reports_of_a_batch_are_told_apart_by_period():
    moments = [0, 1, HOUR, 3 * HOUR, 4 * HOUR]
    message = packed(rows=[(0, moment, ID, b"\0") for moment in moments])
    batches, rejections, *_ = decoder(gate=GATE).decode([message], np.array([3 * HOUR]))
    size = len(message)
    assert [batch.event_times.tolist() for batch in batches] == [[3 * HOUR]]
    assert sorted(rejections, key=lambda rejection: rejection.period_start) == [
        Rejection(Reason.TOO_OLD, 2, size, KRR, 0, 3 * HOUR),
        Rejection(Reason.TOO_OLD, 1, size, KRR, HOUR, 3 * HOUR),
        Rejection(Reason.TOO_EARLY, 1, size, KRR, 4 * HOUR, 3 * HOUR),
    ]


# ---------------------------------------------------------------------- packed reports

COLUMNS = ("cohorts", "event_times", "report_ids", "payloads")
SIZES = dict(zip(COLUMNS, (4, 16, 32, 2)))  # of the columns of two reports


def faults_of_batches() -> Iterator[tuple[str, bytes, str, Collection | None, int]]:
    """As for single reports, and how many reports are refused: 1 if nobody can know."""
    good, marked = packed(), BATCH_HEADER + packed()
    for part in truncations(good):
        yield f"cut after {len(part)} bytes", part, "malformed", None, 1
    for part in truncations(marked):
        reason = "malformed" if len(part) > 10 else "unknown_schema"
        yield f"marked, cut after {len(part)} bytes", part, reason, None, 1
    yield "one byte more", good + b"\0", "trailing_bytes", None, 1
    yield "marked, one byte more", marked + b"\0", "trailing_bytes", None, 1
    yield "form padded", b"\x84\x00" + good[1:], "unknown_schema", None, 1
    yield "form 2 of a schema with a text", b"\x04" + data(b"a" * 60), "malformed", None, 1
    for name in COLUMNS:
        content = bytes(SIZES[name])
        for what, length in (("padded", padded(long(len(content)))), ("11 bytes", ELEVEN_BYTES), ("65 bits", BIT_65)):
            yield f"length of {name} {what}", packed(**{name: length + content}), "non_canonical", None, 1
        for length in (-1, -(1 << 63), 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1):
            yield f"length of {name} {length}", packed(**{name: long(length) + content}), "malformed", None, 1
    for name in COLUMNS[:3]:
        for other in (SIZES[name] // 2, SIZES[name] - 1, SIZES[name] + 1, 2 * SIZES[name]):
            yield f"{name} of {other} bytes", packed(**{name: data(bytes(other))}), "malformed", None, 1
    yield "no cohorts", packed(cohorts=data(b"")), "malformed", None, 1
    yield "no times", packed(event_times=data(b"")), "malformed", None, 1
    yield "no reports", packed(rows=[]), "malformed", None, 1
    yield "no reports, a payload", packed(rows=[], payloads=data(b"\0")), "malformed", None, 1
    for other in (0, 1, 3, 4, 2000):
        yield f"payloads of {other} bytes", packed(payloads=data(bytes(other))), "payload_length", KRR, 2
    yield "unknown collection", packed(STRANGER), "unknown_collection", None, 2
    yield "unknown collection, other payloads", packed(STRANGER, payloads=data(b"")), "unknown_collection", None, 2
    yield "columns before collection", packed(STRANGER, cohorts=data(b"1")), "malformed", None, 1


BATCHES = list(faults_of_batches())


@together(("message", "reason", "of", "number"), [pytest.param(*row, id=name) for name, *row in BATCHES])
def test_a_bad_batch_has_one_reason(message, reason, of, number):
    batches, rejections, *_ = decoder().decode([message])
    assert not batches
    assert rejections == [refused(reason, len(message), of, number)]


BAD_ROWS = [
    *((of, (0, NOON, ID, payload), why) for of in KNOWN for why, payload in bad_payloads(of)),
    *((of, (cohort, NOON, ID, GOOD[of.id]), "cohort_range") for of in KNOWN for cohort in (3, 255, 65_535)),
    *(
        (of, (0, moment, ID, GOOD[of.id]), "time_range")
        for of in KNOWN
        for moment in (MIN_EVENT_TIME - 1, MAX_EVENT_TIME, -(1 << 63), (1 << 63) - 1)
    ),
]


@together(("of", "bad", "reason"), BAD_ROWS, ids=lambda row: f"{row[0].id}-{row[2]}")
@pytest.mark.parametrize("head", [b"", BATCH_HEADER], ids=["plain", "marked"])
@pytest.mark.parametrize("with_ids", [True, False])
def test_a_bad_report_of_a_batch_is_refused_alone(of, bad, reason, head, with_ids):
    report_id = ID if with_ids else b""
    good = [(i % 3, NOON + i, report_id, GOOD[of.id]) for i in range(4)]
    bad = (*bad[:2], report_id, bad[3])
    message = head + packed(of, [good[0], bad, *good[1:], bad])
    batches, rejections, *_ = decoder().decode([message])
    assert rows_of(batches) == {(of.fingerprint[:8], row): 1 for row in good}
    assert rejections == [Rejection(Reason[reason.upper()], 2, len(message), of)]


NAMELESS = [
    pytest.param(single(), 0, "", id="a single report always has an id"),
    pytest.param(packed(), 0, "", id="ids"),
    pytest.param(packed(report_ids=data(b"")), 2, "no_report_id", id="no ids"),
    pytest.param(
        packed(report_ids=data(b""), cohorts=data(b"\x09\0\0\0")),
        1,
        "cohort_range no_report_id",
        id="cohort before ids",
    ),
    pytest.param(
        packed(rows=[(0, 1 << 62, b"", b"\3"), (0, 1 << 62, b"", b"\0")]),
        1,
        "value_domain no_report_id",
        id="payload before ids, ids before time",
    ),
]


@pytest.mark.parametrize(("message", "nameless", "reasons"), NAMELESS)
@pytest.mark.parametrize("head", [False, True], ids=["plain", "marked"])
def test_a_job_that_counts_ids_refuses_reports_without(message, nameless, reasons, head):
    start = {b"\x02": REPORT_HEADER, b"\x04": BATCH_HEADER}[message[:1]] * head
    batches, rejections, *_ = decoder(require_ids=True).decode([start + message])
    found = {rejection.reason.code: rejection for rejection in rejections}
    assert sorted(found) == sorted(reasons.split())
    if nameless:
        assert found["no_report_id"] == Rejection(Reason.NO_REPORT_ID, nameless, len(start + message), KRR)
    assert all(len(batch.report_ids) == len(batch) for batch in batches)
    assert "no_report_id" not in {rejection.reason.code for rejection in decoder().decode([message])[1]}


# ---------------------------------------------------------------------- many messages

POOL = [
    head + make(of)
    for of in (*KNOWN, STRANGER)
    for make, mark in ((single, REPORT_HEADER), (packed, BATCH_HEADER))
    for head in (b"", mark)
] + [packed(of, [(i % 4, NOON * i, b"", GOOD[of.id]) for i in range(1, 4)]) for of in KNOWN]


def mutants(below: Callable[[int], int], messages: list[bytes]) -> Iterator[bytes]:
    """Every way of spoiling messages; ``below(n)`` chooses a number below n."""
    first, second = messages[below(len(messages))], messages[below(len(messages))]
    at, cut = below(len(first)), below(len(second))
    yield first[:at] + bytes(byte ^ 1 << below(8) for byte in first[at : at + 1]) + first[at + 1 :]  # flip a bit
    yield first[:at]  # cut
    yield first[:at] + second[cut:]  # splice
    yield first[:at] + bytes([below(256)]) * (1 + below(3)) + first[at:]  # insert
    yield first + bytes([below(256)]) * (1 + below(3))  # pad
    yield first[:at] + padded(first[at : at + 1] or b"\0") + first[at + 1 :]  # an integer in more bytes
    yield first


spoiled = st.builds(
    lambda rng, which: next(itertools.islice(mutants(rng.randrange, POOL), which, None)),
    st.randoms(use_true_random=False),
    st.integers(0, 6),
)


@settings(max_examples=150)
@given(st.lists(st.binary(max_size=80) | st.binary(max_size=80).map(b"\x02".__add__) | spoiled, max_size=12))
def test_any_messages_get_the_right_verdicts(messages):
    check_messages("files", messages)


@settings(max_examples=50)
@given(st.lists(st.sampled_from(POOL) | spoiled, max_size=12), st.randoms(use_true_random=False))
def test_messages_do_not_influence_each_other(messages, rng):
    arrivals = [NOON + HOUR * rng.randrange(4) for _ in messages]
    gated = decoder(gate=GATE)

    def decode(which: list[int]) -> tuple[Counter, Counter]:
        batches, rejections, *_ = gated.decode([messages[i] for i in which], np.array([arrivals[i] for i in which]))
        counted: Counter[Rejection] = Counter()
        for rejection in rejections:
            counted[dataclasses.replace(rejection, num_reports=1, num_messages=1)] += rejection.number
        return rows_of(batches), counted

    together = decode(list(range(len(messages))))
    alone = [decode([i]) for i in range(len(messages))]
    assert together == tuple(sum(parts, Counter()) for parts in zip(*alone)) or not messages
    assert together == decode(rng.sample(range(len(messages)), len(messages)))


@settings(max_examples=50)
@given(st.lists(spoiled, max_size=12))
def test_accepted_messages_have_one_encoding(messages):
    """Each accepted report, written again, is the message that it came in: no two messages mean the same."""
    alone = [message for message in messages if message[:1] == b"\x02"]
    batches, rejections, *_ = decoder().decode(alone)
    again = Counter(message for batch in batches for message in wire.encode_reports(batch))
    assert again <= Counter(alone)
    assert again.total() == len(alone) - sum(rejection.number for rejection in rejections)


def test_a_bad_message_does_not_borrow_from_its_neighbour():
    """All small messages lie in one buffer, and a cut one ends where the next begins."""
    decode = decoder().decode
    for message in {row[1] for row in (*SINGLES, *BATCHES)}:
        alone = decode([message])[1]
        for neighbour in (single(), packed(), REPORT_HEADER + single()):
            assert decode([message, neighbour])[1] == alone


@pytest.mark.slow
def test_strangers_cost_little_more_than_friends():
    """Else a client that invents collections could slow down the whole job.

    Friends are decoded by numpy: the compiled part makes them ten times cheaper, and leaves strangers as they are.
    """
    friends = [single()] * 16_000
    strangers = [single(collection=struct.pack("<Q", i)) for i in range(16_000)]

    def seconds(messages: list[bytes]) -> float:
        begin = time.process_time()
        decoder().decode(messages)
        return time.process_time() - begin

    dear = min(seconds(strangers) for _ in range(3))
    with decoding_with(NUMPY):
        assert dear < 20 * min(seconds(friends) for _ in range(3))
