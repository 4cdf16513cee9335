"""``uldp survey``, ``regress`` and ``navigations`` take every kind of table of people, and refuse the same others."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.table_formats import (
    FOREIGN,
    FORMATS,
    MARKS,
    OTHERS,
    ROWS,
    TABLE,
    TIMES,
    check_cure,
    check_directories,
    check_mark,
    done,
    with_times,
    write,
)
from uldp_transforms.jobs import uldp


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def survey(path: str, *options: str) -> Any:
    done("survey", path, "--question", "value", "--design", "crosswise:0.2", "--json", "S.jsonl", *options)
    rows = [json.loads(line) for line in Path("S.jsonl").read_text(encoding="utf-8").splitlines()]
    pairs = list(zip(TABLE["value"], TABLE["answer"]))
    assert {row["question"]: (row["num_reports"], row["num_ones"]) for row in rows} == {
        value: (TABLE["value"].count(value), pairs.count((value, 1))) for value in set(TABLE["value"])
    }
    return rows


def regress(path: str, *options: str) -> Any:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        done("regress", path, "--design", "direct", "--covariates", "age,sex", *options)
    said = printed.getvalue()
    assert "\nsex: compared with f\n" in said
    assert f"\n{ROWS} of {ROWS} rows are used.\n" in said
    return said


def navigations(path: str, *options: str) -> Any:
    columns = ["--time_column", "event_time", "--window", "10m", "--json", "N.jsonl"]
    done("navigations", path, *columns, *options)
    rows = [json.loads(line) for line in Path("N.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["num_reports"] for row in rows] == [10] * 6 + [ROWS]
    assert rows[1]["window_start"] == "2020-01-01T00:10:00Z"
    assert rows[-1]["durations"][2]["mean"]["value"] == pytest.approx(np.mean(TABLE["duration"]))
    return rows


PROGRAMS = (survey, regress, navigations)


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
def test_every_form_of_times_is_read(form: str, name: str, expected: dict[str, Any]) -> None:
    path, options = with_times(name, form)
    assert navigations(path, *options) == expected["navigations"]


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_of_a_missing_cell_is_no_value(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_mark(survey, mark, (), monkeypatch)


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


@pytest.mark.parametrize(("content", "what"), FOREIGN)
def test_files_of_other_programs_are_named(content: bytes, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_bytes(content)
    sentence = f"t.csv must be CSV, JSON lines or Parquet, got {what}; save it as CSV\n"
    for command in ("survey t.csv --design direct", "navigations t.csv"):
        assert uldp.main(command.split()) == 2
        assert capsys.readouterr().err == f"{command.split()[0]}: {sentence}"
