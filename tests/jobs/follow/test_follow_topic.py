"""``uldp estimate --kafka_topic --follow``: each record counts once, whatever is killed when; on a mock cluster."""

from __future__ import annotations

import functools
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tests.jobs.follow.spools import COLLECTIONS, Followed
from tests.jobs.follow.test_follow import POINTS
from tests.ldp.alphabets.test_dimensions import ARM, COUNTRY, GROUPED, SPEC
from tests.support.kafka_cluster import Cluster
from tests.support.messages_cases import KRR
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.jobs.follow import topic_reading
from uldp_transforms.jobs.follow.follow_job import BROKEN, follow_job, run_follow
from uldp_transforms.jobs.follow.follower import Follower
from uldp_transforms.jobs.follow.topic_reading import start_of
from uldp_transforms.jobs.kafka.offsets import Part
from uldp_transforms.ldp import Collection, SpecError

NOW = time.time_ns() // 1_000_000


class FollowedTopic(Followed):
    """A topic of four partitions, of which two receive messages, and the directory of a job that follows it."""

    def __init__(
        self, folder: Path, cluster: Cluster, *options: str, of: Sequence[Collection] = COLLECTIONS, headers: Any = ()
    ):
        super().__init__(folder, *options, of=of)
        self.headers = headers
        self.cluster, self.topic = cluster, cluster.topic()
        self._partitions = itertools.cycle([0, 1])

    def source(self) -> list[str]:
        return ["--kafka_topic", self.topic, "--bootstrap_servers", self.cluster.servers, "--kafka_idle_lag", "10ms"]

    def batch_source(self) -> list[str]:
        return [*self.source()[:4], "--kafka_until", "now"]

    def send(self, reports: int = 20) -> None:
        """Some records, one of them without a value."""
        messages = [*self.messages(reports), None]
        self.cluster.send(self.topic, messages, NOW, partition=next(self._partitions), headers=self.headers)

    def job(self, *more: str) -> Any:
        parser = command_line()
        args, rest = parser.parse_known_args([*self.argv(), *more])
        return follow_job(args, parser, rest)

    def until_counted(self, reached: Callable[[str], None] = lambda point: None) -> None:
        """Start the job, and run steps until everything is counted and estimated."""
        job = self.job()
        try:
            follower = Follower(
                job.source, str(self.output), job.spec, job.state, late_every=0, with_counts=True, reached=reached
            )
            end = time.monotonic() + 600
            while job.source.seen_until is None or job.source.seen_until < self.sent_by():
                assert time.monotonic() < end
                follower.step()
        finally:
            job.source.close()
            job.state.close()
            job.directory.close()

    def sent_by(self) -> int:
        """A time after that of every record, at which a partition without more records must have been asked."""
        return NOW + 1


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
    follower = Follower(job.source, str(followed.output), job.spec, job.state, late_every=0)
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
        follower = Follower(job.source, str(followed.output), job.spec, job.state, late_every=0, with_counts=True)
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
    assert said.startswith(
        f"estimate: the run failed: topic {followed.topic!r} must have times of kind LogAppendTime, got"
    )
    assert said.endswith("the next start continues where this one stopped\n")
    followed.until_counted()
    followed.assert_exact()


def _refused(*change: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return FollowedTopic(Path(folder), _CLUSTERS()).job(*change)


def _other_source(first: str) -> Any:
    """A directory that was used for a topic (or a spool) and is then given another one."""
    with tempfile.TemporaryDirectory() as folder:
        followed = FollowedTopic(Path(folder), _CLUSTERS())
        if first == "spool":
            Followed.source(followed)
            with mock.patch.object(FollowedTopic, "source", Followed.source):
                followed.steps(1)
        else:
            followed.until_counted()
            followed.topic = followed.cluster.topic()
        return followed.job()


def _no_such_topic() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        followed = FollowedTopic(Path(folder), _CLUSTERS())
        with mock.patch.object(topic_reading, "parts_of", side_effect=SpecError("--kafka_topic must be a topic")):
            try:
                return followed.job()
            finally:
                assert not followed.output.exists()


_CLUSTERS = functools.lru_cache(Cluster)

TWO = [Part("t", 0, 0, 5), Part("t", 1, 2, 9)]

REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
    (
        SpecError,
        functools.partial(_refused, "--kafka_until", "now"),
        "--follow cannot be combined with --kafka_until, got both",
    ),
    (
        SpecError,
        functools.partial(_refused, "--kafka_readers", "2"),
        "--follow cannot be combined with --kafka_readers, got both",
    ),
    (
        SpecError,
        functools.partial(_refused, "--kafka_from", "yesterday"),
        "--kafka_from must be RFC 3339 or seconds since 1970, got 'yesterday'",
    ),
    (SpecError, functools.partial(_other_source, "topic"), "--output must be a directory for the same source, got "),
    (SpecError, functools.partial(_other_source, "spool"), "--output must be a directory for the same source, got "),
    (
        SpecError,
        functools.partial(_refused, "--dimension", "country=attribute:cc"),
        "--dimension must name a dimension with set_by attribute: the collections have none, got 'country'",
    ),
    (SpecError, _no_such_topic, "--kafka_topic must be a topic"),
    (
        SpecError,
        functools.partial(start_of, "t", {0: 6}, TWO, TWO),
        "--kafka_topic must be the topic 't' of which --output has counted 6 offsets in partition 0, got one that ends "
        "at offset 5",
    ),
    (
        SpecError,
        functools.partial(start_of, "t", {4: 6}, TWO, TWO),
        "--kafka_topic must be the topic 't' of which --output has counted partition 4, got one with 2 partitions",
    ),
]


@pytest.mark.parametrize(("kind", "call", "sentence"), REFUSED, ids=[row[2][:50] for row in REFUSED])
def test_what_cannot_be_followed_is_refused(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    said = str(caught.value)
    assert said == sentence or (sentence.endswith(" ") and said.startswith(sentence))


def test_reading_begins_where_counting_ended() -> None:
    later = [part._replace(start=4) for part in TWO]
    assert start_of("t", {}, TWO, later).offsets == {0: 4, 1: 4}
    assert start_of("t", {0: 5, 1: 3}, TWO, later) == topic_reading.Start({0: 5, 1: 3}, {})
    assert start_of("t", {1: 0}, TWO, TWO) == topic_reading.Start({0: 0, 1: 2}, {1: 2})


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


def test_a_refusal_leaves_nothing_behind(tmp_path: Path, kafka: Cluster, capsys: Any) -> None:
    followed = FollowedTopic(tmp_path, kafka)
    assert estimate.main([*followed.argv(), "--kafka_reader", "java"]) == 2
    assert capsys.readouterr().err == "estimate: --follow cannot be combined with --kafka_reader, got both\n"
    assert not followed.output.exists()
