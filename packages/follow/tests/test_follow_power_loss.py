"""Rows that the database forgets are on disk after a loss of power: each fsync that is deleted makes a test fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.messages_cases import KRR
from tests.support.power_loss import Disk
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.rows.samples.sample import Owner, counts_of_window
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms_follow.row_outbox import put_rows, write_outbox
from uldp_transforms_follow.state import FollowState


def test_rows_are_on_disk_before_the_outbox_forgets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = FollowState(str(tmp_path), "run", "{}")
    place = {"window_start": None, "window_end": None, "pane_index": 0, "pane_timing": "ON_TIME", "run": "run"}
    with state:
        row = counts_of_window(
            Owner(named=KRR), CohortCounts.empty(KRR.num_cohorts, KRR.num_cells), place, complete=True
        )
        put_rows(state, JobSpec.of(collections=[KRR], run="run").run or "", {"counts": (row,)}, RowForms(counts=True))
    disk, seen = Disk(monkeypatch), []

    def reached(what: str) -> None:
        if what == "before emptying":
            seen.append({name: text for name, text in disk.after_power_loss(tmp_path).items() if "counts" in name})

    [name] = state.outbox()
    content = state.content(name)
    write_outbox(state, str(tmp_path), reached)
    assert seen == [{name: content}]
    state.close()
