"""The table capability x program in the documents, made from the record of what runs found."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.capabilities.jobs import PROGRAMS

PATH = "docs/programs.md"
RECORD = "capabilities.json"
HEADER = ["what a row can have", *PROGRAMS]


def rows(root: Path) -> list[list[str]]:
    """One row a capability."""
    record = json.loads((root / "tests" / "golden" / RECORD).read_text(encoding="utf-8"))
    return [[one["capability"], *(one[program] for program in PROGRAMS)] for one in record]
