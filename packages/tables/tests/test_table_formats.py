"""Every program that takes a table of people takes every kind of table: one small table, written in all formats and
with all forms of times, gives the same results as the numbers that it was made of. Files of other forms are refused
with a sentence that names the cure, and no cell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest

from tests.support.table_formats import (
    FORMATS,
    MARKS,
    OTHERS,
    TABLE,
    TIMES,
    check_cure,
    check_directories,
    check_mark,
    done,
    refused,
    with_times,
    write,
)
from uldp_transforms.ldp import Collection

# ---------------------------------------------------------------------- programs

DIMENSIONS = [{"name": "group", "values": ["new", "old"]}]
CLOSED = {"version": 1, "id": "pets", "num_cohorts": 1, "mechanism": {"id": "krr", "epsilon": 2.0, "epsilon_inf": 3.0}}
CLOSED |= {"alphabet": {"id": "closed", "values": ["cat", "dog", "K\u00f6ln"]}, "dimensions": DIMENSIONS}
CODES = {"version": 1, "id": "codes", "mechanism": {"id": "krr", "epsilon": 2.0}}
CODES |= {"alphabet": {"id": "closed", "values": ["1", "2"]}}
AGES = {"version": 1, "id": "ages", "mechanism": {"id": "krr", "epsilon": 2.0}}
AGES |= {"alphabet": {"id": "ordered", "low": 0, "high": 100, "num_bins": 10}}


def simulated(path: str, collection: dict[str, Any], *options: str) -> Any:
    Path("C.json").write_text(json.dumps(collection), encoding="utf-8")
    done("simulate", "C.json", "--values", path, "--output", "R.avro", "--seed", "3", *options)
    with open("R.avro", "rb") as file:
        records = [(record["event_time"], record["cohort"], record["payload"]) for record in fastavro.reader(file)]
    return records


def drawn(collection: dict[str, Any], values: list[Any]) -> Any:
    """The reports that the library draws."""
    batch = Collection.from_json(collection).perturb([*map(str, values)], np.random.default_rng(3))
    return [bytes(payload) for payload in batch.payloads]


def simulate(path: str, *options: str) -> Any:
    """People with memos in groups: the times, and what the reports say."""
    found = simulated(path, CLOSED, "--person_column", "who", "--dimension_column", "group=arm", *options)
    assert [moment for moment, _, _ in found] == [1000 * moment for moment in TABLE["event_time"]]
    assert [cohort for _, cohort, _ in found] == [0 if arm == "new" else 1 for arm in TABLE["arm"]]
    return found


def simulate_codes(path: str, *options: str) -> Any:
    found = [payload for _, _, payload in simulated(path, CODES, "--value_column", "code", *options)]
    assert found == drawn(CODES, TABLE["code"])
    return found


def simulate_numbers(path: str, *options: str) -> Any:
    found = [payload for _, _, payload in simulated(path, AGES, "--value_column", "age", *options)]
    assert found == drawn(AGES, TABLE["age"])
    return found


def plan(path: str, *options: str) -> Any:
    done(
        "plan",
        "--values",
        path,
        "--epsilon",
        "1",
        "--reports",
        "1000",
        "--dimensions",
        "arm",
        "--output",
        "P.json",
        *options,
    )
    found = json.loads(Path("P.json").read_text(encoding="utf-8"))
    assert found["alphabet"]["values"] == sorted(set(TABLE["value"]))
    return found


def plan_numbers(path: str, *options: str) -> Any:
    Path("A.json").write_text(json.dumps(AGES), encoding="utf-8")
    common = ["--collection", "A.json", "--values", path, "--value_column", "age", "--epsilon", "1", "--reports", "100"]
    done("plan", *common, "--output", "P.json", *options)
    return json.loads(Path("P.json").read_text(encoding="utf-8"))


def evaluate(path: str, *options: str) -> Any:
    chosen = [
        "--epsilons",
        "1",
        "--mechanisms",
        "krr",
        "--repetitions",
        "1",
        "--seed",
        "1",
        "--estimators",
        "projected",
    ]
    done("evaluate", "--values", path, *chosen, "--json", "E.json", *options)
    rows = json.loads(Path("E.json").read_text(encoding="utf-8"))
    return [{name: cell for name, cell in row.items() if not name.endswith("_us")} for row in rows]


PROGRAMS = (simulate, simulate_codes, simulate_numbers, plan, plan_numbers, evaluate)
"""The programs of this package that take a table of people. ``uldp demo`` writes and reads its own."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each program says about the plain table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("plain"))
        return {program.__name__: program(write("plain.csv")) for program in PROGRAMS}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_every_program_reads_every_format(program: Callable[..., Any], name: str, expected: dict[str, Any]) -> None:
    assert program(write(name)) == expected[program.__name__]


@pytest.mark.parametrize("name", ["plain.csv", "lines.jsonl", "arrow.parquet", "codes.parquet"])
@pytest.mark.parametrize("form", TIMES)
def test_simulate_reads_every_form_of_times(form: str, name: str, expected: dict[str, Any]) -> None:
    path, options = with_times(name, form)
    assert simulate(path, *options) == expected["simulate"]


# ---------------------------------------------------------------------- missing cells


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("program", [plan, evaluate], ids=lambda program: program.__name__)
def test_a_mark_of_a_missing_cell_is_no_value(
    program: Callable[..., Any], mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_mark(program, mark, ("--missing", "skip"), monkeypatch)


def test_a_mark_of_a_missing_time_leaves_its_row_out() -> None:
    for mark in ("", "NA", r"\N"):
        write("plain.csv", TABLE | {"event_time": [mark, *TABLE["event_time"][1:]]})
        found = simulated("plain.csv", CODES, "--value_column", "code", "--missing", "skip")
        assert [moment for moment, _, _ in found] == [1000 * moment for moment in TABLE["event_time"][1:]]


# ---------------------------------------------------------------------- files of other forms


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_every_program_names_the_cure_of_other_files(
    program: Callable[..., Any], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_cure(program, name, capsys)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_every_program_refuses_directories_that_are_no_table(
    program: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    check_directories(program, capsys)


@pytest.mark.parametrize("name", ["csv of Spark", "json of Spark", "parquet of Spark"])
def test_rows_of_a_directory_are_named_with_their_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(name, TABLE | {"value": [*TABLE["value"][:30], "stranger", *TABLE["value"][31:]]})
    said = refused(simulate, name, capsys)
    place = {"csv of Spark": "line 7", "json of Spark": "line 6", "parquet of Spark": "row 6"}[name]
    assert re.search(rf"^simulate: {name} part-00001-c000\.[a-z.]+ {place} must have one of the 3 values", said)
