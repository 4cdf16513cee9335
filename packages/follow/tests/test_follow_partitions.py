"""Brokers that cannot be reached for a while: ``--kafka_topic --follow`` waits for them and loses nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from packages.follow.tests.support.followed_topic import FollowedTopic
from packages.follow.tests.support.topic_ids import ids
from tests.support.kafka_cluster import Cluster
from tests.support.kafka_line import Line
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms.jobs.kafka import offsets, reader
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms_follow import follow_job, topic_reading
from uldp_transforms_follow.follower import Follower

QUICK = {"socket.timeout.ms": "1000", "reconnect.backoff.ms": "50", "reconnect.backoff.max.ms": "100"}
KINDS: dict[str, tuple[Callable[[Line], None], Callable[[Line], None]]] = {
    "refused": (Line.cut, Line.mend),
    "silent": (Line.hold, Line.let_go),
}


class Behind(FollowedTopic):
    """A topic of which the job has only a line that is cut and mended."""

    def __init__(self, folder: Path, cluster: Cluster, line: Line):
        super().__init__(folder, cluster)
        self._line = line

    def source(self) -> list[str]:
        servers = ["--bootstrap_servers", self._line.server, "--kafka_idle_lag", "10ms"]
        return ["--kafka_topic", self.topic, *servers, *(f"--kafka_property={n}={v}" for n, v in QUICK.items())]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_reading, "TURN_SECONDS", 0.1)
    monkeypatch.setattr(topic_reading, "PARTITIONS_SECONDS", 0.0)
    monkeypatch.setattr(reader, "ANSWER_SECONDS", 0.5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_that_is_away_costs_no_report(kind: str, tmp_path: Path) -> None:
    """Windows wait, the run goes on, and what was sent meanwhile is counted once."""
    cluster = Cluster()
    away, back = KINDS[kind]
    with Line(cluster.servers) as line, ids("A"):  # without ids it would look at the last records all the time
        followed = Behind(tmp_path, cluster, line)
        followed.send()
        job = followed.job()
        follower = Follower(
            job.source, str(followed.output), job.spec, job.state, late_every=0, forms=RowForms(counts=True)
        )
        try:
            _until(follower, job, followed.sent_by())
            away(line)
            followed.send()  # the sender has a line of its own
            seen = _until_still(follower, job)
            for _ in range(5):
                follower.step()
            assert job.source.seen_until == seen, "windows wait while brokers do not answer"
            back(line)
            _until(follower, job, time.time_ns() // 1_000_000)
        finally:
            for part in (job.source, job.state, job.directory):
                part.close()
        followed.assert_exact()


def _until(follower: Follower, job: Any, moment: int) -> None:
    """Run steps until everything before a moment was read."""
    end = time.monotonic() + 600
    while job.source.seen_until is None or job.source.seen_until < moment:
        assert time.monotonic() < end
        follower.step()


def _until_still(follower: Follower, job: Any) -> int:
    """Run steps until brokers have not answered for some of them."""
    seen = []
    while len(seen) < 4 or len(set(seen[-4:])) > 1:
        assert len(seen) < 100, "the time before which everything was read goes on although brokers are away"
        follower.step()
        seen.append(job.source.seen_until)
    return int(seen[-1])


def test_a_first_run_that_starts_while_brokers_are_away_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its --bootstrap_servers may be wrong."""
    cluster = Cluster()
    with Line(cluster.servers) as line:
        followed = Behind(tmp_path, cluster, line)
        line.cut()
        with mock.patch.object(offsets, "ANSWER_SECONDS", 0.5):
            assert estimate.main(followed.argv()) == 2
        assert "estimate: brokers of --bootstrap_servers must answer, got " in capsys.readouterr().err
        assert not followed.output.exists()


def test_a_run_that_goes_on_while_brokers_are_away_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says so once a minute, ends when it is told to, and continues when they answer."""
    cluster = Cluster()
    with Line(cluster.servers) as line:
        followed = Behind(tmp_path, cluster, line)
        followed.send()
        followed.until_counted()
        followed.send()
        line.cut()
        signals = Signals("estimate")
        with mock.patch.object(offsets, "ANSWER_SECONDS", 0.5):
            job = followed.job()
        with mock.patch.object(follow_job, "POLL", 0.0), mock.patch.object(job.source, "_find_start", _three(signals)):
            assert follow_job.run_follow(job, signals) == 0
        said = capsys.readouterr().err
        away = (
            f"estimate: waiting until topic {followed.topic!r} can be read: brokers of --bootstrap_servers must answer"
        )
        assert said.startswith(away)
        assert said.count("waiting until") == 1
        assert "estimate: stopped: " in said
        with mock.patch.object(offsets, "ANSWER_SECONDS", 0.5):
            job = followed.job()
            follower = Follower(
                job.source, str(followed.output), job.spec, job.state, late_every=0, forms=RowForms(counts=True)
            )
            follower.step()
        try:
            assert job.source.seen_until is None
            line.mend()
            _until(follower, job, followed.sent_by())
        finally:
            for part in (job.source, job.state, job.directory):
                part.close()
        followed.assert_exact()


def _three(signals: Signals) -> Callable[[], None]:
    """Brokers do not answer; the signal comes after three attempts."""
    attempts = []

    def find() -> None:
        attempts.append(0)
        if len(attempts) == 3:
            signals.stop.set()

    return find
