"""``uldp estimate --kafka_topic --follow``: each record counts once, whatever is killed when; on a mock cluster."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from packages.follow.tests.support.followed_topic import FollowedTopic
from packages.follow.tests.support.kill_points import POINTS
from tests.support.kafka_cluster import Cluster
from tests.support.ldp.dimensions import ARM, COUNTRY, GROUPED, SPEC
from tests.support.messages_cases import KRR
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms.jobs.kafka.offsets import Part
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.ldp import Collection
from uldp_transforms_follow import topic_reading
from uldp_transforms_follow.follow_job import BROKEN, run_follow
from uldp_transforms_follow.follower import Follower


class Killed(Exception):
    """The process ends here."""


@pytest.fixture(scope="module")
def kafka() -> Cluster:
    return Cluster()


@pytest.fixture(autouse=True)
def _short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_reading, "TURN_SECONDS", 0.1)


def test_a_kill_at_any_point_loses_and_doubles_nothing(tmp_path: Path, kafka: Cluster) -> None:
    followed = FollowedTopic(tmp_path, kafka)
    kills = 0
    for point in random.Random(26).sample(sorted(POINTS), len(POINTS)):
        followed.send()

        def reached(name: str, wanted: str = point) -> None:
            if name == wanted:
                raise Killed

        try:
            followed.until_counted(reached)
        except Killed:
            kills += 1
    assert kills == len(POINTS)
    followed.until_counted()
    followed.assert_exact()


IN_HEADERS = Collection.from_json(SPEC | {"dimensions": [COUNTRY | {"set_by": "attribute"}, ARM]})


def test_groups_sliding_windows_and_liars_are_those_of_a_job_that_ends(tmp_path: Path, kafka: Cluster) -> None:
    """Also rows of late reports: each round adds to the same windows."""
    options = ("--by", "country,arm", "--slide", "30s", "--window", "90s", "--liars", "0.01")
    followed = FollowedTopic(tmp_path, kafka, *options, of=(GROUPED, KRR))
    for _ in range(2):
        followed.send(reports=400)
        followed.until_counted()
    followed.assert_exact()
    assert len({key[2] for key in followed.counts(followed.output)}) == 11
    rows = followed.rows("estimates")
    assert {row["liars"] for row in rows} == {0.01}
    assert max(row["pane_index"] for row in rows) > 0


def test_a_header_of_a_record_sets_a_dimension(tmp_path: Path, kafka: Cluster) -> None:
    """And no sender can: reports that state the country themselves are in the ledger."""
    options = ("--by", "country,arm", "--dimension", "country=attribute:cc")
    followed = FollowedTopic(tmp_path, kafka, *options, of=(IN_HEADERS, KRR))
    for followed.headers in ([("cc", b"DE")], [("x", b"DE")], [("cc", b"PL")], [("cc", b"FR"), ("cc", b"DE")]):
        followed.send(reports=200)
    followed.headers, honest = [("cc", b"FR")], followed.messages
    with mock.patch.object(followed, "messages", lambda reports: list(map(_as_from_germany, honest(reports)))):
        followed.send(reports=70)
    followed.until_counted()
    followed.assert_exact()
    sums = followed.sums(followed.output)
    assert sum(number for key, number in sums.items() if key[2] == "cohort_range") == 70
    counted: Counter[str | None] = Counter()
    for (_, _, group), (number, _) in followed.counts(followed.output).items():
        counted[group and group.partition(",")[0]] += sum(number)
    assert counted == {None: 870, "": 800, "country=DE": 200, "country=other": 600}


def _as_from_germany(message: bytes) -> bytes:
    """A pack whose reports state the first country instead of other."""
    if message[1:9] != IN_HEADERS.fingerprint[:8]:
        return message
    start, size = 11, 2 * 70
    cohorts = np.frombuffer(message[start : start + size], dtype="<u2") - 2 * 3
    return message[:start] + cohorts.astype("<u2").tobytes() + message[start + size :]


def test_windows_wait_for_every_partition(tmp_path: Path, kafka: Cluster) -> None:
    followed = FollowedTopic(tmp_path, kafka)
    followed.send()
    job = followed.job()
    follower = Follower(job.source, str(followed.output), job.spec, job.state, late_every=0, forms=RowForms())
    with mock.patch("uldp_transforms.jobs.kafka.reader.Reader.watermark", return_value=None):
        for _ in range(30):
            follower.step()
    assert followed.rows("ledger") and not followed.rows("estimates")
    for part in (job.source, job.state, job.directory):
        part.close()
    followed.until_counted()
    assert followed.rows("estimates")


def test_new_partitions_are_read_from_their_beginning(tmp_path: Path, kafka: Cluster) -> None:
    followed = FollowedTopic(tmp_path, kafka)
    followed.send()
    real = topic_reading.parts_of
    with mock.patch.object(topic_reading, "parts_of", lambda *args, **options: real(*args, **options)[:1]):
        followed.until_counted()
    assert followed.sums(followed.output)["", None, "received"] == 0
    followed.send()  # to the second partition, which the job sees only when it looks again
    job = followed.job()
    with mock.patch.object(topic_reading, "PARTITIONS_SECONDS", 0.0):
        follower = Follower(
            job.source, str(followed.output), job.spec, job.state, late_every=0, forms=RowForms(counts=True)
        )
        job.source._start = topic_reading.Start({0: job.state.offsets()[0]}, {})
        while 1 not in job.state.offsets():
            follower.step()
    for part in (job.source, job.state, job.directory):
        part.close()
    followed.until_counted()
    followed.assert_exact()


def test_records_that_brokers_deleted_are_in_the_ledger(tmp_path: Path, kafka: Cluster, capsys: Any) -> None:
    followed = FollowedTopic(tmp_path, kafka)
    followed.send()
    followed.until_counted()
    followed.send()
    followed.send()
    counted = followed.job()
    offsets = counted.state.offsets()
    for part in (counted.state, counted.directory):
        part.close()

    def shorter(*args: Any, **options: Any) -> list[Part]:
        """As if the next three records of partition 0 had been deleted."""
        found = real(*args, **options)
        return [part._replace(start=offsets[0] + 3) if part.partition == 0 else part for part in found]

    real = topic_reading.parts_of
    with mock.patch.object(topic_reading, "parts_of", shorter):
        followed.until_counted()
    assert (
        f"not counted: brokers deleted 3 records of {followed.topic}/0 before they were read\n"
        in capsys.readouterr().err
    )
    unread = sum(row["unread_messages"].get("not_as_listed", 0) for row in followed.rows("ledger"))
    received = sum(row["received"] for row in followed.rows("ledger"))
    assert unread == 3
    followed.run_batch()
    sent = sum(row["received"] for row in followed.rows("ledger", followed.batch))
    assert received == sent - 3 * 20, "the packs of 20 reports whose content nobody has read are no reports"


def test_a_topic_that_cannot_be_read_ends_the_run_with_a_sentence(tmp_path: Path, kafka: Cluster, capsys: Any) -> None:
    followed = FollowedTopic(tmp_path, kafka)
    followed.send()
    job = followed.job("--kafka_timestamps", "LogAppendTime")
    assert run_follow(job, Signals("estimate")) == BROKEN
    said = capsys.readouterr().err
    assert f"estimate: following --kafka_topic {followed.topic}; each window" in said
    assert f"\nestimate: the run failed: topic {followed.topic!r} must have times of kind LogAppendTime, got" in said
    assert said.endswith("the next start continues where this one stopped\n")
    followed.until_counted()
    followed.assert_exact()


def test_a_program_that_is_killed_counts_each_record_once(tmp_path: Path, kafka: Cluster, capsys: Any) -> None:
    followed, draw = FollowedTopic(tmp_path, kafka), random.Random(26)
    command = [sys.executable, "-m", "uldp_transforms.jobs", "estimate", *followed.argv()]
    followed.send()
    for _ in range(2):
        program = subprocess.Popen(command)
        end = time.monotonic() + 600
        before = len(list(followed.output.glob("ledger*")))
        while len(list(followed.output.glob("ledger*"))) == before:  # it counts now
            assert time.monotonic() < end
            followed.send()
            time.sleep(draw.uniform(0.05, 0.2))
        os.kill(program.pid, signal.SIGKILL)
        program.wait()
    followed.until_counted()
    followed.assert_exact()
