"""Values that nobody listed, from the command line: reports, the job, and stored counts again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import replay
from tests.support.messages_cases import KRR, container, write_files
from tests.support.shown_intervals import faults
from tests.support.tolerance import generator
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.reestimate import reestimate_command as reestimate
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_types import DISCOVERED_SCHEMA, DiscoveredValue
from uldp_transforms.windows import Windows

HOUR = 3_600_000
WORDS = {"banana": 0.4, "cherry": 0.3, "elder": 0.2, "berry": 0.1}
TOKENS = ("ba", "na", "che", "rry", "el", "der", "be", "k", "i", "w")


def words(mechanism: str = "krr", **alphabet: Any) -> Collection:
    given = {"id": "prefixes", "num_buckets": 24, "tokens": [*TOKENS], "lengths": [1, 2, None]}
    return Collection.from_json(
        {
            "id": "words",
            "version": 1,
            "alphabet": given | alphabet,
            "mechanism": {"id": mechanism, "epsilon": 4.0},
            "num_cohorts": 64,
        }
    )


def people(n: int, *names: object) -> list[str]:
    return generator("discover", *names).choice(list(WORDS), n, p=list(WORDS.values())).tolist()


def write_words(folder: Path) -> None:
    """A collection and the reports of three hours."""
    item, rng = words(), generator("reports of words")
    batch = item.perturb(people(12_000), rng, np.repeat(np.arange(3), 4000) * HOUR)
    reports = container([(1, message) for message in wire.encode_reports(batch)])
    candidates = "banana\nkiwi\n"
    write_files(folder, {"words.json": item, "krr.json": KRR, "in.avro": reports, "candidates.txt": candidates})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The present folder, with these files."""
    write_words(tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def folder_of_job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with these files, and with ``out`` of a job that searched each hour."""
    folder = tmp_path_factory.mktemp("job")
    write_words(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(estimate, "--collection words.json --input in.avro --output out --window 1h --discover --write_counts")
    return folder


@pytest.fixture
def job(folder_of_job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The present folder, with what the job wrote, whose rows are only read."""
    monkeypatch.chdir(folder_of_job)


def lines(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def run(program: Any, arguments: str) -> None:
    assert program.main(shlex.split(arguments)) == 0


@pytest.mark.usefixtures("job")
def test_the_job_writes_what_it_finds_window_by_window() -> None:
    rows = lines("out/discovered.jsonl")
    windows = {row["window_start"] for row in rows}
    assert len(windows) == 3
    for window in windows:
        found = {row["value"]: row["frequency"] for row in rows if row["window_start"] == window}
        assert {"banana", "cherry"} <= set(found)
    assert set(rows[0]) == set(DiscoveredValue._fields) == {field["name"] for field in DISCOVERED_SCHEMA["fields"]}
    assert all(row["num_reports"] == 4000 and row["q_value"] <= 0.05 and row["simulated"] is False for row in rows)
    assert [row["estimates"] for row in lines("out/estimates.jsonl")] == [[]] * 3  # nobody named a candidate
    assert faults(rows) == []


@pytest.mark.usefixtures("folder")
def test_candidates_and_the_search_go_together() -> None:
    run(
        estimate,
        "--collection words.json --collection krr.json --input in.avro --output out --discover --candidates "
        "candidates.txt",
    )
    (row,) = lines("out/estimates.jsonl")
    assert [value["value"] for value in row["estimates"]] == ["banana", "kiwi"]
    found = {row["value"]: row for row in lines("out/discovered.jsonl")}
    assert set(found) >= {"banana", "cherry", "elder"}
    for value, share in WORDS.items():
        assert value not in found or found[value]["ci_low"] <= share <= found[value]["ci_high"]


@pytest.mark.usefixtures("job")
def test_stored_counts_are_searched_again_and_sums_of_windows_find_more() -> None:
    again = "--collection words.json out --discover"
    run(reestimate, f"{again} --output again")
    assert Path("again/discovered.jsonl").read_bytes() == Path("out/discovered.jsonl").read_bytes()
    run(reestimate, f"{again} --output summed --window 3h")
    rows = lines("summed/discovered.jsonl")
    assert {row["num_reports"] for row in rows} == {12_000}
    assert {row["window_end"] for row in rows} == {"1970-01-01T03:00:00Z"}
    assert {row["value"] for row in rows} >= {"banana", "cherry", "elder"}
    Path("found.txt").write_text("\n".join(row["value"] for row in rows), encoding="utf-8")
    run(reestimate, "--collection words.json out --output listed --candidates found.txt")
    for row in lines("listed/estimates.jsonl"):
        assert [value["value"] for value in row["estimates"]] == [row["value"] for row in rows]


@pytest.mark.usefixtures("job")
def test_the_whole_period_is_searched_as_one_window(capsys: pytest.CaptureFixture[str]) -> None:
    run(reestimate, "--collection words.json out --output whole --window 3h --discover")
    capsys.readouterr()
    run(reestimate, "out --window all --collection words.json --discover")
    rows = lines("out/totals-discovered.jsonl")
    assert rows == lines("whole/discovered.jsonl") != []
    printed = capsys.readouterr().out
    assert "\nunlisted value" in printed
    assert all(f"{row['value']} " in printed and f"{row['frequency']:.4f}" in printed for row in rows)
    run(reestimate, "out --window all --collection words.json --candidates candidates.txt")
    assert not Path("out/totals-discovered.jsonl").exists(), "it would be of another total"


@pytest.mark.usefixtures("folder")
def test_windows_that_are_suppressed_have_no_rows() -> None:
    run(estimate, "--collection words.json --input in.avro --output out --window 1h --discover --min_reports 5000")
    assert lines("out/discovered.jsonl") == []
    assert {row["status"] for row in lines("out/estimates.jsonl")} == {"suppressed"}


def test_a_stream_finds_values_in_every_pane(tmp_path: Path) -> None:
    item = words()
    batch = item.perturb(people(8000, "stream"), generator("stream of words"), np.full(8000, 60_000))
    messages = wire.encode_reports(batch)
    job = replay.streaming_job(
        [item], Windows(size=HOUR), allowed_lateness=HOUR, discover=True, output=str(tmp_path), min_reports=100
    )
    events = [
        replay.arrive(HOUR // 2, messages[::2]),
        replay.watermark(HOUR + 1),
        replay.arrive(HOUR + 2, messages[1::2]),
    ]
    replay.run(job, events)
    rows = [row for path in tmp_path.glob("discovered-*.jsonl") for row in lines(str(path))]
    panes: dict[str, set[str]] = {row["pane_timing"]: set() for row in rows}
    for row in rows:
        panes[row["pane_timing"]].add(row["value"])
    assert set(panes) == {"ON_TIME", "LATE"}
    assert all({"banana", "cherry"} <= values for values in panes.values())
