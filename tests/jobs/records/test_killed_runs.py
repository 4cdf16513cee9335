"""Killed runs, and windows that they cut: rows by hand, and each sentence."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from uldp_transforms.jobs.records.killed_runs import (
    KilledRun,
    acknowledge,
    acknowledged,
    cut_before,
    killed_runs,
    without_end,
)
from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.figures.window_names import clock
from uldp_transforms.windows import moment_of, now, rfc3339

HOUR, SKEW, CLOCKS = 3_600_000, 300_000, 60_000
COUNTED = {
    "time": "2026-11-22T08:15:03.042Z",
    "received": 40,
    "accepted": 30,
    "duplicates": 0,
    "rejected": {"too_old": 10},
}


def record(run: str, ended: int | None = None, *, resumes: bool = True, **more: Any) -> RunRecord:
    source = {"option": "--x", "name": "x", "bounded": False, "resumes": resumes}
    at = None if ended is None else rfc3339(ended)
    return RunRecord(run=run, started=rfc3339(0), ended=at, source=source, specification={}, **more)


def row(start: int | None, end: int | None, number: int | None, **more: Any) -> dict[str, Any]:
    times = [None if time is None else rfc3339(time * HOUR) for time in (start, end)]
    found = {"run": "r", "fingerprint": "f", "window_start": times[0], "window_end": times[1], "num_reports": number}
    return found | more


def held(*rows: dict[str, Any]) -> int:
    [found] = killed_runs([record("r")], rows, [], "/none")
    return found.held


def test_reports_of_windows_that_do_not_overlap_are_added() -> None:
    """Windows that touch are two; of overlapping ones the earliest counts, of one window the largest row."""
    assert held() == 0
    assert held(row(0, 1, 5), row(1, 2, 7)) == 12
    assert held(row(1, 3, 7), row(0, 2, 5), row(2, 4, 9), row(4, 5, 1)) == 15
    assert held(row(0, 1, 5), row(0, 1, 4)) == held(row(0, 1, 4), row(0, 1, 5)) == 5
    assert held(row(None, None, 6)) == 6
    assert held(row(-9, -8, 2), row(-8, -7, 3)) == 5  # before 1970
    assert held(row(0, 1, 5), row(0, 1, 7, fingerprint="g")) == 12
    assert held(row(0, 1, None), row(1, 2, 3, pooled=True), row(2, 3, 0)) == 0
    assert held(row(0, 1, 5, run="other"), row(1, 2, 2)) == 2


def test_what_is_known_of_each_killed_run(tmp_path: Path) -> None:
    (tmp_path / "accounts-a.json").write_text(
        json.dumps(COUNTED | {"run": "a", "time": "2026-11-22T08:15:03.042Z"}), encoding="utf-8"
    )
    rows = [row(0, 1, 25, run="a"), row(0, 1, 8, run="b")]
    ledger = [{"run": "a", "accepted": 3}, {"run": "b", "accepted": 4}, {"run": "a", "accepted": 9}]
    first, second, third = killed_runs([record("a"), record("b"), record("c")], rows, ledger, str(tmp_path))
    assert (first.run, first.held, first.accounted, first.counted, first.lost) == ("a", 25, 12, 30, 5)
    assert second == KilledRun("b", 8, 4, None) and (second.counted, second.lost) == (8, None)
    assert third == KilledRun("c", 0, 0)


def test_what_was_counted_and_lost_is_never_less_than_what_is_held() -> None:
    """Accounts may be older than the rows."""
    found = KilledRun("r", 31, 0, COUNTED)
    assert (found.counted, found.lost) == (31, 0)
    assert (KilledRun("r", 29, 0, COUNTED).counted, KilledRun("r", 29, 0, COUNTED).lost) == (30, 1)
    assert KilledRun("r", 0, 0, COUNTED | {"accepted": 0}).counted == KilledRun("r", 0, 0).counted == 0


ACCEPT = "To accept this, run uldp check D --acknowledge r"


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (
            KilledRun("r", 5000, 4000),
            "run r was killed: its estimates contain 5,000 reports, of which 1,000 are in no ledger row; reports that "
            f"it had acknowledged but not written are lost, in a number that is unknown. {ACCEPT}",
        ),
        (
            KilledRun("r", 5, 5),
            "run r was killed: its estimates contain 5 reports; reports that it had acknowledged but not written are "
            f"lost, in a number that is unknown. {ACCEPT}",
        ),
        (
            KilledRun("r", 5, 4),
            "run r was killed: its estimates contain 5 reports, of which 1 are in no ledger row; reports that it had "
            f"acknowledged but not written are lost, in a number that is unknown. {ACCEPT}",
        ),
        (
            KilledRun("r", 20, 30, COUNTED),
            "run r was killed: its estimates contain 20 reports; until 22 Nov 2026, 09:15:03 (Europe/Berlin) it had "
            "counted 40 received = 30 accepted + 10 rejected (too_old 10), of which at most 10 accepted reports are in "
            f"no estimate and are lost, as is what it acknowledged after that. {ACCEPT}",
        ),
    ],
)
def test_a_killed_run_is_described(found: KilledRun, sentence: str) -> None:
    assert found.sentence("D", clock("Europe/Berlin")) == sentence


def test_a_kill_is_acknowledged_once_and_for_all(tmp_path: Path) -> None:
    assert acknowledged(str(tmp_path)) == set()
    before = now()
    acknowledge(str(tmp_path), "a")
    acknowledge(str(tmp_path), "b")
    assert acknowledged(str(tmp_path)) == {"a", "b"}
    content = json.loads((tmp_path / "acknowledged-a.json").read_text("utf-8"))
    assert content["run"] == "a" and before <= moment_of(content["acknowledged"]) <= now()


def test_the_latest_run_may_be_alive() -> None:
    """Runs that ended, that are read again, and that were only launched from here were not killed."""
    gone = [
        record("a"),
        record("aa"),
        record("b", resumes=False),
        record("c", end="stopped"),
        record("d", launched=True),
    ]
    latest = record("e")
    assert [one.run for one in without_end([*gone, latest], latest_is_killed=True)] == ["a", "aa", "e"]
    assert [one.run for one in without_end([*gone, latest], latest_is_killed=False)] == ["a", "aa"]
    assert without_end([], latest_is_killed=False) == []


# ---------------------------------------------------------------------------------------------- windows that are cut


def rows_of(folder: Path, run: str, *starts: int | None, at: int = 100 * HOUR) -> None:
    lines = [json.dumps({"window_start": None if start is None else rfc3339(start)}) for start in starts]
    path = folder / f"estimates-{run}-1.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    os.utime(path, ns=(at * 10**6, at * 10**6))


def test_a_run_that_ended_long_before_is_not_read(tmp_path: Path) -> None:
    """Whatever is in its files: the latest runs decide, in whichever order they are given."""
    rows_of(tmp_path, "old", at=100 * HOUR)
    (tmp_path / "estimates-old-1.jsonl").write_text("spoiled", encoding="utf-8")
    old, late = record("old", 50 * HOUR, end="stopped"), record("late", 99 * HOUR, end="failed")
    for records in ([old, late], [late, old]):
        assert cut_before(records, 101 * HOUR, SKEW, str(tmp_path)) == 99 * HOUR + SKEW
    with pytest.raises(SpecError, match=r"estimates-old-1.jsonl must contain rows of uldp estimate"):
        cut_before([old], 101 * HOUR, SKEW, str(tmp_path))


def test_a_run_that_could_not_cut_more_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "estimates-same-1.jsonl").write_text("spoiled", encoding="utf-8")
    first, same = record("a", 99 * HOUR, end="failed"), record("same", 99 * HOUR, end="stopped")
    assert cut_before([first, same], 101 * HOUR, SKEW, str(tmp_path)) == 99 * HOUR + SKEW
    with pytest.raises(SpecError):
        cut_before([same, first], 101 * HOUR, SKEW, str(tmp_path))


def test_of_a_stopped_run_the_windows_with_rows_are_cut(tmp_path: Path) -> None:
    stopped = record("a", 100 * HOUR, end="stopped")

    def cut(*starts: int | None, at: int = 100 * HOUR) -> int | None:
        rows_of(tmp_path, "a", *starts, at=at)
        return cut_before([stopped], 101 * HOUR, SKEW, str(tmp_path))

    assert cut() == cut(None) == cut(99 * HOUR) == 100 * HOUR
    assert cut(100 * HOUR) == 100 * HOUR + 1
    assert cut(100 * HOUR + 5, 100 * HOUR + 7, None, 99 * HOUR) == 100 * HOUR + 8
    assert cut(200 * HOUR) == 100 * HOUR + SKEW
    rows_of(tmp_path, "a", 100 * HOUR)
    earlier = record("b", 100 * HOUR - 60_000, end="failed")
    assert cut_before([stopped, earlier], 101 * HOUR, SKEW, str(tmp_path)) == 100 * HOUR - 60_000 + SKEW
    assert cut(100 * HOUR + 5, at=100 * HOUR - SKEW - CLOCKS) == 100 * HOUR + 6
    assert cut(100 * HOUR + 5, at=100 * HOUR - SKEW - CLOCKS - 1) == 100 * HOUR


def test_in_a_store_rows_are_not_read(tmp_path: Path) -> None:
    """They may be many, and far away."""
    stopped = record("a", 100 * HOUR, end="stopped")
    assert cut_before([stopped], 101 * HOUR, SKEW, "none://bucket/rows") == 100 * HOUR + SKEW
