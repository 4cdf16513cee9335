"""Refusals of parts of a file of rows: calls and their sentences."""

from __future__ import annotations

from pathlib import Path

from tests.support.refusals.tables import Refusal
from uldp_transforms.beam.runtime.joined_file import _JoinedFile
from uldp_transforms.rows.row_types import LEDGER_SCHEMA


def join(*parts: tuple[str, int]) -> None:
    for path, size in parts:
        if size:
            Path(path).write_bytes(bytes(size))
    _JoinedFile(str(Path("rows.avro").absolute()), "parts", "avro", LEDGER_SCHEMA).join(None, parts)


REFUSED: list[Refusal] = [
    (FileNotFoundError, lambda: join(("none", 0)), "none is missing: --output must be a folder that all workers share"),
    (ValueError, lambda: join(("one", 1), ("two", 2)), "one is not a part of parts"),
]
