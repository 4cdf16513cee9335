"""Rows from which the views of SQL choose, and what they must choose."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import pytest

SQL = Path(__file__).parents[3] / "schemas" / "sql"
COLUMNS = ("fingerprint", "window_start", "window_end", "pane_index", "num_reports", "status", "run", "group")
QUOTED = [f'"{name}"' for name in COLUMNS]
"""With quotes, for GROUP is a word of SQL."""
TABLES = {"estimates": "windowed_estimate.avsc", "health": "health.avsc"}
Row = dict[str, Any]
needs_duckdb = pytest.mark.skipif(
    importlib.util.find_spec("duckdb") is None, reason="duckdb is not installed (pip install duckdb)"
)


def rows(seed: int) -> list[Row]:
    """Panes of some runs in random order, some rows twice; num_reports never decreases from pane to pane.

    In some windows a worker was killed: what it had written is there, and what it wrote again, in fewer panes.
    """
    rng = random.Random(seed)
    runs = [f"2026112{day}T081503.042Z-4f2a9c" for day in range(3)]
    found = []
    for number in range(90):
        window = number % 30
        start, end = f"2026-11-01T00:{window:02}:00Z", f"2026-11-01T00:{window + 1:02}:00Z"
        for run in rng.sample(runs, rng.randint(0, 3)) or [None]:
            reports, cut = rng.randint(0, 150), rng.random() < 0.3
            for panes in [rng.randint(1, 12), 2][: rng.randint(1, 2)]:
                for pane in range(panes):
                    status = "partial" if cut else "suppressed" if reports < 100 else "ok"
                    known = reports if status == "ok" else None
                    group = "arm=new" if number >= 60 else (None, "")[pane % 2]
                    cells = (f"{min(number // 30, 1):064}", start, end, pane, known, status, run, group)
                    found.append(dict(zip(COLUMNS, cells)))
                    reports += rng.choice([0, rng.randint(1, 40)])
    found += rng.sample(found, 20)
    rng.shuffle(found)
    return found


def chosen(among: list[Row]) -> list[Row]:
    """By the rule, in Python."""
    latest: dict[Any, Row] = {}
    for row in among:
        window = (row["fingerprint"], row["window_start"], row["window_end"], row["group"] or "")
        if place(row) >= place(latest.get(window, row)):
            latest[window] = row
    return sorted(latest.values(), key=lambda row: tuple(map(str, row.values())))


def place(row: Row) -> tuple[bool, str, int, int]:
    reports = -1 if row["num_reports"] is None else row["num_reports"]
    return row["status"] != "partial", row["run"] or "", reports, row["pane_index"]
