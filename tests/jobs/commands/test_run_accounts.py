"""The accounts of a run: on disk before rows that contain what they count, and read after a kill."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked
from tests.support.power_loss import Disk
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs.records import run_accounts
from uldp_transforms.jobs.records.run_accounts import before_rows, kept, read_accounts, remove_accounts
from uldp_transforms.jobs.sinks import row_files
from uldp_transforms.ldp.errors import SpecError

COUNTED = {"received": 12, "accepted": 9, "duplicates": 1, "rejected_too_old": 2, "windows_ok": 5}
SUMS = {"received": 12, "accepted": 9, "duplicates": 1, "rejected": {"too_old": 2}}
UNREAD: dict[str, dict[str, int]] = {"unread_messages": {}, "unread_files": {}}


@pytest.fixture(autouse=True)
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_accounts, "EVERY", 600.0)


def test_they_are_on_disk_before_rows_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a loss of power; and each file of rows is preceded by what was counted until then."""
    disk, seen, counts = Disk(monkeypatch), [], Counter(COUNTED)

    def rows(path: str) -> Any:
        seen.append(json.loads(disk.after_power_loss(tmp_path)["accounts-a.json"])["accepted"])
        return whole_file(path)

    monkeypatch.setattr(row_files, "whole_file", rows)
    with kept(str(tmp_path), "a", counts):
        for _ in range(2):
            row_files._write([b"{}\n"], "x", path=str(tmp_path / "estimates-a"), form="jsonl", schema=None)
            counts["accepted"] += 5
    assert seen == [9, 14]
    accounts = read_accounts(str(tmp_path), "a")
    assert accounts is not None
    assert accounts == SUMS | UNREAD | {"accepted": 14, "time": accounts["time"]}
    remove_accounts(str(tmp_path), "a")
    assert read_accounts(str(tmp_path), "a") is None
    before_rows()  # of a run that keeps none
    assert not list(tmp_path.glob("accounts-*"))


def test_they_are_written_each_second_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again only if something was counted."""
    monkeypatch.setattr(run_accounts, "EVERY", 0.01)
    with kept(str(tmp_path), "a", COUNTED):
        end = time.monotonic() + 30
        while read_accounts(str(tmp_path), "a") is None:
            assert time.monotonic() < end
            time.sleep(0.01)
        stamp = (tmp_path / "accounts-a.json").stat().st_mtime_ns
        time.sleep(0.1)
        assert (tmp_path / "accounts-a.json").stat().st_mtime_ns == stamp


def test_in_a_store_only_rows_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_accounts, "EVERY", 0.01)
    with kept("gs://bucket/rows", "a", COUNTED):
        assert "accounts" not in [thread.name for thread in threading.enumerate()]


KILLED_BETWEEN = """
import os, signal, sys
from uldp_transforms.beam.runtime import metrics
from uldp_transforms.jobs.records import run_accounts
from uldp_transforms.jobs.sinks import row_files

run_accounts.EVERY = 600.0
row_files.whole_file = lambda path: os.kill(os.getpid(), signal.SIGKILL)
with run_accounts.kept(sys.argv[1], "a", metrics.SEEN):
    metrics.SEEN.update(received=10, accepted=7)
    row_files._write([b"{}"], "x", path=f"{sys.argv[1]}/estimates-a", form="jsonl", schema=None)
"""


def test_a_kill_between_the_accounts_and_the_rows_leaves_the_accounts(tmp_path: Path) -> None:
    done = forked.run(KILLED_BETWEEN, [str(tmp_path)], folder=tmp_path)
    assert done.returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == ["accounts-a.json"]
    accounts = read_accounts(str(tmp_path), "a")
    assert accounts is not None and (accounts["received"], accounts["accepted"]) == (10, 7)


@pytest.mark.parametrize(
    "change",
    [{"run": "b"}, {"time": "noon"}, {"accepted": -1}, {"accepted": "9"}, {"rejected": {"too_old": 1.5}}, None],
)
def test_other_content_is_refused(change: dict[str, Any] | None, tmp_path: Path) -> None:
    content = {"run": "a", "time": "2026-11-22T08:15:03.042Z"} | SUMS
    path = tmp_path / "accounts-a.json"
    path.write_text("[]" if change is None else json.dumps(content | change), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        read_accounts(str(tmp_path), "a")
    assert str(caught.value) == f"{path} must be the accounts of a run (the content is not shown)"
