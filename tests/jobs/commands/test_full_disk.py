"""A disk that is full before the first row: one sentence, an exit code, and a check that says so."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.follow.spools import Followed
from tests.support.messages_cases import KRR, container, single, write_files
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.jobs.follow import follow_job
from uldp_transforms.jobs.follow.follow_job import run_follow
from uldp_transforms.jobs.uldp import main

JOB = "estimate --collection krr.json --input good.avro --min_reports 1"


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of 4 MB."""
    write_files(tmp_path, {"krr.json": KRR, "good.avro": container([(3, single() * 3)])})
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> None:
    """Leave no room; the file with the name of the run has its own already."""
    with (disk / "fill").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while True:
            file.write(bytes(4096))


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


def test_a_follower_that_starts_on_a_full_disk_leaves_nothing(disk: Path, capfd: pytest.CaptureFixture[str]) -> None:
    followed = Followed(disk.parent / "followed")
    followed.output = disk / "out"
    followed.add_file()
    fill(disk)
    assert estimate.main(followed.argv()) == 6
    said = capfd.readouterr().err
    assert said.startswith("estimate: ") and "space" in said and said.count("\n") == 1
    (disk / "fill").unlink()
    followed.steps(2)
    followed.assert_exact()


def test_a_disk_that_fills_costs_a_follower_no_report(
    disk: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    followed = Followed(disk.parent / "followed")
    followed.output = disk / "out"
    monkeypatch.setattr(follow_job, "POLL", 0.0)
    followed.add_file(20, 1)
    followed.steps(2)
    parser = command_line()
    args, rest = parser.parse_known_args(followed.argv())
    job = follow_job.follow_job(args, parser, rest)
    fill(disk)
    followed.add_file(20, 1)
    assert run_follow(job, Signals("estimate")) == 6
    said = capfd.readouterr().err
    assert "estimate: the run failed: " in said
    assert "full" in said or "No space" in said
    assert said.endswith("; the next start continues where this one stopped\n")
    (disk / "fill").unlink()
    followed.steps(2)
    followed.assert_exact()
