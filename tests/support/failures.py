"""What can go wrong: ``tests/failures.yaml``, from which ``tests.support.golden`` writes the tables of a page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import yaml

PATH = "docs/failures.md"
SOURCE = Path(__file__).parents[1] / "failures.yaml"

FAMILIES = {
    "B": "Bytes",
    "M": "Meaning",
    "T": "Time",
    "C": "Configuration",
    "X": "The running job",
    "P": "Privacy",
}
"""First letter of an id -> heading on the page."""

_TABLE = re.compile(r"^\|.*\n(?:\|.*\n)*", re.MULTILINE)


class Failure(NamedTuple):
    """An entry of the file."""

    id: str
    failure: str
    behaviour: str
    tests: list[str]

    @property
    def row(self) -> str:
        """The line of the page."""
        behaviour = self.behaviour if self.tests else f"{self.behaviour} (no test)"
        return f"| {self.id} | {self.failure} | {behaviour} |\n"


def failures() -> list[Failure]:
    """All entries, in their order."""
    return [Failure(**entry) for entry in yaml.load(SOURCE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)]


def filled(page: str) -> str:
    """The page with the failures of each family in the table below its heading."""
    rows = {family: [one.row for one in failures() if one.id[0] == family] for family in FAMILIES}
    before, *sections = re.split(r"(?m)^(?=## )", page)
    headings = [section.partition("\n")[0].removeprefix("## ") for section in sections]
    if headings != list(FAMILIES.values()):
        raise ValueError(f"{PATH} must have the headings {list(FAMILIES.values())}, got {headings}")
    head = "| | failure | what happens |\n|---|---|---|\n"
    tables = [head + "".join(rows[family]) for family in FAMILIES]
    return before + "".join(_with_table(section, table) for section, table in zip(sections, tables, strict=True))


def _with_table(section: str, table: str) -> str:
    return _TABLE.sub(lambda _: table, section, count=1)
