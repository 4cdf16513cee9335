"""``uldp estimate --follow`` rejects reports by the time at which they arrived, as a stream does."""

from __future__ import annotations

import os
import time
from collections.abc import Set
from pathlib import Path
from unittest import mock

import pytest

from packages.follow.tests.support.followed_hours import HOUR, MINUTE, SECOND, Hours, now
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.messages.files.spool_names import manifest_path
from uldp_transforms_follow import spool_reading
from uldp_transforms_follow.follow_job import follow_job
from uldp_transforms_follow.follower import Follower


def test_one_request_with_6_000_hours_makes_no_windows_of_them(tmp_path: Path) -> None:
    followed, arrival = Hours(tmp_path), now()
    followed.add_reports([arrival - i * HOUR for i in range(-3_000, 3_000)])
    followed.steps(2)
    found = followed.verdicts()
    assert found["received"] == 6_000 == found["accepted"] + found["too_old"] + found["too_early"]
    assert found["accepted"] <= 3 and found["too_early"] >= 2_999
    assert len(followed.rows("estimates")) <= 3


@pytest.mark.parametrize("minutes", [0, 59, 600])
def test_limits_are_those_of_the_file_that_holds_the_reports(minutes: int, tmp_path: Path) -> None:
    """A report may have arrived at any time at which the file was written to, and gets the benefit of it: an hour of
    lateness from when the file was begun, five minutes of a clock that is ahead from when it was written to last."""
    begun = now() // HOUR * HOUR + 7 * MINUTE - 48 * HOUR  # the job was not running for two days
    written = begun + minutes * MINUTE
    followed = Hours(tmp_path)
    accepted = [begun - 67 * MINUTE, begun, written + 5 * MINUTE]
    followed.add_reports([*accepted, begun - 127 * MINUTE - 1], begun, minutes * MINUTE)
    followed.add_reports([written + 5 * MINUTE + 1], begun + SECOND, minutes * MINUTE - SECOND if minutes else 0)
    followed.steps(1)
    expected = {"received": 5, "accepted": 3, "too_old": 1}
    if minutes:
        assert followed.verdicts() == expected | {"too_early": 1}
    else:  # the second file was begun a second later
        assert followed.verdicts() == expected | {"accepted": 4}


def test_a_longer_lateness_may_be_given(tmp_path: Path) -> None:
    """Also for reports that waited in a file that was copied, whose name says when it was begun."""
    begun = now() - 48 * HOUR
    for days, accepted in ((1, 0), (3, 2)):
        followed = Hours(tmp_path / str(days), "--allowed_lateness", f"{days}d")
        whole = followed.add_reports([begun - 60 * HOUR] * 2, begun)
        os.utime(whole)
        followed.steps(1)
        assert followed.verdicts()["accepted"] == accepted


@pytest.mark.parametrize("name", ["restored.avro", "reports-20269999T999999-0.avro"])
def test_a_file_of_another_name_arrived_when_it_was_written(name: str, tmp_path: Path) -> None:
    followed, arrival = Hours(tmp_path), now()
    whole = followed.add_reports([arrival - MINUTE, arrival - 5 * HOUR])
    named = whole.with_name(name)
    manifest = manifest_path(whole)
    manifest_path(named).write_text(manifest.read_text("utf-8").replace(whole.name, named.name), encoding="utf-8")
    manifest.unlink()
    whole.rename(named)
    followed.steps(1)
    assert followed.verdicts() == {"received": 2, "accepted": 1, "too_old": 1}


# ---------------------------------------------------------------------- looks


def test_a_look_at_a_spool_that_did_not_change_lists_nothing(tmp_path: Path) -> None:
    followed, looks = Hours(tmp_path), list[str]()
    followed.add_reports([now()])
    os.utime(followed.spool, ns=(time.time_ns() - 10**10,) * 2)
    listing = spool_reading.list_spool

    def counted(spool: str, known: Set[str]) -> spool_reading.Listing:
        looks.append(spool)
        return listing(spool, known)

    with mock.patch.object(spool_reading, "list_spool", counted):
        followed.steps(5)
    assert len(looks) == 1
    assert followed.verdicts() == {"received": 1, "accepted": 1}


def test_a_change_within_the_tick_of_a_clock_is_seen(tmp_path: Path) -> None:
    """A directory that was changed just before it was listed may change again at the same time."""
    followed = Hours(tmp_path)
    followed.add_reports([now()])
    changed = os.stat(followed.spool).st_mtime_ns

    def add_another(point: str) -> None:
        if point == "after counts are committed" and followed.verdicts()["received"] == 0:
            followed.add_reports([now()])
            os.utime(followed.spool, ns=(changed, changed))

    followed.steps(2, add_another)
    assert followed.verdicts() == {"received": 2, "accepted": 2}


def test_a_file_that_is_moved_away_and_back_counts_once(tmp_path: Path) -> None:
    followed, away = Hours(tmp_path), tmp_path / "away"
    away.mkdir()
    followed.add_reports([now()])
    names = sorted(path.name for path in followed.spool.glob("reports-*"))

    parser = command_line()
    args, rest = parser.parse_known_args(followed.argv())
    job = follow_job(args, parser, rest)
    follower = Follower(job.source, str(followed.output), job.spec, job.state, late_every=0, forms=RowForms())
    follower.step()
    for here, there in ((followed.spool, away), (away, followed.spool)):
        for name in names:
            (here / name).rename(there / name)
        follower.step()
    job.state.close()
    job.directory.close()
    assert followed.verdicts() == {"received": 1, "accepted": 1}
