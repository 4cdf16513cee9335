"""The life of windows, told by transcripts: each is a stream of events, and the panes and the ledger it must make.

Lines of a transcript (times without a date are those of its ``day``; ``00:05x3`` stands for three reports):
    {arrive: T, reports: TIMES}      messages of one report each, which arrive together, with these event times
    {arrive: T, packed: TIMES}       one message of all these reports; either may name collections: {animals/1: TIMES}
    {arrive: T, garbage: N}          N messages that are none of ours
    {arrive: T, again: N}            the messages of the N-th line that has some, byte for byte
    {watermark: T}, {clock: 60s}     the watermark reaches T; processing time goes on
    panes:   collection, start and end of the window, index, timing, number of reports, status
    ledger:  collection, start of the base period, number of reports by what became of them; garbage, which is no
             report, as unread messages: unread_malformed=N
and options of the job that are not the usual ones: allowed_lateness: 1h, early_every: 60s, late_every: 60s,
lateness_slack: 1m, min_reports: 5, deduplicate: yes, release: final; corrections of a window wait for nothing else
"""

from __future__ import annotations

import dataclasses
import datetime
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from apache_beam.testing.test_stream import ElementEvent, Event

from tests.support import cases, replay
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.alphabets import Closed
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_types import LedgerRow, RejectedReport, WindowedEstimate
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import Windows, parse_duration

TRANSCRIPTS = sorted(Path(__file__).parents[2].joinpath("transcripts").glob("*.yaml"))
GARBAGE = b"\x02no report"


def make_collections() -> dict[str, Collection]:
    """Name in transcripts -> collection; two of them are versions of one."""
    animals = cases.collection(Closed(values=("ant", "bee", "cat")), 2, "krr").to_json()
    places = {"id": "places", "alphabet": {"id": "hashed", "num_buckets": 4, "seed": 1}, "num_cohorts": 3}
    specs = (animals, animals | {"version": 2}, animals | places)
    return {f"{spec['id']}/{spec['version']}": Collection.from_json(spec) for spec in specs}


COLLECTIONS = make_collections()

OPTIONS: dict[str, Callable[[str], Any]] = {
    "allowed_lateness": parse_duration,
    "early_every": parse_duration,
    "late_every": parse_duration,
    "lateness_slack": parse_duration,
    "min_reports": int,
    "deduplicate": {"yes": True, "no": False}.__getitem__,
    "release": str,
}


class Transcript:
    """What one file says, with events that can be replayed."""

    def __init__(self, content: dict[str, Any]):
        self.day = content.pop("day")
        self.windows = Windows(**{name: parse_duration(text) for name, text in content.pop("windows").items()})
        self.job = {name: read(content.pop(name)) for name, read in OPTIONS.items() if name in content}
        self.panes = sorted(" ".join(line.split()) for line in content.pop("panes", ()))
        self.ledger = sorted(" ".join(line.split()) for line in content.pop("ledger", ()))
        self.num_reports = self.num_garbage = 0
        self._rng = np.random.default_rng(5)
        self._sent: list[tuple[int, list[bytes]]] = []  # number of reports, messages and garbage
        self.events = [self._event(dict(event)) for event in content.pop("events")]
        assert not content.keys() - {"what"}

    @classmethod
    def load(cls, path: Path) -> Transcript:
        # every word is a text: YAML itself would read 12:30 as the number 750
        return cls(yaml.load(path.read_text(encoding="utf-8"), yaml.CBaseLoader))

    def _event(self, line: dict[str, Any]) -> Event:
        if "watermark" in line:
            event = replay.watermark(self._milliseconds(line.pop("watermark")))
        elif "clock" in line:
            event = replay.clock(parse_duration(line.pop("clock")))
        else:
            arrival, again = self._milliseconds(line.pop("arrive")), int(line.pop("again", 0))
            number, messages = self._sent[again - 1] if again else self._messages(line)
            self._sent.append((number, messages))
            self.num_reports += number
            self.num_garbage += messages.count(GARBAGE)
            event = replay.arrive(arrival, messages)
        assert not line
        return event

    def _messages(self, line: dict[str, Any]) -> tuple[int, list[bytes]]:
        """The messages that a line describes, and how many reports they hold."""
        messages = [GARBAGE] * int(line.pop("garbage", 0))
        number = 0
        for batch in self._batches(line.pop("reports", {})):
            messages += wire.encode_reports(batch, single_object=len(messages) % 2 == 1)
            number += len(batch)
        for batch in self._batches(line.pop("packed", {})):
            messages.append(wire.encode_batch(batch))
            number += len(batch)
        return number, messages

    def _batches(self, times: str | dict[str, str]) -> Iterator[Any]:
        for name, text in {"animals/1": times}.items() if isinstance(times, str) else times.items():
            repeated = [word.partition("x") for word in text.split()]
            event_times = [self._milliseconds(time) for time, _, n in repeated for _ in range(int(n or 1))]
            yield COLLECTIONS[name].perturb(["ant"] * len(event_times), self._rng, event_times)

    def _milliseconds(self, text: str) -> int:
        moment = datetime.datetime.fromisoformat(text if "T" in text else f"{self.day}T{text}")
        return (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(milliseconds=1)

    def time(self, text: str | None) -> str:
        """A time of a row, as a transcript writes it."""
        if text is None:
            return "none"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z", text)
        return re.sub(r":00$", "", text.removesuffix("Z")).removeprefix(f"{self.day}T")

    def pane(self, row: WindowedEstimate) -> str:
        """A row of estimates as a line of ``panes``."""
        window = f"{self.time(row.window_start)} {self.time(row.window_end)}"
        number = "-" if row.num_reports is None else row.num_reports
        return f"{name(row)} {window} {row.pane_index} {row.pane_timing} {number} {row.status}"

    def sums(self, rows: Sequence[LedgerRow]) -> list[str]:
        """Rows of the ledger as lines of ``ledger``; a period can have several rows, and they add up."""
        sums: dict[str, Counter[str]] = {}
        for row in rows:
            key = f"{name(row)} {self.time(row.window_start)}"
            by_reason = Counter(accepted=row.accepted, duplicates=row.duplicates) + Counter(row.rejected)
            by_reason += Counter({f"unread_{reason}": n for reason, n in row.unread_messages.items()})
            if row.received or by_reason:
                sums[key] = sums.get(key, Counter()) + by_reason
        return sorted(" ".join((key, *(f"{what}={n}" for what, n in sums[key].items()))) for key in sums)


def name(row: WindowedEstimate | LedgerRow) -> str:
    """A row's collection as transcripts name it."""
    return "none" if row.collection_id is None else f"{row.collection_id}/{row.collection_version}"


def last_panes(panes: Sequence[str]) -> dict[str, str]:
    """Window -> number and status of the pane with the highest index, which replaces the others."""
    last: dict[str, tuple[int, str]] = {}
    for line in panes:
        collection, start, end, index, _, number, status = line.split()
        key = f"{collection} {start} {end}"
        last[key] = max(last.get(key, (-1, "")), (int(index), f"{number} {status}"))
    return {key: value for key, (_, value) in last.items()}


def in_bundles_of_one(events: Sequence[Event]) -> Iterator[Event]:
    """Every message in a bundle of its own, those of one line in the opposite order."""
    for event in events:
        if isinstance(event, ElementEvent):
            yield from (ElementEvent([message]) for message in reversed(event.timestamped_values))
        else:
            yield event


def in_few_bundles(events: Sequence[Event]) -> Iterator[Event]:
    """Lines without a watermark or clock between them in one bundle."""
    waiting: list[Any] = []
    for event in events:
        if isinstance(event, ElementEvent):
            waiting += event.timestamped_values
        else:
            if waiting:
                yield ElementEvent(waiting)
            waiting = []
            yield event
    if waiting:
        yield ElementEvent(waiting)


CUT_ALWAYS = {"collections", "copies_sliding", "early", "final_late_only", "late_every", "out_of_order"}
"""Transcripts in whose order, copies and panes bundles could make a difference; ``make slow`` cuts all of them."""


def other_cuts() -> Iterator[Any]:
    """Each transcript with each cut into bundles that is another one for it."""
    for path in TRANSCRIPTS:
        written = Transcript.load(path).events
        for cut in (in_bundles_of_one, in_few_bundles):
            if list(cut(written)) != written:
                always = cut is in_bundles_of_one and path.stem in CUT_ALWAYS
                marks = [] if always else [pytest.mark.slow]
                yield pytest.param(path, cut, id=f"{path.stem}-{cut.__name__}", marks=marks)


def rows_of(transcript: Transcript, events: Sequence[Event]) -> dict[str, list[Any]]:
    """Replay, and check what is true of every stream."""
    collections = list(COLLECTIONS.values())
    job = replay.streaming_job(collections, transcript.windows, candidates=("ant", "bee"), **transcript.job)
    rows = replay.replay(job, events)
    ledger: list[LedgerRow] = rows["ledger"]
    rejected: list[RejectedReport] = rows["rejected"]
    assert not replay.unbalanced(ledger)
    assert sum(row.received for row in ledger) == transcript.num_reports
    unread, _ = replay.sum_unread(ledger)
    assert unread.total() == sum(row.num_messages or 0 for row in rejected) == transcript.num_garbage
    for reason in {reason for row in ledger for reason in row.rejected} | {row.reason for row in rejected}:
        in_ledger = sum(row.rejected.get(reason, 0) for row in ledger)
        assert in_ledger == sum(row.num_reports for row in rejected if row.reason == reason), reason
    return rows


def test_transcripts_exist() -> None:
    assert TRANSCRIPTS


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    transcript = Transcript.load(path)
    rows = rows_of(transcript, transcript.events)
    assert sorted(map(transcript.pane, rows["estimates"])) == transcript.panes
    assert transcript.sums(rows["ledger"]) == transcript.ledger


@pytest.mark.parametrize(("path", "cut"), list(other_cuts()))
def test_bundles_do_not_matter(path: Path, cut: Callable[[Sequence[Event]], Iterator[Event]]) -> None:
    """Bundles decide how many panes there are, but not what the last one says."""
    transcript = Transcript.load(path)
    rows = rows_of(transcript, list(cut(transcript.events)))
    assert last_panes(list(map(transcript.pane, rows["estimates"]))) == last_panes(transcript.panes)
    assert transcript.sums(rows["ledger"]) == transcript.ledger


class UngatedSpec(JobSpec):
    """Of a job that leaves late reports to the runner."""

    gate = None


@pytest.mark.parametrize(
    ("kind", "slack", "arrival_of_late_reports", "in_panes", "refused"),
    [
        pytest.param(JobSpec, "10m", "00:15", 3, 4, id="gate"),
        pytest.param(UngatedSpec, "1ms", "00:15", 3, 0, id="no gate: four reports vanish"),
        pytest.param(JobSpec, "10m", "00:14", 7, 0, id="gate, watermark ahead"),
        pytest.param(JobSpec, "1ms", "00:14", 3, 0, id="no slack, watermark ahead: four reports vanish"),
    ],
)
def test_only_gate_and_slack_keep_the_runner_from_dropping_silently(
    kind: type[JobSpec], slack: str, arrival_of_late_reports: str, in_panes: int, refused: int
) -> None:
    """The runner drops by its watermark and tells nobody, so the gate has to refuse first."""
    options = {"windows": {"size": "10m"}, "allowed_lateness": "5m", "lateness_slack": slack}
    events = [
        {"arrive": "00:05", "reports": "00:01x2"},
        {"watermark": "00:16"},
        {"arrive": arrival_of_late_reports, "packed": "00:02x4"},
        {"arrive": "00:16", "reports": "00:16"},
    ]
    transcript = Transcript({"day": "2001-01-31", "events": events} | options)
    job = replay.streaming_job(list(COLLECTIONS.values()), transcript.windows, candidates=("ant",), **transcript.job)
    fields = {field.name: getattr(job.spec, field.name) for field in dataclasses.fields(job.spec)}
    rows = replay.replay(dataclasses.replace(job, spec=kind(**fields)), transcript.events)
    numbers = last_panes([transcript.pane(row) for row in rows["estimates"]]).values()
    assert sum(int(number.split()[0]) for number in numbers) == in_panes
    assert sum(row.num_reports for row in rows["rejected"]) == refused
