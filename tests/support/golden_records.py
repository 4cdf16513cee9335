"""Golden records: files that are made from the code and kept for review, and what a test says when they differ."""

from __future__ import annotations

import difflib
import json

ADVICE = "If that is meant, run `make golden`, review what it prints, and commit it."

WRITE = "WRITE_GOLDEN"
"""Environment variable; if set, ``cases.golden`` writes what is proposed."""

WIDTH = 120
_SHOWN = 20  # lines of a difference that a failing test prints


class Records(list[dict]):
    """Records of a golden file, which know its name: a failing comparison says what to do."""

    name: str


def text_of(records: list[dict]) -> str:
    """One record a line."""
    return "[\n" + ",\n".join(json.dumps(record) for record in records) + "\n]\n"


def difference(name: str, old: str, new: str) -> list[str]:
    """A unified diff without context, line by line."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, name, n=0, lineterm="")
    return [line if len(line) <= 2 * WIDTH else f"{line[: 2 * WIDTH]}..." for line in lines]


def advice(name: str, old: str, new: str) -> list[str]:
    """The beginning of the difference, and what to do about it."""
    lines = difference(name, old, new)
    more = [f"... {len(lines) - _SHOWN} more lines"] if len(lines) > _SHOWN else []
    return [f"{name} is not what the code makes now:", *lines[:_SHOWN], *more, ADVICE]
