"""The rows of a job over files: one file that is complete or absent, and memory that does not grow with the rows."""

from __future__ import annotations

import functools
import gc
import io
import os
import signal
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import fastavro
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from tests.support import forked, memory_store
from tests.support.rows.rows_of_all_kinds import ROWS, estimate_row
from uldp_transforms.beam.runtime.joined_file import WriteJoinedFile, _JoinedFile, _WritePartsFn
from uldp_transforms.collector import growing_files
from uldp_transforms.collector.growing_files import GROWING, TABLE_ENTRIES
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.jobs.sinks.row_files import WriteRowFiles
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA, ValueEstimate, WindowedEstimate

FORMS = tuple(GROWING)
OF_EACH_KIND = list({type(row): (row, schema) for row, schema in ROWS}.values())
ENTRIES = 100
HOUR = 3_600_000


def row_of(number: int) -> WindowedEstimate:
    """A row of one hour with different numbers in each entry."""
    entries = [
        ValueEstimate(f"value {at}", *((number + at) / 7 + part / 11 for part in range(7))) for at in range(ENTRIES)
    ]
    return estimate_row(number * HOUR, estimates=entries)


def many(number: int) -> Iterator[WindowedEstimate]:
    row = row_of(0)
    return (row._replace(run=str(at)) for at in range(number))


def read(content: bytes, form: str) -> Any:
    """The rows in a file; without what differs between equal ones."""
    if form == "jsonl":
        return content
    if form == "avro":
        return list(fastavro.reader(io.BytesIO(content)))
    return pq.read_table(io.BytesIO(content)).to_pylist()


def in_any_order(content: bytes, form: str) -> list[str]:
    rows = content.splitlines() if form == "jsonl" else read(content, form)
    return sorted(map(repr, rows))


def parts_of(joined: _JoinedFile, *bundles: list[Any], ends: bool = True) -> list[tuple[str, int]]:
    """What bundles pass on; nothing if they fail before their end."""
    found: list[tuple[str, int]] = []
    for rows in bundles:
        bundle = _WritePartsFn(joined)
        bundle.start_bundle()
        for row in rows:
            assert not list(bundle.process(row))
        found += [each.value for each in bundle.finish_bundle()] if ends else []
    return found


@pytest.fixture(params=["local", "store"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder on this machine, and one in a store."""
    monkeypatch.setattr(memory_store, "FILES", {})
    return "memory://rows" if request.param == "store" else str(tmp_path)


def files_in(folder: str) -> dict[str, bytes]:
    if "://" in folder:
        return {path.removeprefix(f"{folder}/"): content for path, content in memory_store.FILES.items()}
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


# ---------------------------------------------------------------------- the file


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("row", "schema"), OF_EACH_KIND, ids=lambda each: type(each).__name__)
def test_a_file_has_the_rows_of_all_bundles_that_ended(row: Any, schema: Any, form: str, folder: str) -> None:
    """Bundles are in any order; one that failed and was tried again is there once; a repeated step changes nothing."""
    joined = _JoinedFile(f"{folder}/rows.{form}", f"{folder}/rows.parts", form, schema)
    parts_of(joined, [row], ends=False)
    rows = [row._replace(run=f"run {number}") if "run" in row._fields else row for number in range(3)]
    found = parts_of(joined, [rows[0], rows[1]], [], [rows[2]])
    assert len(found) == 2 and f"rows.{form}" not in files_in(folder)
    joined.join(None, reversed(found))
    joined.join(None, iter(found))
    ordered = rows if found[0] < found[1] else [rows[2], *rows[:2]]
    written = files_in(folder)[f"rows.{form}"]
    assert read(written, form) == read(file_of(ordered, form, schema), form)
    joined.remove_parts(None)
    joined.remove_parts(None)
    assert files_in(folder) == {f"rows.{form}": written}


@pytest.mark.parametrize("form", FORMS)
def test_a_lone_part_becomes_the_file(form: str, folder: str) -> None:
    rows = [row_of(number) for number in range(3)]
    joined = _JoinedFile(f"{folder}/rows.{form}", f"{folder}/rows.parts", form, ESTIMATE_SCHEMA)
    joined.join(None, iter([]))
    assert read(files_in(folder)[f"rows.{form}"], form) == read(file_of([], form, ESTIMATE_SCHEMA), form)
    found = parts_of(joined, rows)
    joined.join(None, found)
    joined.join(None, found)  # an engine repeats the step: the part has become the file
    assert read(files_in(folder)[f"rows.{form}"], form) == read(file_of(rows, form, ESTIMATE_SCHEMA), form)
    [(path, size)] = found
    with pytest.raises(FileNotFoundError, match="is missing: --output must be a folder that all workers share"):
        joined.join(None, [(path, size + 1)])  # the file is that of an earlier run


def test_parts_of_another_file_are_refused(tmp_path: Path) -> None:
    """Their blocks end with other markers, so that no reader would find the next one."""
    parts = [
        part
        for name in ("one", "other")
        for part in parts_of(_JoinedFile("", str(tmp_path / name), "avro", ESTIMATE_SCHEMA), [row_of(0)])
    ]
    joined = _JoinedFile(str(tmp_path / "rows.avro"), str(tmp_path / "one"), "avro", ESTIMATE_SCHEMA)
    with pytest.raises(ValueError, match="is not a part of"):
        joined.join(None, parts)
    assert not (tmp_path / "rows.avro").exists()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "options", [{"direct_num_workers": 3, "direct_running_mode": "multi_threading"}, {"direct_runner_bundle_repeat": 1}]
)
def test_several_workers_and_repeated_bundles_write_one_file(
    options: dict[str, Any], form: str, tmp_path: Path
) -> None:
    path, number = tmp_path / f"rows.{form}", 40
    with beam.Pipeline(runner="FnApiRunner", options=PipelineOptions(**options)) as pipeline:
        rows = pipeline | beam.Create(range(number)) | beam.Reshuffle() | beam.Map(row_of)
        _ = rows | WriteJoinedFile(str(path), form, ESTIMATE_SCHEMA)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    expected = file_of(list(map(row_of, range(number))), form, ESTIMATE_SCHEMA)
    assert in_any_order(path.read_bytes(), form) == in_any_order(expected, form)


def test_row_groups_are_large_where_there_are_many_rows(tmp_path: Path) -> None:
    joined = _JoinedFile("", str(tmp_path), "parquet", ESTIMATE_SCHEMA)
    [(path, _)] = parts_of(joined, list(many(2 * TABLE_ENTRIES // ENTRIES)))
    groups = pq.ParquetFile(path).metadata
    assert 1 < groups.num_row_groups <= 3


# ---------------------------------------------------------------------- failures


def _failing(number: int) -> Iterator[WindowedEstimate]:
    yield from many(number)
    raise RuntimeError("a worker fails")


@pytest.mark.parametrize("form", FORMS)
def test_a_job_that_fails_leaves_the_file_of_the_job_before(form: str, tmp_path: Path) -> None:
    (tmp_path / f"estimates.{form}").write_bytes(b"old")
    for kind in ("estimates", "other"):
        with pytest.raises(RuntimeError, match="a worker fails"), beam.Pipeline() as pipeline:
            rows = pipeline | beam.Create([300]) | beam.FlatMap(_failing)
            _ = rows | WriteRowFiles(str(tmp_path), kind, form, ESTIMATE_SCHEMA, unbounded=False)
    assert (tmp_path / f"estimates.{form}").read_bytes() == b"old"
    assert not (tmp_path / f"other.{form}").exists()


def killed(number: int) -> Iterator[WindowedEstimate]:
    """Rows, and then the end of the process."""
    yield from many(number)
    os.kill(os.getpid(), signal.SIGKILL)


_JOB = """
import sys
import apache_beam as beam
from tests.jobs.sinks.test_one_file_of_rows import killed
from uldp_transforms.jobs.sinks.row_files import WriteRowFiles
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA
with beam.Pipeline() as pipeline:
    rows = pipeline | beam.Create([1000]) | beam.FlatMap(killed)
    for form in ("jsonl", "avro", "parquet"):
        _ = rows | form >> WriteRowFiles(sys.argv[1], "estimates", form, ESTIMATE_SCHEMA, unbounded=False, run="r")
"""


def test_a_job_that_is_killed_leaves_rows_only_in_parts(tmp_path: Path) -> None:
    """Rows are on the disk before the job ends, under no name that a reader takes for a complete file."""
    assert forked.run(_JOB, [str(tmp_path)], folder=tmp_path).returncode == -signal.SIGKILL
    assert {path.name for path in tmp_path.iterdir()} == {f"estimates.{form}.parts-r" for form in FORMS}
    least = {"jsonl": 0, "avro": len(file_of([], "avro", ESTIMATE_SCHEMA)), "parquet": len(b"PAR1")}
    for form in FORMS:
        [part] = (tmp_path / f"estimates.{form}.parts-r").iterdir()
        assert part.stat().st_size > least[form], form


# ---------------------------------------------------------------------- memory

MOST_GROWTH = 1.1
"""Largest ratio of the peaks of memory with four times as many rows."""


@functools.cache
def peak(form: str, number: int, folder: Path) -> int:
    """The largest number of bytes of Python objects while rows are written, without half a megabyte of old garbage."""
    usual = gc.get_threshold()
    gc.collect()
    gc.set_threshold(700, 10, 10)
    tracemalloc.start()
    try:
        with beam.Pipeline() as pipeline:
            rows = pipeline | beam.Create([number]) | beam.FlatMap(many)
            _ = rows | WriteRowFiles(str(folder), f"rows-{number}", form, ESTIMATE_SCHEMA, unbounded=False)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        gc.set_threshold(*usual)


@pytest.mark.parametrize("form", FORMS)
def test_memory_does_not_grow_with_the_rows(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beam's sinks for one file would hold 3 kB for each entry: 50 MB for the rows here, and 12 MB for a quarter."""
    peak("jsonl", 1, tmp_path)  # what Beam keeps for all pipelines
    entries = TABLE_ENTRIES // 4
    monkeypatch.setattr(growing_files, "TABLE_ENTRIES", entries)
    number = entries // ENTRIES
    assert peak(form, 4 * number, tmp_path) < MOST_GROWTH * peak(form, number, tmp_path)
