"""The database of a following job, and its spool.

``python -m packages.follow.tests.support.kept_database FILE`` writes those of this tree.
"""

from __future__ import annotations

import base64
import json
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from packages.follow.tests.support.spools import Followed
from tests.support.messages_cases import KRR


class Stopped(Exception):
    """Ends a job at a point."""


def stop_at(name: str) -> Callable[[str], None]:
    """End a job when it reaches this point."""

    def reached(point: str) -> None:
        if point == name:
            raise Stopped

    return reached


def followed() -> dict[str, Any]:
    """A spool, and the database of a job over it that stopped when its first file was counted and not yet estimated."""
    with tempfile.TemporaryDirectory() as folder:
        job = Followed(Path(folder), of=(KRR,))
        job.add_file()
        try:
            job.steps(1, stop_at("before estimates are committed"))
        except Stopped:
            database = sqlite3.connect(job.output / "follow.sqlite")
            sql = list(database.iterdump())
            version = database.execute("PRAGMA user_version").fetchone()[0]
            database.close()
        files = {path.name: base64.b64encode(path.read_bytes()).decode("ascii") for path in job.spool.iterdir()}
    return {"version": version, "sql": sql, "spool": files}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(f"{json.dumps({'followed': followed()}, indent=1)}\n", encoding="utf-8")
