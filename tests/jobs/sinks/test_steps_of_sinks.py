"""What each sink takes of a job: kinds of rows, paths, topics and tables, and what messages say of their rows."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.io.gcp.pubsub import WriteToPubSub
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor

from tests.support import replay
from tests.support.messages_cases import KRR
from tests.support.rows.rows_of_all_kinds import ROWS
from uldp_transforms.beam.runtime.joined_file import WriteJoinedFile
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.jobs.estimate.run import build
from uldp_transforms.jobs.files.flushed_rows import FlushRows
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.jobs.sinks import BigQueryTables, Output, PubSubTopics, RowFiles, Sink
from uldp_transforms.jobs.sinks.bigquery_tables import INSERTS, LOADS, WriteTable
from uldp_transforms.jobs.sinks.kafka_topics import JSON, RecordOfRow
from uldp_transforms.jobs.sinks.pubsub_topics import _message, schema_attributes
from uldp_transforms.jobs.sinks.row_files import WriteRowFiles
from uldp_transforms.jobs.sources import AvroFiles, PubSubSubscription, Source
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages import wire
from uldp_transforms.rows import row_types
from uldp_transforms.rows.avro_fields import time_fields
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.rows.windowed_estimate import flat
from uldp_transforms.spec.row_forecast import MANY_AT_ONCE
from uldp_transforms.windows import Windows

SCHEMAS = {
    "estimates": row_types.ESTIMATE_SCHEMA,
    "values": row_types.VALUE_SCHEMA,
    "rejected": row_types.REJECTED_SCHEMA,
    "ledger": row_types.LEDGER_SCHEMA,
    "health": row_types.HEALTH_SCHEMA,
    "counts": row_types.COUNTS_SCHEMA,
    "discovered": row_types.DISCOVERED_SCHEMA,
}
LATE = 7
STREAM = "--subscription projects/my-project/subscriptions/reports --window 1h"
TOPIC = "projects/my-project/topics/"


def arguments(words: str) -> argparse.Namespace:
    args = command_line().parse_args(shlex.split(f"--collection c.json --output out {words}"))
    args.rows, args.run, args.entries = "rows", "r1", 0
    return args


def sink_of(kind: type[Sink], words: str, source: type[Source], *options: str) -> Any:
    return kind.of(arguments(words), source, PipelineOptions(list(options)))


def steps_of(sink: Sink, kind: type[beam.PTransform]) -> dict[str, Any]:
    """Label -> step of a kind that the sink adds for a job with all kinds of rows, which is not run."""
    pipeline = beam.Pipeline()
    sink.write(
        [
            Output(
                name,
                pipeline | name >> beam.Create([]),
                schema,
                keyed=name != "rejected",
                late=LATE if name == "ledger" else None,
            )
            for name, schema in SCHEMAS.items()
        ]
    )
    return {label: step for label, step in all_steps(pipeline).items() if isinstance(step, kind)}


def all_steps(pipeline: beam.Pipeline) -> dict[str, Any]:
    """Label -> step of a pipeline."""
    found: dict[str, Any] = {}

    class Visitor(PipelineVisitor):
        def enter_composite_transform(self, node: AppliedPTransform) -> None:
            found[node.full_label] = node.transform

        def visit_transform(self, node: AppliedPTransform) -> None:
            self.enter_composite_transform(node)

    pipeline.visit(Visitor())
    return found


def test_rows_are_keyed_and_none_are_late_unless_a_kind_says_so() -> None:
    output = Output("estimates", None, None)
    assert (output.keyed, output.late) == (True, None)


@pytest.mark.parametrize(
    ("words", "parquet", "found"),
    [
        ("--runner=BundleBasedDirectRunner", False, False),
        ("--runner=BundleBasedDirectRunner", True, True),
        ("--runner=PrismRunner", False, True),
    ],
)
def test_rows_of_values_are_made_if_somebody_takes_them_or_a_checkpoint_may_have_their_step(
    words: str, parquet: bool, found: bool
) -> None:
    """The local engine for streams has no checkpoints."""
    job = replay.streaming_job([KRR], Windows(size=3_600_000), options=PipelineOptions([words, "--streaming"]))
    sink = RowFiles("out", unbounded=True, forms=RowForms(parquet=parquet))
    pipeline = beam.Pipeline(options=job.options)
    build(pipeline, dataclasses.replace(job, sinks=(sink,)))
    assert ("EstimateReports/Values" in all_steps(pipeline)) is found


# ---------------------------------------------------------------------- files

FILES = {
    "WriteEstimatesJson": ("estimates", "jsonl"),
    "WriteEstimatesAvro": ("estimates", "avro"),
    "WriteRejected": ("rejected", "avro"),
    "WriteLedger": ("ledger", "jsonl"),
    "WriteHealth": ("health", "jsonl"),
    "WriteDiscovered": ("discovered", "jsonl"),
}
COUNTS = {"WriteCounts": ("counts", "avro")}
PARQUET = {
    f"Write{name.capitalize()}Parquet": (name, "parquet")
    for name in ("estimates", "values", "rejected", "ledger", "health", "discovered")
}


def without_json(files: dict[str, Any]) -> dict[str, Any]:
    return {label: file for label, file in files.items() if label != "WriteEstimatesJson"}


@pytest.mark.parametrize(
    ("words", "files"),
    [
        ("", FILES),
        ("--write_counts", FILES | COUNTS),
        ("--write_parquet", FILES | PARQUET),
        ("--write_json false", without_json(FILES) | PARQUET),
        ("--write_json false --write_parquet false", without_json(FILES)),
    ],
)
def test_files_of_a_job_that_ends_have_the_names_of_their_kinds(words: str, files: dict[str, Any]) -> None:
    sink = sink_of(RowFiles, f"--input x.avro {words}", AvroFiles)
    assert sink.takes_counts == ("counts" in words)
    steps = steps_of(sink, WriteRowFiles)
    assert {label: (step._path, step._form) for label, step in steps.items()} == {
        label: (f"rows/{name}", form) for label, (name, form) in files.items()
    }
    assert {step._unbounded for step in steps.values()} == {False}
    assert all(steps[label]._schema is SCHEMAS[name] for label, (name, _) in files.items())


@pytest.mark.parametrize(
    ("words", "flush_every", "final"), [("", 60_000, False), ("--flush_every 2m --release final", 120_000, True)]
)
def test_files_of_a_stream_are_written_by_the_clock_or_by_the_watermark(
    words: str, flush_every: int, final: bool
) -> None:
    """Rejected reports come at any time, and the ledger by the watermark."""
    sink = sink_of(RowFiles, f"{STREAM} --write_counts --write_parquet {words}", PubSubSubscription)
    steps = steps_of(sink, WriteRowFiles)
    assert steps.keys() == (FILES | COUNTS | PARQUET).keys()
    for label, (name, form) in (FILES | COUNTS | PARQUET).items():
        step = steps[label]
        assert (step._path, step._form, step._unbounded) == (f"rows/{name}-r1", form, True)
        assert (step._flush_every, step._keyed) == (flush_every, name != "rejected")
        assert step._final == {"rejected": False, "ledger": True}.get(name, final)
        assert step._late == (LATE if name == "ledger" else None)


def test_json_lines_of_many_entries_are_left_out_of_files_but_not_of_streams() -> None:
    """A stream that goes on keeps its steps, and its readers their files."""
    bounded, stream = arguments("--input x.avro"), arguments(STREAM)
    for entries, files in ((MANY_AT_ONCE - 1, FILES), (MANY_AT_ONCE, without_json(FILES) | PARQUET)):
        bounded.entries = stream.entries = entries
        sink = RowFiles.of(bounded, AvroFiles, PipelineOptions([]))
        assert steps_of(sink, WriteRowFiles).keys() == files.keys() and (sink.notice is None) == (files is FILES)
        assert steps_of(RowFiles.of(stream, PubSubSubscription, PipelineOptions([])), WriteRowFiles).keys() == (
            FILES.keys()
        )
    bounded.write_json = True
    assert steps_of(RowFiles.of(bounded, AvroFiles, PipelineOptions([])), WriteRowFiles).keys() == FILES.keys()


@pytest.mark.parametrize(
    ("form", "fields", "step", "kind"),
    [
        ("jsonl", {"unbounded": False}, "Write", WriteJoinedFile),
        ("avro", {"unbounded": False}, "Write", WriteJoinedFile),
        ("parquet", {"unbounded": False, "flush_every": 7}, "Write", WriteJoinedFile),
        ("jsonl", {"unbounded": True}, "WriteBundles", beam.ParDo),
        ("avro", {"unbounded": True, "flush_every": 7}, "WriteTogether", FlushRows),
    ],
)
def test_files_are_written_in_their_form_at_the_end_or_on_the_way(
    form: str, fields: dict[str, Any], step: str, kind: type[beam.PTransform]
) -> None:
    class Files(Sink):
        @classmethod
        def of(cls, args: Any, source: Any, options: Any) -> None:
            return None

        def write(self, outputs: Any) -> None:
            rows = next(output.rows for output in outputs if output.name == "ledger")
            _ = rows | "Files" >> WriteRowFiles("rows", "ledger", form, SCHEMAS["ledger"], **fields)

    assert f"Files/{step}" in steps_of(Files(), kind)


def test_rows_are_collected_for_at_most_ten_minutes() -> None:
    assert sink_of(RowFiles, f"{STREAM} --flush_every 10m", PubSubSubscription)._flush_every == 600_000
    assert sink_of(RowFiles, f"{STREAM} --flush_every 0s", PubSubSubscription)._flush_every == 0
    with pytest.raises(SpecError, match=r"^--flush_every must be at most 10m, got 600001ms$"):
        sink_of(RowFiles, f"{STREAM} --flush_every 600001ms", PubSubSubscription)


@pytest.mark.parametrize(
    ("name", "option", "without", "written"),
    [
        ("counts.avro", "--write_counts", RowForms(), RowForms(counts=True)),
        ("estimates.jsonl", "--write_json", RowForms(json=False), RowForms()),
        ("estimates.parquet", "--write_parquet", RowForms(), RowForms(parquet=True)),
    ],
)
def test_files_of_an_earlier_job_that_this_one_does_not_replace_are_refused(
    name: str, option: str, without: RowForms, written: RowForms, tmp_path: Path
) -> None:
    def prepare(forms: RowForms, *, unbounded: bool = False) -> None:
        RowFiles(str(tmp_path), unbounded=unbounded, forms=forms).prepare()

    prepare(without)
    (tmp_path / name).touch()
    prepare(without, unbounded=True)
    prepare(written)
    with pytest.raises(SpecError) as caught:
        prepare(without)
    assert str(caught.value) == (
        f"--output has {name} of an earlier job, which would not belong to the new estimates: give {option} or another "
        f"directory, got {str(tmp_path)!r}"
    )


# ---------------------------------------------------------------------- topics and tables


@pytest.mark.parametrize(
    ("words", "topics"),
    [
        (
            f"--output_topic {TOPIC}one --rejected_topic {TOPIC}two",
            {"PublishEstimates": "one", "PublishRejected": "two"},
        ),
        (f"--rejected_topic {TOPIC}two", {"PublishRejected": "two"}),
    ],
)
def test_each_kind_of_rows_has_its_own_pubsub_topic(words: str, topics: dict[str, str]) -> None:
    steps = steps_of(sink_of(PubSubTopics, f"{STREAM} {words}", PubSubSubscription), WriteToPubSub)
    named = {label: TOPIC + name for label, name in topics.items()}
    assert {label.partition("/")[0]: step.full_topic for label, step in steps.items()} == named
    assert {step.with_attributes for step in steps.values()} == {True}
    assert sink_of(PubSubTopics, STREAM, PubSubSubscription) is None


def test_the_key_of_a_record_is_all_that_tells_its_row_from_others() -> None:
    """Log compaction keeps one record of a key: each window, group and value has its own."""
    [row] = [row for row, schema in ROWS if schema is SCHEMAS["estimates"]][:1]
    place = {"window_start": "2001-09-09T01:00:00Z", "window_end": "2001-09-09T02:00:00Z", "group": "arm=new"}
    row = row._replace(**place, estimates=row.estimates[:1] or [])
    start = f"{row.collection_id}/{row.fingerprint}/{place['window_start']}/{place['window_end']}"
    of_row = RecordOfRow(SCHEMAS["estimates"], JSON)
    assert of_row(row).key.decode() == f"{start}/arm=new"
    assert of_row(row._replace(group="")).key.decode() == start
    of_value = RecordOfRow(SCHEMAS["values"], JSON)
    keys = [of_value(value).key.decode() for value in flat(row)]
    assert keys == [f"{start}/arm=new/{entry.value}" for entry in row.estimates]
    assert of_row(row._replace(window_start=None, window_end=None, group=None)).key.decode() == (
        f"{row.collection_id}/{row.fingerprint}"
    )


@pytest.mark.parametrize(
    ("source", "words", "method"),
    [
        (PubSubSubscription, STREAM, INSERTS),
        (AvroFiles, "--input x.avro", LOADS),
    ],
)
def test_all_kinds_but_counts_and_values_have_a_table(source: type[Source], words: str, method: str) -> None:
    sink = sink_of(BigQueryTables, f"{words} --bigquery p-1:d", source, "--temp_location=gs://bucket/folder")
    steps = steps_of(sink, WriteTable)
    assert {label: (step._table, step._method) for label, step in steps.items()} == {
        f"Table_{name}": (f"p-1:d.{name}", method) for name in SCHEMAS if name not in ("counts", "values")
    }
    [refused] = steps_of(sink, WriteRowFiles).values()
    unbounded = source is PubSubSubscription
    assert (refused._path, refused._form) == ("rows/undelivered-r1" if unbounded else "rows/undelivered", "jsonl")
    assert (refused._unbounded, refused._keyed, refused._flush_every) == (unbounded, False, 60_000)


PUBLISHED = [(row, schema) for row, schema in ROWS if schema in (SCHEMAS["estimates"], SCHEMAS["rejected"])]


@pytest.mark.parametrize(("row", "schema"), PUBLISHED)
def test_a_message_has_the_row_and_attributes_for_filters(row: Any, schema: Any) -> None:
    row = row._replace(run="r1")
    message = _message(row, schema_attributes(schema), tuple(time_fields(schema)))
    assert message.data.decode() == to_json(row)
    said = json.loads(message.data)
    names = ("collection_id", "fingerprint", "pane_index", "pane_timing", "status", "reason", "run")
    assert message.attributes == {
        "schema": f"{schema['namespace']}.{schema['name']}",
        "schema_fingerprint": wire.single_object_header(schema)[2:].hex(),
        **{name: str(said[name]) for name in names if said.get(name) is not None},
        **{name: said[name] for name in time_fields(schema) if said[name] is not None},
    }
