"""Refusals of groups of reports in files: calls and their sentences."""

from __future__ import annotations

import pickle

import apache_beam as beam
import numpy as np
from apache_beam.options.pipeline_options import PipelineOptions

from tests.support import replay
from tests.support.messages_cases import KRR, NOON, single
from tests.support.refusals.tables import Refusal
from uldp_transforms import EstimateReports
from uldp_transforms.beam.transforms.gather_messages import GATHERED
from uldp_transforms.messages import wire
from uldp_transforms.windows import Windows

HOUR = 3_600_000
MESSAGES = [*wire.encode_reports(KRR.perturb(["1"] * 3, np.random.default_rng(1), np.full(3, NOON))), b"", single()]
FILES, STREAM = PipelineOptions(["--runner=FnApiRunner"]), replay.stream_options()


def without_times() -> None:
    spec = replay.spec([KRR], Windows(size=HOUR), bounded=False)
    with beam.Pipeline(options=STREAM) as pipeline:
        groups = pipeline | replay.stream([replay.arrive(NOON, [pickle.dumps((MESSAGES, [1]))])])
        _ = groups | beam.Map(pickle.loads).with_output_types(GATHERED) | EstimateReports(spec)


GOT = "got 1 for 5 "  # Beam adds the name of the step
REFUSED: list[Refusal] = [
    (without_times, f"groups of messages of a stream must have an arrival time for each message, {GOT}"),
]
