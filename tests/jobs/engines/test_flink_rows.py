"""Rows of streams on Flink whose workers are killed, in files and in Kafka; ``make flink`` fetches it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.flink import cached, kafka_rows
from tests.rigs.flink.kafka_rows import Written, faults

needs_flink = pytest.mark.skipif(cached.missing() is not None, reason=str(cached.missing()))


@pytest.mark.slow
@needs_flink
def test_rows_are_there_once_when_workers_are_killed(tmp_path: Path) -> None:
    jobs, expected = kafka_rows.run(tmp_path, rate=100, seconds=40)
    assert faults(jobs, expected) == []
    assert len(expected) >= 2


# ---------------------------------------------------------------------- what the run would find


def row(num_reports: int, pane_index: int = 0, share: float = 0.5) -> dict[str, Any]:
    place = {"fingerprint": "f", "window_start": "2026-11-22T00:00:00Z", "window_end": "2026-11-22T00:00:20Z"}
    entries = [{"value": "flu", "raw_frequency": share}]
    return {**place, "run": "a", "status": "ok", "num_reports": num_reports, "pane_index": pane_index} | {
        "estimates": entries
    }


def written(*rows: dict[str, Any], records: list[dict[str, Any]] | None = None) -> Written:
    sent = list(rows) if records is None else records
    return Written(list(rows), list(rows), [(b"key", each) for each in sent], Counter())


GOOD = {"each bundle": written(row(3), row(5, 1)), "defaults": written(row(3), row(5, 1)), "final": written(row(5))}
FILES = "defaults: the rows that count must be the same in topic and files, got others"


@pytest.mark.parametrize(
    ("changed", "sentences"),
    [
        ({}, []),
        ({"final": written(row(5), records=[row(5), row(5)])}, []),
        ({"defaults": written(row(4, 7), row(5, 1))}, []),
        ({"each bundle": written(row(3))}, ["each bundle: estimates must be those of the local engine, got others"]),
        ({"defaults": written(row(5), records=[row(4)])}, [FILES]),
        (
            {"final": written(row(5), row(5))},
            [
                "final: rows must be one a window, got {'2026-11-22T00:00:00Z': 2}",
                "final: health must be one a window, got {'2026-11-22T00:00:00Z': 2}",
            ],
        ),
        (
            {"final": written(row(5), records=[row(5), row(5, share=0.4), row(5)])},
            ["final: b'key' must have one value in the topic, got 2"],
        ),
    ],
)
def test_faults(changed: dict[str, Written], sentences: list[str]) -> None:
    assert faults(GOOD | changed, [row(5)]) == sentences
