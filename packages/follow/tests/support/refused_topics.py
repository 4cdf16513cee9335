"""Refusals of ``--follow`` of a topic: calls and their sentences."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from packages.follow.tests.support.followed_topic import FollowedTopic
from packages.follow.tests.support.spools import Followed
from tests.support.kafka_cluster import Cluster
from tests.support.refusals.tables import Refusal
from uldp_transforms.jobs.kafka.offsets import Part
from uldp_transforms.ldp import SpecError
from uldp_transforms_follow import topic_reading
from uldp_transforms_follow.topic_reading import start_of


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
REFUSED: list[Refusal] = [
    (functools.partial(_refused, "--kafka_until", "now"), "--follow cannot be combined with --kafka_until, got both"),
    (functools.partial(_refused, "--kafka_readers", "2"), "--follow cannot be combined with --kafka_readers, got both"),
    (
        functools.partial(_refused, "--kafka_from", "yesterday"),
        "--kafka_from must be RFC 3339 or seconds since 1970, got 'yesterday'",
    ),
    (functools.partial(_other_source, "topic"), "--output must be a directory for the same source, got "),
    (functools.partial(_other_source, "spool"), "--output must be a directory for the same source, got "),
    (
        functools.partial(_refused, "--dimension", "country=attribute:cc"),
        "--dimension must name a dimension with set_by attribute: the collections have none, got 'country'",
    ),
    (_no_such_topic, "--kafka_topic must be a topic"),
    (
        functools.partial(start_of, "t", {0: 6}, TWO, TWO),
        "--kafka_topic must be the topic 't' of which --output has counted 6 offsets in partition 0, got one that ends "
        "at offset 5",
    ),
    (
        functools.partial(start_of, "t", {4: 6}, TWO, TWO),
        "--kafka_topic must be the topic 't' of which --output has counted partition 4, got one with 2 partitions",
    ),
]
