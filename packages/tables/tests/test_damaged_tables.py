"""Tables that are cut off, nested, in another encoding, or have times of another unit: no row is lost without a word,
and each sentence says what to do."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import fastavro
import pytest

from uldp_transforms.jobs import uldp

VALUES = ["cat", "dog", "7", "Öl"]
ALPHABET = {"id": "closed", "values": VALUES}
COLLECTION = {"id": "c", "version": 1, "alphabet": ALPHABET, "mechanism": {"id": "krr", "epsilon": 16.0}}
"""At epsilon 16 a report differs from its value with a probability of 3e-7."""

NO_OBJECT = "no JSON object whose members have different names"
LINES = [json.dumps({"value": value}) for value in VALUES]


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


def test_members_that_are_not_read_may_be_of_any_kind() -> None:
    Path("v.jsonl").write_text('{"value": "cat", "more": {"value": ["dog"]}}\n', encoding="utf-8")
    assert simulated("v.jsonl") == {"cat": 1}


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


# ---------------------------------------------------------------------- times


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


def test_a_number_with_a_decimal_comma_names_the_cure(capsys: pytest.CaptureFixture[str]) -> None:
    """It is not read: 1,234 may be a thousand."""
    numbers = {"id": "ordered", "low": 0, "high": 100, "num_bins": 4}
    Path("C.json").write_text(json.dumps(COLLECTION | {"alphabet": numbers}), encoding="utf-8")
    Path("v.csv").write_text("value;more\n12,5;1\n", encoding="utf-8")
    simulated("v.csv", code=2)
    assert "v.csv line 2 must have a number such as 12.5; rows with other values: 1 of 1" in (capsys.readouterr().err)
