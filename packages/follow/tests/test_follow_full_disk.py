"""A job that follows a spool, and whose disk is full before its first row or between two: no report is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from packages.follow.tests.support.spools import Followed
from tests.support.full_disk import fill, small_disk
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms_follow import follow_job
from uldp_transforms_follow.follow_job import run_follow


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path) as place:
        yield place


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
