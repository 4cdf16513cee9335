"""The table capability x program in the documents, made from the record of what runs found."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.capabilities.jobs import PROGRAMS

PATH = "docs/programs.md"
RECORD = "capabilities.json"
HEADER = ["what a row can have", *PROGRAMS]


def rows(root: Path) -> list[list[str]]:
    """One row for all capabilities that the programs have alike, in the order of the first of them."""
    record = json.loads((root / "tests" / "golden" / RECORD).read_text(encoding="utf-8"))
    alike: dict[tuple[str, ...], list[str]] = {}
    for one in record:
        alike.setdefault(tuple(one[program] for program in PROGRAMS), []).append(one["capability"])
    return [["; ".join(names), *cells] for cells, names in alike.items()]
