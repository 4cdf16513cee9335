"""Refusals of ``uldp compact``: calls and their sentences."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro

from uldp_transforms.jobs import compact


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


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: compact.configure(["gs://b/x"]), "DIR must be a local directory"),
    (lambda: compact.configure(["."]), "DIR must contain the record of a run"),
    (lambda: compact._json_lines([written("cut.jsonl", b"{")], io.BytesIO()), "must contain rows of uldp estimate"),
    (lambda: compact._avro([avro("a.avro", "a"), avro("b.avro", "b")], io.BytesIO()), "must have one schema"),
    (lambda: compact._parquet([written("no.parquet", b"no")], io.BytesIO()), "must contain rows of uldp estimate"),
    (locked_twice, "DIR must not be compacted by another program"),
]
