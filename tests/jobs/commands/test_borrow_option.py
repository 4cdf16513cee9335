"""``--borrow``: groups without numbers do not borrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.ldp.dimensions import GROUPED
from tests.support.spools import Spool


def rows_of(path: Path) -> dict[Any, dict[str, Any]]:
    """The last row of each window and group."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {(row["window_start"], row["group"]): row for row in sorted(rows, key=lambda row: row["pane_index"])}


def test_groups_without_numbers_do_not_borrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = Spool(tmp_path, "--by", "country,arm", "--borrow", of=(GROUPED,))
    spool.window[spool.window.index("--min_reports") + 1] = "45"
    spool.add_file(reports=400, minutes=1)
    spool.run_batch()
    rows = rows_of(spool.batch / "estimates.jsonl")
    assert {row["status"] for row in rows.values()} == {"ok", "suppressed"}
    for (_, group), row in rows.items():
        assert (row["borrowed"] is not None) == (bool(group) and row["status"] == "ok")
