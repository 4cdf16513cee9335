"""Navigations as JSON lines, from files, from the directories of gateways, and from Kafka."""

from __future__ import annotations

import bisect
import itertools
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uldp_transforms.jobs.kafka.offsets import ConsumerSettings, parts_of
from uldp_transforms.jobs.kafka.reader import KINDS_OF_TIMES, KafkaReadError, Reader
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_tables.json_table import JsonTable, object_of_line
from uldp_transforms_tables.packed_files import PackedFile
from uldp_transforms_tables.table import Table
from uldp_transforms_tables.tables import is_of_lines, table_of

SPOOLED = "navigations-*.jsonl"
"""Names of the files that a gateway writes."""

_POLL = 0.5  # seconds


class JsonRecords(JsonTable):
    """Table of JSON objects that are in memory; all columns are texts. Any other line has no cells; empty lines are no
    rows.

    Args:
        name: of the table, for errors.
        parts: name and lines of each file, or of each partition.
    """

    def __init__(self, name: str, parts: Sequence[tuple[str, Sequence[bytes]]]):
        self.parts = parts
        filled = [[at for at, line in enumerate(lines) if line.strip()] for _, lines in parts]
        self._filled = list(itertools.chain.from_iterable(filled))
        self._begins = list(itertools.accumulate(map(len, filled), initial=0))
        rows = [object_of_line(lines[at]) for (_, lines), places in zip(parts, filled) for at in places]
        super().__init__(name, lambda: iter(rows), self._place, lambda: len(rows))

    def _place(self, row: int) -> str:
        """The file, and the line in it."""
        part = bisect.bisect_right(self._begins, row) - 1
        return f"{self.parts[part][0]} line {self._filled[row] + 1}"


def table_of_paths(paths: Sequence[str]) -> Table:
    """One table of any kind, or the JSON lines of several files and directories.

    Raises:
        OSError: if a file cannot be read.
        SpecError: if a directory has no navigations, a file is named twice, or one of several files is no complete file
        of JSON lines.
    """
    if len(paths) == 1 and not (os.path.isdir(paths[0]) and _spooled(paths[0])):
        return table_of(paths[0])
    files = list(itertools.chain.from_iterable(map(_files, paths)))
    packed = [PackedFile(str(path)) for path in files]
    others = [path for path, file in zip(files, packed) if not is_of_lines(path.name.removesuffix(file.ending))]
    if others:
        raise SpecError(f"several files must be JSON lines (.jsonl), got {others[0].name!r}")
    _check_once(files)
    return JsonRecords(f"{len(files)} files", [(path.name, _lines(file)) for path, file in zip(files, packed)])


def _check_once(files: Sequence[Path]) -> None:
    """Refuse a file that is named twice, also by its directory or by a link: its navigations would count twice."""
    number = Counter(os.path.realpath(path) for path in files)
    twice = next((path for path in files if number[os.path.realpath(path)] > 1), None)
    if twice is not None:
        raise SpecError(f"each file of navigations must be named once, got {str(twice)!r} several times")


def _lines(file: PackedFile) -> list[bytes]:
    with file.lines() as lines:
        return list(lines)


def _files(path: str) -> list[Path]:
    if not os.path.isdir(path):
        return [Path(path)]
    found = _spooled(path)
    if not found:
        raise SpecError(f"a directory of navigations must contain {SPOOLED}, got none in {path!r}")
    return found


def _spooled(path: str) -> list[Path]:
    return sorted(Path(path).glob(SPOOLED))


def table_of_topic(settings: ConsumerSettings, topic: str) -> JsonRecords:
    """The records that a Kafka topic has now; a record has one line or several.

    Raises:
        SpecError: if brokers do not respond or do not have the topic.
        KafkaReadError: if records that exist cannot be read.
    """
    parts = []
    for part in parts_of(settings, topic, ends=True):
        lines: list[bytes] = []
        reader = _AnyTimes(settings, topic, KINDS_OF_TIMES[1])
        try:
            reader.seek({part.partition: part.start})
            while not reader.has_reached(part.stop):
                polled = reader.poll(_POLL)
                for value in () if polled is None else polled.before(part.stop).values:
                    lines += value.splitlines()
        finally:
            reader.close()
        parts.append((f"partition {part.partition}", lines))
    return JsonRecords(f"topic {topic}", parts)


class _AnyTimes(Reader):
    """A reader that does not need the times of records."""

    def _check_kinds(self, kinds: Any) -> None:
        """Nothing: navigations have their own times."""


__all__ = ["SPOOLED", "JsonRecords", "KafkaReadError", "table_of_paths", "table_of_topic"]
