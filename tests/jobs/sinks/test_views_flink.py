"""The views of plain SQL in Flink's SQL, over the files of a job; ``python -m tests.rigs.flink_sql`` fetches it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rigs.flink_sql import __main__ as flink_sql
from tests.support.sinks.view_rows import COLUMNS, TABLES, chosen, rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(flink_sql.missing() is not None, reason=str(flink_sql.missing())),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for table in TABLES:
        (tmp_path / table).mkdir()
        for part in range(2):
            lines = "".join(json.dumps(row) + "\n" for row in rows(7)[part::2])
            (tmp_path / table / f"{table}-{part}.jsonl").write_text(lines, "utf-8")
    return tmp_path


@pytest.mark.parametrize("table", TABLES)
def test_the_views_have_the_rows_that_count(table: str, folder: Path) -> None:
    assert tuple(flink_sql.COLUMNS) == COLUMNS
    among = chosen(rows(7))
    expected = sorted(["" if value is None else str(value) for value in row.values()] for row in among)
    assert sorted(flink_sql.latest_rows(folder, table)) == expected
    assert len(expected) == 90


def test_what_flink_refuses_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "none.sql").write_text("CREATE VIEW latest_estimates AS SELECT nothing FROM estimates;\n", "utf-8")
    monkeypatch.setattr(flink_sql, "VIEWS", folder / "none.sql")
    with pytest.raises(RuntimeError, match=r"^Flink must take none\.sql, got (?s:.*)Column 'nothing' not found"):
        flink_sql.latest_rows(folder, "estimates")
