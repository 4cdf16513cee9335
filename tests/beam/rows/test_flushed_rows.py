"""Files of a stream are made by time and size, whatever bundles rows come in; a row is in one of them, once."""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import apache_beam as beam
import fastavro
import numpy as np
import pytest
from apache_beam.testing.test_stream import ElementEvent, Event, TestStream
from apache_beam.transforms.window import TimestampedValue

from tests.support import cases, live, replay
from tests.support.jobs.late_reports import ANIMALS, BEGIN, HOUR, LATE, MINUTE, bundles, reports, write
from uldp_transforms.jobs.files import flushed_rows
from uldp_transforms.jobs.records import row_file_options
from uldp_transforms.jobs.records.row_file_options import flush_every
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.jobs.sinks import RowFiles
from uldp_transforms.jobs.sinks.row_files import WriteRowFiles
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_identity import name_of, span_of
from uldp_transforms.rows.row_types import LEDGER_SCHEMA, LedgerRow
from uldp_transforms.spec.spec_fields import CORRECTED, FINAL
from uldp_transforms.windows import Windows

KINDS = {"estimates.jsonl": 1, "estimates.avro": 1, "health.jsonl": 1, "ledger.jsonl": 1, "counts.avro": 1}


def files(folder: Path) -> Counter[str]:
    """How many there are of each kind."""
    return Counter(f"{path.name.partition('-')[0]}{path.suffix}" for path in folder.iterdir())


def avro_rows(folder: Path, name: str) -> list[Any]:
    rows: list[Any] = []
    for path in folder.glob(f"{name}-*.avro"):
        with path.open("rb") as file:
            rows += fastavro.reader(file)
    return rows


@pytest.mark.parametrize("flush_every", [1_000, MINUTE, 10 * MINUTE])
def test_rows_that_wait_are_in_one_file_of_each_kind(flush_every: int, tmp_path: Path) -> None:
    """They are the rows that would be in a file of their own each; at the end of the stream nothing waits any more.

    Rows of the ledger are of two hours of arrival, and wait for the watermark: a file for each.
    """
    many = write(tmp_path / "many", LATE, 0)
    few = write(tmp_path / "few", LATE, flush_every)
    assert files(few) == Counter(KINDS) + Counter(["ledger.jsonl"])
    assert files(many) > files(few)
    for name in ("estimates", "health", "ledger"):
        assert sorted(map(repr, live.rows(few, name))) == sorted(map(repr, live.rows(many, name)))
    for name in ("estimates", "counts"):
        assert sorted(map(repr, avro_rows(few, name))) == sorted(map(repr, avro_rows(many, name)))
    assert len(live.rows(few, "estimates")) == 21


def test_rows_are_written_when_their_time_is_over(tmp_path: Path) -> None:
    """By the clock of the worker, though the stream does not end."""
    now = time.time_ns() // 1_000_000
    first = [replay.clock(now), *LATE, replay.clock(20 * MINUTE)]
    more = bundles(1, BEGIN + HOUR + 2 * MINUTE, BEGIN)
    assert files(write(tmp_path, [*first, *more], 10 * MINUTE)) == Counter(dict.fromkeys(KINDS, 2))


def test_many_bytes_do_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flushed_rows, "MOST_BYTES", 5_000)
    folder = write(tmp_path, LATE, 10 * MINUTE)
    assert len(live.rows(folder, "estimates")) == 21
    sizes = [path.stat().st_size for path in folder.glob("estimates-*.jsonl")]
    assert len(sizes) > 1
    longest = max(len(line) for path in folder.glob("estimates-*.jsonl") for line in path.read_bytes().splitlines(True))
    assert max(sizes) <= 5_000 + longest


def test_refused_reports_are_all_written(tmp_path: Path) -> None:
    """Their rows may be equal, and none stands for another."""
    folder = write(tmp_path, [replay.arrive(BEGIN, [b"\x02garbage"])] * 4, MINUTE)
    assert len(avro_rows(folder, "rejected")) == 4
    assert files(folder)["rejected.avro"] == 1


WINDOWS = [(0, 4), (1, 3), (5, 2)]
"""Hours, and how many reports each has."""


def hours(*, single: bool) -> list[Event]:
    """Some windows, in bundles of one report or not."""
    events: list[Event] = []
    for hour, number in WINDOWS:
        moment = BEGIN + hour * HOUR
        arrive = bundles(number, moment, moment) if single else [replay.arrive(moment, reports(1, moment) * number)]
        events += [*arrive, replay.watermark(moment + 30 * MINUTE)]
    return events


def test_what_is_final_has_the_same_files_again(tmp_path: Path) -> None:
    """A worker that repeats its work writes the same names and bytes, in whatever bundles it gets them."""
    one, other = (
        write(tmp_path / str(single), hours(single=single), MINUTE, release=FINAL) for single in (True, False)
    )
    final = ("estimates", "health", "counts")
    contents = [
        {path.name: path.read_bytes() for name in final for path in folder.glob(f"{name}-*")} for folder in (one, other)
    ]
    assert contents[0] == contents[1]
    assert [row["num_reports"] for row in sorted(live.rows(one, "estimates"), key=lambda row: row["window_start"])] == [
        number for _, number in WINDOWS
    ]
    assert files(one)["estimates.jsonl"] == len(WINDOWS)


def test_windows_that_are_final_together_have_one_file(tmp_path: Path) -> None:
    places = Collection.from_json(cases.COLLECTIONS["hashed-krr"].to_json() | {"id": "places"})
    moment = BEGIN + MINUTE
    both = reports(3, moment) + wire.encode_reports(places.perturb(["ant"] * 3, np.random.default_rng(1), [moment] * 3))
    job = replay.streaming_job([ANIMALS, places], Windows(size=HOUR), release=FINAL, candidates=("ant", "bee"))
    sink = RowFiles(str(tmp_path), unbounded=True, forms=RowForms(), flush_every=MINUTE, final=True)
    replay.run(dataclasses.replace(job, sinks=(sink,)), [replay.arrive(moment, both)])
    assert len(live.rows(tmp_path, "estimates")) == 2
    assert files(tmp_path) == Counter({name: 1 for name in KINDS if name != "counts.avro"})


@pytest.mark.parametrize("release", [CORRECTED, FINAL])
def test_a_stream_without_reports_has_no_files(release: str, tmp_path: Path) -> None:
    write(tmp_path, [replay.watermark(BEGIN)], MINUTE, release=release)
    assert list(tmp_path.iterdir()) == []


def sums(moment: int, *numbers: int) -> Event:
    """A bundle of rows of the ledger, of one moment."""
    empty: Any = {"accepted": 0, "duplicates": 0, "rejected": {}}
    rows = [LedgerRow(**name_of(None), **span_of(None, None), received=number, **empty) for number in numbers]
    return ElementEvent([TimestampedValue(row, replay.timestamp(moment)) for row in rows])


def write_sums(folder: Path, *events: Event) -> list[int]:
    """Write such rows; returns what all files of the folder say then, in order of their names."""
    to = WriteRowFiles(
        str(folder), "ledger", "jsonl", LEDGER_SCHEMA, unbounded=True, flush_every=MINUTE, final=True, late=10 * MINUTE
    )
    with beam.Pipeline(options=replay.stream_options()) as pipeline:
        rows = pipeline | TestStream(events=events, output_tags=[None]).with_output_types(LedgerRow)
        _ = rows | "Write" >> to
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_text("utf-8").splitlines()]
    return [json.loads(line)["received"] for line in lines]


ON_TIME = [sums(BEGIN, 100, 7), replay.watermark(BEGIN + 2 * MINUTE)]


@pytest.mark.parametrize("first, second", [([20], []), ([], [20]), ([20], [5, 15]), ([5, 15], [20])])
def test_sums_that_come_again_in_other_portions_count_once(first: list[int], second: list[int], tmp_path: Path) -> None:
    """Work that is done again may find late what was in time, or the other way round: its files replace the others."""

    def attempt(late: list[int]) -> list[int]:
        if not late:
            return write_sums(tmp_path, sums(BEGIN, 120, 7), replay.watermark(BEGIN + 2 * MINUTE))
        return write_sums(tmp_path, *ON_TIME, *(sums(BEGIN, number) for number in late))

    assert sum(attempt(first)) == 127
    assert sum(attempt(second)) == 127
    assert [path.name for path in tmp_path.iterdir()] == [f"ledger-{BEGIN}-{MINUTE}-0.jsonl"]


def test_sums_are_written_when_the_watermark_passes_their_slot(tmp_path: Path) -> None:
    """And what a slot has is forgotten when nothing of it can come any more."""
    hour = replay.watermark(BEGIN + HOUR)
    assert write_sums(tmp_path, *ON_TIME, sums(BEGIN + MINUTE, 9), hour, sums(BEGIN + HOUR, 1)) == [100, 7, 9, 1]


def test_many_sums_of_a_slot_have_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flushed_rows, "MOST_BYTES", 1_000)
    numbers = list(range(100, 120))
    for _ in range(2):
        assert sorted(write_sums(tmp_path, *(sums(BEGIN, number) for number in numbers), ON_TIME[1])) == numbers
    assert 1 < len(list(tmp_path.iterdir())) < len(numbers)


@pytest.mark.parametrize(("given", "milliseconds"), [(None, row_file_options.FLUSH_EVERY), (0, 0), (1500, 1500)])
def test_a_command_line_says_how_long_rows_are_collected(given: int | None, milliseconds: int) -> None:
    assert flush_every(argparse.Namespace(flush_every=given)) == milliseconds
