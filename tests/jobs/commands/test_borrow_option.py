"""``--borrow``: compare does not borrow, and groups without numbers do not either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.follow.spools import Followed
from tests.support.ldp.dimensions import GROUPED
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.compare.compare_command import BORROWED


def rows_of(path: Path) -> dict[Any, dict[str, Any]]:
    """The last row of each window and group."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {(row["window_start"], row["group"]): row for row in sorted(rows, key=lambda row: row["pane_index"])}


def test_own_shares_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Differences of borrowed shares would be drawn towards 0; the program says which ones it compares."""
    monkeypatch.chdir(tmp_path)
    followed = Followed(tmp_path, "--by", "country", of=(GROUPED,))
    followed.add_file(reports=800, minutes=2)
    rows, said = [], []
    for name in ("own", "borrowed"):
        followed.run_batch()
        Path("batch").rename(name)
        followed.window.append("--borrow")
        assert uldp.main(["compare", name, "--by", "country", "--min_reports", "1"]) == 0
        rows.append(Path(name, "comparisons.jsonl").read_text("utf-8"))
        said.append(capsys.readouterr().err)
    assert rows[0] == rows[1] and rows[0]
    assert [f"compare: {BORROWED}" in err for err in said] == [False, True]
    assert uldp.main(["compare", "borrowed", "--with", "own", "--min_reports", "1"]) == 0
    assert BORROWED not in capsys.readouterr().err


def test_groups_without_numbers_do_not_borrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    followed = Followed(tmp_path, "--by", "country,arm", "--borrow", of=(GROUPED,))
    followed.window[followed.window.index("--min_reports") + 1] = "45"
    followed.add_file(reports=400, minutes=1)
    followed.run_batch()
    rows = rows_of(followed.batch / "estimates.jsonl")
    assert {row["status"] for row in rows.values()} == {"ok", "suppressed"}
    for (_, group), row in rows.items():
        assert (row["borrowed"] is not None) == (bool(group) and row["status"] == "ok")
