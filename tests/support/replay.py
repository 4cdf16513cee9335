"""Replays a stream through the main job on Beam's TestStream, and collects what the job would write."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import ElementEvent, Event, ProcessingTimeEvent, TestStream, WatermarkEvent
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import Duration, Timestamp

from uldp_transforms import JobSpec
from uldp_transforms.jobs.estimate.options import Job
from uldp_transforms.jobs.estimate.run import build
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.jobs.records.run_directory import RunDirectory
from uldp_transforms.jobs.sinks import Output, RowFiles, Sink
from uldp_transforms.jobs.sources import AvroFiles, Source
from uldp_transforms.ldp import Collection
from uldp_transforms.rows.row_types import LedgerRow
from uldp_transforms.spec.spec_fields import FINAL
from uldp_transforms.windows import LATENESS_SLACK, Windows

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


class Replayed(Source):
    """The events of a TestStream."""

    option = "--replayed"
    bounded = False

    def __init__(self, events: Sequence[Event] = ()):
        self.events = events

    @classmethod
    def of(cls, args: Any, options: PipelineOptions) -> Replayed:
        return cls()

    def read(self, pipeline: beam.Pipeline) -> beam.PCollection[bytes]:
        return pipeline | "ReadPubSub" >> stream(self.events)


class Lists(Sink):
    """Keeps the rows of each kind in a list."""

    options: ClassVar[dict[str, Any]] = {}
    takes_counts = True

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    @classmethod
    def of(cls, args: Any, source: Any, options: PipelineOptions) -> Lists:
        return cls()

    def write(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            self._keys[output.name] = key = next(_names)
            _collected[key] = []
            _ = output.rows | f"Keep_{output.name}" >> Collect(key)

    def rows(self) -> dict[str, list[Any]]:
        """The rows by kind; to be called once."""
        return {name: [row for row, _, _ in _collected.pop(key)] for name, key in self._keys.items()}


def spec(collections: Sequence[Collection], windows: Windows | None, **fields: Any) -> JobSpec:
    """A specification that lets everything through at once: no minimum of reports, no lateness unless asked for."""
    lenient: dict[str, Any] = {"min_reports": 1, "allowed_lateness": 0, "lateness_slack": LATENESS_SLACK}
    if fields.get("bounded") is False and fields.get("release") != FINAL:
        lenient["late_every"] = 0
    return JobSpec(collections=tuple(collections), windows=windows, **lenient | fields)


def streaming_job(
    collections: Sequence[Collection],
    windows: Windows | None,
    *,
    output: str = "nowhere",
    options: PipelineOptions | None = None,
    write_counts: bool = False,
    **fields: Any,
) -> Job:
    """The main job over a stream, which ``replay`` and ``run`` fill; ``fields`` are those of the specification."""
    return Job(
        spec=spec(collections, windows, bounded=False, **fields),
        source=Replayed(),
        sinks=(RowFiles(output, unbounded=True, forms=RowForms(counts=write_counts)),),
        directory=RunDirectory(output, "replayed", bounded=False, launched=False),
        options=options or stream_options(),
    )


def file_job(
    collections: Sequence[Collection],
    windows: Windows | None,
    pattern: str,
    *,
    output: str = "nowhere",
    options: PipelineOptions | None = None,
    write_counts: bool = False,
    **fields: Any,
) -> Job:
    """The same over files."""
    return Job(
        spec=spec(collections, windows, bounded=True, **fields),
        source=AvroFiles(pattern),
        sinks=(RowFiles(output, unbounded=False, forms=RowForms(counts=write_counts)),),
        directory=RunDirectory(output, "replayed", bounded=True, launched=False),
        options=options or PipelineOptions(["--runner=FnApiRunner"]),
    )


def run(job: Job, events: Sequence[Event] = ()) -> Any:
    """Build the job as it is, with a TestStream for a stream, and run it to the end; returns the engine's result."""
    if isinstance(job.source, Replayed):
        job = dataclasses.replace(job, source=Replayed(events))
    pipeline = beam.Pipeline(options=job.options)
    build(pipeline, job)
    result = pipeline.run()
    result.wait_until_finish()
    return result


def replay(job: Job, events: Sequence[Event] = ()) -> dict[str, list[Any]]:
    """Run the job with lists for its sinks; returns the rows by kind."""
    lists = Lists()
    run(dataclasses.replace(job, sinks=(lists,)), events)
    return lists.rows()


Place = tuple[str | None, str | None]
"""Fingerprint of a collection and start of a base period."""


def sum_ledger(rows: Sequence[LedgerRow]) -> dict[Place, Counter[str]]:
    """What became of the reports, by place and bin; a stream makes several rows for one place, and they add up."""
    sums: dict[Place, Counter[str]] = {}
    for row in rows:
        bins = +Counter(received=row.received, accepted=row.accepted, duplicates=row.duplicates)
        place = (row.fingerprint, row.window_start)
        if not bins and not row.rejected:
            continue  # a row about what is in transit alone
        sums[place] = sums.get(place, Counter()) + bins + Counter(row.rejected)
    return sums


def sum_unread(rows: Sequence[LedgerRow]) -> tuple[Counter[str], Counter[str]]:
    """Messages and files that could not be read, by reason: they are no reports, and in no equation."""
    messages, files = Counter[str](), Counter[str]()
    for row in rows:
        messages.update(row.unread_messages)
        files.update(row.unread_files)
    return messages, files


def unbalanced(rows: Sequence[LedgerRow]) -> list[Place]:
    """Where received is not accepted + duplicates + rejected, or something got lost between two steps."""
    in_transit: Counter[Place] = Counter()
    for row in rows:
        in_transit[row.fingerprint, row.window_start] += row.in_transit or 0
    lost = [place for place, number in in_transit.items() if number]
    return lost + [place for place, bins in sum_ledger(rows).items() if 2 * bins["received"] != bins.total()]
