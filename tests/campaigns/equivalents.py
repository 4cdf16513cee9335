"""Mutants that are the same program, each with the reason; ``tests.campaigns.mutants`` counts them apart.

They are listed in ``equivalents.yaml``. ``tests/project/test_planted.py`` checks that each is still to be had, as often
as it is listed.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import yaml

from tests.campaigns.mutations import Mutant

LIST = Path(__file__).with_suffix(".yaml")


class Equivalent(NamedTuple):
    """A function, its line as it is and with the change, and why no test can tell the difference."""

    function: str
    old: str
    new: str
    why: str


EQUIVALENTS = tuple(
    Equivalent(entry["function"], entry["old"], new, entry["why"])
    for entry in yaml.load(LIST.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    for new in entry["new"]
)

_REASONS = {each[:3]: each.why for each in EQUIVALENTS}


def key_of(mutant: Mutant, source: bytes) -> tuple[str, str, str]:
    """What names a mutant: its place may move."""
    return (mutant.function, *mutant.lines(source))


def reason_of(mutant: Mutant, source: bytes) -> str | None:
    """Why a mutant of this source is the same program; None if it is not in the list."""
    return _REASONS.get(key_of(mutant, source))
