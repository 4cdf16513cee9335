"""Logs of navigations that are nested, cut off, in another encoding, named twice, or have times of another unit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from uldp_transforms.jobs import uldp

NO_OBJECT = "no JSON object whose members have different names"
MOMENT = 1_709_618_828
ANSWER = {"confidence": "high", "rate": 0.5, "duration": 100, "time": MOMENT}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def navigated(*words: str, code: int = 0) -> list[dict[str, Any]]:
    """The rows of navigations; the last one is that of the whole period."""
    assert uldp.main(["navigations", *words, "--json", "rows"]) == code
    return [json.loads(line) for line in Path("rows").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", ["n.jsonl", "n.json", "n.parquet"])
def test_navigations_as_a_browser_writes_them_are_read(name: str) -> None:
    """What JSON.stringify says of an entry has the answer and the rate in an object."""
    said = {"value": "high", "randomizedTriggerRate": 0.5}
    rows = [{"confidence": said | {"value": "high" if row % 4 else "low"}, "duration": 100} for row in range(40)]
    if name == "n.parquet":
        pa.parquet.write_table(pa.Table.from_pylist(rows), name)
    else:
        Path(name).write_text(
            json.dumps(rows) if name == "n.json" else "\n".join(map(json.dumps, rows)), encoding="utf-8"
        )
    columns = ["--value_column", "confidence.value", "--rate_column", "confidence.randomizedTriggerRate"]
    [row] = navigated(name, *columns)
    assert (row["num_reports"], row["raw_frequency"]) == (40, pytest.approx(1.0))


@pytest.mark.parametrize(("lines", "code"), [(38, 0), (36, 2)])
def test_a_table_of_navigations_of_which_too_much_cannot_be_read_is_refused(
    lines: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of durations with decimal commas only whole ones would count, which are others than all."""
    good, bad = "low;0.5;100\nhigh;0.5;120\n" * (lines // 2), "high;0.5;99,5\nhigh;0.5;99,5\n"
    Path("n.csv").write_text(f"confidence;rate;duration\n{good}{bad}", encoding="utf-8")
    assert uldp.main(["navigations", "n.csv"]) == code
    printed = capsys.readouterr()
    if code:
        assert "got 0.05263; 2 rows: something else than a number in duration (line 38, line 39)" in printed.err
        assert "write numbers with a decimal point" in printed.err
        assert navigated("n.csv", "--max_unreadable", "0.1")[-1]["num_reports"] == 2 * (lines // 2)
    else:
        assert f"{lines} of {lines + 2} rows are used." in printed.out
    log = "\n".join([json.dumps(ANSWER), "no"] * 9)
    Path("n.jsonl").write_text(log, encoding="utf-8")
    assert navigated("n.jsonl")[-1]["num_reports"] == 9
    assert uldp.main(["navigations", "n.jsonl", "--max_unreadable", "0.4"]) == 2


def test_navigations_in_utf_16_are_read_and_lines_that_are_cut_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps(ANSWER | {"page": "\u0a0a"}, ensure_ascii=False)] * 40
    twice = '{"confidence": "high", "confidence": "low", "rate": 0.5, "duration": 1}'
    Path("n.jsonl").write_bytes("\n".join([*lines, twice, lines[0][:-9]]).encode("utf-16"))
    assert navigated("n.jsonl")[-1]["num_reports"] == 40
    assert f"left out: 2 rows: {NO_OBJECT} (line 41, line 42)" in capsys.readouterr().out


@pytest.mark.parametrize("other", ["n.jsonl", "./n.jsonl", "link.jsonl", "folder"])
def test_a_file_of_navigations_that_is_named_twice_is_refused(other: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("n.jsonl").write_text(json.dumps(ANSWER) + "\n", encoding="utf-8")
    Path("link.jsonl").symlink_to("n.jsonl")
    Path("folder").mkdir()
    Path("folder/navigations-1.jsonl").symlink_to("../n.jsonl")
    assert uldp.main(["navigations", "n.jsonl", other]) == 2
    sentence = "navigations: each file of navigations must be named once, got 'n.jsonl' several times"
    assert sentence in capsys.readouterr().err


def test_empty_lines_are_no_rows_of_several_files_either(capsys: pytest.CaptureFixture[str]) -> None:
    """One file and several have the same rows, and the same numbers of lines."""
    text = "\n\n".join([json.dumps(ANSWER)] * 3 + ["no"]) + "\n\n"
    for name in ("a.jsonl", "b.jsonl"):
        Path(name).write_text(text, encoding="utf-8")
    Path("c.jsonl").write_text("", encoding="utf-8")
    navigated("a.jsonl")
    assert f"3 of 4 rows are used.\nleft out: 1 row: {NO_OBJECT} (line 7)" in (capsys.readouterr().out)
    assert navigated("a.jsonl", "b.jsonl", "c.jsonl")[-1]["num_reports"] == 6
    assert "6 of 8 rows are used." in (out := capsys.readouterr().out)
    assert "(a.jsonl line 7, b.jsonl line 7)" in out


@pytest.mark.parametrize(("factor", "word"), [(1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")])
def test_a_log_with_times_of_another_unit_names_the_cure(
    factor: float, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Date.now() of JavaScript has milliseconds; numbers of a log are seconds of any year."""
    Path("n.jsonl").write_text(json.dumps(ANSWER | {"time": int(MOMENT * factor)}) + "\n", encoding="utf-8")
    assert uldp.main(["navigations", "n.jsonl", "--window", "1h"]) == 1
    assert f"got a number that may be {word} since 1970; if so, give --time_format {word}" in capsys.readouterr().out
    rows = navigated("n.jsonl", "--window", "1h", "--time_format", word)
    assert [row["window_start"] for row in rows[:-1]] == ["2024-03-05T06:00:00Z"]


def test_an_empty_log_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("n.jsonl", "m.jsonl"):
        Path(name).write_text("\n", encoding="utf-8")
    for words in (["n.jsonl"], ["n.jsonl", "m.jsonl"]):
        assert uldp.main(["navigations", *words]) == 2
        assert "must have a header, or JSON objects, got none" in capsys.readouterr().err


@pytest.mark.parametrize(
    "first", ['{"confidence": null}', '{"rate": 0.5}', "{}", '{"confidence": ["high"], "rate": 0.5}']
)
@pytest.mark.parametrize("at", [0, 1, 3])
def test_a_missing_member_is_missing_wherever_it_stands(
    first: str, at: int, capsys: pytest.CaptureFixture[str]
) -> None:
    good = [
        '{"confidence": "high", "rate": 0.5, "duration": 100}',
        '{"confidence": "low", "rate": 0.5, "duration": 9}',
    ] * 20
    Path("log.jsonl").write_text("\n".join([*good[:at], first, *good[at:]]) + "\n", encoding="utf-8")
    Path("folder").mkdir()
    Path("folder/navigations-1.jsonl").write_bytes(Path("log.jsonl").read_bytes())
    for path in ("log.jsonl", "folder"):
        assert uldp.main(["navigations", path, "--json", "rows"]) == 0
        assert json.loads(Path("rows").read_text(encoding="utf-8").splitlines()[-1])["num_reports"] == 40
        out = capsys.readouterr().out
        assert "40 of 41 rows are used." in out
        assert f"line {at + 1})" in out
