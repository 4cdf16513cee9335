"""Beam checks elements against type hints if its users ask for it, in two ways; both accept every step, and change no
row."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from tests.support import replay
from tests.support.messages_cases import BATCH, KRR, collection, container, numbered, write_files
from tests.support.tolerance import generator
from uldp_transforms import (
    CountReports,
    CountsRows,
    DecodeReports,
    DiscoverValues,
    EstimateDistribution,
    EstimateReports,
    JobSpec,
    ReadReportFiles,
    SummarizeLedger,
)
from uldp_transforms.jobs.sinks import Output
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.rows.json_and_avro import to_json

HOUR = 3_600_000
START = 1_000_000_000_000 // HOUR * HOUR
EVERY_ELEMENT, SAMPLES = "--runtime_type_check", "--performance_runtime_type_check"

ARMS = {"dimensions": [{"name": "arm", "values": ["new", "control"]}]}
OLD = Collection.from_json(KRR.to_json() | {"id": "diet", "question": "diet"} | ARMS)
NEW = dataclasses.replace(collection("diet", numbered(3), "rappor"), version=2, question="diet")
NUMBERS = Collection.from_json(
    {"id": "delay", "version": 1, "alphabet": {"id": "ordered", "low": 0, "high": 60, "num_bins": 6}}
    | {"mechanism": {"id": "krr", "epsilon": 1.0}}
)
OPEN = collection("open", {"id": "hashed", "num_buckets": 4}, "krr")
WORDS = Collection.from_json(
    {"id": "words", "version": 1, "num_cohorts": 64, "mechanism": {"id": "krr", "epsilon": 8.0}}
    | {"alphabet": {"id": "prefixes", "num_buckets": 16, "tokens": ["a", "b"], "lengths": [1, 2, None]}}
)
COLLECTIONS = (OLD, NEW, NUMBERS, OPEN)

JOBS: dict[str, dict[str, Any]] = {
    "fixed windows, groups": {"window": "1h", "by": ["arm"], "bit_patterns": True},
    "sliding windows, each id once": {"window": "2h", "slide": "1h", "deduplicate": True},
    "each fingerprint once": {"window": "1h", "deduplicate": True, "deduplicate_by": "fingerprints"},
    "days of a place": {"window": "1d", "timezone": "Europe/Berlin"},
    "smooth": {"window": "1h", "smooth": True},
    "found values": {"window": "1d", "discover": True, "collections": [WORDS]},
    "liars": {"window": "1h", "liars": 0.01, "collections": [KRR]},
}
OF_FILES: dict[str, dict[str, Any]] = {
    "one window": {"window": None},
    "borrowed shares": {"window": "1d", "by": ["arm"], "borrow": True},
}
OF_STREAMS: dict[str, dict[str, Any]] = {
    "early and late": {"window": "1h", "early_every": "1m", "late_every": "0s"},
    "final": {"window": "1h", "by": ["arm"], "release": "final"},
    "final, sliding, smooth": {"window": "2h", "slide": "1h", "release": "final", "deduplicate": True},
}
BOUNDED = {**JOBS, **OF_FILES}
ENDLESS = {**JOBS, **OF_STREAMS}
SAMPLED = {name: ENDLESS[name] for name in ("fixed windows, groups", "found values", "final", "final, sliding, smooth")}
"""One of each kind of step: those over bounded input, of which all are sampled, have the others in common."""


def messages(collections: tuple[Collection, ...]) -> list[bytes]:
    """Packed and single reports of four hours, copies, and what is no report."""
    found = [b"\x02garbage"]
    for of in collections:
        rng = generator("type checks", of.id, of.version)
        values = [1.5, 20.0, 59.0] if of is NUMBERS else ["ab", "ba", "aa"] if of is WORDS else ["0", "1", "2"]
        number = 2000 if of is WORDS else 240
        told = {"dimensions": {"arm": rng.choice(["new", "control"], number).tolist()}} if of.dimensions else {}
        times = START + rng.integers(0, 4 * HOUR, number)
        batch = of.perturb(rng.choice(values, number).tolist(), rng, times, **told)
        found += [wire.encode_batch(batch), *wire.encode_reports(batch[:7])]
    return found


def rows_of(elements: list[Any], options: list[str], values: dict[str, Any]) -> dict[str, list[str]]:
    """The rows of each output as sorted lines. Endless input ends when its watermark does."""
    lists = replay.Lists()
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        if "--streaming" in options:
            events = [replay.arrive(START, elements), replay.clock(HOUR), replay.watermark(START + 1000 * HOUR)]
            arrived = pipeline | replay.stream(events)
        else:
            arrived = pipeline | beam.Create(elements) | "Arrive" >> beam.Map(_at_its_time).with_output_types(bytes)
            arrived.is_bounded = "--endless" not in options
        outputs = arrived | EstimateReports(with_counts=True, min_reports=20, **values)
        lists.write([Output(name, rows, None) for name, rows in outputs._asdict().items() if rows is not None])
    return {name: sorted(map(to_json, rows)) for name, rows in lists.rows().items()}


def _at_its_time(message: bytes) -> WindowedValue:
    return WindowedValue(message, START / 1000, (GlobalWindow(),))


def check(options: list[str], flags: list[str], job: dict[str, Any]) -> None:
    values = {"collections": list(COLLECTIONS), "candidates": ["0", "1", "2"]} | job
    sent = messages(tuple(values["collections"]))
    rows = rows_of(sent, options, values)
    assert rows["estimates"]
    assert rows["ledger"]
    for flag in flags:
        assert rows_of(sent, [*options, flag], values) == rows, flag


@pytest.mark.parametrize("job", BOUNDED.values(), ids=BOUNDED)
def test_over_bounded_input(job: dict[str, Any]) -> None:
    check(["--runner=FnApiRunner"], [EVERY_ELEMENT, SAMPLES], job)


@pytest.mark.parametrize("job", ENDLESS.values(), ids=ENDLESS)
def test_every_element_of_a_stream(job: dict[str, Any]) -> None:
    check(["--runner=BundleBasedDirectRunner", "--streaming"], [EVERY_ELEMENT], job)


@pytest.mark.parametrize("job", SAMPLED.values(), ids=SAMPLED)
def test_samples_of_a_stream(job: dict[str, Any]) -> None:
    """Of the local engines, that of streams takes no samples; so the stream is played to the other one, which has no
    early panes."""
    check(["--runner=FnApiRunner", "--endless"], [SAMPLES], job)


class ByHand(beam.PTransform):
    """The steps one after the other, over files."""

    def __init__(self, pattern: str, grouped: bool):
        super().__init__()
        self._pattern, self._grouped = pattern, grouped

    def expand(self, begin: Any) -> list[Output]:
        spec = JobSpec.of(collections=[OLD, WORDS], window="2h", slide="1h", discover=True)
        files = begin | ReadReportFiles(self._pattern, grouped=self._grouped)
        decoded = files.messages | DecodeReports(spec)
        counted = decoded.reports | CountReports(spec)
        windows = counted.counts | EstimateDistribution(spec)
        steps = (files.ledger, files.rejected, decoded.ledger, decoded.rejected, counted.ledger)
        rows = {
            "estimates": windows.estimates,
            "health": windows.health,
            "counts": counted.counts | CountsRows(spec),
            "discovered": counted.counts | DiscoverValues(spec),
            "ledger": steps | SummarizeLedger(spec),
        }
        return [Output(name, found, None) for name, found in rows.items()]


@pytest.mark.parametrize("grouped", [False, True])
def test_steps_over_files(grouped: bool, tmp_path: Path) -> None:
    sent = messages((OLD, WORDS))
    content = {
        "good.avro": container([(1, message) for message in sent if len(message) > 1000], BATCH),
        "bad.avro": b"no",
    }
    write_files(tmp_path, content)
    found = []
    for options in ([], [EVERY_ELEMENT], [SAMPLES]):
        lists = replay.Lists()
        with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner", *options])) as pipeline:
            lists.write(pipeline | ByHand(str(tmp_path / "*.avro"), grouped))
        found.append({name: sorted(map(to_json, rows)) for name, rows in lists.rows().items()})
    assert all(found[0].values())
    assert found[1:] == found[:1] * 2
