"""What is promised to be on disk is there after a loss of power: each fsync that is deleted makes a test fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.messages_cases import KRR
from tests.support.power_loss import Disk
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs.follow.row_outbox import put_rows, write_outbox
from uldp_transforms.jobs.follow.state import FollowState
from uldp_transforms.ldp import CohortCounts, FileStorage
from uldp_transforms.rows.samples.sample import Owner
from uldp_transforms.rows.window_counts import counts_of_window
from uldp_transforms.spec.job_spec import JobSpec


def test_a_clients_state_is_on_disk_before_its_report_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    storage = FileStorage(tmp_path / "state.json")
    for text in ("first", "second, longer", "third"):
        storage.update(lambda _, text=text: (text, None))  # type: ignore[misc]
        assert disk.after_power_loss(tmp_path)["state.json"] == text.encode()


def test_rows_are_on_disk_before_the_outbox_forgets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = FollowState(str(tmp_path), "run", "{}")
    place = {"window_start": None, "window_end": None, "pane_index": 0, "pane_timing": "ON_TIME", "run": "run"}
    with state:
        row = counts_of_window(
            Owner(named=KRR), CohortCounts.empty(KRR.num_cohorts, KRR.num_cells), place, complete=True
        )
        put_rows(state, JobSpec.of(collections=[KRR], run="run").run or "", {"counts": (row,)})
    disk, seen = Disk(monkeypatch), []

    def reached(what: str) -> None:
        if what == "before emptying":
            seen.append({name: text for name, text in disk.after_power_loss(tmp_path).items() if "counts" in name})

    [name] = state.outbox()
    content = state.content(name)
    write_outbox(state, str(tmp_path), reached)
    assert seen == [{name: content}]
    state.close()


def test_a_whole_file_is_on_disk_when_the_block_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row files, run records and accounts of a run are written so."""
    disk = Disk(monkeypatch)
    for content in (b"first", b"second, longer"):
        with whole_file(str(tmp_path / "estimates.jsonl")) as file:
            file.write(content)
        assert disk.after_power_loss(tmp_path) == {"estimates.jsonl": content}
