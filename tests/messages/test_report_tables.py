"""Parquet files of reports: what other programs write is read as the same reports in Avro are, fault by fault."""

from __future__ import annotations

import datetime
import decimal
import io
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.messages_cases import KRR, RAPPOR, REPORT, STRANGER, URAP
from tests.support.tolerance import generator
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import Decoded, MessageDecoder
from uldp_transforms.messages.files.file_account import Account
from uldp_transforms.messages.files.report_files import read_reports
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.messages.report_tables import _Cells, _repeating

KNOWN = [KRR, RAPPOR, URAP]


def drawn(collection: Collection, number: int) -> ReportBatch:
    rng = generator("report tables", collection.id)
    values = [str(value) for value in rng.integers(0, 3, number)]
    times = rng.choice([-1, 1], number) * rng.integers(10**10, 10**12, number)
    return collection.perturb(values, rng, times)


def records(number: int = 40) -> list[dict[str, Any]]:
    """Reports of three collections, and some of a stranger, mixed."""
    rows = [row for one in (*KNOWN, STRANGER) for row in wire.report_records(drawn(one, number))]
    return [rows[place] for place in generator("order").permutation(len(rows))]


def table(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = [("collection", pa.binary(8)), ("report_id", pa.binary(16)), ("event_time", pa.int64())]
    schema = pa.schema([("form", pa.int32()), *kinds, ("cohort", pa.int32()), ("payload", pa.binary())])
    return pa.Table.from_pylist(rows, schema=schema)


def parquet(of: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(of, out, **options)
    return out.getvalue()


def decoded(content: bytes) -> tuple[Decoded, list[Rejection], Account]:
    """What a job gets of a file: decoded messages, what the reader refuses, and the account."""
    account = Account()
    items = list(read_reports(io.BytesIO(content), "reports", account))
    messages = [message for item in items if not isinstance(item, Rejection) for message in item]
    found = MessageDecoder(CollectionCatalog(KNOWN)).decode(messages)
    return found, [item for item in items if isinstance(item, Rejection)], account


def reports(found: Decoded) -> Counter[Any]:
    """All accepted reports, whatever their order and their batches."""
    return Counter(
        (batch.fingerprint, *(column[row].tobytes() for column in columns))
        for batch in found.batches
        for columns in [(batch.cohorts, batch.payloads, batch.event_times, batch.report_ids)]
        for row in range(len(batch))
    )


def reasons(found: Decoded, refused: list[Rejection]) -> Counter[Reason]:
    counted: Counter[Reason] = Counter()
    for rejection in (*found.rejections, *refused):
        counted[rejection.reason] += rejection.number + rejection.num_files
    return counted


def assert_found(content: bytes, number: int, expected: dict[Reason, int]) -> None:
    """So many reports of a file are accepted, and so many others are refused with these reasons."""
    found, refused, _ = decoded(content)
    assert reasons(found, refused) == expected
    assert sum(map(len, found.batches)) == number


def unread(reason: Reason, size: int) -> Rejection:
    return Rejection(reason, 0, size, source="reports", num_files=1)


def avro(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, REPORT, rows)
    return out.getvalue()


def by_duckdb(rows: list[dict[str, Any]]) -> bytes:
    """Times as timestamps in microseconds with a time zone, and bytes as blobs, as DuckDB writes them."""
    arrow = table(rows)  # noqa: F841  # the query names it
    query = """SELECT hex(collection) AS collection, report_id, to_timestamp(event_time / 1000) AS event_time,
               cohort::UTINYINT AS cohort, payload FROM arrow"""
    return parquet(duckdb.sql(query).arrow().read_all())


def by_polars(rows: list[dict[str, Any]]) -> bytes:
    frame = pl.from_arrow(table(rows)).with_columns(pl.col("event_time").cast(pl.Datetime("ms")))
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


def as_messages(rows: list[dict[str, Any]]) -> bytes:
    data = [message for one in (*KNOWN, STRANGER) for message in wire.encode_reports(drawn(one, len(rows) // 4))]
    return parquet(pa.table({"data": pa.array(data, pa.binary()), "publish_time": [1] * len(data)}))


WRITERS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "arrow": lambda rows: parquet(table(rows)),
    "small row groups": lambda rows: parquet(table(rows), row_group_size=7),
    "dictionaries of categories": lambda rows: parquet(
        table(rows).set_column(1, "collection", table(rows)["collection"].cast(pa.binary()).dictionary_encode())
    ),
    "whole fingerprints": lambda rows: parquet(
        table(rows).set_column(
            1, "collection", pa.array([_whole(row["collection"]) for row in rows], pa.large_string())
        )
    ),
    "nanoseconds": lambda rows: parquet(
        table(rows).set_column(
            3, "event_time", table(rows)["event_time"].cast(pa.timestamp("ms")).cast("timestamp[ns]")
        )
    ),
    "duckdb": by_duckdb,
    "polars": by_polars,
    "messages": as_messages,
}


def _whole(prefix: bytes) -> str:
    known = {one.fingerprint[:8]: one.fingerprint.hex() for one in (*KNOWN, STRANGER)}
    return known[prefix].upper()


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_other_programs_write_the_same_reports(write: Callable[[list[dict[str, Any]]], bytes]) -> None:
    rows = records()
    expected, nothing, _ = decoded(avro(rows))
    content = write(rows)
    found, refused, account = decoded(content)
    assert reports(found) == reports(expected)
    assert sum(reports(expected).values()) == 120
    assert reasons(found, refused) == reasons(expected, nothing) == {Reason.UNKNOWN_COLLECTION: 40}
    assert found.num_received == expected.num_received
    assert account.is_complete(len(content))


def spoiled(place: int, **cells: Any) -> list[dict[str, Any]]:
    rows = wire.report_records(drawn(KRR, 9))
    rows[place] |= cells
    return rows


FAULTS: dict[str, tuple[dict[str, Any], Reason]] = {
    "no collection": ({"collection": None}, Reason.MALFORMED),
    "no time": ({"event_time": None}, Reason.MALFORMED),
    "no cohort": ({"cohort": None}, Reason.MALFORMED),
    "no payload": ({"payload": None}, Reason.MALFORMED),
    "a negative cohort": ({"cohort": -1}, Reason.COHORT_RANGE),
    "a cohort that would wrap": ({"cohort": 1 - (1 << 16)}, Reason.COHORT_RANGE),
    "a large cohort": ({"cohort": 1 << 16}, Reason.COHORT_RANGE),
    "a cohort of another collection": ({"cohort": 3}, Reason.COHORT_RANGE),
    "a longer payload": ({"payload": b"\x01\x00"}, Reason.PAYLOAD_LENGTH),
    "an empty payload": ({"payload": b""}, Reason.PAYLOAD_LENGTH),
    "another symbol": ({"payload": b"\x03"}, Reason.VALUE_DOMAIN),
    "a time beyond all windows": ({"event_time": (1 << 63) - 1}, Reason.TIME_RANGE),
}


@pytest.mark.parametrize(("cells", "reason"), FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("place", [0, 4, 8])
def test_a_bad_row_is_refused_alone(place: int, cells: dict[str, Any], reason: Reason) -> None:
    content = parquet(table(spoiled(place, **cells)))
    found, refused, account = decoded(content)
    assert reasons(found, refused) == {reason: 1}
    assert sum(map(len, found.batches)) == 8
    assert account.is_complete(len(content))


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.decimal128(38, 0)], ids=str)
@pytest.mark.parametrize("factor", [1_000_000, 1_000, 0.001], ids=["nanoseconds", "microseconds", "seconds"])
def test_integers_of_another_unit_are_refused(factor: float, kind: pa.DataType) -> None:
    """Milliseconds of 1990 to 2099, of which only seconds could be taken for milliseconds of 1970."""
    milliseconds = np.linspace(631_152_000_000, 4_102_444_799_000, 9).astype(np.int64)
    for times, wanted in ((milliseconds, {}), (milliseconds * factor // 1, {Reason.TIME_RANGE: 9})):
        column = pa.array([int(time) for time in times.tolist()]).cast(kind)
        of = table(wire.report_records(drawn(KRR, 9))).set_column(3, "event_time", column)
        found, refused, _ = decoded(parquet(of))
        assert reasons(found, refused) == wanted


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_timestamps_of_1970_are_believed(unit: str) -> None:
    moments = pa.array([1_764_400_000] * 9, pa.timestamp("ms")).cast(pa.timestamp(unit))
    of = table(wire.report_records(drawn(KRR, 9))).set_column(3, "event_time", moments)
    found, refused, _ = decoded(parquet(of))
    assert reasons(found, refused) == {}
    assert [batch.event_times.tolist() for batch in found.batches] == [[1_764_400_000] * 9]


def test_a_row_without_an_id_keeps_its_report() -> None:
    found, refused, _ = decoded(parquet(table(spoiled(4, report_id=None))))
    assert sorted(len(batch.report_ids) for batch in found.batches) == [0, 8]
    assert not refused


def test_cells_of_other_lengths_are_malformed() -> None:
    rows = spoiled(2, collection=b"short", report_id=b"an id of a length that is wrong")
    rows[5] |= {"report_id": b"short"}
    kinds = pa.schema({"collection": pa.binary(), "report_id": pa.binary(), "event_time": pa.int64()}
                      | {"cohort": pa.uint64(), "payload": pa.binary()})  # fmt: skip
    assert_found(parquet(pa.Table.from_pylist(rows, schema=kinds)), 7, {Reason.MALFORMED: 2})


def test_texts_that_are_no_fingerprints_are_malformed() -> None:
    rows = table(spoiled(0)).to_pylist()
    texts = [row["collection"].hex() for row in rows]
    texts[3], texts[4] = "no digits", texts[4][:-2]
    of = table(rows).set_column(1, "collection", pa.array(texts))
    assert_found(parquet(of), 7, {Reason.MALFORMED: 2})


def test_a_missing_message_is_counted() -> None:
    data = [*wire.encode_reports(drawn(KRR, 3)), None]
    assert_found(parquet(pa.table({"data": pa.array(data, pa.binary())})), 3, {Reason.MALFORMED: 1})


def column(name: str, array: Callable[[pa.Table], Any]) -> Callable[[pa.Table], pa.Table]:
    """A table with another column of this name."""
    return lambda of: of.set_column(of.column_names.index(name), name, array(of))


def twice(name: str) -> Callable[[pa.Table], pa.Table]:
    """Two columns of one name, of which a reader would have to choose one."""
    return lambda of: pa.Table.from_arrays([*of.columns, of["payload"]], names=[*of.column_names, name])


FRACTION = decimal.Decimal("0.5")
WRONG_COLUMNS: dict[str, Callable[[pa.Table], pa.Table]] = {
    "no payload": lambda of: of.drop_columns(["payload"]),
    "times as texts": column("event_time", lambda of: of["event_time"].cast(pa.string())),
    "times as dates": column("event_time", lambda of: pa.array([1] * len(of), pa.date32())),
    "cohorts as floats": column("cohort", lambda of: of["cohort"].cast(pa.float64())),
    "cohorts as fractions": column("cohort", lambda of: pa.array([FRACTION] * len(of), pa.decimal128(9, 1))),
    "cohorts as truth values": column("cohort", lambda of: pa.array([True] * len(of))),
    "payloads as texts": column("payload", lambda of: pa.array(["1"] * len(of))),
    "payloads as structs": column("payload", lambda of: pa.array([{"payload": b"1"}] * len(of))),
    "payloads as lists": column("payload", lambda of: pa.array([[b"1"]] * len(of))),
    "payloads without a type": column("payload", lambda of: pa.nulls(len(of))),
    "ids as texts": column("report_id", lambda of: pa.array(["1"] * len(of))),
    "messages as texts": lambda of: pa.table({"data": ["1"] * len(of)}),
    "a column twice": twice("payload"),
    "a column twice in other case": twice("Payload"),
}


@pytest.mark.parametrize("change", WRONG_COLUMNS.values(), ids=WRONG_COLUMNS)
def test_other_columns_refuse_all_rows_of_the_file(change: Callable[[pa.Table], pa.Table]) -> None:
    content = parquet(change(table(records())))
    found, refused, account = decoded(content)
    assert refused == [unread(Reason.UNKNOWN_SCHEMA, len(content))]
    assert not found.batches
    assert account.is_complete(len(content))


def test_a_cut_file_is_refused() -> None:
    content = parquet(table(records()))[:-5]
    _, refused, account = decoded(content)
    assert refused == [unread(Reason.BAD_MAGIC, len(content))]
    assert account.is_complete(len(content))


def test_a_spoiled_row_group_is_lost_alone() -> None:
    """The rows of the other row groups are counted, and the file is named."""
    rows = wire.report_records(drawn(KRR, 300))
    content = bytearray(parquet(table(rows), row_group_size=100, compression="zstd", use_dictionary=False))
    column = pq.ParquetFile(io.BytesIO(bytes(content))).metadata.row_group(1).column(2)
    start = column.data_page_offset
    content[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    found, refused, account = decoded(bytes(content))
    assert reasons(found, refused) == {Reason.CORRUPT_BLOCK: 1}
    assert sum(map(len, found.batches)) == 200
    assert account.is_complete(len(content))


def test_any_flipped_byte_ends_in_reports_or_reasons() -> None:
    """No spoiled file raises, and no report counts that was not sent."""
    rows = wire.report_records(drawn(KRR, 50))
    content = parquet(table(rows), compression="none")
    rng = generator("flipped bytes")
    for place in rng.integers(4, len(content), 400):
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        found, _, _ = decoded(bytes(flipped))
        assert sum(map(len, found.batches)) <= 50


def changed(name: str, column: Any, rows: int = 9) -> bytes:
    """A file of reports with another column of this name."""
    of = table(wire.report_records(drawn(KRR, rows)))
    return parquet(of.set_column(of.column_names.index(name), name, column))


def cohorts() -> pa.Array:
    """Cohorts as a database writes whole numbers, and one of 38 digits."""
    return pa.array([decimal.Decimal(0)] * 8 + [decimal.Decimal(2**64 + 1)], pa.decimal128(38, 0))


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_file_without_rows_has_no_reports(codec: str) -> None:
    of = table(records())
    out = io.BytesIO()
    with pq.ParquetWriter(out, of.schema, compression=codec) as writer:
        for part in (of.slice(0, 0), of, of.slice(0, 0)):  # row groups without rows
            writer.write_table(part)
    found, refused, account = decoded(out.getvalue())
    assert found.num_received.total() == 160 and not refused and account.is_complete(len(out.getvalue()))
    found, refused, account = decoded(parquet(of.slice(0, 0), compression=codec))
    assert found.num_received.total() == 0 and not refused


def test_columns_may_come_in_any_order_and_in_upper_case() -> None:
    of = table(records())
    of = of.select(of.column_names[::-1]).rename_columns([name.upper() for name in of.column_names[::-1]])
    found, refused, _ = decoded(parquet(of))
    assert reports(found) == reports(decoded(avro(records()))[0])
    assert not refused


@pytest.mark.parametrize("kind", [pa.binary(), pa.binary(16)])
def test_a_column_without_a_value_is_a_fault_of_each_row(kind: pa.DataType) -> None:
    for name, expected in (("payload", {Reason.MALFORMED: 9}), ("report_id", {})):
        assert_found(changed(name, pa.nulls(9, kind)), 9 - len(expected) * 9, expected)


def test_whole_numbers_of_38_digits_are_read_and_do_not_wrap() -> None:
    """Snowflake writes all integers so. 2^64 + 1 is not 1."""
    assert_found(changed("cohort", cohorts()), 8, {Reason.MALFORMED: 1})


@pytest.mark.parametrize("year", [1950, 2500, 3000])
def test_old_timestamps_of_any_year_are_read(year: int) -> None:
    """The 12 bytes of Spark and Impala reach beyond 2262, where nanoseconds overflow."""
    moment = datetime.datetime(year, 5, 6, 7, 8, 9, 999_999)
    of = table(wire.report_records(drawn(KRR, 1)))
    of = of.set_column(3, "event_time", pa.array([moment], pa.timestamp("us")))
    [batch] = decoded(parquet(of, use_deprecated_int96_timestamps=True))[0].batches
    assert batch.event_times.tolist() == [
        (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(milliseconds=1)
    ]


def test_a_text_that_is_no_text_is_refused_alone() -> None:
    texts = [row["collection"].hex().encode() for row in wire.report_records(drawn(KRR, 9))]
    texts[4] = b"\xff\xfe"
    buffers = pa.array(texts, pa.binary()).buffers()
    assert_found(changed("collection", pa.Array.from_buffers(pa.string(), 9, buffers)), 8, {Reason.MALFORMED: 1})


def test_views_and_ids_of_databases_are_read(tmp_path: Path) -> None:
    of = table(wire.report_records(drawn(KRR, 9)))
    views = changed("payload", of["payload"].cast(pa.binary_view()))
    found, refused, _ = decoded(views)
    assert (sum(map(len, found.batches)), refused) == (9, [])
    query = "SELECT collection, uuid() AS report_id, event_time, cohort, payload FROM of"
    with duckdb.connect() as database:
        database.register("of", of)
        database.execute(f"COPY ({query}) TO '{tmp_path / 'uuid.parquet'}' (FORMAT parquet)")
    found, refused, _ = decoded((tmp_path / "uuid.parquet").read_bytes())
    assert (sum(map(len, found.batches)), refused) == (9, [])


def as_varint(number: int) -> bytes:
    """A zigzag number in the metadata of Parquet."""
    low, rest = 2 * number & 127, 2 * number >> 7
    return bytes([low | 128, rest]) if rest else bytes([low])


@pytest.mark.parametrize("declared", [8000, 3000])
def test_rows_that_are_declared_and_not_there_are_missed(declared: int) -> None:
    """At each place of the metadata where 5000 stands, one at a time: all rows are read, or the file is named."""
    content = parquet(table(wire.report_records(drawn(KRR, 5000))), compression="none", use_dictionary=False)
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    places = [at for at in range(footer, len(content)) if content[at : at + 2] == as_varint(5000)]
    assert len(places) >= 8
    missed = 0
    for at in places:
        found, refused, _ = decoded(content[:at] + as_varint(declared) + content[at + 2 :])
        missed += (lost := reasons(found, refused)[Reason.CORRUPT_BLOCK])
        assert lost in (0, 1)
        assert sum(map(len, found.batches)) == 5000 or (lost and declared < 5000)
    assert missed >= 1


REPEATED = """
import io, resource, sys
import pyarrow as pa
import pyarrow.parquet as pq
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.messages.report_tables import read_table

cells = pa.DictionaryArray.from_arrays(pa.array([0] * 6_000, pa.int32()), pa.array([bytes(100_000)]))
columns = {"data": cells}
if sys.argv[1] != "data":
    numbers = pa.array([0] * 6_000)
    collection = pa.array([b"12345678"] * 6_000)
    payloads = collection if sys.argv[1] == "report_id" else cells
    columns = {"collection": collection, "event_time": numbers, "cohort": numbers, "payload": payloads}
    columns |= {"report_id": cells} if sys.argv[1] == "report_id" else {}
out = io.BytesIO()
pq.write_table(pa.table(columns), out)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
parts = (part for part in read_table(out, "bomb"))
read = sum(part.num_reports * 10**5 if isinstance(part, Rejection) else sum(map(len, part)) for part in parts)
print(len(out.getvalue()), read, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("column", ["data", "payload", "report_id"])
def test_a_cell_that_is_repeated_takes_no_memory(column: str) -> None:
    """A file of some kilobytes with 600 MB of cells."""
    found = subprocess.run([sys.executable, "-c", REPEATED, column], capture_output=True, check=True, text=True)
    size, read, megabytes = map(int, found.stdout.split())
    assert size < 20_000
    assert read >= 6 * 10**8
    assert megabytes < 300


@pytest.mark.parametrize(
    ("cells", "dictionary", "is_read_as_one"),
    [
        ([b"a", b"b"] * 5_000, True, True),  # few
        ([b"a", b"b"] * 5_000, False, False),  # each stored anew
        ([b"%16d" % i for i in range(10_000)], True, False),  # ids
        ([b"%2000d" % i for i in range(10_000)], False, True),  # long
        ([b"%16d" % i for i in range(5_000)] + [bytes(100_000)] * 1_000, True, True),  # a long one, repeated
    ],
)
def test_cells_that_are_short_and_rarely_repeated_are_read_as_they_are(
    cells: list[bytes], dictionary: bool, is_read_as_one: bool
) -> None:
    content = parquet(pa.table({"payload": pa.array(cells)}), use_dictionary=dictionary)
    file = pq.ParquetFile(io.BytesIO(content), read_dictionary=["payload"])
    assert _repeating(file, 0, {"payload": "payload"}, 1 << 16) == ["payload"] * is_read_as_one


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_cells_are_those_of_the_file_however_they_are_read(use_dictionary: bool) -> None:
    """Of payloads of one length and of several, with missing cells and without."""
    rng = generator("cells", use_dictionary)
    for lengths in ((8,), (1, 2, 3, 300)):
        for missing in (0.0, 0.1):
            cells = [rng.bytes(int(rng.choice(lengths))) if rng.random() >= missing else None for _ in range(9_000)]
            array = pa.array(cells, pa.binary())
            found = _Cells(array.dictionary_encode() if use_dictionary else array)
            kept = [cell for cell in cells if cell is not None]
            assert int(np.broadcast_to(found.missing, len(cells)).sum()) == len(cells) - len(kept)
            for length in lengths:
                is_of = ~np.broadcast_to(found.missing, len(cells)) & (found.lengths == length)
                joined = b"".join(cell for cell in kept if len(cell) == length)
                assert found.at(np.flatnonzero(is_of), length) == joined
            if len(lengths) == 1 and not missing:
                assert found.at(slice(None), 8) == b"".join(kept)


def test_what_a_file_says_of_its_randomness_is_read() -> None:
    of = table(records()).replace_schema_metadata({"uldp.randomness": "seeded 3"})
    assert decoded(parquet(of))[2].randomness == "seeded 3"
    assert decoded(parquet(table(records())))[2].randomness is None


def test_large_payloads_are_cut_into_messages_that_topics_take() -> None:
    wide = Collection.from_json(
        {"id": "wide", "version": 1, "alphabet": {"id": "hashed", "num_buckets": 4096}, "num_cohorts": 2}
        | {"mechanism": {"id": "rappor", "epsilon": 1.0}}
    )
    number = 30_000
    payloads = generator("wide").integers(0, 256, (number, 512), dtype=np.uint8)
    of = pa.table(
        {
            "collection": pa.array([wide.fingerprint[:8]] * number, pa.binary(8)),
            "event_time": pa.array(np.arange(number)),
            "cohort": pa.array(np.arange(number) % 2),
            "payload": pa.FixedSizeBinaryArray.from_buffers(pa.binary(512), number, [None, pa.py_buffer(payloads)]),
        }
    )
    messages = [item for part in read_reports(io.BytesIO(parquet(of)), "wide") for item in part]
    assert max(map(len, messages)) <= wire.MAX_MESSAGE_BYTES
    found = MessageDecoder(CollectionCatalog([wide])).decode(messages)
    assert np.array_equal(np.concatenate([batch.payloads for batch in found.batches]), payloads)
