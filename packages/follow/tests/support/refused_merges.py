"""Refusals of ``uldp compact``: calls and their sentences."""

from __future__ import annotations

import io
from pathlib import Path

import fastavro

from tests.support.refusals.tables import Refusal
from uldp_transforms_follow import compact


def written(name: str, content: bytes) -> str:
    """A file in the present directory."""
    path = Path(name).absolute()
    path.write_bytes(content)
    return str(path)


def avro(name: str, field: str) -> str:
    fields = [{"name": field, "type": "int"}]
    fastavro.writer(file := io.BytesIO(), {"type": "record", "name": "R", "fields": fields}, [{field: 1}])
    return written(name, file.getvalue())


def locked_twice() -> None:
    with compact._alone("."), compact._alone("."):
        pass


ROWS = "must contain rows of uldp estimate (the content is not shown)"

REFUSED: list[Refusal] = [
    (lambda: compact.configure(["gs://b/x"]), "DIR must be a local directory, got 'gs://b/x'"),
    (lambda: compact.configure(["."]), "DIR must contain the record of a run, got '.'"),
    (lambda: compact._json_lines([written("cut.jsonl", b"{")], io.BytesIO()), f"HERE/cut.jsonl {ROWS}"),
    (
        lambda: compact._avro([avro("a.avro", "a"), avro("b.avro", "b")], io.BytesIO()),
        "files of one run must have one schema, got another one in HERE/b.avro",
    ),
    (lambda: compact._parquet([written("no.parquet", b"no")], io.BytesIO()), f"HERE/no.parquet {ROWS}"),
    (locked_twice, "DIR must not be compacted by another program, got '.'"),
]
