"""Files of rows that a merged file has replaced, while the old ones are being removed.

``uldp compact`` writes a merged file beside its parts. Renaming it is the only commit point: ``DIR/compacting.json``
names the merged file and its parts from before that moment until the parts are gone, and readers leave out the parts as
soon as the merged file exists. So every row is read once, also after a kill at any moment.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

JOURNAL, GENERATION = "compacting.json", ".compactions"
"""The merge that is under way, and the number of merges that were begun in a directory."""


NAME = re.compile(
    r"(estimates|values|ledger|rejected|health|counts|discovered)-(\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{6})-[^/]+\.(jsonl|avro|parquet)"
)
"""Names of the files of a stream: kind, run and format are its groups."""


class Merge(NamedTuple):
    """A merged file and the parts that it replaces, as names in one directory."""

    merged: str
    parts: frozenset[str]


def read_journal(directory: str) -> Merge | None:
    """The merge that is under way, or was when a program was killed; None if there is none."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(Path(directory, JOURNAL).read_text(encoding="utf-8"))
        names = [found["merged"], *found["parts"]]
        if all(isinstance(name, str) and NAME.fullmatch(name) for name in names):  # nothing outside of the directory
            return Merge(names[0], frozenset(names[1:]))
    return None


def without_superseded(directory: str, matching: Callable[[], Sequence[str]]) -> list[str]:
    """Paths of files in a local directory, without those that a merged file has replaced.

    Args:
        directory: where the files are.
        matching: function that lists them; called again if a merge began meanwhile.
    """
    before = _moment(directory)
    paths = list(matching())
    if before != _moment(directory):
        return without_superseded(directory, matching)
    _, merge = before
    if merge is None or merge.merged not in map(os.path.basename, paths):
        return paths
    return [path for path in paths if os.path.basename(path) not in merge.parts]


def _moment(directory: str) -> tuple[str, Merge | None]:
    generation = ""
    with contextlib.suppress(OSError, ValueError):
        generation = Path(directory, GENERATION).read_text(encoding="utf-8")
    return generation, read_journal(directory)
