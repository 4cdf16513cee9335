"""What is promised to be on disk is there after a loss of power: each fsync that is deleted makes a test fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.power_loss import Disk
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.ldp import FileStorage


def test_a_clients_state_is_on_disk_before_its_report_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    storage = FileStorage(tmp_path / "state.json")
    for text in ("first", "second, longer", "third"):
        storage.update(lambda _, text=text: (text, None))  # type: ignore[misc]
        assert disk.after_power_loss(tmp_path)["state.json"] == text.encode()


def test_a_whole_file_is_on_disk_when_the_block_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row files, run records and accounts of a run are written so."""
    disk = Disk(monkeypatch)
    for content in (b"first", b"second, longer"):
        with whole_file(str(tmp_path / "estimates.jsonl")) as file:
            file.write(content)
        assert disk.after_power_loss(tmp_path) == {"estimates.jsonl": content}
