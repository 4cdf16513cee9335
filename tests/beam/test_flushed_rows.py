"""Files of a stream are made by time and size, whatever bundles rows come in; a row is in one of them, once."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from apache_beam.testing.test_stream import Event

from tests.support import cases, live, replay
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.pipelines import flushed_rows
from uldp_transforms.pipelines.sinks import RowFiles
from uldp_transforms.spec import CORRECTED, FINAL
from uldp_transforms.windows import Windows

ANIMALS = cases.COLLECTIONS["closed-sensitive-urr"]
MINUTE = 60_000
HOUR = 60 * MINUTE
BEGIN = 400_000 * HOUR
KINDS = {"estimates.jsonl": 1, "estimates.avro": 1, "health.jsonl": 1, "ledger.jsonl": 1, "counts.avro": 1}


def reports(number: int, moment: int) -> list[bytes]:
    return wire.encode_reports(ANIMALS.perturb(["ant"] * number, np.random.default_rng(1), [moment] * number))


def bundles(number: int, arrival: int, moment: int) -> list[Event]:
    """So many reports of one moment, each of which arrives in a bundle of its own."""
    return [replay.arrive(arrival, reports(1, moment)) for _ in range(number)]


def write(
    folder: Path, events: Sequence[Event], flush_every: int, *, with_parquet: bool = False, **fields: Any
) -> Path:
    """The files of a stream."""
    job = replay.streaming_job([ANIMALS], Windows(size=HOUR), allowed_lateness=HOUR, **fields)
    sink = RowFiles(
        str(folder),
        unbounded=True,
        with_counts=True,
        flush_every=flush_every,
        final=fields.get("release") == FINAL,
        with_parquet=with_parquet,
    )
    replay.run(dataclasses.replace(job, sinks=(sink,)), events)
    return folder


def files(folder: Path) -> Counter[str]:
    """How many there are of each kind."""
    return Counter(f"{path.name.partition('-')[0]}{path.suffix}" for path in folder.iterdir())


def avro_rows(folder: Path, name: str) -> list[Any]:
    rows: list[Any] = []
    for path in folder.glob(f"{name}-*.avro"):
        with path.open("rb") as file:
            rows += fastavro.reader(file)
    return rows


LATE = [
    *bundles(3, BEGIN + MINUTE, BEGIN),
    replay.watermark(BEGIN + HOUR + MINUTE),
    *bundles(20, BEGIN + HOUR + MINUTE, BEGIN),
]
"""A window that is corrected twenty times."""


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
    sink = RowFiles(str(tmp_path), unbounded=True, with_counts=False, flush_every=MINUTE, final=True)
    replay.run(dataclasses.replace(job, sinks=(sink,)), [replay.arrive(moment, both)])
    assert len(live.rows(tmp_path, "estimates")) == 2
    assert files(tmp_path) == Counter({name: 1 for name in KINDS if name != "counts.avro"})


@pytest.mark.parametrize("release", [CORRECTED, FINAL])
def test_a_stream_without_reports_has_no_files(release: str, tmp_path: Path) -> None:
    write(tmp_path, [replay.watermark(BEGIN)], MINUTE, release=release)
    assert list(tmp_path.iterdir()) == []
