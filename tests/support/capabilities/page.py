"""Which program has which capability, as a page says it: made from the record of what runs found."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.capabilities.jobs import PROGRAMS

PATH = "docs/programs.md"
RECORD = "capabilities.json"
YES = "yes"
HEADER = ["what a row can have", *PROGRAMS]
_EVERYWHERE = re.compile(r"(<!-- everywhere -->).*?(<!-- end -->)", re.DOTALL)


def rows(root: Path) -> list[list[str]]:
    """One row a capability that some program does not have."""
    return [cells for cells in _cells(root) if not _everywhere(cells)]


def filled(page: str, root: Path) -> str:
    """The page with the capabilities of all programs in its list."""
    items = "".join(f"- {cells[0]}\n" for cells in _cells(root) if _everywhere(cells))
    return _EVERYWHERE.sub(rf"\1\n{items}\2", page)


def _cells(root: Path) -> list[list[str]]:
    record = json.loads((root / "tests" / "golden" / RECORD).read_text(encoding="utf-8"))
    return [[one["capability"], *(one[program] for program in PROGRAMS)] for one in record]


def _everywhere(cells: list[str]) -> bool:
    return set(cells[1:]) == {YES}
