"""Where rows go: files in a directory, or a Pub/Sub topic."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Sequence
from typing import Any

import apache_beam as beam
import fastavro
from apache_beam.io.avroio import WriteToAvro
from apache_beam.io.filesystems import FileSystems

from uldp_transforms.rows import Row
from uldp_transforms.wire import single_object_header


def to_json_lines(rows: Sequence[Row], schema: Any) -> bytes:
    """One JSON object a line."""
    return "".join(f"{row.to_json()}\n" for row in rows).encode("utf-8")


def to_avro_file(rows: Sequence[Row], schema: Any) -> bytes:
    """An Avro object container file; equal rows make equal bytes."""
    records = [row.to_avro() for row in rows]
    sync = hashlib.sha256(to_json_lines(rows, schema)).digest()[:16]
    out = io.BytesIO()
    fastavro.writer(out, schema, records, sync_marker=sync)
    return out.getvalue()


ENCODERS: dict[str, Callable[[Sequence[Row], Any], bytes]] = {"jsonl": to_json_lines, "avro": to_avro_file}


class WriteRowFiles(beam.PTransform):
    """Writes rows to ``DIR/NAME.jsonl`` or ``.avro``.

    Bounded input: one file, also when there are no rows. Unbounded input: one file for each bundle of rows. If each row
    stands for a key, window and pane, files are named by these and their content, so that a repeated bundle writes the
    same file again; other files have random names.

    Args:
        directory: where to.
        name: of the files, without ending.
        form: jsonl or avro.
        schema: Avro schema of the rows.
        unbounded: whether rows go on coming.
        keyed: whether each row stands for a key, window and pane.
    """

    def __init__(self, directory: str, name: str, form: str, schema: Any, *, unbounded: bool, keyed: bool = True):
        super().__init__()
        self._path = FileSystems.join(directory, name)
        self._form = form
        self._schema = schema
        self._unbounded = unbounded
        self._keyed = keyed

    def expand(self, rows: beam.PCollection[Row]) -> Any:
        if self._unbounded:
            return rows | "WriteBundles" >> beam.ParDo(
                _WriteBundlesFn(self._path, self._form, self._schema, self._keyed)
            )
        one_file: dict[str, Any] = {"file_name_suffix": f".{self._form}", "num_shards": 1, "shard_name_template": ""}
        if self._form == "jsonl":
            return rows | "Lines" >> beam.Map(Row.to_json) | "Write" >> beam.io.WriteToText(self._path, **one_file)
        return rows | "Records" >> beam.Map(Row.to_avro) | "Write" >> WriteToAvro(self._path, self._schema, **one_file)


class _WriteBundlesFn(beam.DoFn):
    def __init__(self, path: str, form: str, schema: Any, keyed: bool):
        self._path = path
        self._form = form
        self._schema = schema
        self._keyed = keyed

    def start_bundle(self) -> None:
        self._rows: list[Row] = []
        self._identity = hashlib.sha256() if self._keyed else hashlib.sha256(os.urandom(32))

    def process(self, row: Row, window: Any = beam.DoFn.WindowParam, pane: Any = beam.DoFn.PaneInfoParam) -> None:
        self._rows.append(row)
        self._identity.update(f"{window} {pane.index} {row.to_json()}\n".encode())

    def finish_bundle(self) -> None:
        if self._rows:
            content = ENCODERS[self._form](self._rows, self._schema)
            _write(f"{self._path}-{self._identity.hexdigest()[:32]}.{self._form}", content)


def _write(path: str, content: bytes) -> None:
    """Write under another name, then rename: readers never see half a file."""
    unfinished = f"{path}.part"
    with FileSystems.create(unfinished, mime_type="application/octet-stream") as file:
        file.write(content)
    if FileSystems.exists(path):
        FileSystems.delete([path])
    FileSystems.rename([unfinished], [path])


class PublishRows(beam.PTransform):
    """Publishes each row as its JSON line, with attributes that say what it is.

    Attributes: ``schema``, the full name of the Avro schema; ``schema_fingerprint``, which changes with its fields and
    not with its comments: the 8 bytes of Avro's single-object encoding, in hexadecimal digits; and of the fields in
    ``ATTRIBUTES`` and the times those that the row has.

    Args:
        topic: projects/P/topics/T.
        schema: Avro schema of the rows.
    """

    def __init__(self, topic: str, schema: Any):
        super().__init__()
        self._topic = topic
        self._schema = {
            "schema": f"{schema['namespace']}.{schema['name']}",
            "schema_fingerprint": single_object_header(schema)[2:].hex(),
        }

    def expand(self, rows: beam.PCollection[Row]) -> beam.PCollection[Any]:
        return (
            rows
            | "Messages" >> beam.Map(_message, self._schema)
            | "Publish" >> beam.io.WriteToPubSub(self._topic, with_attributes=True)
        )


ATTRIBUTES = ("collection_id", "fingerprint", "pane_index", "pane_timing", "status", "reason")
"""Fields that messages repeat as attributes, by which a subscription can filter."""


def _message(row: Row, schema: dict[str, str]) -> beam.io.PubsubMessage:
    fields = vars(row)
    named = {name: str(fields[name]) for name in ATTRIBUTES if fields.get(name) is not None}
    return beam.io.PubsubMessage(row.to_json().encode("utf-8"), schema | named | row.times())
