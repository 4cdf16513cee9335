"""Rows in BigQuery: tables whose columns are the fields of the Avro schemas."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindows

from uldp_transforms.beam.runtime.coders import timestamp_of
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.google_clients import require_google_clients
from uldp_transforms.jobs.records.row_file_options import flush_every
from uldp_transforms.jobs.sinks.row_files import WriteRowFiles
from uldp_transforms.jobs.sinks.sink import Output, Sink
from uldp_transforms.jobs.sources import Source
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.avro_fields import Field, fields_of, map_fields, time_fields
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.rows.row_types import UNDELIVERED_SCHEMA, UndeliveredRow

LOADS, INSERTS, STORAGE_WRITE_API = "loads", "inserts", "storage_write_api"

_TYPES = {"string": "STRING", "int": "INTEGER", "long": "INTEGER", "double": "FLOAT", "boolean": "BOOLEAN"}
_TYPES |= {"time": "TIMESTAMP", "record": "RECORD", "map": "RECORD"}


def table_schema(schema: Any) -> dict[str, Any]:
    """The columns of a table for the records of an Avro schema, in the form of BigQuery's REST interface.

    ``["null", T]`` is NULLABLE, an array REPEATED, all others REQUIRED; but a field with a default, which later
    versions of a schema may add, is NULLABLE, so that it can be added to a table with rows. A map is a repeated record
    of ``key`` and ``value``, an enum its name as STRING.
    """
    return {"fields": list(map(_column, fields_of(schema)))}


def _column(field: Field) -> dict[str, Any]:
    parts = field.parts
    if field.kind == "array":
        return _column(parts[0]._replace(name=field.name, doc=field.doc)) | {"mode": "REPEATED"}
    mode = "NULLABLE" if field.nullable or field.has_default else "REQUIRED"
    column = {"name": field.name, "mode": mode, "description": field.doc, "type": _TYPES[field.kind]}
    if field.kind == "map":
        column["mode"] = "REPEATED"
        parts = (Field("key", "string", doc="Key."), parts[0]._replace(doc="What stands under this key."))
    return column | ({"fields": list(map(_column, parts))} if parts else {})


def table_row(row: Any, schema: Any) -> dict[str, Any]:
    """The row with the columns of ``table_schema``, ready for JSON; times as RFC 3339."""
    record = as_dict(row)
    for name in map_fields(schema):
        if record[name] is not None:
            record[name] = [{"key": key, "value": each} for key, each in record[name].items()]
    return record


def native_row(row: Any, schema: Any) -> dict[str, Any]:
    """A row with times as Beam's ``Timestamp``, as the Storage Write API requires."""
    record = table_row(row, schema)
    times = {name: timestamp_of(record[name]) for name in time_fields(schema) if record[name] is not None}
    return record | times


class WriteTable(beam.PTransform[PCollection[Any], PCollection[UndeliveredRow]]):
    """Appends rows to a BigQuery table, which is created if necessary.

    Rows are first assigned to the global window: Beam's inserts regroup them, and an engine may drop elements of an
    expired window.

    Output: ``UndeliveredRow`` for each row that BigQuery rejects permanently, for instance because it does not fit an
    older table. Transient errors are retried without limit. A load either succeeds or fails the job.

    Args:
        dataset: PROJECT:DATASET.
        name: name of the table.
        schema: Avro schema of the rows.
        method: LOADS, from files under ``--temp_location``, for bounded input only; INSERTS, streaming inserts;
            STORAGE_WRITE_API, which needs Java when the pipeline is built.
    """

    def __init__(self, dataset: str, name: str, schema: Any, method: str):
        super().__init__()
        self._table = f"{dataset}.{name}"
        self._schema = schema
        self._method = method

    def expand(self, rows: PCollection[Any]) -> PCollection[UndeliveredRow]:
        write = {LOADS: self._load, INSERTS: self._insert, STORAGE_WRITE_API: self._write_to_storage}[self._method]
        return write(rows | "RowsNameTheirWindow" >> beam.WindowInto(GlobalWindows()))

    def _load(self, rows: PCollection[Any]) -> PCollection[UndeliveredRow]:
        _ = self._records(rows, table_row) | "Load" >> self._sink("FILE_LOADS")
        return rows.pipeline | "NoneRefused" >> beam.Create([])

    def _insert(self, rows: PCollection[Any]) -> PCollection[UndeliveredRow]:
        written = self._records(rows, table_row) | "Insert" >> self._sink(
            "STREAMING_INSERTS", insert_retry_strategy="RETRY_ON_TRANSIENT_ERROR"
        )
        return written.failed_rows_with_errors | "Refused" >> beam.Map(_refused_insert).with_output_types(
            UndeliveredRow
        )

    def _write_to_storage(self, rows: PCollection[Any]) -> PCollection[UndeliveredRow]:
        try:
            written = self._records(rows, native_row) | "StorageWrite" >> self._sink("STORAGE_WRITE_API")
        except (RuntimeError, OSError) as error:  # no Java, no jar, or the jar does not start
            raise SpecError(
                f"--bigquery_method storage_write_api needs Java and Beam's expansion service for Google Cloud, got "
                f"{error}"
            ) from None
        return written.failed_rows_with_errors | "Refused" >> beam.Map(
            _refused_by_storage, self._table
        ).with_output_types(UndeliveredRow)

    def _records(self, rows: PCollection[Any], form: Any) -> PCollection[dict[str, Any]]:
        return rows | "TableRows" >> beam.Map(form, self._schema).with_output_types(dict[str, Any])

    def _sink(self, method: str, **more: Any) -> Any:
        from apache_beam.io.gcp.bigquery import WriteToBigQuery  # noqa: PLC0415  # of the extra gcp

        return WriteToBigQuery(self._table, schema=table_schema(self._schema), method=method, **more)

    def display_data(self) -> dict[str, Any]:
        return {"table": self._table, "method": self._method}


def _refused_insert(refused: tuple[str, dict[str, Any], Any]) -> UndeliveredRow:
    table, row, errors = refused
    if isinstance(errors, str):  # for rows that are too large to send
        sentences = [errors]
    else:
        sentences = [": ".join(str(error[key]) for key in ("reason", "message") if error.get(key)) for error in errors]
    return UndeliveredRow(table=table, errors=sentences, row=_json(row))


def _refused_by_storage(refused: dict[str, Any], table: str) -> UndeliveredRow:
    return UndeliveredRow(table=table, errors=[refused["error_message"]], row=_json(refused["failed_row"]))


def _json(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, default=str)


class BigQueryTables(Sink):
    """Tables of one dataset for all rows except counts; rows that BigQuery rejects are written to files."""

    options: ClassVar[cli.Options] = {
        "--bigquery": {
            cli.IS_COMMON: True,
            "label": "BigQuery dataset",
            "type": cli.dataset,
            "help": "dataset PROJECT:DATASET for the tables estimates, ledger, rejected, health and discovered",
        },
        "--bigquery_method": {
            "choices": (STORAGE_WRITE_API,),
            "help": "storage_write_api needs Java (default: load jobs for files, streaming inserts for a stream)",
        },
    }

    takes_values = False

    TABLES = ("estimates", "rejected", "ledger", "health", "discovered")

    def __init__(
        self,
        dataset: str,
        method: str,
        directory: str,
        *,
        run: str | None = None,
        unbounded: bool,
        flush_every: int = 0,
    ):
        self._flush_every = flush_every
        self._dataset = dataset
        self._method = method
        self._directory = directory
        self._run = run
        self._unbounded = unbounded

    @classmethod
    def of(cls, args: argparse.Namespace, source: type[Source], options: PipelineOptions) -> BigQueryTables | None:
        if args.bigquery is None:
            if args.bigquery_method is not None:
                raise SpecError("--bigquery_method needs --bigquery, got none")
            return None
        require_google_clients("--bigquery")
        temporary = options.view_as(GoogleCloudOptions).temp_location
        method = args.bigquery_method or (LOADS if source.bounded else INSERTS)
        if method == LOADS and not str(temporary).startswith("gs://"):
            raise SpecError(
                f"--bigquery with {source.option} needs --temp_location gs://BUCKET/FOLDER, got {temporary}"
            )
        return cls(
            args.bigquery,
            method,
            args.rows,
            run=args.run,
            unbounded=not source.bounded,
            flush_every=flush_every(args),
        )

    def write(self, outputs: Sequence[Output]) -> None:
        undelivered = [
            rows | f"Table_{name}" >> WriteTable(self._dataset, name, schema, self._method)
            for name, rows, schema, *_ in outputs
            if name in self.TABLES
        ] | "Undelivered" >> beam.Flatten()
        _ = undelivered | "WriteUndelivered" >> WriteRowFiles(
            self._directory,
            "undelivered",
            "jsonl",
            UNDELIVERED_SCHEMA,
            unbounded=self._unbounded,
            keyed=False,
            run=self._run,
            flush_every=self._flush_every,
        )
