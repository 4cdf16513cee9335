"""Refusals of transforms of Beam YAML: calls and their sentences."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import FixedWindows

from tests.support.messages_cases import KRR
from tests.support.refusals.tables import Refusal
from uldp_transforms.yaml import EstimateReports


def apply(source: Any, **values: Any) -> None:
    _ = beam.Pipeline(runner="FnApiRunner") | source | EstimateReports(**{"collections": [KRR]} | values)


REFUSED: list[Refusal] = [
    (
        lambda: EstimateReports(colections=[KRR]),  # type: ignore[call-arg]  # misspelt
        "EstimateReports takes the keys files, collections, window, slide, ",
    ),
    (lambda: EstimateReports(window="1h"), "JobSpec needs the key 'collections', got 'window'"),
    (
        lambda: EstimateReports(files=["a"], collections=[KRR]),  # type: ignore[arg-type]  # of another name
        "EstimateReports.files must be a pattern of file names, got ['a']",
    ),
    (
        lambda: EstimateReports(files="", collections=[KRR]),
        "EstimateReports.files must be a pattern of file names, got ''",
    ),
    (
        lambda: beam.Pipeline(runner="FnApiRunner") | EstimateReports(collections=[KRR]),
        "EstimateReports needs an input of messages, or files, got neither",
    ),
    (
        lambda: apply(beam.Create([b""]), files="a"),
        "EstimateReports.files must be absent if there is an input, got both",
    ),
    (
        lambda: apply(beam.Create([beam.Row(a=b"", b=b"")])),
        "EstimateReports needs rows with one field or a field payload, got the fields a, b",
    ),
    (
        lambda: apply(beam.Create([beam.Row(a=1.5)])),
        "EstimateReports needs bytes or Base64 text in the field a, got <class 'float'>",
    ),
    (
        lambda: apply(beam.Create([1])),
        "EstimateReports needs a PCollection of bytes, got one of int",
    ),
    (
        lambda: apply(beam.Create([beam.Row(a=b"")]) | beam.WindowInto(FixedWindows(1))),
        "EstimateReports needs elements in the global window (reports carry their own time), got FixedWindows; use: "
        'elements | "Unwindowed" >> beam.WindowInto(beam.window.GlobalWindows())',
    ),
    (
        lambda: EstimateReports(collections=[7]),  # type: ignore[list-item]  # no collection
        "JobSpec.collections must hold collections, JSON objects or paths, got 7",
    ),
    (
        lambda: EstimateReports(collections=["{"]),
        "Collection must be JSON, got an error in line 1: ",
    ),
    (
        lambda: EstimateReports(collections=['{"id": "krr"}']),
        "Collection needs the key 'version', got 'id'",
    ),
]
