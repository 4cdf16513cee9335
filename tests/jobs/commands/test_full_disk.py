"""A disk that is full before the first row: one sentence, an exit code, and a check that says so."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.full_disk import fill, small_disk
from tests.support.messages_cases import KRR, container, single, write_files
from uldp_transforms.jobs.uldp import main

JOB = "estimate --collection krr.json --input good.avro --min_reports 1"


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    write_files(tmp_path, {"krr.json": KRR, "good.avro": container([(3, single() * 3)])})
    monkeypatch.chdir(tmp_path)
    with small_disk(tmp_path) as place:
        yield place


def test_a_full_disk_is_said_and_the_next_check_says_it_again(disk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(f"{JOB} --output disk/out")) == 0
    before = (disk / "out/estimates.jsonl").read_bytes()
    assert main(["check", "disk/out"]) == 0
    capfd.readouterr()
    fill(disk)
    assert main(shlex.split(f"{JOB} --output disk/out")) == 6
    said = capfd.readouterr().err
    assert said == (
        "estimate: the run failed before its first row, without a record: [Errno 28] No space left on device\n"
    )
    assert main(["check", "disk/out"]) == 1
    assert "began and could not write its record: is the disk full?" in capfd.readouterr().out
    assert (disk / "out/estimates.jsonl").read_bytes() == before, "the rows of the run before stay"
    (disk / "fill").unlink()
    assert main(shlex.split(f"{JOB} --output disk/out")) == 0
    assert main(["check", "disk/out"]) == 0
