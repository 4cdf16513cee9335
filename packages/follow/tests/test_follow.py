"""``uldp estimate --follow``: each file counts once, whatever is killed when, and the rows are those of a batch."""

from __future__ import annotations

import dataclasses
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from packages.follow.tests.support.kill_points import POINTS, configured
from packages.follow.tests.support.spools import Followed, kill_at
from tests.support.ldp.dimensions import GROUPED
from tests.support.messages_cases import KRR
from uldp_transforms.jobs import check, cli, estimate, reestimate
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.jobs.records.run_records import STOPPED
from uldp_transforms.ldp import SpecError
from uldp_transforms.messages.files.spool_names import manifest_path
from uldp_transforms.windows import moment_of
from uldp_transforms_follow.follow_job import _record, follow_job, run_follow
from uldp_transforms_follow.follow_reading import MessageCounter, Reading
from uldp_transforms_follow.follower import Follower
from uldp_transforms_follow.spool_reading import SpoolSource
from uldp_transforms_follow.state import CountedFile


@pytest.mark.parametrize("options", [(), ("--slide", "30s", "--window", "90s")])
def test_a_kill_at_any_point_loses_and_doubles_nothing(tmp_path, options):
    followed = Followed(tmp_path, *options)
    for point in random.Random(26).sample(sorted(POINTS), len(POINTS)):
        for number in (1, 2):  # the second time after a whole step
            followed.add_file(reports=20)
            assert followed.killed(2, kill_at(point, number)) or number == 2, point
    followed.steps(2)
    followed.assert_exact()


def test_kills_at_random_moments_while_files_arrive(tmp_path):
    followed, draw, kills = Followed(tmp_path), random.Random(26), 0
    for _ in range(60):
        followed.add_file(reports=30)
        kills += followed.killed(3, lambda point: None, after=draw.uniform(0.001, 0.12))
    assert kills > 10
    followed.steps(2)
    followed.assert_exact()


def test_late_files_correct_windows_in_later_panes(tmp_path):
    followed = Followed(tmp_path, "--min_reports", "10")
    followed.add_file(minutes=1)
    followed.steps(1)
    followed.add_file(minutes=1)
    followed.steps(2)
    rows = [row for row in followed.rows("estimates") if row["collection_id"] == "krr"]
    assert [(row["pane_index"], row["pane_timing"], row["num_reports"]) for row in rows] == [
        (0, "ON_TIME", 60),
        (1, "LATE", 120),
    ]
    assert {row["interval"] for row in rows} == {"anytime"}
    assert len({row["run"] for row in rows}) == 1


@pytest.mark.parametrize("options", [(), ("--slide", "30s", "--window", "90s")])
def test_groups_are_those_of_a_job_over_files(options, tmp_path):
    """In rows, late rows and counts; and one directory keeps to its groups."""
    followed = Followed(tmp_path, "--by", "arm", *options, of=(GROUPED, KRR))
    for _ in range(2):
        followed.add_file(reports=600)
        followed.steps(1)
    followed.steps(1)
    followed.assert_exact()
    groups = Counter(key[2] for key in followed.counts(followed.output))
    assert groups.keys() == {None, "", "arm=control", "arm=new", "arm=other"}
    assert groups["arm=new"] == groups[""]
    assert len({(row["window_start"], row["pane_index"]) for row in followed.rows("health")}) * 2 == len(
        followed.rows("health")
    ), "of totals only"
    followed.window[-1 - len(options)] = "country"
    with pytest.raises(SpecError, match="--output must be a directory for the same windows"):
        followed.steps(1)


@pytest.mark.parametrize("ahead", [7_200_000, -7_200_000])
def test_corrections_do_not_wait_for_a_clock_that_was_set(ahead, tmp_path):
    followed, now = Followed(tmp_path, "--min_reports", "10"), time.time_ns() // 1_000_000
    for moment in (now, now + ahead, now, now + 60_000):
        followed.add_file(minutes=1)
        followed.steps(2, clock=lambda moment=moment: moment, late_every=60_000)
    followed.steps(1, clock=lambda: now + 120_000, late_every=60_000)
    followed.assert_exact()


def test_a_copy_under_another_name_does_not_count(tmp_path, capsys):
    followed = Followed(tmp_path)
    name = followed.add_file()
    followed.steps(1)
    before = followed.counts(followed.output)
    for path in (followed.spool / name, manifest_path(followed.spool / name)):
        copy = path.with_name(path.name.replace("reports-", "reports-copy-"))
        copy.write_bytes(path.read_bytes().replace(b'"reports-', b'"reports-copy-'))
    followed.steps(2)
    assert followed.counts(followed.output) == before
    assert "has the same content as" in capsys.readouterr().err


def test_a_damaged_file_is_counted_as_by_the_job_over_files(tmp_path):
    followed = Followed(tmp_path)
    path = followed.spool / followed.add_file()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content[:-7])
    followed.steps(1)
    followed.assert_exact(cli.UNREAD)
    assert sum(sum(row["unread_files"].values()) for row in followed.rows("ledger")) == 1


@pytest.mark.parametrize(("damaged", "code"), [(True, cli.UNREAD), (False, cli.DONE)])
def test_a_stop_after_a_file_that_could_not_be_read_has_its_own_code(damaged, code, tmp_path, capsys):
    followed = Followed(tmp_path, "--min_reports", "10")
    followed.add_file()
    path = followed.spool / followed.add_file()
    if damaged:
        path.write_bytes(path.read_bytes()[:-7])
    parser = command_line()
    signals, (args, rest) = Signals("estimate"), parser.parse_known_args(followed.argv())
    step = Follower.step

    def only_once(self):
        step(self)
        signals.stop.set()

    with mock.patch.object(Follower, "step", only_once):
        assert run_follow(follow_job(args, parser, rest), signals) == code
    said = capsys.readouterr().err
    assert (f"not read in full: {path.name} (corrupt_block)" in said) is damaged
    assert ("unread files: 1 (corrupt_block 1)" in said) is damaged
    assert check.main([str(followed.output)]) == int(damaged)
    assert (f"{path.name} (corrupt_block)" in capsys.readouterr().out) is damaged


def test_a_counted_file_may_be_deleted(tmp_path):
    followed = Followed(tmp_path)
    followed.add_file()
    followed.steps(1)
    before = followed.counts(followed.output)
    shutil.rmtree(followed.spool)
    followed.spool.mkdir()
    (followed.spool / "lock").touch()
    followed.steps(1)
    assert followed.counts(followed.output) == before


def test_check_is_content_after_a_stop_and_reestimate_reads_the_counts(tmp_path, capsys):
    followed = Followed(tmp_path, "--min_reports", "10")
    followed.add_file()
    _stopped(followed)
    assert check.main([str(followed.output)]) == 0, capsys.readouterr().out
    told = capsys.readouterr().out
    assert "300 received = 240 accepted + 60 rejected" in told and "balanced" in told
    counts = [str(followed.output), "--output", str(tmp_path / "again"), "--min_reports", "10"]
    assert reestimate.main([*followed.collections, *counts]) == 0
    again = {_key(row): row["num_reports"] for row in followed.rows("estimates", tmp_path / "again")}
    assert again == {_key(row): row["num_reports"] for row in followed.rows("estimates")}


def _key(row):
    return row["fingerprint"], row["window_start"]


def _stopped(followed: Followed) -> None:
    """One step and a stop, with the record of the run."""
    followed.steps(1)
    parser = command_line()
    args, rest = parser.parse_known_args(followed.argv())
    job = follow_job(args, parser, rest)
    dataclasses.replace(_record(job), end=STOPPED, ended="2026-01-01T00:00:00Z").write(str(followed.output))
    job.state.close()
    job.directory.close()


def test_a_refusal_is_one_line_and_leaves_nothing_behind(tmp_path, capsys):
    followed = Followed(tmp_path)
    assert estimate.main([*followed.argv(), "--report"]) == 2
    assert capsys.readouterr().err == "estimate: --follow cannot be combined with --report, got both\n"
    assert not followed.output.exists()


@pytest.mark.slow
def test_a_program_that_is_killed_again_and_again_counts_exactly(tmp_path):
    followed, draw = Followed(tmp_path), random.Random(7)
    command = [sys.executable, "-m", "uldp_transforms.jobs", "estimate", *followed.argv()]
    for _ in range(20):
        program = subprocess.Popen(command)
        end = time.monotonic() + draw.uniform(1, 8)
        while time.monotonic() < end:
            followed.add_file(reports=20)
            time.sleep(0.1)
        program.kill()
        program.wait()
    program = subprocess.Popen(command)
    time.sleep(20)
    assert check.main([str(followed.output)]) == 0
    program.terminate()
    assert program.wait(600) == 0
    assert check.main([str(followed.output)]) == 0
    followed.assert_exact()


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ((), []),
        ((9 << 20, 1), [2]),
        ((1 << 20,) * 9, [3, 4, 2]),
        ((1 << 20, 1 << 20, 1 << 20, (1 << 20) - 1, 1, 1), [4, 2]),
    ],
)
def test_messages_are_decoded_together_up_to_four_mebibytes(sizes: tuple[int, ...], groups: list[int]) -> None:
    """And the message that goes beyond a multiple of that begins the next group."""
    decoded: list[int] = []
    counter = MessageCounter(configured().spec)
    real = counter._decoder.decode
    with mock.patch.object(
        counter._decoder, "decode", lambda group, times: decoded.append(len(group)) or real(group, times)
    ):
        counter.count(Reading(), [bytes(size) for size in sizes], 0)
    assert decoded == groups


def test_a_transaction_has_at_most_64_files(tmp_path: Path) -> None:
    """In order, and without those that are counted; a file that has no manifest is not finished."""
    names = [f"reports-{number:03}.avro" for number in range(131)]
    for name in names:
        (tmp_path / name).touch()
        manifest_path(tmp_path / name).touch()
    (tmp_path / "reports-131.avro").touch()
    state: Any = SimpleNamespace(counted_of={names[0]}.intersection, forgotten_until=int)
    source = SpoolSource(str(tmp_path), configured().spec, state)
    with mock.patch.object(
        source, "_read", side_effect=lambda part: Reading(files=[CountedFile(name, "", False) for name in part])
    ):
        read = [[file.name for file in reading.files] for reading in source.news(5)]
        assert read == [names[1:65], names[65:129], names[129:]]
        assert list(source.news(5)) == []
    assert source.seen_until == 5


@pytest.mark.parametrize(("late", "seen"), [(-1, -1), (5, 0), (600_000, 0), (600_001, 1)])
def test_windows_wait_ten_minutes_for_a_file_that_is_not_finished(late: int, seen: int, tmp_path: Path) -> None:
    (tmp_path / "reports-20011027T220000-x.avro.part").touch()
    begun = moment_of("2001-10-27T22:00:00Z")
    state: Any = SimpleNamespace(counted_of=set, forgotten_until=int)
    source = SpoolSource(str(tmp_path), configured().spec, state)
    assert not list(source.news(begun + late))
    assert source.seen_until == begun + seen
