"""Groups of a stream that borrow: their rows come together, and are those of the same reports in a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from apache_beam.testing.test_stream import Event
from apache_beam.transforms.window import IntervalWindow
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming
from hypothesis import given
from hypothesis import strategies as st

from tests.support import replay
from tests.support.messages_cases import KRR, container
from tests.support.tolerance import generator
from uldp_transforms.beam.runtime import engines, panes
from uldp_transforms.beam.runtime.beam_windows import in_window
from uldp_transforms.beam.runtime.coders import CohortCountsCoder
from uldp_transforms.beam.transforms.estimate_together import _Emitted, _Family, _HoldFamilyFn, _Part
from uldp_transforms.collector.period_counts import count_batches
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.group_keys import owner_of_group
from uldp_transforms.rows.row_types import WindowedEstimate
from uldp_transforms.spec.spec_fields import FINAL
from uldp_transforms.windows import Windows

MINUTE = 60_000
PERIOD = 10 * MINUTE
START = 1_000_000_000_000 // PERIOD * PERIOD
ARMS = ["new", "old", "other"]
FORM = KRR.to_json() | {"id": "diet", "question": "diet", "dimensions": [{"name": "arm", "values": ["new", "old"]}]}
VERSIONS = [
    Collection.from_json(FORM),
    Collection.from_json(FORM | {"version": 2, "mechanism": {"id": "ss", "epsilon": 2.0}}),
]
FIRST, SECOND = VERSIONS
SCHEMA = Path(__file__).parents[3] / "schemas" / "report_batch.avsc"
Drawn = dict[tuple[Any, ...], tuple[Any, list[float]]]


def reports(of: Collection, number: int, moment: int, name: object = "", arms: Sequence[str] = ARMS) -> Any:
    """Reports of people who are alike in all arms, so that much is borrowed."""
    rng = generator("together", of.version, number, moment, name)
    values = rng.choice(["0", "1", "2"], number, p=[0.6, 0.3, 0.1]).tolist()
    times = moment + rng.integers(0, MINUTE, number)
    return of.perturb(values, rng, times, {"arm": rng.choice(arms, number).tolist()})


ASKED: dict[str, Any] = {"by": ("arm",), "borrow": True}


def arrive(moment: int, *batches: Any) -> Event:
    return replay.arrive(moment, [wire.encode_batch(batch) for batch in batches])


def streamed(events: Sequence[Event], **fields: Any) -> dict[str, list[Any]]:
    asked = {"allowed_lateness": PERIOD} | ASKED | fields
    found = replay.replay(replay.streaming_job(VERSIONS, Windows(size=PERIOD), **asked), events)
    assert replay.unbalanced(found["ledger"]) == []
    return found


@pytest.fixture
def of_files(tmp_path: Path) -> Callable[..., Drawn]:
    """What the same reports in a file show."""

    def drawn_of(*batches: Any, **fields: Any) -> Drawn:
        messages = [(1, wire.encode_batch(batch)) for batch in batches]
        path = tmp_path / "reports.avro"
        path.write_bytes(container(messages, schema=json.loads(SCHEMA.read_text("utf-8"))))
        job = replay.file_job(VERSIONS, Windows(size=PERIOD), str(path), **ASKED | fields)
        return drawn(replay.replay(job)["estimates"])

    return drawn_of


def owner(row: WindowedEstimate) -> tuple[Any, ...]:
    return bool(row.pooled), row.collection_version, row.group


def drawn(rows: Sequence[WindowedEstimate]) -> Drawn:
    """Shares and weight by owner, of rows of one pane."""
    found = {owner(row): (row.borrowed, [entry.frequency for entry in row.estimates]) for row in rows}
    assert len(found) == len(rows)
    return found


def panes_of(rows: Sequence[WindowedEstimate]) -> dict[tuple[int, str], list[WindowedEstimate]]:
    """The rows by index and timing of their pane, of one window, in the order of the panes."""
    found: dict[tuple[int, str], list[WindowedEstimate]] = {}
    for row in sorted(rows, key=lambda row: row.pane_index):
        found.setdefault((row.pane_index, row.pane_timing), []).append(row)
    return found


def test_rows_of_a_stream_are_those_of_the_same_reports_in_a_file(of_files: Callable[..., Drawn]) -> None:
    """On time for everybody and each group, of collections and their question; and again with late reports of one."""
    batches = [reports(FIRST, 600, START), reports(SECOND, 500, START)]
    late = reports(FIRST, 70, START, "late", ["old"])
    events = [
        *(arrive(START, batch) for batch in batches),
        replay.watermark(START + PERIOD),
        arrive(START + PERIOD, late),
        replay.watermark(START + 3 * PERIOD),
    ]
    found = streamed(events)
    on_time, corrected = of_files(*batches), of_files(*batches, late)
    assert len(on_time) == 3 * 4, "two versions and their question; everybody and three groups"
    assert {weight is None for (_, _, group), (weight, _) in on_time.items() if not group} == {True}
    assert all(weight for (_, _, group), (weight, _) in on_time.items() if group)
    news = {place for place in corrected if place[1] != SECOND.version and place[2] in ("", "arm=old")}
    by_pane = panes_of(found["estimates"])
    assert list(by_pane) == [(0, "ON_TIME"), (1, "LATE")]
    assert drawn(by_pane[0, "ON_TIME"]) == on_time
    assert drawn(by_pane[1, "LATE"]) == {place: corrected[place] for place in news}
    assert {row.interval for row in found["estimates"]} == {"anytime"}
    assert sorted(len(row.findings) > 0 for row in found["health"] if row.pane_index == 0) == [True] * 3


def test_early_panes_that_come_together_make_one_of_all(
    of_files: Callable[..., Drawn], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "processing_time", lambda: 2 * MINUTE / 1000)
    first, second = reports(FIRST, 600, START), reports(FIRST, 300, START, "second", ["new"])
    events = [
        arrive(START, first),
        replay.clock(2 * MINUTE),
        replay.clock(2 * MINUTE),
        arrive(START, second),
        replay.watermark(START + 3 * PERIOD),
    ]
    by_pane = panes_of(streamed(events, early_every=MINUTE)["estimates"])
    assert list(by_pane) == [(0, "EARLY"), (1, "ON_TIME")]
    assert drawn(by_pane[0, "EARLY"]) == of_files(first)
    assert drawn(by_pane[1, "ON_TIME"]) == of_files(first, second)


def test_final_rows_come_once(of_files: Callable[..., Drawn]) -> None:
    first, late = reports(FIRST, 600, START), reports(SECOND, 90, START, "late")
    events = [
        arrive(START, first),
        replay.watermark(START + PERIOD),
        arrive(START + PERIOD, late),
        replay.watermark(START + 5 * PERIOD),
    ]
    rows = streamed(events, release=FINAL, allowed_lateness=5 * MINUTE)["estimates"]
    assert drawn(rows) == of_files(first, late)
    assert {(row.pane_index, row.pane_timing, row.interval) for row in rows} == {(0, "ON_TIME", "fixed")}


def test_what_is_borrowed_is_smoothed_too() -> None:
    events: list[Event] = []
    for moment in range(START, START + 3 * PERIOD, PERIOD):
        events += [arrive(moment, reports(FIRST, 600, moment)), replay.watermark(moment + PERIOD)]
    events.append(replay.watermark(START + 9 * PERIOD))
    found = streamed(events, smooth=True)
    last = [row for row in found["estimates"] if row.window_start == found["estimates"][-1].window_start]
    assert {row.group for row in last} == {"", "arm=new", "arm=old", "arm=other"}
    assert all((row.borrowed is not None) == bool(row.group) for row in last)
    assert all(entry.smoothed_frequency is not None for row in last for entry in row.estimates)


def test_a_drained_window_has_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panes, "now", lambda: START)
    events = [arrive(START, reports(FIRST, 60, START)), *map(replay.watermark, (START + PERIOD, START + 9 * PERIOD))]
    rows = streamed(events)["estimates"]
    assert {(row.status, row.num_reports) for row in rows} == {("partial", None)}
    assert len(rows) == 2 * 4


def test_groups_that_an_updated_job_does_not_have_are_forgotten() -> None:
    """A window that is open during an update holds counts of a group of its question that no version has any more."""
    [question] = replay.spec(VERSIONS, Windows(size=PERIOD), bounded=False).questions
    nobody = owner_of_group(question.fingerprint, 1 << 20)
    spec = replay.spec(VERSIONS, Windows(size=PERIOD), bounded=False, **ASKED)
    encoded = CohortCountsCoder().encode(FIRST.count(reports(FIRST, 60, START)))
    parts = [_Part(True, False, 0, key, FIRST.fingerprint, encoded) for key in (question.fingerprint, nobody)]
    window = IntervalWindow(START // 1000, (START + PERIOD) // 1000)
    pane = PaneInfo(True, False, PaneInfoTiming.ON_TIME, 0, 0)
    rows = dict(_Family(spec).rows(parts, window, {part.owner: pane for part in parts}))
    assert list(rows) == [question.fingerprint]


@given(st.builds(_Part, *[st.booleans()] * 2, st.integers(0, 2**32 - 1), *[st.binary(max_size=99)] * 3))
def test_what_waits_survives_its_encoding(part: _Part) -> None:
    assert _Part.from_bytes(part.to_bytes()) == part


@given(st.dictionaries(st.binary(max_size=99), st.integers(0, 2**63)), st.booleans())
def test_what_was_emitted_survives_its_encoding(panes: dict[bytes, int], on_time: bool) -> None:
    said = _Emitted(panes, on_time)
    assert _Emitted.from_bytes(said.to_bytes()) == said
    assert _Emitted.from_bytes(None) == _Emitted({})


def test_panes_are_numbered_by_key() -> None:
    said, found = _Emitted({}), []
    for key, is_early in ((b"a", True), (b"a", True), (b"b", False), (b"a", False), (b"a", False)):
        pane = said.next_pane(key, is_early=is_early)
        assert pane.is_first == (pane.index == 0)
        found.append((key, PaneInfoTiming.to_string(pane.timing), pane.index, pane.nonspeculative_index))
        said.on_time |= key == b"a" and not is_early
    assert found == [
        (b"a", "EARLY", 0, -1),
        (b"a", "EARLY", 1, -1),
        (b"b", "ON_TIME", 0, 0),
        (b"a", "ON_TIME", 2, 2),
        (b"a", "LATE", 3, 3),
    ]


class Kept:
    """State of one key, as Beam's bag and value in one."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    def add(self, one: bytes) -> None:
        self.kept.append(one)

    def write(self, one: bytes) -> None:
        self.kept = [one]

    def clear(self) -> None:
        self.kept = []

    def read(self) -> list[bytes]:
        return self.kept


class KeptValue(Kept):
    def read(self) -> Any:
        return self.kept[-1] if self.kept else None


def test_each_pane_of_counts_has_a_row_though_several_wait() -> None:
    """Two early panes of a key and one of another come before the timer; one on time waits for the window's end."""
    spec = replay.spec(VERSIONS, Windows(size=PERIOD), bounded=False, **ASKED)
    fn = _HoldFamilyFn(spec)
    parts, emitted = Kept(), KeptValue()
    window = IntervalWindow(START // 1000, (START + PERIOD) // 1000)
    batches = {number: reports(FIRST, number, START) for number in (60, 90, 120)}
    counts = {number: dict(count_of_keys(batch)) for number, batch in batches.items()}
    group = next(key for key in counts[60] if key != FIRST.fingerprint)
    encode = CohortCountsCoder().encode
    for key, early, pane, number in (
        (FIRST.fingerprint, True, 1, 90),
        (FIRST.fingerprint, True, 0, 60),
        (group, True, 0, 60),
        (FIRST.fingerprint, False, 2, 120),
    ):
        parts.add(_Part(True, early, pane, key, key, encode(counts[number][key])).to_bytes())
    name = in_window(FIRST.fingerprint, window)

    def shown(rows: Iterable[Any]) -> set[tuple[Any, ...]]:
        found = [(value.value[0], value.pane_info, value.value[1][0].num_reports) for value in rows]
        return {(key, PaneInfoTiming.to_string(pane.timing), pane.index, number) for key, pane, number in found}

    assert shown(fn.early(name, parts, emitted)) == {
        (FIRST.fingerprint, "EARLY", 0, 60),
        (FIRST.fingerprint, "EARLY", 1, 90),
        (group, "EARLY", 0, counts[60][group].total),
    }
    assert shown(fn.early(name, parts, emitted)) == set()
    assert shown(fn.on_time_or_late(name, parts, emitted)) == {(FIRST.fingerprint, "ON_TIME", 2, 120)}
    parts.add(_Part(True, False, 3, group, group, encode(counts[90][group])).to_bytes())
    assert shown(fn.on_time_or_late(name, parts, emitted)) == {(group, "LATE", 1, counts[90][group].total)}
    assert len(parts.kept) == 2, "the latest of each key"
    assert list(fn.forget(parts, emitted)) == []
    assert parts.kept == emitted.kept == []


def count_of_keys(batch: Any) -> Iterator[tuple[bytes, Any]]:
    for (owner, _), counts in count_batches(CollectionCatalog((FIRST,)), [batch], None, False, ("arm",)):
        yield owner, counts
