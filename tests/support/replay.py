"""Replays a stream through the main job on Beam's TestStream, and collects what the job would write."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import ElementEvent, Event, ProcessingTimeEvent, TestStream, WatermarkEvent
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Duration, Timestamp
from uldp_transforms.pipelines import estimate

from uldp_transforms.ldp import Collection
from uldp_transforms.rows.ledger_row import LedgerRow
from uldp_transforms.windows import Windows

_collected: dict[str, list[Any]] = {}
_names = map(str, itertools.count())


class Collect(beam.PTransform):
    """Keeps elements in this process: local runners work on copies of a DoFn, but in the same module."""

    def __init__(self, name: str):
        super().__init__()
        self._name = name

    def expand(self, elements: beam.PCollection[Any]) -> beam.PCollection[None]:
        return elements | "Keep" >> beam.ParDo(_KeepFn(self._name))


class _KeepFn(beam.DoFn):
    def __init__(self, name: str):
        self._name = name

    def process(self, element: Any, window=beam.DoFn.WindowParam, pane=beam.DoFn.PaneInfoParam) -> None:
        _collected[self._name].append((element, window, pane))


class _Ignore(beam.PTransform):
    def expand(self, elements: beam.PCollection[Any]) -> beam.PCollection[Any]:
        return elements


@contextmanager
def collector() -> Iterator[tuple[Collect, list[Any]]]:
    """A transform, and the list of (element, window, pane) that it fills."""
    name = next(_names)
    try:
        yield Collect(name), _collected.setdefault(name, [])
    finally:
        del _collected[name]


def stream_options() -> PipelineOptions:
    """The one local engine that runs a TestStream; without ``streaming`` it would treat it as a file."""
    return PipelineOptions(["--runner=BundleBasedDirectRunner", "--streaming"])


def arrive(milliseconds: int, messages: Sequence[bytes]) -> Event:
    """One bundle of messages; the timestamp of a message is the time at which it arrives."""
    return ElementEvent([TimestampedValue(message, timestamp(milliseconds)) for message in messages])


def watermark(milliseconds: int) -> Event:
    return WatermarkEvent(timestamp(milliseconds))


def clock(milliseconds: int) -> Event:
    """Let the worker's clock go on; it starts at 0, and has nothing to do with the time of arrival."""
    return ProcessingTimeEvent(Duration(micros=milliseconds * 1000))


def timestamp(milliseconds: int) -> Timestamp:
    return Timestamp(micros=milliseconds * 1000)


def stream(events: Sequence[Event]) -> TestStream:
    return TestStream(coder=beam.coders.BytesCoder(), events=events, output_tags=[None]).with_output_types(bytes)


def streaming_job(collections: list[Collection], windows: Windows | None, **fields: Any) -> estimate.Job:
    """The configuration of the main job that reads a subscription."""
    job = estimate.Job(
        collections=collections,
        input=None,
        subscription="projects/test-project/subscriptions/reports",
        output="nowhere",
        output_topic=None,
        windows=windows,
        estimator="projected",
        candidates=None,
        min_reports=1,
        options=stream_options(),
    )
    return dataclasses.replace(job, **fields)


def file_job(collections: list[Collection], windows: Windows | None, pattern: str, **fields: Any) -> estimate.Job:
    """The same for files."""
    files = {"input": pattern, "subscription": None, "options": PipelineOptions(["--runner=FnApiRunner"])}
    return dataclasses.replace(streaming_job(collections, windows), **files | fields)


def run(job: estimate.Job, events: Sequence[Event] = ()) -> None:
    """Build the job as it is, with a TestStream for the subscription, and run it to the end of the stream."""
    pipeline = beam.Pipeline(options=job.options)
    with mock.patch.object(beam.io, "ReadFromPubSub", lambda subscription: stream(events)):
        estimate.build(pipeline, job)
    pipeline.run().wait_until_finish()


def replay(job: estimate.Job, events: Sequence[Event] = ()) -> dict[str, list[Row]]:
    """Run the job with lists for the files; returns the rows by the files' name."""
    collected: dict[str, list[Any]] = {}

    def to_list(directory: str, name: str, *more: Any, **options: Any) -> beam.PTransform:
        if name in collected:  # the same rows in another form
            return _Ignore()
        key = next(_names)
        collected[name] = _collected[key] = []
        return Collect(key)

    with mock.patch.object(estimate, "WriteRowFiles", to_list):
        run(job, events)
    return {name: [row for row, _, _ in rows] for name, rows in collected.items()}


Place = tuple[str | None, int | None]
"""Fingerprint of a collection and start of a base period."""


def sum_ledger(rows: Sequence[LedgerRow]) -> dict[Place, Counter[str]]:
    """What became of the reports, by place and bin; a stream makes several rows for one place, and they add up."""
    sums: dict[Place, Counter[str]] = {}
    for row in rows:
        bins = Counter(received=row.received, accepted=row.accepted, duplicates=row.duplicates)
        place = (row.fingerprint, row.window_start)
        sums[place] = sums.get(place, Counter()) + bins + Counter(row.rejected)
    return sums


def unbalanced(rows: Sequence[LedgerRow]) -> list[Place]:
    """Where received is not accepted + duplicates + rejected."""
    return [place for place, bins in sum_ledger(rows).items() if 2 * bins["received"] != bins.total()]
