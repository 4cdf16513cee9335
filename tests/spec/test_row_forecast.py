"""What a job says of its rows before it runs: their number is that of the rows that it then writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.support.messages_cases import NOON
from uldp_transforms.jobs import check, estimate
from uldp_transforms.jobs.records.row_directory import RowDirectory
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.spec.row_forecast import MANY, MANY_AT_ONCE, RowForecast

ARMS = {"name": "arm", "values": ["old", "new"]}


def collection(number: int, version: int = 1, **more: Any) -> Collection:
    values = [f"v{at}" for at in range(number)]
    spec = {"id": "many", "version": version, "alphabet": {"id": "closed", "values": values}}
    return Collection.from_json(spec | {"mechanism": {"id": "krr", "epsilon": 3}, "num_cohorts": 1} | more)


def write_reports(path: Path, batch: ReportBatch) -> None:
    with path.open("wb") as file:
        fastavro.writer(file, wire.BATCH_SCHEMA, [wire.batch_record(batch)])


def test_a_forecast_is_the_number_of_rows_and_entries(tmp_path: Path) -> None:
    """Of versions of a question and of groups; with the largest values only."""
    versions = [collection(5, 1, question="q", dimensions=[ARMS]), collection(5, 2, question="q", dimensions=[ARMS])]
    words = []
    for one in versions:
        (tmp_path / f"{one.version}.json").write_text(json.dumps(one.to_json()))
        people = [f"v{at % 5}" for at in range(900)]
        batch = one.perturb(people, None, [NOON] * 900, {"arm": ["old", "new", "other"] * 300})
        write_reports(tmp_path / f"{one.version}.avro", batch)
        words.append(f"--collection={tmp_path}/{one.version}.json")
    job = [*words, f"--input={tmp_path}/*.avro", f"--output={tmp_path}/rows", "--window=1h", "--by=arm", "--show=3"]
    assert estimate.main(job) == 0
    rows = [json.loads(line) for line in (tmp_path / "rows" / "estimates.jsonl").read_text("utf-8").splitlines()]
    forecast = RowForecast.of(JobSpec.of(collections=versions, window="1h", by=["arm"], show=3, bounded=True))
    assert (forecast.rows, forecast.entries) == (len(rows), sum(len(row["estimates"]) for row in rows)) == (12, 36)


@pytest.mark.parametrize(
    ("fields", "windows"),
    [
        ({}, None),
        ({"window": "1h"}, 720),
        ({"window": "1h", "slide": "20m"}, 2160),
        ({"window": "7d"}, 5),
        ({"window": "1w", "timezone": "Europe/Berlin"}, 5),
        ({"window": "2mo", "timezone": "Europe/Berlin"}, 1),
    ],
)
def test_windows_of_thirty_days(fields: dict[str, Any], windows: int | None) -> None:
    assert RowForecast.of(JobSpec.of(collections=[collection(3)], bounded=True, **fields)).windows == windows


def test_a_forecast_says_what_costs_and_what_helps() -> None:
    large = RowForecast(rows=51, entries=25_500, windows=720, in_files=True)
    assert large.is_large
    assert large.sentence() == (
        "a window has up to 51 rows with 25,500 values, and 30d have 720 windows: about 6.7 GB of JSON lines, at most "
        "1.3 GB of Avro, 3 min of CPU and 667 MB of memory; for less, use a smaller --show, fewer dimensions in --by, "
        "a longer --window, or --write_json false"
    )
    small = RowForecast(rows=1, entries=1, windows=1)
    assert not small.is_large and small.sentence().startswith(
        "a window has up to 1 row with 1 value, and 30d have 1 window: about 0 kB of JSON lines, at most 0 kB of "
        "Avro, 1 s of CPU; for less"
    )
    assert RowForecast(rows=1, entries=MANY // 10, windows=10).is_large
    assert not RowForecast(rows=1, entries=MANY // 10 - 1, windows=10).is_large
    assert (
        RowForecast(rows=1, entries=MANY_AT_ONCE).is_large
        and not RowForecast(rows=1, entries=MANY_AT_ONCE - 1).is_large
    )


def test_jobs_with_many_entries_say_so_and_write_no_json_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two lines before the work; none if there are few. Programs that read rows find them in either form."""
    of = collection(300, dimensions=[{"name": "g", "values": [f"g{at}" for at in range(60)]}])
    (tmp_path / "c.json").write_text(json.dumps(of.to_json()))
    write_reports(tmp_path / "r.avro", of.perturb(["v1"] * 10, None, [NOON] * 10, {"g": ["g1"] * 10}))
    job = [f"--collection={tmp_path}/c.json", f"--input={tmp_path}/r.avro", "--by=g"]
    said, found = dict[str, list[str]](), dict[str, list[Any]]()
    for show in ("300", "100"):
        folder = tmp_path / show
        words = [f"--output={folder}", "--window=1h", f"--show={show}", "--min_reports=1"]
        assert estimate.main([*job, *words]) == 0
        said[show] = capsys.readouterr().err.splitlines()
        directory = RowDirectory(str(folder))
        found[show] = [(row["group"], row["num_reports"], row["num_shown"]) for row in directory.windows()]
        found[show] += [(row["group"], row["num_reports"], row["num_shown"]) for row in directory.groups()]
        assert check.main([str(folder)]) == 0 and "ok 1; numbers up to" in capsys.readouterr().out
    assert said["300"][0].startswith(
        "estimate: a window has up to 62 rows with 18,600 values, and 30d have 720 windows"
    )
    assert said["300"][1] == (
        "estimate: estimates are written as Avro and Parquet; JSON lines, which are about ten times as large, need "
        "--write_json"
    )
    assert not any("values, and 30d have" in line or "JSON" in line for line in said["100"])
    assert {show: sorted(path.suffix for path in (tmp_path / show).glob("estimates.*")) for show in said} == {
        "300": [".avro", ".parquet"],
        "100": [".avro", ".jsonl"],
    }
    for show, rows in found.items():
        assert rows == [("", 10, int(show)), ("g=g1", 10, int(show))]
