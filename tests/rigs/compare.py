"""Whether two runs of the main job wrote the same rows, bit for bit, but for their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro


def rows(directory: Path) -> dict[str, list[str]]:
    """The rows of each kind of output (``estimates.jsonl``, ...) without the run, sorted: engines write them in any
    order."""
    found: dict[str, list[str]] = {}
    for path in sorted(directory.iterdir()):
        if path.suffix == ".jsonl":
            found[path.name] = sorted(
                json.dumps(_without_run(json.loads(line))) for line in path.read_text("utf-8").splitlines()
            )
        elif path.suffix == ".avro":
            with path.open("rb") as file:
                found[path.name] = sorted(repr(_without_run(record)) for record in fastavro.reader(file))
    return found


def _without_run(row: Any) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "run"}


def differences(directory: Path, reference: Path) -> list[str]:
    """The kinds of output whose rows differ, or that only one of the two directories has."""
    ours, theirs = rows(directory), rows(reference)
    return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
