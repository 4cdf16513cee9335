"""EstimateReports is the transforms wired together, and plain Python and numpy say the same of every window."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import Event
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import cases, replay
from tests.support.messages_cases import BATCH, KRR, REPORT, STRANGER, collection, container, single, write_files
from tests.support.tolerance import generator
from uldp_transforms import (
    CalendarWindows,
    CountReports,
    CountsRows,
    DecodeReports,
    EstimateDistribution,
    EstimateReports,
    JobSpec,
    ReadReportFiles,
    ReleaseOnce,
    SummarizeLedger,
    Windows,
)
from uldp_transforms.beam.runtime.beam_windows import CalendarWindowFn
from uldp_transforms.beam.runtime.coders import timestamp_of
from uldp_transforms.jobs.sinks import Output
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import RANDOMNESS, SEEDED
from uldp_transforms.rows import json_and_avro as forms
from uldp_transforms.rows.rejected_report import rejected_row
from uldp_transforms.rows.windowed_estimate import flat
from uldp_transforms.windows import MAX_PERIODS, rfc3339

MINUTE = 60_000
NOON = 1_000_000_000_000
GARBAGE = b"\x02garbage"

ANIMALS = Collection.from_json(cases.COLLECTIONS["closed-sensitive-urr"].to_json() | {"id": "animals"})
PLACES = Collection.from_json(cases.COLLECTIONS["hashed-rappor"].to_json() | {"id": "places"})
COLLECTIONS = (ANIMALS, PLACES)
PLAIN: dict[str, Any] = {
    "collections": [of.to_json() for of in COLLECTIONS],
    "candidates": list(cases.VALUES),
    "min_reports": 20,
}
WINDOWS: dict[str, dict[str, Any]] = {
    "none": {},
    "fixed": {"window": "10m"},
    "fixed, offset": {"window": "10m", "window_offset": "3m"},
    "sliding, offset": {"window": "20m", "slide": "10m", "window_offset": "7m"},
    "uneven, offset": {"window": "15m", "slide": "10m", "window_offset": "8m"},
}
windowed = pytest.mark.parametrize("windows", WINDOWS.values(), ids=WINDOWS)
in_stream = pytest.mark.parametrize(
    "windows", [pytest.param(values, id=name) for name, values in WINDOWS.items() if values]
)

FILES = PipelineOptions(["--runner=FnApiRunner"])


def some_reports(*seed: object, n: int = 400) -> list[ReportBatch]:
    """Of each collection, over an hour around noon."""
    rng = generator("estimate reports", *seed)
    return [
        of.perturb(rng.choice(cases.VALUES, n).tolist(), rng, NOON + rng.integers(-30 * MINUTE, 30 * MINUTE, n))
        for of in COLLECTIONS
    ]


def run(source: beam.PTransform, transform: beam.PTransform, options: PipelineOptions = FILES) -> dict[str, list[Any]]:
    """The rows of each kind that a transform with the outputs of EstimateReports makes."""
    lists = replay.Lists()
    with beam.Pipeline(options=options) as pipeline:
        outputs = pipeline | "Source" >> source | transform
        lists.write([Output(name, rows, None) for name, rows in outputs._asdict().items() if rows is not None])
    return lists.rows()


class ByHand(beam.PTransform):
    """The transforms, one after the other."""

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = spec

    def expand(self, messages: beam.PCollection[bytes]) -> Any:
        spec = self._spec
        decoded = messages | DecodeReports(spec)
        counted = decoded.reports | CountReports(spec)
        counts = counted.counts | ReleaseOnce(spec) if spec.release == "final" else counted.counts
        estimates, health = counts | EstimateDistribution(spec)
        rejected = decoded.rejected | beam.Map(lambda found: rejected_row(found, spec.periods))
        ledger = (decoded.ledger, counted.ledger, decoded.rejected) | SummarizeLedger(spec)
        names = ("estimates", "values", "health", "ledger", "rejected", "counts")
        rows = (
            estimates,
            estimates | "Flat" >> beam.FlatMap(flat),
            health,
            ledger,
            rejected,
            counts | CountsRows(spec),
        )
        return _Outputs(dict(zip(names, rows)))


class _Outputs(dict[str, Any]):
    def _asdict(self) -> dict[str, Any]:
        return self


def in_order(rows: dict[str, list[Any]]) -> dict[str, list[str]]:
    """Rows of each kind as sorted lines."""
    return {name: sorted(map(forms.to_json, found)) for name, found in rows.items()}


# ---------------------------------------------------------------------- plain Python


Key = tuple[str, str | None]
"""Fingerprint and start of the window, as rows name them."""


def starts_of(moment: int, spec: JobSpec) -> list[int | None]:
    """Starts of all windows that contain a moment."""
    if spec.windows is None:
        return [None]
    size, step, offset = spec.windows.size, spec.windows.slide or spec.windows.size, spec.windows.offset
    start = (moment - offset) // step * step + offset
    starts: list[int | None] = []
    while start + size > moment:
        starts.append(start)
        start -= step
    return starts


def period_of(moment: int, spec: JobSpec) -> tuple[int, int]:
    """Start and end of a moment's base period: of the longest that begin and end where windows may begin and end."""
    assert spec.windows is not None
    size, step, offset = spec.windows.size, spec.windows.slide or spec.windows.size, spec.windows.offset
    length = math.gcd(size, step)
    edges = {(offset + number * step + end) % length for number in range(50) for end in (0, size)}
    assert len(edges) == 1, "of any window"
    start = moment - (moment - edges.pop()) % length
    return start, start + length


def by_window(batches: Sequence[ReportBatch], spec: JobSpec) -> dict[Key, CohortCounts]:
    """Counts of each collection and window, each of which is counted alone."""
    inside: dict[tuple[str, int | None], list[int]] = defaultdict(list)
    found = {of.fingerprint.hex(): (of, batch) for of, batch in zip(spec.collections, batches)}
    for name, (_, batch) in found.items():
        for i, moment in enumerate(batch.event_times.tolist()):
            for start in starts_of(moment, spec):
                inside[name, start].append(i)
    return {
        (name, None if start is None else rfc3339(start)): found[name][0].count(found[name][1][np.array(rows)])
        for (name, start), rows in inside.items()
    }


def last_panes(rows: Sequence[Any]) -> dict[Key, Any]:
    return {(row.fingerprint, row.window_start): row for row in sorted(rows, key=lambda row: row.pane_index)}


def check_windows(rows: dict[str, list[Any]], expected: dict[Key, CohortCounts], spec: JobSpec) -> None:
    """The last row of each window, of estimates and of counts, is that of numpy."""
    counts = {
        key: CohortCounts(np.array(row.num_reports), np.array(row.cells).reshape(len(row.num_reports), -1))
        for key, row in last_panes(rows["counts"]).items()
    }
    assert counts == expected
    estimates = last_panes(rows["estimates"])
    assert estimates.keys() == expected.keys()
    of = {item.fingerprint.hex(): item for item in spec.collections}
    for key, row in estimates.items():
        if expected[key].total < spec.min_reports:
            assert (row.status, row.num_reports, list(row.estimates)) == ("suppressed", None, [])
            continue
        open_alphabet = of[key[0]].alphabet.known_values is None
        estimate = of[key[0]].estimate(expected[key], spec.estimator, spec.candidates if open_alphabet else None)
        assert (row.status, row.num_reports) == ("ok", expected[key].total)
        assert [entry.value for entry in row.estimates] == list(estimate.values)
        assert [entry.frequency for entry in row.estimates] == estimate.frequencies.tolist()
        assert [entry.standard_error for entry in row.estimates] == estimate.standard_errors.tolist()
        size = None if spec.windows is None else spec.windows.size
        assert row.window_end == (None if size is None else _later(row.window_start, size))
    flattened = [value for row in rows["estimates"] for value in flat(row)]
    assert Counter(map(forms.to_json, rows["values"])) == Counter(map(forms.to_json, flattened))
    places = [(row.fingerprint, row.window_start, row.pane_index) for row in rows["estimates"]]
    assert Counter(places) == Counter((row.fingerprint, row.window_start, row.pane_index) for row in rows["health"])


def _later(start: str, milliseconds: int) -> str:
    return rfc3339(timestamp_of(start).micros // 1000 + milliseconds)


# ---------------------------------------------------------------------- batches


@windowed
@pytest.mark.parametrize("deduplicate", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_messages_give_the_rows_of_the_transforms_and_of_numpy(windows: dict[str, Any], deduplicate: bool) -> None:
    batches = some_reports("batch")
    messages = [*wire.encode_reports(batches[0]), wire.encode_batch(batches[1]), GARBAGE, GARBAGE]
    messages += wire.encode_reports(batches[0][:50]) * deduplicate
    values = PLAIN | windows | {"deduplicate": deduplicate}
    rows = run(beam.Create(messages), EstimateReports(with_counts=True, **values))
    spec = JobSpec.of(**values)
    assert in_order(rows) == in_order(run(beam.Create(messages), EstimateReports(spec, with_counts=True)))
    assert in_order(rows) == in_order(run(beam.Create(messages), ByHand(spec)))
    check_windows(rows, by_window(batches, spec), spec)
    assert not replay.unbalanced(rows["ledger"])
    assert sum(replay.sum_ledger(rows["ledger"]).values(), Counter()) == +Counter(
        received=800 + 50 * deduplicate, accepted=800, duplicates=50 * deduplicate
    )
    assert replay.sum_unread(rows["ledger"]) == (Counter(malformed=2), Counter())
    assert [(row.num_reports, row.num_messages) for row in rows["rejected"]] == [(0, 2)]


@windowed
def test_the_ledger_is_by_base_period(windows: dict[str, Any]) -> None:
    batches = some_reports("ledger")
    spec = JobSpec.of(**PLAIN | windows)
    rows = run(beam.Create(list(map(wire.encode_batch, batches))), EstimateReports(spec, with_counts=True))
    expected: Counter[Any] = Counter()
    for batch in batches:
        for moment in batch.event_times.tolist():
            span = (None, None) if spec.windows is None else tuple(map(rfc3339, period_of(moment, spec)))
            expected[(batch.fingerprint.hex(), *span)] += 1
    found = {(row.fingerprint, row.window_start, row.window_end): row.accepted for row in rows["ledger"]}
    assert found == expected
    assert len(rows["ledger"]) == len(found)


BERLIN = CalendarWindows(size=1, unit="d", timezone="Europe/Berlin")


def test_beams_own_windows_give_the_same_rows() -> None:
    """Which windows they are: ``test_windows_of_beam.py``."""
    messages = list(map(wire.encode_batch, some_reports("beam")))
    for values, window_fn in [
        ({"window": "20m", "slide": "10m", "window_offset": "7m"}, beam.window.SlidingWindows(1200, 600, 420)),
        ({"window": "1d", "timezone": BERLIN.timezone}, CalendarWindowFn(BERLIN)),
    ]:
        ours = run(beam.Create(messages), EstimateReports(with_counts=True, **PLAIN | values))
        assert in_order(ours) == in_order(
            run(beam.Create(messages), EstimateReports(with_counts=True, **PLAIN, window=window_fn))
        )


def test_a_file_says_the_same_as_arguments(tmp_path: Path) -> None:
    values = PLAIN | WINDOWS["sliding, offset"]
    write_files(tmp_path, {"job.json": json.dumps(values)})
    messages = list(map(wire.encode_batch, some_reports("file of values")))
    rows = run(beam.Create(messages), EstimateReports(JobSpec.from_json(tmp_path / "job.json"), with_counts=True))
    assert in_order(rows) == in_order(run(beam.Create(messages), EstimateReports(with_counts=True, **values)))


@windowed
def test_files_that_cannot_be_read_are_in_the_ledger_too(windows: dict[str, Any], tmp_path: Path) -> None:
    """A file that is none, a block that is cut off, one that holds no report, and a report of another job."""
    batches = some_reports("files")
    singles = [(1, message) for message in wire.encode_reports(batches[0])]
    whole = container([(1, wire.encode_batch(batches[1]))], BATCH)
    files = {"1.avro": container(singles), "2.avro": whole, "3.avro": whole[:-20], "4.avro": b"no file of ours"}
    files["5.avro"] = container([(1, wire.encode_reports(batches[0][:1])[0][:-1])], REPORT)
    files["6.avro"] = container([(1, single(STRANGER))], REPORT)
    write_files(tmp_path, files)
    rows = run(ReadReportFiles(f"{tmp_path}/*.avro"), EstimateReports(with_counts=True, **PLAIN | windows))
    spec = JobSpec.of(**PLAIN | windows)
    check_windows(rows, by_window(batches, spec), spec)
    assert not replay.unbalanced(rows["ledger"])
    sums = sum(replay.sum_ledger(rows["ledger"]).values(), Counter())
    assert sums == Counter(received=801, accepted=800, unknown_collection=1)
    assert replay.sum_unread(rows["ledger"]) == (Counter(), Counter(corrupt_block=2, bad_magic=1))
    numbers = sorted((row.source, row.reason, row.num_reports, row.num_files) for row in rows["rejected"])
    assert numbers == [
        ("3.avro", "corrupt_block", 0, 1),
        ("4.avro", "bad_magic", 0, 1),
        ("5.avro", "corrupt_block", 0, 1),
        ("message", "unknown_collection", 1, 0),
    ]


def test_messages_of_files_alone_leave_their_faults_out(tmp_path: Path) -> None:
    """Whoever takes the messages only has to account for the rest."""
    write_files(tmp_path, {"1.avro": container([(1, m) for m in wire.encode_reports(some_reports("alone")[0])])})
    write_files(tmp_path, {"2.avro": b"no file of ours"})
    values = PLAIN | WINDOWS["fixed"]

    class Messages(beam.PTransform):
        def expand(self, begin: Any) -> Any:
            return (begin | ReadReportFiles(f"{tmp_path}/*.avro")).messages

    rows = run(Messages(), EstimateReports(with_counts=True, **values))
    assert sum(row.received for row in rows["ledger"]) == 400
    assert not rows["rejected"]
    rows = run(ReadReportFiles(f"{tmp_path}/*.avro"), EstimateReports(with_counts=True, **values))
    assert sum(row.received for row in rows["ledger"]) == 400
    assert replay.sum_unread(rows["ledger"]) == (Counter(), Counter(bad_magic=1))
    assert [(row.source, row.num_reports, row.num_files) for row in rows["rejected"]] == [("2.avro", 0, 1)]


# ---------------------------------------------------------------------- streams


LATENESS = 5 * MINUTE
SKEW = 2 * MINUTE


def random_stream(rng: np.random.Generator) -> tuple[list[Event], list[tuple[ReportBatch, int]]]:
    """Reports of an hour, many of them late, some too old and some too early; and when each batch arrived."""
    events: list[Event] = []
    sent: list[tuple[ReportBatch, int]] = []
    arrival = watermark = NOON
    for number in range(12):
        of, n = COLLECTIONS[number % 2], int(rng.integers(20, 60))
        times = arrival + rng.integers(-25 * MINUTE, 4 * MINUTE, n)
        batch = of.perturb(rng.choice(cases.VALUES, n).tolist(), rng, times)
        events.append(replay.arrive(arrival, [wire.encode_batch(batch)]))
        sent.append((batch, arrival))
        arrival += int(rng.integers(MINUTE, 9 * MINUTE))
        behind = arrival - int(rng.integers(1, MINUTE))
        if behind > watermark:
            watermark = behind
            events.append(replay.watermark(watermark))
    return events, sent


def judge(sent: Sequence[tuple[ReportBatch, int]], spec: JobSpec) -> tuple[list[ReportBatch], Counter[Any]]:
    """The reports that count, of each collection; and the number of all by base period and verdict."""
    kept: dict[bytes, list[ReportBatch]] = {of.fingerprint: [] for of in spec.collections}
    books: Counter[Any] = Counter()
    for batch, arrival in sent:
        good = []
        for i, moment in enumerate(batch.event_times.tolist()):
            start, end = period_of(moment, spec)
            early, old = moment > arrival + SKEW, arrival >= end + LATENESS
            verdict = "too_early" if early else "too_old" if old else "accepted"
            place = (batch.fingerprint.hex(), rfc3339(start), rfc3339(end))
            books[(*place, verdict)] += 1
            books[(*place, "received")] += 1
            good += [i] * (verdict == "accepted")
        kept[batch.fingerprint].append(batch[np.array(good, np.int64)])
    return [ReportBatch.concatenate(parts) for parts in kept.values()], books


@in_stream
@pytest.mark.parametrize("release", ["corrected", "final"])
def test_a_stream_gives_the_rows_of_plain_python(windows: dict[str, Any], release: str) -> None:
    """Late reports count until their base period and the lateness are over; windows start at their offset."""
    events, sent = random_stream(generator("stream", release, *windows.values()))
    late = {
        "allowed_lateness": f"{LATENESS}ms",
        "future_skew": f"{SKEW}ms",
        "lateness_slack": "10m",
        "release": release,
    }
    if release == "corrected":
        late["late_every"] = "0s"  # the engine would wait for the clock
    values = PLAIN | windows | late
    rows = run(replay.stream(events), EstimateReports(with_counts=True, **values), replay.stream_options())
    spec = JobSpec.of(**values)
    assert in_order(rows) == in_order(run(replay.stream(events), ByHand(spec), replay.stream_options()))
    kept, books = judge(sent, spec)
    check_windows(rows, by_window(kept, spec), spec)
    found: Counter[Any] = Counter()
    for row in rows["ledger"]:
        for name, number in {"received": row.received, "accepted": row.accepted, **row.rejected}.items():
            found[row.fingerprint, row.window_start, row.window_end, name] += number
    assert +found == books
    refused: Counter[Any] = Counter()
    for row in rows["rejected"]:
        refused[row.fingerprint, row.window_start, row.window_end, row.reason] += row.num_reports
    assert refused == {key: n for key, n in books.items() if key[-1] not in ("received", "accepted")}
    assert {key[-1] for key in books} == {"received", "accepted", "too_old", "too_early"}
    panes = Counter((row.fingerprint, row.window_start) for row in rows["estimates"])
    timings = {row.pane_timing for row in rows["estimates"]}
    if release == "final":
        assert set(panes.values()) == {1}
        assert timings == {"ON_TIME"}
    else:
        assert max(panes.values()) > 1
        assert timings == {"ON_TIME", "LATE"}


# ---------------------------------------------------------------------- any windows


def few_periods(size: int, slide: int) -> bool:
    return size <= MAX_PERIODS * math.gcd(size, slide)


@st.composite
def any_windows(draw: st.DrawFn) -> Windows:
    """Of any size, at most nine of which hold a moment, and any offset."""
    unit = draw(st.sampled_from([1, 7, MINUTE, 24 * 60 * MINUTE]))
    size = draw(st.integers(1, 24)) * unit
    slide = draw(st.none() | st.integers(-(-size // 9), size).filter(lambda slide: few_periods(size, slide)))
    return Windows(size=size, slide=slide, offset=draw(st.integers(0, (slide or size) - 1)))


@settings(max_examples=30, derandomize=True)
@given(any_windows(), st.lists(st.floats(-30, 30), min_size=1, max_size=40), st.sampled_from([0, NOON]))
def test_a_report_is_in_exactly_the_windows_that_contain_its_time(
    windows: Windows, places: list[float], middle: int
) -> None:
    """Times are drawn in units of the slide, so that many stand on edges."""
    spec = JobSpec(collections=(KRR,), windows=windows)
    edge = middle // windows.step * windows.step + windows.offset
    times = [edge + round(place * windows.step) for place in places] + [edge, edge - 1, edge + windows.size]
    batch = KRR.perturb(["1"] * len(times), generator("any windows"), times)
    with replay.collector() as (collect, panes):
        with beam.Pipeline(options=FILES) as pipeline:
            decoded = pipeline | beam.Create([wire.encode_batch(batch)]) | DecodeReports(spec)
            _ = (decoded.reports | CountReports(spec)).counts | collect
        found = {(key.hex(), rfc3339(window.start.micros // 1000)): counts for (key, counts), window, _ in panes}
        assert len(found) == len(panes)
        assert {int(window.end.micros - window.start.micros) for _, window, _ in panes} == {windows.size * 1000}
    assert found == by_window([batch], spec)


# ---------------------------------------------------------------- files that say more


def test_one_simulated_file_marks_all_rows_and_pooled_rows_are_in_no_ledger(tmp_path: Path) -> None:
    """Reports of two versions of a question, of which one file says that its reports are simulated; and no file."""
    versions = [dataclasses.replace(KRR, version=number, question="what") for number in (1, 2)]
    for one, says in zip(versions, ({}, {RANDOMNESS: SEEDED.encode()})):
        batch = one.perturb(["0"] * 30, generator("simulated", one.version), [NOON] * 30)
        messages = [(1, message) for message in wire.encode_reports(batch)]
        write_files(tmp_path, {f"{one.version}.avro": container(messages, **says), "3.avro": b"no file of ours"})
    transform = EstimateReports(collections=versions, window="10m", min_reports=20, with_counts=True)
    rows = run(ReadReportFiles(f"{tmp_path}/*.avro"), transform)
    assert sorted(row.num_reports for row in rows["estimates"]) == [30, 30, 60]
    assert all(row.simulated for name in ("estimates", "values", "counts") for row in rows[name])
    assert [row.source for row in rows["rejected"]] == ["3.avro"]
    assert not replay.unbalanced(rows["ledger"])


def test_values_that_are_found_in_a_simulated_file_say_so(tmp_path: Path) -> None:
    alphabet = {"id": "prefixes", "num_buckets": 64, "tokens": ["a", "b"], "lengths": [1, None]}
    words = collection("words", alphabet, "krr", num_cohorts=16)
    words = dataclasses.replace(words, mechanism=dataclasses.replace(words.mechanism, epsilon=8.0))
    batch = words.perturb(["ab"] * 1000, generator("found"), [NOON] * 1000)
    messages = [(1, message) for message in wire.encode_reports(batch)]
    for says in ({}, {RANDOMNESS: SEEDED.encode()}):
        write_files(tmp_path, {"1.avro": container(messages, **says)})
        transform = EstimateReports(collections=[words], window="10m", discover=True)
        found = run(ReadReportFiles(f"{tmp_path}/*.avro"), transform)["discovered"]
        assert [(row.value, row.num_reports, row.simulated) for row in found] == [("ab", 1000, bool(says))]
