"""Outputs and streams that are used wrongly: each says so in a sentence that ends with the line that cures it."""

from __future__ import annotations

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
from uldp_transforms import EstimateReports
from uldp_transforms.jobs.sinks import Output
from uldp_transforms.ldp import SpecError
from uldp_transforms.messages import wire

MESSAGE = wire.encode_batch(KRR.perturb(["0", "1"] * 60, np.random.default_rng(1), [NOON] * 120))
NAMES = "estimates, values, health, ledger, rejected, counts, discovered"


def estimated(**values: Any) -> Any:
    pipeline = beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))
    return pipeline | beam.Create([MESSAGE]) | EstimateReports(collections=[KRR], **values)


MISUSES: dict[str, tuple[Callable[[], Any], str]] = {
    "a step for all outputs": (
        lambda: estimated() | beam.Map(print),
        f"EstimateReports has several outputs ({NAMES}), got a step for all; use: estimated.values | step",
    ),
    "an output as a key": (
        lambda: estimated()["ledger"],
        f"EstimateReports has its outputs as attributes ({NAMES}), got ['ledger']; use: .ledger",
    ),
    "an output that does not exist": (
        lambda: estimated()["rows"],
        f"EstimateReports has its outputs as attributes ({NAMES}), got ['rows']; use: .values",
    ),
    "counts that nobody asked for": (
        lambda: estimated().counts,
        "EstimateReports has no output counts unless it is asked for; use: with_counts=True",
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
