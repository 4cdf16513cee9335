"""Elements that are no messages: what is known when the pipeline is built is refused then, the rest counts as malformed
messages and as no reports, and no element stops a pipeline."""

from __future__ import annotations

import datetime
import io
import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import apache_beam as beam
import fastavro
import numpy as np
import pytest
from apache_beam.io.gcp.pubsub import PubsubMessage
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import FixedWindows, TimestampedValue

from tests.support import replay
from tests.support.messages_cases import BATCH as BATCH_SCHEMA
from tests.support.messages_cases import KRR, NOON, REPORT, container, write_files
from uldp_transforms import EstimateReports, as_dict, to_avro, to_json, to_message
from uldp_transforms.beam.transforms.gather_messages import GATHERED, only_bytes
from uldp_transforms.jobs.sinks import Output
from uldp_transforms.ldp import ReportBatch, SpecError
from uldp_transforms.messages import wire
from uldp_transforms.schemas import load
from uldp_transforms.yaml import EstimateReports as NamedOutputs

BATCH = KRR.perturb(["0", "1"] * 60, np.random.default_rng(1), [NOON] * 120)
MESSAGE = wire.encode_batch(BATCH)
STRANGE: dict[str, Any] = {
    "a deleted record": None,
    "a number": 5,
    "a text": "SENSITIVE",
    "a record": {"value": "SENSITIVE"},
    "a pair": (b"key", MESSAGE),
    "a message with attributes": PubsubMessage(MESSAGE, {"a": "SENSITIVE"}),
    "an array": np.zeros(3),
}
BYTES = {"bytearray": bytearray(MESSAGE), "memoryview": memoryview(MESSAGE)}


def ledger_of(pipeline: beam.Pipeline, messages: Any, transform: beam.PTransform) -> tuple[Counter[str], Counter[str]]:
    """What became of the reports of these messages, and the messages that could not be read."""
    lists = replay.Lists()
    with pipeline:
        outputs = messages | transform
        outputs = outputs if isinstance(outputs, dict) else outputs._asdict()
        lists.write([Output(name, rows, None) for name, rows in outputs.items() if rows is not None])
    rows = lists.rows()
    assert not replay.unbalanced(rows["ledger"])
    assert sum(row.num_reports for row in rows["rejected"]) == sum(sum(row.rejected.values()) for row in rows["ledger"])
    unread, _ = replay.sum_unread(rows["ledger"])
    assert sum(row.num_messages for row in rows["rejected"]) == unread.total()
    return sum(replay.sum_ledger(rows["ledger"]).values(), Counter()), unread


def counted(number: int) -> Counter[str]:
    """The ledger of so many reports, all of which count."""
    return Counter(received=number, accepted=number)


def bounded(elements: list[Any], kind: Any = Any) -> tuple[beam.Pipeline, Any]:
    """Elements whose type is not known when the pipeline is built."""
    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
    numbers = pipeline | beam.Create(range(len(elements)), reshuffle=False)
    return pipeline, numbers | "Elements" >> beam.Map(lambda number: elements[number]).with_output_types(kind)


def endless(elements: list[Any]) -> tuple[beam.Pipeline, Any]:
    pipeline = beam.Pipeline(options=replay.stream_options())
    events = [replay.arrive(NOON, [bytes([number]) for number in range(len(elements))]), replay.watermark(2 * NOON)]
    numbers = pipeline | replay.stream(events)
    return pipeline, numbers | "Elements" >> beam.Map(lambda number: elements[number[0]]).with_output_types(Any)


@pytest.mark.parametrize("make", [bounded, endless])
@pytest.mark.parametrize("transform", [EstimateReports, NamedOutputs])
def test_elements_of_an_unknown_type_are_malformed(make: Any, transform: Any, caplog: pytest.LogCaptureFixture) -> None:
    elements = [MESSAGE, *STRANGE.values(), *BYTES.values(), MESSAGE]
    with caplog.at_level(logging.WARNING):
        found = ledger_of(*make(elements), transform(collections=[KRR], window="1h"))
    assert found == (counted(480), Counter(malformed=len(STRANGE)))
    assert "SENSITIVE" not in caplog.text


def test_the_log_speaks_of_unread_messages(caplog: pytest.LogCaptureFixture) -> None:
    class Strange: ...

    with caplog.at_level(logging.WARNING):
        assert only_bytes([Strange(), b"a"]) == [b"", b"a"]
    assert [record.getMessage() for record in caplog.records] == [
        "EstimateReports and DecodeReports need bytes; elements of type Strange are unread messages (malformed)"
    ]


def test_groups_of_a_source_may_hold_deleted_records() -> None:
    pipeline, groups = bounded([([MESSAGE, None], []), ([None, bytearray(MESSAGE)], [])])
    groups.element_type = GATHERED
    found = ledger_of(pipeline, groups, EstimateReports(collections=[KRR], window="1h"))
    assert found == (counted(240), Counter(malformed=2))


def test_a_type_with_none_is_a_type_of_messages() -> None:
    pipeline, messages = bounded([MESSAGE, None], beam.typehints.Optional[bytes])
    found = ledger_of(pipeline, messages, EstimateReports(collections=[KRR], window="1h"))
    assert found == (counted(120), Counter(malformed=1))


PAIRS, DELETED = beam.typehints.Tuple[bytes, bytes], beam.typehints.Tuple[bytes, beam.typehints.Optional[bytes]]
CURED: dict[str, tuple[Any, list[Any], int]] = {
    "pairs": (PAIRS, [(b"key", MESSAGE)], 0),
    "pairs that may be deleted": (DELETED, [(b"key", None), (b"key", MESSAGE)], 1),
    "messages with attributes": (PubsubMessage, [PubsubMessage(MESSAGE, {})], 0),
    "timestamped messages": (TimestampedValue, [MESSAGE], 0),
    "records": (beam.typehints.Dict[str, Any], [*wire.report_records(BATCH), {}], 1),
    "batches": (ReportBatch, [BATCH], 0),
}


@pytest.mark.parametrize(("kind", "elements", "unread"), CURED.values(), ids=CURED)
def test_the_line_of_the_sentence_cures_it(kind: Any, elements: list[Any], unread: int) -> None:
    pipeline, messages = bounded(elements, kind)
    with pytest.raises(SpecError) as caught:
        _ = messages | "Refused" >> EstimateReports(collections=[KRR])
    line = str(caught.value).partition("; use: ")[2]
    messages = eval(line, {"beam": beam, "messages": messages, "to_message": to_message, "wire": wire})
    found = ledger_of(pipeline, messages, EstimateReports(collections=[KRR]))
    assert found == (counted(120), Counter({"malformed": unread} if unread else {}))


def test_the_line_for_windowed_messages_cures_them() -> None:
    pipeline, messages = bounded([MESSAGE], bytes)
    elements = messages | beam.WindowInto(FixedWindows(60))
    with pytest.raises(SpecError) as caught:
        _ = elements | "Refused" >> EstimateReports(collections=[KRR])
    line = str(caught.value).partition("; use: ")[2]
    cured = eval(line, {"beam": beam, "elements": elements}) if line else elements
    assert ledger_of(pipeline, cured, EstimateReports(collections=[KRR])) == (counted(120), Counter())


def test_records_of_beams_own_reader_become_messages(tmp_path: Path) -> None:
    singles = wire.encode_reports(BATCH)
    write_files(tmp_path, {"single.avro": container([(len(singles), b"".join(singles))], REPORT)})
    write_files(tmp_path, {"packed.avro": container([(1, MESSAGE)], BATCH_SCHEMA)})
    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
    read = [pipeline | name >> beam.io.ReadFromAvro(str(tmp_path / f"{name}.avro")) for name in ("single", "packed")]
    others = pipeline | "Others" >> beam.Create([None, 5, {}, {"form": 1}, {"form": 3}], reshuffle=False)
    made = [
        part | f"Messages{number}" >> beam.Map(to_message).with_output_types(bytes)
        for number, part in enumerate([*read, others])
    ]
    found = ledger_of(pipeline, made | beam.Flatten(), EstimateReports(collections=[KRR]))
    assert found == (counted(240), Counter(malformed=5))


def test_rows_become_the_documented_forms() -> None:
    """Nested rows too, in JSON, dictionaries and records for Avro; ``_asdict`` would lose their names."""
    pipeline, messages = bounded([MESSAGE], bytes)
    lists = replay.Lists()
    with pipeline:
        outputs = messages | EstimateReports(collections=[KRR], window="1h")
        lists.write([Output("rows", outputs.estimates, None)])
    (row,) = lists.rows()["rows"]
    assert json.loads(to_json(row)) == as_dict(row) == json.loads(json.dumps(as_dict(row)))
    assert as_dict(row)["estimates"][0]["value"] == "0"
    schema = load("windowed_estimate.avsc")
    file = io.BytesIO()
    fastavro.writer(file, schema, [to_avro(row, schema)])
    (record,) = fastavro.reader(io.BytesIO(file.getvalue()))
    assert record["window_start"] == datetime.datetime.fromisoformat("2001-09-09T01:00:00+00:00")
    assert record["estimates"] == as_dict(row)["estimates"]
