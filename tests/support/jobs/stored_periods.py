"""Stored counts of some base periods."""

from __future__ import annotations

from pathlib import Path

from tests.support.jobs.reestimated import PERIOD
from tests.support.messages_cases import collection
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.ldp import Collection
from uldp_transforms.rows.row_identity import fields_of_group, name_of, span_of
from uldp_transforms.rows.row_types import COUNTS_SCHEMA, WindowCounts

ONE = collection("one", {"id": "closed", "values": ["0", "1", "2"]}, "krr", num_cohorts=1)


def stored(of: Collection, start: int, cells: list[int], complete: bool = True) -> WindowCounts:
    place = span_of(start, PERIOD) | {"pane_index": 0, "pane_timing": "ON_TIME", "run": "a", "simulated": None}
    return WindowCounts(**name_of(of), **place, complete=complete, num_reports=[sum(cells)], cells=cells)


def store(rows: list[WindowCounts]) -> None:
    Path("job").mkdir(exist_ok=True)
    Path("job/counts-a.avro").write_bytes(file_of(rows, "avro", COUNTS_SCHEMA))


GROUPED = Collection.from_json(
    ONE.to_json() | {"id": "grouped", "dimensions": [{"name": "arm", "values": ["control", "new"]}]}
)


def of_group(arm: str, cells: list[int], run: str = "a") -> WindowCounts:
    row = stored(GROUPED, 0, cells)._replace(group="", run=run)
    pairs = [("arm", arm)] if arm else []
    return row._replace(**fields_of_group(pairs, has_groups=True))
