"""``--truth`` takes every kind of table of people, as the other programs do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.table_formats import (
    FORMATS,
    OTHERS,
    TABLE,
    TIMES,
    check_cure,
    check_directories,
    with_times,
    write,
)
from uldp_transforms_report import report_command


def report(path: str, *options: str) -> Any:
    """The truth that the page shows."""
    argv = [".", "--output", "P.html", "--truth", path, *options]
    truth = report_command.configure(argv).asked.truth
    assert truth is not None
    values = sorted(set(TABLE["value"]))
    shares = truth.shares("2020-01-01T00:00:00Z", "2020-01-01T00:10:00Z", values).tolist()
    assert shares == [TABLE["value"][:10].count(value) / 10 for value in values]
    return shares


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_read(name: str) -> None:
    assert report(write(name)) == report(write("plain.csv"))


@pytest.mark.parametrize("name", ["plain.csv", "lines.jsonl", "arrow.parquet", "codes.parquet"])
@pytest.mark.parametrize("form", TIMES)
def test_every_form_of_times_is_read(form: str, name: str) -> None:
    path, options = with_times(name, form)
    assert report(path, *options) == report(write("plain.csv"))


@pytest.mark.parametrize("name", OTHERS)
def test_the_cure_of_other_files_is_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    check_cure(report, name, capsys)


def test_directories_that_are_no_table_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    check_directories(report, capsys)
