"""EstimateReports called in several ways: files of reports to call it on, and its rows, output by output."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from tests.support.messages_cases import BATCH as BATCH_SCHEMA
from tests.support.messages_cases import KRR, NOON, REPORT, collection, container, write_files
from tests.support.replay import collector
from uldp_transforms import EstimateReports, ReadReportFiles
from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import read_messages
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.json_and_avro import as_dict

OUTPUTS = ("estimates", "values", "health", "ledger", "rejected", "counts")
OPEN = collection("open", {"id": "hashed", "num_buckets": 16}, "urr", num_cohorts=4)
SPAN = 48 * 3_600_000

Outputs = Mapping[str, "beam.PCollection[Any]"]
Rows = dict[str, list[dict[str, Any]]]


def write_reports(folder: Path) -> None:
    """Files of real reports: of KRR in ``reports``, single and packed and one that is no container; of OPEN beside."""
    (batch, other) = (
        of.perturb(list(values), event_times=[NOON + i * SPAN // len(values) for i in range(len(values))])
        for of, values in ((KRR, "0112" * 300), (OPEN, "abbb" * 300))
    )
    singles = wire.encode_reports(batch)
    files = {
        "collection.json": KRR,
        "reports/single.avro": container([(len(singles), b"".join(singles))], REPORT),
        "reports/packed.avro": container([(1, wire.encode_batch(batch))], BATCH_SCHEMA),
        "reports/broken.avro": b"no container",
        "open.avro": container([(1, wire.encode_batch(other))], BATCH_SCHEMA),
    }
    write_files(folder, files)


def messages(path: Path) -> list[bytes]:
    """The messages of a file."""
    with path.open("rb") as file:
        return [message for message in read_messages(file, path.name) if not isinstance(message, Rejection)]


def collected(build: Callable[[beam.Pipeline], Outputs]) -> Rows:
    """The rows of the outputs that a pipeline is given, as objects, in one order."""
    lists = {}
    with contextlib.ExitStack() as stack:
        with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
            for name, rows in build(pipeline).items():
                if rows is None:  # a job that does not search has nothing discovered
                    continue
                collect, lists[name] = stack.enter_context(collector())
                _ = rows | f"Collect_{name}" >> collect
        return {name: in_order(as_dict(row) for row, _, _ in rows) for name, rows in lists.items()}


def in_order(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in an order of their own, to which numbers that may be rounded add nothing."""

    def key(row: dict[str, Any]) -> str:
        return json.dumps({name: value for name, value in row.items() if not isinstance(value, float)}, sort_keys=True)

    return sorted(rows, key=key)


def from_files(pattern: Path, **values: Any) -> Rows:
    """What Python gets for files."""
    return collected(
        lambda p: (p | ReadReportFiles(str(pattern)) | EstimateReports(with_counts=True, **values))._asdict()
    )


def from_messages(given: list[bytes], **values: Any) -> Rows:
    """What Python gets for messages."""
    return collected(lambda p: (p | beam.Create(given) | EstimateReports(with_counts=True, **values))._asdict())
