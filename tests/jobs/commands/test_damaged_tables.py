"""Tables that are cut off, nested, in another encoding, named twice, or have times of another unit: no row is lost or
counted twice without a word, and each sentence says what to do."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet
import pytest

from uldp_transforms.jobs import uldp

VALUES = ["cat", "dog", "7", "Öl"]
ALPHABET = {"id": "closed", "values": VALUES}
COLLECTION = {"id": "c", "version": 1, "alphabet": ALPHABET, "mechanism": {"id": "krr", "epsilon": 16.0}}
"""At epsilon 16 a report differs from its value with a probability of 3e-7."""

NO_OBJECT = "no JSON object whose members have different names"
MOMENT = 1_709_618_828
LINES = [json.dumps({"value": value}) for value in VALUES]
ANSWER = {"confidence": "high", "rate": 0.5, "duration": 100, "time": MOMENT}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("C.json").write_text(json.dumps(COLLECTION), encoding="utf-8")


def simulated(name: str, *options: str, code: int = 0) -> Counter[str]:
    """The values of the reports of a table."""
    command = ["simulate", "C.json", "--values", name, "--output", "R.avro", *options]
    assert uldp.main(command) == code
    if code:
        return Counter()
    with Path("R.avro").open("rb") as file:
        return Counter(VALUES[report["payload"][0]] for report in fastavro.reader(file))  # type: ignore[index, call-overload]  # records are dicts


def navigated(*words: str, code: int = 0) -> list[dict[str, Any]]:
    """The rows of navigations; the last one is that of the whole period."""
    assert uldp.main(["navigations", *words, "--json", "rows"]) == code
    return [json.loads(line) for line in Path("rows").read_text(encoding="utf-8").splitlines()]


# ---------------------------------------------------------------------- JSON


@pytest.mark.parametrize("missing", ["refuse", "skip", "keep"])
@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (LINES[0][:-3], f"v.jsonl line 3 cannot be read: {NO_OBJECT}"),
        ('"cat"', f"v.jsonl line 3 cannot be read: {NO_OBJECT}"),
        ('{"value": "cat", "value": "dog"}', f"v.jsonl line 3 cannot be read: {NO_OBJECT}"),
        ('{"value": {"text": "cat"}}', "v.jsonl line 3 cannot be read: an array or an object in value"),
        ('{"value": ["cat"]}', "v.jsonl line 3 cannot be read: an array or an object in value"),
    ],
)
def test_what_is_no_cell_is_not_missing(
    line: str, sentence: str, missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("v.jsonl").write_text("\n".join([LINES[1], "", line]), encoding="utf-8")
    simulated("v.jsonl", "--missing", missing, code=2)
    assert f"simulate: {sentence}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "reason"), [('{"answer": "ye', NO_OBJECT), ('{"answer": ["no"]}', "an array or an object in answer")]
)
@pytest.mark.parametrize("program", ["survey", "regress"])
def test_answers_that_cannot_be_read_are_not_missing(
    program: str, line: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They count as rows that are not understood, of which there may be few."""
    rows = [json.dumps({"answer": "yn"[row % 2], "age": row % 7}) for row in range(90)]
    lines = [row.replace('"y"', '"yes"').replace('"n"', '"no"') for row in rows]
    command = [program, "s.jsonl", "--design", "direct", *(["--covariates", "age"] if program == "regress" else [])]
    Path("s.jsonl").write_text("\n".join([*lines, line]), encoding="utf-8")
    assert uldp.main(command) == 0
    assert f"90 of 91 rows are used.\nleft out: 1 row: {reason} (line 91)" in capsys.readouterr().out
    Path("s.jsonl").write_text("\n".join([*lines, *[line] * 9]), encoding="utf-8")
    assert uldp.main(command) == 2
    assert f"9 rows: {reason} (line 91, line 92, line 93 and 6 more); repair or remove these rows" in (
        capsys.readouterr().err
    )


def test_members_that_are_not_read_may_be_of_any_kind() -> None:
    Path("v.jsonl").write_text('{"value": "cat", "more": {"value": ["dog"]}}\n', encoding="utf-8")
    assert simulated("v.jsonl") == {"cat": 1}


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


@pytest.mark.parametrize("form", ["%d.%m.%Y %I:%M", "%d.%m.%Y %H:%M %p"])
def test_twelve_hours_need_their_half_of_the_day(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("v.csv").write_text("value,event_time\ncat,31.01.2024 01:30 PM\n", encoding="utf-8")
    simulated("v.csv", "--timezone", "UTC", "--time_format", form, code=2)
    assert "%I and %p together" in capsys.readouterr().err


def test_a_whole_number_may_have_an_exponent() -> None:
    numbers = ("7", "7.0", "7e0", "0.7e1", "70E-1", '"7"')
    Path("v.jsonl").write_text("".join(f'{{"value": {number}}}\n' for number in numbers), encoding="utf-8")
    assert simulated("v.jsonl") == {"7": len(numbers)}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", ["v.jsonl", "v.json", "v.txt", "array.json"])
def test_json_in_utf_16_is_read(name: str, encoding: str) -> None:
    """PowerShell writes it so; a character of U+0A0A has the byte of a line feed twice."""
    lines = [*LINES, json.dumps({"value": "dog", "more": "\u0a0a"}, ensure_ascii=False)]
    text = f"[{', '.join(lines)}]" if name == "array.json" else "\r\n".join(lines)
    Path(name).write_bytes(text.encode(encoding))
    assert simulated(name) == Counter([*VALUES, "dog"])


def test_navigations_in_utf_16_are_read_and_lines_that_are_cut_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.dumps(ANSWER | {"page": "\u0a0a"}, ensure_ascii=False)] * 40
    twice = '{"confidence": "high", "confidence": "low", "rate": 0.5, "duration": 1}'
    Path("n.jsonl").write_bytes("\n".join([*lines, twice, lines[0][:-9]]).encode("utf-16"))
    assert navigated("n.jsonl")[-1]["num_reports"] == 40
    assert f"left out: 2 rows: {NO_OBJECT} (line 41, line 42)" in capsys.readouterr().out


# ---------------------------------------------------------------------- files that count once


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


# ---------------------------------------------------------------------- times


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


@pytest.mark.parametrize("kind", [pa.float32(), pa.float16()])
def test_times_of_which_seconds_are_lost_are_refused(kind: pa.DataType, capsys: pytest.CaptureFixture[str]) -> None:
    """Of seconds since 1970 a float of 32 bits holds every 128th."""
    times = pa.array([1.0], kind) if kind == pa.float16() else pa.array([float(MOMENT)], kind)
    pa.parquet.write_table(pa.table({"value": ["cat"], "event_time": times}), "v.parquet")
    simulated("v.parquet", code=2)
    sentence = f"column event_time must have a type that holds times exactly, got {kind}"
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cell", "options", "sentence"),
    [
        ("05.03.2024", (), "must be RFC 3339 or seconds since 1970, got neither; --time_format names another form"),
        ("1709618828,5", (), "got neither; --time_format names another form"),
        ('"45356,25"', ("--time_format", "excel"), "be serial days of a spreadsheet, as --time_format excel says"),
    ],
)
def test_a_time_of_another_form_names_the_cure(
    cell: str, options: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("v.csv").write_text(f"value;event_time\ncat;{cell}\n", encoding="utf-8")
    simulated("v.csv", *options, code=2)
    assert sentence in capsys.readouterr().err


# ---------------------------------------------------------------------- encodings and headers


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "value\ncat\nÖl\n".encode("latin-1"),
            "line 3 is in another encoding, such as Windows-1252: save the",
        ),
        ("välue\ncat\n".encode("cp1252"), "line 1 is in another encoding"),
        (
            "value\ncat\n".encode("utf-16-le"),
            "line 1 has zero bytes, as UTF-16 and files of other programs do: save the table as",
        ),
        (b"value\n" + b"cat\n" * 300_000 + b"\xd6l\n", "line 300002 is in another encoding"),
        ("value\ncat\n".encode("utf-16")[:-1], "must be complete UTF-16, as it begins"),
        (b"# of 2024\nvalue\ncat\n", "--value_column names another, and CSV must begin with its header"),
        (b"", "v.csv must have a header, or JSON objects, got none"),
        (b"\n\n", "v.csv must have a header, or JSON objects, got none"),
    ],
)
def test_a_table_in_another_encoding_names_the_line(
    content: bytes, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("v.csv").write_bytes(content)
    simulated("v.csv", code=2)
    assert sentence in (said := capsys.readouterr().err)
    assert "cat" not in said


def test_an_empty_log_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("n.jsonl", "m.jsonl"):
        Path(name).write_text("\n", encoding="utf-8")
    for words in (["n.jsonl"], ["n.jsonl", "m.jsonl"]):
        assert uldp.main(["navigations", *words]) == 2
        assert "must have a header, or JSON objects, got none" in capsys.readouterr().err


def test_a_number_with_a_decimal_comma_names_the_cure(capsys: pytest.CaptureFixture[str]) -> None:
    """It is not read: 1,234 may be a thousand."""
    numbers = {"id": "ordered", "low": 0, "high": 100, "num_bins": 4}
    Path("C.json").write_text(json.dumps(COLLECTION | {"alphabet": numbers}), encoding="utf-8")
    Path("v.csv").write_text("value;more\n12,5;1\n", encoding="utf-8")
    simulated("v.csv", code=2)
    assert "v.csv line 2 must have a number such as 12.5; rows with other values: 1 of 1" in (capsys.readouterr().err)
