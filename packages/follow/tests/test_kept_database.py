"""The database of a job that an earlier program began is read by that of today."""

from __future__ import annotations

import base64
import json
import sqlite3
from pathlib import Path
from typing import Any

from packages.follow.tests.support.spools import Followed
from tests.support.messages_cases import KRR
from uldp_transforms_follow.state import NAME

KEPT = json.loads((Path(__file__).parents[3] / "tests" / "data" / "kept_state.json").read_text(encoding="utf-8"))


class Continued(Followed):
    """A spool of an earlier program, and the database of its job, which had counted the only file."""

    def __init__(self, folder: Path):
        super().__init__(folder, of=(KRR,))
        for name, text in KEPT["followed"]["spool"].items():
            (self.spool / name).write_bytes(base64.b64decode(text))

    def put_database(self) -> None:
        """Write the database as it was left."""
        self.output.mkdir()
        database = sqlite3.connect(self.output / NAME)
        database.executescript("\n".join(KEPT["followed"]["sql"]))
        database.execute(f"PRAGMA user_version = {KEPT['followed']['version']}")
        database.close()


def _numbers(job: Followed, kind: str) -> list[dict[str, Any]]:
    """The rows of a kind without what names their run."""
    rows = [{name: value for name, value in row.items() if name != "run"} for row in job.rows(kind)]
    return sorted(rows, key=lambda row: str(row["window_start"]))


def test_a_following_job_goes_on_with_the_database_of_an_earlier_program(tmp_path: Path) -> None:
    """It counts the file that is in the manifest no second time, and estimates the windows that were pending."""
    continued, anew = Continued(tmp_path / "continued"), Continued(tmp_path / "anew")
    continued.put_database()
    continued.steps(2)
    anew.steps(2)
    assert sum(row["num_reports"] for row in _numbers(continued, "estimates")) == 60
    for kind in ("estimates", "health"):
        assert _numbers(continued, kind) == _numbers(anew, kind) != []
    continued.add_file()
    continued.steps(2)
    assert sum(row["num_reports"] for row in _numbers(continued, "estimates") if row["pane_index"]) == 120
