"""Rows: how they name their collection and time, their JSON and Avro forms, and the sums of the ledger."""

from __future__ import annotations

import datetime
import json

import pytest
from apache_beam.utils.timestamp import Timestamp

from tests.support.messages_cases import KRR, NOON
from uldp_transforms.beam.runtime.coders import timestamp_of
from uldp_transforms.beam.transforms.ledger import ReasonCountsCoder, SumByReasonFn
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.avro_fields import time_fields
from uldp_transforms.rows.json_and_avro import as_dict, from_avro, to_avro, to_json
from uldp_transforms.rows.rejected_report import rejected_row
from uldp_transforms.rows.row_identity import name_of, span_of
from uldp_transforms.rows.row_types import LEDGER_SCHEMA, LedgerRow
from uldp_transforms.windows import BasePeriods

# ---------------------------------------------------------------------- rows


def test_rows_name_their_collection():
    assert name_of(KRR) == {"collection_id": "krr", "collection_version": 1, "fingerprint": KRR.fingerprint.hex()}
    assert set(name_of(None).values()) == {None}


@pytest.mark.parametrize(
    ("period", "periods", "start", "end"),
    [
        (None, None, None, None),
        (None, BasePeriods(5), None, None),
        (0, BasePeriods(60_000), "1970-01-01T00:00:00Z", "1970-01-01T00:01:00Z"),
        (-7, BasePeriods(7), "1969-12-31T23:59:59.993Z", "1970-01-01T00:00:00Z"),
    ],
)
def test_rows_of_rejections_say_what_is_known(period, periods, start, end):
    row = rejected_row(Rejection(Reason.TOO_OLD, 3, 99, KRR, period, NOON, "a.avro"), periods)
    assert (row.reason, row.num_reports, row.message_bytes, row.source) == ("too_old", 3, 99, "a.avro")
    assert (row.window_start, row.window_end, row.received_at) == (start, end, "2001-09-09T01:46:40Z")
    assert row.collection_id == "krr"


EMPTY = LedgerRow(**name_of(None), **span_of(-1, 1), received=0, accepted=0, duplicates=0, rejected={})


def test_json_is_one_line_of_text_as_it_is():
    row = EMPTY._replace(collection_id="é\n\u2028")
    assert to_json(row).startswith('{"collection_id": "é\\n\u2028", ')
    assert json.loads(to_json(row))["window_start"] == "1969-12-31T23:59:59.999Z"
    assert list(time_fields(LEDGER_SCHEMA)) == ["window_start", "window_end"]
    assert timestamp_of(row.window_start or "") == Timestamp(micros=-1000)


def test_times_of_rows_are_those_of_avro():
    record = to_avro(EMPTY, LEDGER_SCHEMA)
    before = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=datetime.timezone.utc)
    assert (record["window_start"], record["window_end"]) == (before, before + datetime.timedelta(milliseconds=1))
    assert to_avro(EMPTY._replace(window_start=None), LEDGER_SCHEMA)["window_start"] is None
    assert from_avro(record) == as_dict(EMPTY)


def test_rows_hold_finite_numbers_only():
    with pytest.raises(ValueError, match="JSON"):
        to_json(EMPTY._replace(rejected={"malformed": float("nan")}))


# ---------------------------------------------------------------------- sums of the ledger


def test_sums_by_reason_add_up_in_any_order():
    parts = [{"accepted": 3}, {"malformed": 1, "accepted": 2}, {}, {"too_old": 1 << 40}]
    total = {"accepted": 5, "malformed": 1, "too_old": 1 << 40}
    sums = SumByReasonFn()
    one = sums.create_accumulator()
    assert sums.extract_output(one) == {}, "of nothing"
    for part in parts:
        one = sums.add_input(one, part)
    assert sums.extract_output(one) == sums.merge_accumulators(parts) == sums.merge_accumulators(parts[::-1]) == total
    assert parts[0] == {"accepted": 3}


def test_sums_cross_between_workers():
    coder = ReasonCountsCoder()
    assert coder.is_deterministic()
    assert coder.encode({"b": 1, "a": 1 << 62}) == b'{"a": 4611686018427387904, "b": 1}'
    assert coder.decode(coder.encode({"b": 1, "a": 2})) == {"a": 2, "b": 1}
    assert type(SumByReasonFn().get_accumulator_coder()) is ReasonCountsCoder
