"""The reader of partitions, polled by hand."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from apache_beam.io.restriction_trackers import OffsetRange, OffsetRestrictionTracker
from apache_beam.runners.sdf_utils import (
    RestrictionTrackerView,
    ThreadsafeRestrictionTracker,
    ThreadsafeWatermarkEstimator,
)

from tests.support.kafka_cluster import Cluster
from uldp_transforms.jobs.kafka.polled import (
    Positions,
)
from uldp_transforms.jobs.kafka.reader import Reader
from uldp_transforms.jobs.kafka.records import Polled
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME

NOW = time.time_ns() // 1_000_000
SECRET = "correct horse battery staple"


@contextlib.contextmanager
def reading(cluster: Cluster, topic: str, kind: str = CREATE_TIME, **offsets: int) -> Iterator[Reader]:
    """A reader of these partitions (``p0=0``) from these offsets on; partition 0 from its beginning unless said."""
    with contextlib.closing(Reader(cluster.settings, topic, kind)) as reader:
        reader.seek({int(name[1:]): offset for name, offset in (offsets or {"p0": 0}).items()})
        yield reader


def poll(reader: Reader, number: int = 1) -> Polled:
    """So many records, in one or several polls."""
    found: list[Polled] = []
    end = time.monotonic() + 600
    while sum(len(polled.values) for polled in found) < number:
        assert time.monotonic() < end
        polled = reader.poll(0.2)
        found += [] if polled is None else [polled]
    columns = zip(*(polled[1:] for polled in found))
    return Polled([value for polled in found for value in polled.values], *map(np.concatenate, columns))


def poll_to_the_end(reader: Reader) -> None:
    """Until the brokers have said, for each partition, that there is nothing more."""
    end = time.monotonic() + 600
    while any(reader._ends.get(number, -1) < position for number, position in reader._positions.items()):
        assert time.monotonic() < end
        reader.poll(0.2)


def turn(fn: Any, element: Any, restriction: Any, watermark: Any = None) -> tuple[list[Any], Any]:
    """One call of ``process`` with Beam's own views; the output, and what was put off."""
    tracker: Any = Positions().create_tracker(restriction)
    if isinstance(restriction, OffsetRange):
        tracker = OffsetRestrictionTracker(restriction)
    threadsafe = ThreadsafeRestrictionTracker(tracker)
    arguments = [element, RestrictionTrackerView(threadsafe)]
    if watermark is not None:
        arguments.append(ThreadsafeWatermarkEstimator(watermark))
    outputs = list(fn.process(*arguments))
    threadsafe.check_done()
    return outputs, threadsafe.deferred_status()
