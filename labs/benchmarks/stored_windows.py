"""Counts of windows as files, and what a program takes: shared by benchmarks of programs that read counts."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.ldp import Collection
from uldp_transforms.rows.row_identity import fields_of_group, name_of, span_of
from uldp_transforms.rows.row_types import COUNTS_SCHEMA, WindowCounts

HOUR = 3_600_000
DAY = 24 * HOUR


_PROGRAM = """
import pathlib, re, sys
from uldp_transforms.jobs import uldp
assert uldp.main(sys.argv[2:]) == 0
peak = re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())
pathlib.Path(sys.argv[1]).write_text(peak.group(1))
"""


def run(words: Sequence[str]) -> tuple[float, float]:
    """Run a program of ``uldp`` in a process of its own; returns its CPU seconds and its peak memory in MiB (Linux)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.NamedTemporaryFile("r") as peak:
        subprocess.run(
            [sys.executable, "-c", _PROGRAM, peak.name, *words],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        memory = int(Path(peak.name).read_text()) / 1024
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, memory


def closed(values: int, groups: Sequence[str] = ()) -> Collection:
    """k-RR at epsilon 2, with a dimension ``g`` if there are groups."""
    spec: dict[str, Any] = {"id": "benchmark", "version": 1, "mechanism": {"id": "krr", "epsilon": 2.0}}
    spec |= {"alphabet": {"id": "closed", "values": [f"value {at}" for at in range(values)]}}
    return Collection.from_json(spec | ({"dimensions": [{"name": "g", "values": list(groups)}]} if groups else {}))


def counted(of: Collection, start: int, people: int, rng: np.random.Generator, length: int = HOUR) -> WindowCounts:
    """Counts of an hour, or of ``length`` milliseconds, in which value i has a share proportional to 1 / i."""
    law = 1 / np.arange(1, of.mechanism.num_symbols + 1)
    cells = rng.multinomial(people, of.mechanism.response(law / law.sum())).tolist()
    place = span_of(start, length) | {"pane_index": 0, "pane_timing": "ON_TIME", "run": "a", "simulated": None}
    row = WindowCounts(**name_of(of), **place, complete=True, num_reports=[people], cells=cells)
    return row._replace(**fields_of_group([], has_groups=bool(of.dimensions)))


def write_counts(folder: Path, of: Collection, rows: Sequence[WindowCounts]) -> list[str]:
    """Store rows in a folder; returns the options that name it and the collection."""
    (folder / "counts-a.avro").write_bytes(file_of(rows, "avro", COUNTS_SCHEMA))
    (folder / "collection.json").write_text(json.dumps(of.to_json()))
    return [str(folder), f"--collection={folder}/collection.json"]
