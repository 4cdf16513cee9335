"""The public list of an open alphabet belongs to the estimates of a job that follows a spool."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages.follow.tests.support.spools import Followed
from tests.support.public_lists import CANDIDATES, COLLECTIONS, ROWS, check, messages
from tests.support.spool_writer import finished


def test_a_spool_that_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("candidates.txt").write_text("\n".join(CANDIDATES), encoding="utf-8")
    options = ["--candidates", "candidates.txt", "--window", "10m", "--by", "arm"]
    followed = Followed(tmp_path / "followed", *options, of=[*COLLECTIONS.values()])
    finished(followed.spool, messages())
    followed.steps(2)
    last = {}
    for row in sorted(followed.rows("estimates"), key=lambda row: int(row["pane_index"])):
        last[row["fingerprint"], row["group"], row["window_start"], row["pooled"]] = row
    check([*last.values()], ROWS)
