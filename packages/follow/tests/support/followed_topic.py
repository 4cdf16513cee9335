"""A Kafka topic that a job follows."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from packages.follow.tests.support.spools import Followed
from tests.support.kafka_cluster import Cluster
from tests.support.spools import COLLECTIONS
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.ldp import Collection
from uldp_transforms_follow.follow_job import follow_job
from uldp_transforms_follow.follower import Follower

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
                job.source,
                str(self.output),
                job.spec,
                job.state,
                late_every=0,
                forms=RowForms(counts=True),
                reached=reached,
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
