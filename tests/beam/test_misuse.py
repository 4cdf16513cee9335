"""Outputs and streams that are used wrongly: each says so in a sentence that ends with the line that cures it."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream
from apache_beam.transforms.window import TimestampedValue

from tests.support import replay
from tests.support.messages_cases import KRR, NOON
from uldp_transforms import (
    CountReports,
    DecodeReports,
    EstimateDistribution,
    EstimateReports,
    JobSpec,
    ReadReportFiles,
    to_json,
)
from uldp_transforms.jobs.sinks import Output
from uldp_transforms.ldp import SpecError
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_types import DimensionValue, EstimatedValue

MESSAGE = wire.encode_batch(KRR.perturb(["0", "1"] * 60, np.random.default_rng(1), [NOON] * 120))
NAMES = "estimates, values, health, ledger, rejected, counts, discovered"


VALUE: Any = EstimatedValue(*[None] * len(EstimatedValue._fields))  # only its class matters
DIMENSION: Any = DimensionValue("arm", "new")


def estimated(**values: Any) -> Any:
    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
    return pipeline | beam.Create([MESSAGE]) | EstimateReports(collections=[KRR], **values)


READ = "messages, rejected, ledger, simulated, counted"
SPEC = JobSpec.of(collections=[KRR], window="1h", bounded=True)
BY_NAME = "; use: EstimateReports(collections=[...])"


def files() -> Any:
    return beam.Pipeline() | ReadReportFiles("no-such-file.avro")


def decoded() -> Any:
    return beam.Pipeline() | beam.Create([MESSAGE]) | DecodeReports(SPEC)


def counted() -> Any:
    return decoded().reports | CountReports(SPEC)


MISUSES: dict[str, tuple[Callable[[], Any], str]] = {
    "a step for all that is read": (
        lambda: files() | beam.Map(print),
        f"ReadReportFiles has several outputs ({READ}), got a step for all; use: files.messages | step",
    ),
    "a named step for all that is read": (
        lambda: files() | "Print" >> beam.Map(print),
        f"ReadReportFiles has several outputs ({READ}), got a step for all; use: files.messages | step",
    ),
    "a sink for all that is read": (
        lambda: files() | beam.io.WriteToText("rows"),
        f"ReadReportFiles has several outputs ({READ}), got a step for all; use: files.messages | step",
    ),
    "what is read as a key": (
        lambda: files()["rejected"],
        f"ReadReportFiles has its outputs as attributes ({READ}), got ['rejected']; use: .rejected",
    ),
    "a step for all that is counted": (
        lambda: counted() | EstimateDistribution(SPEC),
        "CountReports has several outputs (counts, ledger), got a step for all; use: counted.counts | step",
    ),
    "windows as a key": (
        lambda: (counted().counts | EstimateDistribution(SPEC))["estimates"],
        "EstimateDistribution has its outputs as attributes (estimates, health), got ['estimates']; use: .estimates",
    ),
    "a row as a dictionary": (
        lambda: VALUE["frequency"],
        "EstimatedValue has its fields as attributes, got ['frequency']; use: row.frequency, "
        "or as_dict(row)['frequency']",
    ),
    "an inner row as a dictionary": (
        lambda: DIMENSION["values"],
        "DimensionValue has the fields name, value, got ['values']",
    ),
    "collections without their name": (
        lambda: EstimateReports(["C.json"], window="1h"),  # type: ignore[arg-type]  # the misuse
        "EstimateReports needs a JobSpec, got ['C.json']" + BY_NAME,
    ),
    "a dictionary of values": (
        lambda: EstimateReports({"window": "1h"}),  # type: ignore[arg-type]  # the misuse
        "EstimateReports needs a JobSpec, got {'window': '1h'}" + BY_NAME,
    ),
    "names of files": (
        lambda: beam.Pipeline() | beam.Create(["a.avro"]) | EstimateReports(collections=[KRR]),
        "EstimateReports needs a PCollection of bytes, got one of str; use, if they are names of files: "
        "names | ReadReportFiles()",
    ),
    "batches of reports": (
        lambda: beam.Pipeline() | beam.Create([KRR.perturb(["1"])]) | EstimateReports(collections=[KRR]),
        "EstimateReports needs a PCollection of bytes, got one of ReportBatch; use: messages | "
        "beam.Map(lambda message: wire.encode_batch(message)).with_output_types(bytes)",
    ),
    "JSON of what is no row": (
        lambda: to_json({"value": 1}),  # type: ignore[arg-type]  # the misuse
        "as_dict, to_json and to_avro need a row, got dict",
    ),
    "an output that does not exist": (
        lambda: estimated()["rows"],
        f"EstimateReports has its outputs as attributes ({NAMES}), got ['rows']; use: .values",
    ),
    "values that somebody left out": (
        lambda: estimated(with_values=False).values,
        "EstimateReports has no output values unless it is asked for; use: with_values=True",
    ),
    "a search that nobody asked for": (
        lambda: estimated().discovered,
        "EstimateReports has no output discovered unless it is asked for; use: discover=True",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), MISUSES.values(), ids=MISUSES)
def test_outputs_that_are_used_wrongly(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        call()
    assert str(caught.value) == sentence


def test_outputs_that_are_used_rightly() -> None:
    outputs = estimated(with_counts=True)
    assert outputs.counts is outputs._asdict()["counts"] is outputs[5]
    assert estimated()._asdict()["counts"] is None
    estimates, values, *_ = outputs
    assert (estimates, values) == (outputs.estimates, outputs.values)


def test_a_step_of_ones_own_may_take_all_that_is_read() -> None:
    @beam.ptransform_fn
    def mine(source: Any) -> Any:
        return source | EstimateReports(collections=[KRR])

    assert (files() | mine()).values.element_type is EstimatedValue


def test_outputs_and_rows_are_tuples() -> None:
    assert (DIMENSION[0], DIMENSION[-1], DIMENSION[:1], tuple(DIMENSION)) == ("arm", "new", ("arm",), ("arm", "new"))
    outputs = decoded()
    assert (outputs[0], outputs[1:]) == (outputs.reports, (outputs.rejected, outputs.ledger))
    assert copy.copy(DIMENSION) == pickle.loads(pickle.dumps(DIMENSION)) == DIMENSION
    assert not hasattr(outputs, "values")


def streamed(stream: TestStream) -> Counter[str]:
    lists = replay.Lists()
    with beam.Pipeline(options=replay.stream_options()) as pipeline:
        outputs = pipeline | stream.with_output_types(bytes) | EstimateReports(collections=[KRR], window="1h")
        lists.write([Output("ledger", outputs.ledger, None)])
    return sum(replay.sum_ledger(lists.rows()["ledger"]).values(), Counter())


def test_a_stream_without_times_of_arrival_says_how_to_state_them() -> None:
    stream = TestStream(coder=beam.coders.BytesCoder())
    with pytest.raises(Exception, match="time of arrival") as caught:
        streamed(stream.add_elements([MESSAGE]).advance_watermark_to_infinity())
    assert str(caught.value).startswith(
        "messages of a stream must have their time of arrival as timestamp, got messages without a time; use, in a "
        "TestStream: stream.add_elements([TimestampedValue(message, time.time())])"
    )
    timed = TestStream(coder=beam.coders.BytesCoder()).add_elements([TimestampedValue(MESSAGE, NOON / 1000)])
    assert streamed(timed.advance_watermark_to_infinity()) == Counter(received=120, accepted=120)
