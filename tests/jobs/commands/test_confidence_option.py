"""``--confidence`` from the job to the page: all programs make the same intervals at a level, and texts name it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.jobs.reestimated import COLLECTIONS, FILES, again, estimated, rows_of
from tests.support.messages_cases import write_files
from uldp_transforms.jobs import uldp

KRR = COLLECTIONS[0]
JOB = "--collection krr.json --window 5m --min_reports 20"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, FILES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str) -> None:
    assert uldp.main(shlex.split(command)) == 0


def lines_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text("utf-8").splitlines()]


def test_a_level_goes_from_the_job_to_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    """The whole period, which the page adds up from stored counts, has the level of the run."""
    job = estimated(f"{JOB} --confidence 0.9", [KRR])
    rows = rows_of(job)
    assert {row["confidence"] for row in rows} == {0.9}
    assert rows_of(again("--collection krr.json job --min_reports 20 --confidence 0.9")) == rows
    capsys.readouterr()
    run("compare job --windows --min_reports 20 --confidence 0.9")
    told = capsys.readouterr().out
    assert "90 % interval" in told and "(q at most 0.1)" in told and "a p-value below .1 in" in told
    assert {row["confidence"] for row in lines_of("job/comparisons.jsonl")} == {0.9}
    run("report --input job --output page.html")
    page = Path("page.html").read_text("utf-8")
    assert set(re.findall(r"(\d+)(?: |&nbsp;)% (?:interval|confidence)", page)) == {"90"}
    assert (page.count("at most 10 % of the intervals") >= 2 and "q up to .1," in page) or "cannot be told" in page
    run("total job --confidence 0.99 --output total.jsonl")
    assert "99 % interval" in capsys.readouterr().out
    assert [row["confidence"] for row in lines_of("total.jsonl")] == [0.99]


def test_counts_have_no_level(capsys: pytest.CaptureFixture[str]) -> None:
    """Programs that read them have their own, whose default is not that of the job; a page names each."""
    estimated(f"{JOB} --confidence 0.9", [KRR])
    run("total job")
    assert "95 % interval" in capsys.readouterr().out
    run("report --input job --output page.html")
    page = Path("page.html").read_text("utf-8")
    assert set(re.findall(r"(\d+) % interval", page)) == {"90", "95"}
