"""Messages, byte for byte: what clients in other languages have to write."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import itertools
import json
import re
from collections import Counter
from typing import Any

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cases import ALL_COLLECTIONS, golden
from tests.support.messages_cases import (
    BATCH,
    GOOD,
    ID,
    KRR,
    MARGINAL,
    NEW,
    NOON,
    REPORT,
    SCHEMAS,
    TAGGED,
    TSP,
    URAP,
    collection,
    crc_64_avro,
    data,
    decoder,
    header,
    long,
    packed,
    padded,
    rows_of,
    single,
)
from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.ldp.alphabets import ALPHABETS
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import MAX_BLOCK_BYTES
from uldp_transforms.messages.wire import read_long
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME

# ---------------------------------------------------------------------- golden messages

OPEN = collection("open", {"id": "hashed", "num_buckets": 300}, "krr", num_cohorts=1000)
WIDE = collection("wide", {"id": "hashed", "num_buckets": 1000}, "rappor", num_cohorts=2)
GOLDEN = {item.id: item for item in (KRR, URAP, OPEN, WIDE, MARGINAL, TSP, TAGGED)}
TIMES = [NOON, 0, -1, MIN_EVENT_TIME, MAX_EVENT_TIME - 1]
FORMS = ("single", "single_object", "packed", "packed_single_object")


def propose_messages() -> list[dict]:
    return [propose_record(item) for item in GOLDEN.values()]


def propose_record(item: Collection) -> dict[str, Any]:
    values = [item.alphabet.known_values[0] if item.alphabet.known_values else "any text"] * len(TIMES)
    batch = item.perturb(values, generator("golden messages", item.id), TIMES)
    columns = {
        "cohorts": batch.cohorts.tolist(),
        "event_times": batch.event_times.tolist(),
        "report_ids": [row.tobytes().hex() for row in batch.report_ids],
        "payloads": [row.tobytes().hex() for row in batch.payloads],
    }
    record = {"collection": item.to_json(), "fingerprint": item.fingerprint.hex(), **columns}
    return record | by_hand(record)


@pytest.fixture(params=GOLDEN)
def record(request) -> dict[str, Any]:
    return {record["collection"]["id"]: record for record in golden("messages.json", propose_messages)}[request.param]


def rows(record: dict[str, Any]) -> list[tuple[int, int, bytes, bytes]]:
    """Cohort, event time, id and payload of each report."""
    ids, payloads = ([bytes.fromhex(text) for text in record[name]] for name in ("report_ids", "payloads"))
    return list(zip(record["cohorts"], record["event_times"], ids, payloads))


def by_hand(record: dict[str, Any]) -> dict[str, Any]:
    of = Collection.from_json(record["collection"])
    singles = [
        single(of, report_id=report_id, event_time=long(time), cohort=long(cohort), payload=data(payload))
        for cohort, time, report_id, payload in rows(record)
    ]
    batch = packed(of, rows(record))
    return {
        "single": [message.hex() for message in singles],
        "single_object": [(header(REPORT) + message).hex() for message in singles],
        "packed": batch.hex(),
        "packed_single_object": (header(BATCH) + batch).hex(),
    }


def by_fastavro(record: dict[str, Any]) -> dict[str, Any]:
    def datum(schema: Any, **fields: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, {"collection": bytes.fromhex(record["fingerprint"])[:8]} | fields)
        return out.getvalue()

    def mark(schema: Any) -> bytes:
        canonical = fastavro.schema.to_parsing_canonical_form(schema)
        return b"\xc3\x01" + bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))

    names = ("cohort", "event_time", "report_id", "payload")
    singles = [datum(REPORT, form=1, **dict(zip(names, row))) for row in rows(record)]
    batch = datum(
        BATCH,
        form=2,
        cohorts=np.array(record["cohorts"], "<u2").tobytes(),
        event_times=np.array(record["event_times"], "<i8").tobytes(),
        report_ids=bytes.fromhex("".join(record["report_ids"])),
        payloads=bytes.fromhex("".join(record["payloads"])),
    )
    return {
        "single": [message.hex() for message in singles],
        "single_object": [(mark(REPORT) + message).hex() for message in singles],
        "packed": batch.hex(),
        "packed_single_object": (mark(BATCH) + batch).hex(),
    }


def by_the_library(record: dict[str, Any]) -> dict[str, Any]:
    batch = batch_of(record)
    return {
        "single": [message.hex() for message in wire.encode_reports(batch)],
        "single_object": [message.hex() for message in wire.encode_reports(batch, single_object=True)],
        "packed": wire.encode_batch(batch).hex(),
        "packed_single_object": wire.encode_batch(batch, single_object=True).hex(),
    }


def batch_of(record: dict[str, Any]) -> ReportBatch:
    cohorts, times, ids, payloads = zip(*rows(record))
    return ReportBatch(
        fingerprint=bytes.fromhex(record["fingerprint"]),
        cohorts=np.array(cohorts, np.uint16),
        payloads=np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1),
        event_times=np.array(times, np.int64),
        report_ids=np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 16),
    )


@pytest.mark.parametrize("encode", [by_hand, by_fastavro, by_the_library])
def test_golden_messages_are_written(record, encode):
    assert encode(record) == {form: record[form] for form in FORMS}


def test_golden_messages_are_read(record):
    known = Collection.from_json(record["collection"])
    assert known.fingerprint.hex() == record["fingerprint"]
    for form in FORMS:
        texts = [record[form]] if isinstance(record[form], str) else record[form]
        batches, rejections, *_ = decoder([known]).decode([bytes.fromhex(text) for text in texts])
        assert not rejections
        assert ReportBatch.concatenate(batches) == batch_of(record)


def test_a_batch_may_carry_no_ids(record):
    known, whole = Collection.from_json(record["collection"]), batch_of(record)
    anonymous = [(cohort, time, b"", payload) for cohort, time, _, payload in rows(record)]
    message = packed(known, anonymous)
    batches, rejections, *_ = decoder([known]).decode([message])
    assert not rejections
    assert batches[0].report_ids.shape == (0, 16)
    assert rows_of(batches) == dict.fromkeys(((whole.fingerprint[:8], row) for row in anonymous), 1)
    assert wire.encode_batch(batches[0]) == message


def test_a_missing_golden_file_is_proposed_and_fails(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.support.cases.GOLDEN", tmp_path)
    with pytest.raises(pytest.fail.Exception, match="review and commit it"):
        golden("messages.json", propose_messages)
    assert json.loads((tmp_path / "messages.json").read_text()) == propose_messages()


# ---------------------------------------------------------------------- payloads of the later mechanisms


@pytest.mark.parametrize("of", NEW, ids=lambda of: of.id)
def test_good_payloads_are_accepted_as_they_came(of):
    batches, rejections, *_ = decoder(NEW).decode([single(of), packed(of)])
    assert not rejections
    expected = [(1, NOON, ID, GOOD[of.id]), *((i, NOON + i, ID, GOOD[of.id]) for i in (1, 2))]
    assert rows_of(batches) == {(of.fingerprint[:8], row): 1 for row in expected}


IMPOSSIBLE = {  # every payload of the right length that is refused, and why; the first check that fails says why
    "marginal": lambda bits, number: "padding_bits" if bits > 7 else "value_domain" if number > 7 else None,
    "clear": lambda bits, number: (
        "padding_bits"
        if bits > 7
        else "value_domain"
        if number > 7
        else "impossible_report"
        if bits and number
        else None
    ),
    "twice": lambda low, high: "padding_bits" if high > 3 else None,
    "tsp": lambda low, high: "value_domain" if low + 256 * high > 299 else None,
    "agrr": lambda symbol: "value_domain" if symbol > 2 else None,
    "up": lambda symbol: "value_domain" if symbol > 2 else None,
    "aoue": lambda bits: "padding_bits" if bits > 7 else None,
    "listed": lambda symbol: "value_domain" if symbol > 4 else None,
    "tagged": lambda symbol: "value_domain" if symbol > 3 else None,
}


@pytest.mark.parametrize("of", NEW, ids=lambda of: of.id)
def test_every_payload_is_accepted_or_refused_with_its_reason(of):
    width = of.mechanism.payload_size
    payloads = [bytes(payload) for payload in itertools.product(range(256), repeat=width)]
    reasons = Counter(IMPOSSIBLE[of.id](*payload) for payload in payloads)
    accepted = reasons.pop(None)
    found, accepts = Counter(), 0
    for start in range(0, len(payloads), 20_000):
        message = packed(of, [(0, NOON, b"", payload) for payload in payloads[start : start + 20_000]])
        batches, rejections, *_ = decoder(NEW).decode([message])
        accepts += sum(map(len, batches))
        for rejection in rejections:
            found[rejection.reason.name.lower()] += rejection.num_reports
    assert (found, accepts) == (reasons, accepted)


# ---------------------------------------------------------------------- the page about it

PAGE = (SCHEMAS.parent / "docs" / "wire.md").read_text(encoding="utf-8")


def examples() -> list[dict[str, bytes]]:
    """The fields of each annotated example; a field may take several lines, the last of which names it."""
    result = []
    for block in re.findall(r"(?:^ {4}.*\n)+", PAGE, flags=re.MULTILINE):
        fields, pending = {}, b""
        for line in block.splitlines():
            digits, name = re.fullmatch(r" +((?:[0-9a-f]{2} )*[0-9a-f]{2})(?: {2,}(\w+): .+)?", line).groups()
            pending += bytes.fromhex(digits)
            if name:
                fields[name], pending = pending, b""
        assert not pending
        result.append(fields)
    return result


def test_the_examples_of_the_page_are_messages():
    record = {record["fingerprint"]: record for record in golden("messages.json", propose_messages)}[
        KRR.fingerprint.hex()
    ]
    batch = batch_of(record)
    report, pair = examples()
    assert list(report) == [field["name"] for field in REPORT["fields"]]
    assert list(pair) == [field["name"] for field in BATCH["fields"]]
    assert b"".join(report.values()) == wire.encode_reports(batch)[0] == bytes.fromhex(record["single"][0])
    assert b"".join(pair.values()) == wire.encode_batch(batch[:2])
    for fields, schema in ((report, REPORT), (pair, BATCH)):
        for field in schema["fields"]:
            reader = io.BytesIO(fields[field["name"]])
            fastavro.schemaless_reader(reader, field["type"], None)
            assert not reader.read()


def test_the_fingerprint_is_what_the_page_says():
    text = (
        '{"alphabet":{"id":"closed","sensitive":null,"values":["0","1","2"]},"id":"krr","mechanism":{"epsilon":"1.0",'
        f'"id":"krr","keep_weight":{KRR.mechanism.keep_weight},"noise_rate":"1/3"}},"num_cohorts":3,"version":1,'
        '"wire_version":1}'
    )
    assert hashlib.sha256(text.encode()).digest() == KRR.fingerprint


def test_the_page_has_the_right_numbers():
    first_bytes = re.findall(r"^\| `([0-9a-f ]+)` \|", PAGE, flags=re.MULTILINE)
    forms = [bytes([wire.REPORT_FORM]), bytes([wire.BATCH_FORM]), wire.REPORT_HEADER, wire.BATCH_HEADER]
    assert list(map(bytes.fromhex, first_bytes)) == forms
    assert f"{wire.MAX_MESSAGE_BYTES:,} bytes" in PAGE
    assert f"{MAX_BLOCK_BYTES >> 20} MiB" in PAGE
    assert all(f"`{name}`" in PAGE for name in (*MECHANISMS, *ALPHABETS))


# ---------------------------------------------------------------------- framing


def test_the_fingerprint_of_int_is_the_known_one():
    """The vector of the Avro project: 7275d51a3f395c8f, little-endian on the wire."""
    assert crc_64_avro(b'"int"') == 0x7275D51A3F395C8F
    assert wire.single_object_header("int") == bytes.fromhex("c301 8f5c393f1ad57572")


def test_headers_are_those_of_the_published_schemas():
    assert wire.REPORT_HEADER == header(REPORT) == bytes.fromhex("c301 47f56302cf4eb147")
    assert wire.BATCH_HEADER == header(BATCH) == bytes.fromhex("c301 fbfa642165b68621")


@pytest.mark.parametrize(("message", "schema"), [(single(), REPORT), (packed(), BATCH)])
def test_a_topic_with_an_avro_schema_takes_plain_messages(message, schema):
    """What Pub/Sub checks at publishing: one datum of the topic's schema, nothing behind it."""
    out = io.BytesIO(message)
    record = fastavro.schemaless_reader(out, schema, None)
    assert not out.read()
    assert set(record) == {field["name"] for field in schema["fields"]}
    assert record["collection"] == KRR.fingerprint[:8]


def test_first_bytes_tell_the_forms_apart():
    batch = KRR.perturb(["0"])
    assert wire.encode_reports(batch)[0][0] == wire.REPORT_FORM == long(1)[0]
    assert wire.encode_batch(batch)[0] == wire.BATCH_FORM == long(2)[0]
    assert wire.encode_reports(batch, single_object=True)[0][0] == wire.SINGLE_OBJECT_MARKER[0] == 0xC3


# ---------------------------------------------------------------------- variable-length integers

int64 = st.integers(-(1 << 63), (1 << 63) - 1)
EDGES = [0, -1, 1, 63, 64, -64, -65, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, -(1 << 63)]


def read_slowly(encoded: bytes) -> tuple[int, int, bool]:
    """With Python's integers: value, size, and whether this is the one encoding of an int64."""
    size = next((i + 1 for i, byte in enumerate(encoded[:10]) if byte < 0x80), 10)
    zigzag = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(encoded[:size]))
    value = zigzag >> 1 ^ -(zigzag & 1)
    return value, size, -(1 << 63) <= value < 1 << 63 and long(value) == encoded[:size]


def read_both(encodings: list[bytes]) -> list[tuple[int, int, bool]]:
    """What the two readers of the library say, which must be the same; (0, size, False) for what is refused."""
    ends = np.cumsum([len(encoded) for encoded in encodings])
    starts = ends - [len(encoded) for encoded in encodings]
    buffer = np.frombuffer(b"".join(encodings) + bytes(10), np.uint8)
    values, after, canonical = (column.tolist() for column in wire.read_varints(buffer, starts))
    result = [(v if ok else 0, a - s, ok) for v, a, ok, s in zip(values, after, canonical, starts.tolist())]
    for encoded, (value, size, ok) in zip(encodings, result):
        alone = (value, size, Reason.ACCEPTED if ok else Reason.NON_CANONICAL)
        assert read_long(encoded, 0) == alone
    return result


@settings(max_examples=100)
@given(st.lists(int64 | st.sampled_from(EDGES), min_size=1, max_size=20))
def test_integers_are_read_as_they_were_written(values):
    encodings = [long(value) for value in values]
    assert read_both(encodings) == [(value, len(encoded), True) for value, encoded in zip(values, encodings)]


@settings(max_examples=80)
@given(st.lists(int64 | st.sampled_from(EDGES), min_size=1, max_size=20), st.integers(1, 12))
def test_padded_integers_are_not_canonical(values, times):
    for value in values:
        encoded = long(value)
        for _ in range(times):
            encoded = padded(encoded)
        assert read_both([encoded])[0][2] is False


@settings(max_examples=150)
@given(st.lists(st.lists(st.integers(0, 255) | st.integers(128, 255), min_size=1, max_size=11), min_size=1, max_size=9))
def test_any_bytes_are_read_as_by_pythons_integers(chunks):
    encodings = [bytes(chunk) + b"\x01" for chunk in chunks]  # so that each integer ends within its own bytes
    expected = [read_slowly(encoded) for encoded in encodings]
    assert read_both(encodings) == [(value if ok else 0, size, ok) for value, size, ok in expected]


@pytest.mark.parametrize(
    ("encoded", "canonical"),
    [
        ("ffffffffffffffffff01", True),  # the least int64
        ("feffffffffffffffff01", True),  # the greatest
        ("ffffffffffffffffff02", False),  # a 65th bit
        ("ffffffffffffffffff7f", False),
        ("80808080808080808001", True),
        ("80808080808080808000", False),
        ("8080808080808080808001", False),  # eleven bytes
        ("ffffffffffffffffffff01", False),
        ("8000", False),
        ("00", True),
    ],
)
def test_the_longest_integers(encoded, canonical):
    assert read_both([bytes.fromhex(encoded)])[0][2] is canonical


@pytest.mark.parametrize("name", ["hashed-krr", "closed-rappor", "permuted-sensitive-uss"])
def test_sizes_of_messages_are_computed(name):
    """Of one report of the next century in the last cohort; and what each report adds to a packed one."""
    item = ALL_COLLECTIONS[name]
    size, late = item.mechanism.payload_size, 100 * 31_556_952_000
    batch = item.perturb(item.alphabet.examples[:2], generator("sizes", name), event_times=[late, late])
    last = dataclasses.replace(batch, cohorts=np.full(2, item.num_cohorts - 1, dtype=np.uint16))
    assert {len(message) for message in wire.encode_reports(last)} == {wire.single_bytes(size, item.num_strata)}
    two, one = (len(wire.encode_batch(part)) for part in (last, last[:1]))
    assert two - one == wire.packed_bytes(size)
