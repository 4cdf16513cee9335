"""Accepted reports of 1970: event times that are seconds, and those of clocks that are not set."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_cases import KRR, container, write_files
from tests.support.tolerance import generator
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.records.ledger_sums import sentence_of_times
from uldp_transforms.messages import wire

CURE = "as if their event times were seconds: clients must send milliseconds since 1970"
NOW = 1_782_000_000  # seconds, in June 2026


def row(start: str | None, end: str | None, accepted: int = 5) -> dict[str, Any]:
    return {"window_start": start, "window_end": end, "accepted": accepted}


def day(date: str, after: str) -> dict[str, Any]:
    return row(f"{date}T00:00:00Z", f"{after}T00:00:00Z")


@pytest.mark.parametrize(
    ("found", "is_told"),
    [
        (day("1970-01-08", "1970-01-09"), True),  # seconds of 1990
        (day("1970-01-01", "1970-01-08"), False),
        (day("1970-01-01", "1970-02-01"), True),
        (day("1970-02-01", "1970-03-01"), True),
        (day("1970-02-01", "1970-03-02"), False),
        (day("1969-12-31", "1970-01-31"), False),
        (day("2026-06-21", "2026-06-22"), False),
        (row(None, None), False),
        (day("1970-01-21", "1970-01-22") | {"accepted": 0}, False),
    ],
)
def test_windows_of_1970_that_hold_seconds_are_told(found: dict[str, Any], is_told: bool) -> None:
    expected = f"5 accepted reports are of January or February 1970, {CURE}" if is_told else None
    assert sentence_of_times([found]) == expected


UNSET = "5 accepted reports are of the first days of 1970, as if clocks of clients were not set"


@pytest.mark.parametrize(
    ("found", "is_told"),
    [
        (day("1970-01-01", "1970-01-02"), True),
        (day("1970-01-01", "1970-01-08"), True),
        (row("1969-12-31T23:00:00Z", "1970-01-01T23:00:00Z"), True),  # a day of Berlin
        (day("1969-12-31", "1970-01-01"), False),
        (day("1971-01-01", "1971-01-02"), False),
        (day("1970-01-01", "1970-01-02") | {"accepted": 0}, False),
    ],
)
def test_windows_of_clocks_that_are_not_set_are_told_beside_others(found: dict[str, Any], is_told: bool) -> None:
    """Not where all windows are of these days: somebody tries the program with small numbers as times."""
    assert sentence_of_times([found, day("2026-06-21", "2026-06-22")]) == (UNSET if is_told else None)
    assert sentence_of_times([found, found, day("1989-12-31", "1990-01-01")]) is None
    assert sentence_of_times([found, day("1990-01-01", "1990-01-02") | {"accepted": 0}]) is None


def test_both_kinds_of_times_are_told() -> None:
    rows = [day("1970-01-01", "1970-01-02"), day("1970-01-21", "1970-01-22"), day("1990-01-01", "1990-01-02")]
    assert sentence_of_times(rows) == f"5 accepted reports are of January or February 1970, {CURE}; {UNSET}"


@pytest.mark.parametrize(("unit", "said"), [(1, True), (1000, False)])
def test_a_job_over_messages_says_that_times_are_seconds(
    unit: int, said: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The schema of a message says the unit, so its reports are counted; the last lines of the job say what to do."""
    batch = KRR.perturb(["0"] * 200, generator("seconds"), [NOW * unit] * 200)
    write_files(tmp_path, {"krr.json": KRR, "in.avro": container([(1, wire.encode_batch(batch))], wire.BATCH_SCHEMA)})
    job = f"estimate --collection {tmp_path}/krr.json --input {tmp_path}/in.avro --output {tmp_path}/job --window 1d"
    assert uldp.main(shlex.split(job)) == 0
    printed = capsys.readouterr().err
    assert (f"estimate: 200 accepted reports are of January or February 1970, {CURE}\n" in printed) is said


def test_a_job_and_its_check_say_that_clocks_are_not_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    batch = KRR.perturb(["0"] * 8, generator("unset"), [0] * 5 + [NOW * 1000] * 3)
    write_files(tmp_path, {"krr.json": KRR, "in.avro": container([(1, wire.encode_batch(batch))], wire.BATCH_SCHEMA)})
    job = f"estimate --collection {tmp_path}/krr.json --input {tmp_path}/in.avro --output {tmp_path}/job --window 1h"
    assert uldp.main(shlex.split(job)) == 0
    assert f"estimate: {UNSET}\n" in capsys.readouterr().err
    uldp.main(["check", f"{tmp_path}/job"])
    assert f"times    {UNSET}\n" in capsys.readouterr().out
