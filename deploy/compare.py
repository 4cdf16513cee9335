"""Whether two runs of the main job wrote the same rows, bit for bit."""

from __future__ import annotations

from pathlib import Path

import fastavro


def rows(directory: Path) -> dict[str, list[str]]:
    """The rows of each kind of output (``estimates.jsonl``, ...), sorted: engines write them in any order."""
    found: dict[str, list[str]] = {}
    for path in sorted(directory.iterdir()):
        if path.suffix == ".jsonl":
            found[path.name] = sorted(path.read_text("utf-8").splitlines())
        elif path.suffix == ".avro":
            with path.open("rb") as file:
                found[path.name] = sorted(map(repr, fastavro.reader(file)))
    return found


def differences(directory: Path, reference: Path) -> list[str]:
    """The kinds of output whose rows differ, or that only one of the two directories has."""
    ours, theirs = rows(directory), rows(reference)
    return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
