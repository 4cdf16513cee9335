"""Navigations as JSON lines, from files, from the directories of gateways, and from Kafka."""

from __future__ import annotations

import bisect
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uldp_transforms.jobs.files.json_table import JsonTable, cells_of_line
from uldp_transforms.jobs.files.packed_files import PackedFile
from uldp_transforms.jobs.files.tables import Table, is_of_lines, table_of
from uldp_transforms.jobs.kafka.offsets import ConsumerSettings, parts_of
from uldp_transforms.jobs.kafka.reader import KINDS_OF_TIMES, KafkaReadError, Reader
from uldp_transforms.ldp.errors import SpecError

SPOOLED = "navigations-*.jsonl"
"""Names of the files that a gateway writes."""

_POLL = 0.5  # seconds


class JsonRecords(JsonTable):
    """Table of JSON objects that are in memory; all columns are texts. Any other line has no cells.

    Args:
        parts: name and lines of each file, or of each partition.
    """

    def __init__(self, parts: Sequence[tuple[str, Sequence[bytes]]]):
        self.parts = parts
        self._begins = list(itertools.accumulate((len(lines) for _, lines in parts), initial=0))
        rows = [cells_of_line(line) for _, lines in parts for line in lines]
        super().__init__(lambda: iter(rows), self._place, lambda: len(rows))

    def _place(self, row: int) -> str:
        """The file, and the line in it."""
        part = bisect.bisect_right(self._begins, row) - 1
        return f"{self.parts[part][0]} line {row - self._begins[part] + 1}"


def table_of_paths(paths: Sequence[str]) -> Table:
    """One table of any kind, or the JSON lines of several files and directories.

    Raises:
        OSError: if a file cannot be read.
        SpecError: if a directory has no navigations, or one of several files is no complete file of JSON lines.
    """
    if len(paths) == 1 and not os.path.isdir(paths[0]):
        return table_of(paths[0])
    files = list(itertools.chain.from_iterable(map(_files, paths)))
    packed = [PackedFile(str(path)) for path in files]
    others = [path for path, file in zip(files, packed) if not is_of_lines(path.name.removesuffix(file.ending))]
    if others:
        raise SpecError(f"several files must be JSON lines (.jsonl), got {others[0].name!r}")
    return JsonRecords([(path.name, file.read().splitlines()) for path, file in zip(files, packed)])


def _files(path: str) -> list[Path]:
    if not os.path.isdir(path):
        return [Path(path)]
    found = sorted(Path(path).glob(SPOOLED))
    if not found:
        raise SpecError(f"a directory of navigations must contain {SPOOLED}, got none in {path!r}")
    return found


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
    return JsonRecords(parts)


class _AnyTimes(Reader):
    """A reader that does not need the times of records."""

    def _check_kinds(self, kinds: Any) -> None:
        """Nothing: navigations have their own times."""


__all__ = ["SPOOLED", "JsonRecords", "KafkaReadError", "table_of_paths", "table_of_topic"]
