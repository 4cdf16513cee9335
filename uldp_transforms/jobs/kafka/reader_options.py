"""Options for reading a topic in Python, for every engine."""

from __future__ import annotations

import dataclasses

from uldp_transforms.jobs.kafka.offsets import ConsumerSettings
from uldp_transforms.jobs.kafka.reader import Reader
from uldp_transforms.messages.set_groups import SetGroups

TURN_SECONDS = 1.0
"""Seconds for which partitions are read before control returns to the engine."""

IDLE_LAG = 2_000
"""Milliseconds by which the watermark of a partition without new records lags behind the clock, as in Beam's own reader
in Java.
"""

PARTITIONS_SECONDS = 60.0
"""Seconds between two checks whether the topic got more partitions."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """Options for reading a topic.

    Attributes:
        settings: settings of the consumers.
        kind_of_times: CreateTime or LogAppendTime, as configured for the topic.
        idle_lag: milliseconds by which the watermark of a partition without new records lags behind the clock.
        readers: number of readers that share the partitions of a stream.
        partitions: number of partitions when the pipeline was built.
        set_groups: sets dimensions from the headers of records; None: no dimension is set here.
    """

    settings: ConsumerSettings
    kind_of_times: str
    idle_lag: int = IDLE_LAG
    readers: int = 1
    partitions: frozenset[int] = frozenset()
    set_groups: SetGroups | None = None

    def reader(self, topic: str) -> Reader:
        """Create a consumer."""
        return Reader(self.settings, topic, self.kind_of_times, self.set_groups)
