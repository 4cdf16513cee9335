"""Habits of other people's tables: gaps, times of spreadsheets, lists, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.support.table_formats import FOREIGN
from tests.support.without_time_zones import without_time_zones
from uldp_transforms.files.text_files import read_lines
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import SpecError
from uldp_transforms_tables.event_times import Clock


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---------------------------------------------------------------------- times

COLLECTION = {"version": 1, "id": "pets", "mechanism": {"id": "krr", "epsilon": 2.0}}
COLLECTION |= {"alphabet": {"id": "closed", "values": ["cat", "dog"]}}


def simulated(
    table: str, *options: str, collection: dict[str, Any] | None = None, code: int = 0
) -> list[dict[str, Any]]:
    Path("C.json").write_text(json.dumps(collection or COLLECTION), encoding="utf-8")
    Path("V.csv").write_text(table, encoding="utf-8")
    command = ["simulate", "C.json", "--values", "V.csv", "--output", "R.avro", "--seed", "2"]
    assert uldp.main([*command, *options]) == code
    if code:
        assert not Path("R.avro").exists()
        return []
    with open("R.avro", "rb") as file:
        return list(fastavro.reader(file))


@pytest.mark.parametrize(
    ("number", "word", "moment"),
    [
        ("43831.5", "excel", 1_577_880_000_000),
        ("1577880000000", "milliseconds", 1_577_880_000_000),
        ("1577880000000000", "microseconds", 1_577_880_000_000),
        ("1577880000000000000", "nanoseconds", 1_577_880_000_000),
        ("86400", "seconds", 86_400_000),
        ("20200101", "%Y%m%d", 1_577_836_800_000),
        ("202001011200", "%Y%m%d%H%M", 1_577_880_000_000),
    ],
)
def test_a_plain_number_of_another_unit_needs_its_word(
    number: str, word: str, moment: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Read as seconds, the first one would be of 1 January 1970 and the last one of the year 8371."""
    table = f"value,event_time\ncat,{number}\n"
    simulated(table, code=2)
    said = capsys.readouterr().err
    assert "line 2" in said and "--time_format" in said and number not in said
    if word in ("excel", "milliseconds", "microseconds", "nanoseconds"):
        assert f"--time_format {word}\n" in said
    [record] = simulated(table, "--time_format", word, "--timezone", "UTC")
    assert record["event_time"] == moment


def test_a_machine_without_time_zones_is_named() -> None:
    with pytest.raises(SpecError, match=r"^--timezone needs a time-zone database, such as the package tzdata, got a "):
        without_time_zones(lambda: Clock("at", "Europe/Berlin"))


# ---------------------------------------------------------------------- missing cells

BY_ARM = COLLECTION | {"dimensions": [{"name": "country", "values": ["DE", "NA"]}], "num_cohorts": 1}


def test_rows_without_a_dimension_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """In another column than the dimension, too; NA is a country here."""
    table = "value,Land,event_time\ncat,DE,1577836800\ndog,,1577836801\n,DE,1577836802\ncat,NA,1577836803\ndog,PL,\n"
    simulated(table, "--dimension_column", "country=Land", collection=BY_ARM, code=2)
    assert (
        "line 4: value must be a text or a number, got none in 1 of 5 rows; --missing skip" in capsys.readouterr().err
    )
    assert (
        simulated(table.replace("\n,", "\ncat,"), "--dimension_column", "country=Land", collection=BY_ARM, code=2) == []
    )
    assert "line 3: Land must be a text or a number, got none in 1 of 5 rows; --missing skip" in capsys.readouterr().err
    found = simulated(table, "--dimension_column", "country=Land", "--missing", "skip", collection=BY_ARM)
    assert [(row["event_time"], row["cohort"]) for row in found] == [(1_577_836_800_000, 0), (1_577_836_803_000, 1)]
    said = capsys.readouterr().err
    for column in ("value", "Land", "event_time"):
        assert f"V.csv: 1 of 5 cells of {column} are missing; their rows are left out\n" in said


@pytest.mark.parametrize(("texts", "values"), [("", ["NA", "cat", "dog", "emu"]), (" na,,Dog ", ["cat", "emu"])])
def test_texts_that_mean_a_missing_cell_can_be_named(texts: str, values: list[str]) -> None:
    """In any case; instead of the usual ones."""
    Path("V.csv").write_text("value\ncat\nNA\ndog\nemu\n", encoding="utf-8")
    plan = "plan --values V.csv --epsilon 1 --reports 100 --output P.json --missing skip --missing_texts"
    assert uldp.main([*plan.split(), texts]) == 0
    assert json.loads(Path("P.json").read_text(encoding="utf-8"))["alphabet"]["values"] == values


def test_numbers_with_gaps_in_parquet() -> None:
    """pandas writes whole numbers beside a missing one as floats."""
    pa.parquet.write_table(pa.table({"value": [1.0, float("nan"), 2.0, None]}), "V.parquet")
    plan = ["plan", "--values", "V.parquet", "--epsilon", "1", "--reports", "100", "--output", "P.json"]
    assert uldp.main(plan) == 2
    assert uldp.main([*plan, "--missing", "skip"]) == 0
    assert json.loads(Path("P.json").read_text(encoding="utf-8"))["alphabet"]["values"] == ["1", "2"]


# ---------------------------------------------------------------------- files that are no tables


@pytest.mark.parametrize(("content", "what"), FOREIGN)
def test_files_of_other_programs_are_named(content: bytes, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_bytes(content)
    sentence = f"t.csv must be CSV, JSON lines or Parquet, got {what}; save it as CSV\n"
    for command in (
        "plan --values t.csv --epsilon 1 --reports 9",
        "evaluate --values t.csv",
    ):
        assert uldp.main(command.split()) == 2
        assert capsys.readouterr().err == f"{command.split()[0]}: {sentence}"


@pytest.mark.parametrize("rest", ["", "dog\n", "dog\ncat\n" * 40])
def test_a_quotation_mark_without_an_end_loses_no_rows(rest: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All rows behind it would be one text, which would be one person."""
    hashed = COLLECTION | {"num_cohorts": 2, "alphabet": {"id": "hashed", "num_buckets": 16}}
    simulated(f'value\ncat\n"dog\ncat\n{rest}', collection=hashed, code=2)
    assert "V.csv line 3 must end each quoted text with a quotation mark" in capsys.readouterr().err
    assert len(simulated('value\ncat\n"dog\ncat"\n', collection=hashed)) == 2
    assert len(simulated('value\n5" disk\ncat\n', collection=hashed)) == 2


def test_numbers_with_separators_of_thousands_are_no_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_text('answer,n\n1,"1,234"\n0,"2,345"\n', encoding="utf-8")
    assert uldp.main(["survey", "t.csv", "--design", "direct", "--people", "n"]) == 2
    assert "2 rows: something else than a number in n" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "value\n", "\ufeffvalue,event_time\r\n", "value"])
def test_a_table_without_rows(content: str) -> None:
    """It has no people; without a header, it is no table."""
    assert simulated(content, code=0 if content else 2) == []
    assert uldp.main(["plan", "--values", "V.csv", "--epsilon", "1", "--reports", "9"]) == 2
    assert uldp.main(["evaluate", "--values", "V.csv"]) == 2


# ---------------------------------------------------------------------- lists


@pytest.mark.parametrize(
    "content",
    [
        '"flu"\n"cold"\n',
        "value\nflu\ncold\n",
        '"value"\nflu\n',
        "Candidates\nflu\n",
        "flu;\ncold;\n",
        "flu\t3\ncold\t4\n",
        "flu\rcold\r",
    ],
)
def test_a_table_is_no_list_of_candidates(content: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each program that takes a list; a header would be a value that nobody has."""
    Path("list.txt").write_bytes(content.encode())
    with pytest.raises(SpecError, match=r"^list.txt must .* got "):
        read_lines("list.txt", most=9, longest=99)
    Path("V.csv").write_text("value\nflu\ncold\n", encoding="utf-8")
    hashed = COLLECTION | {"num_cohorts": 2, "alphabet": {"id": "hashed", "num_buckets": 16}}
    Path("C.json").write_text(json.dumps(hashed), encoding="utf-8")
    Path("none.avro").write_bytes(b"")
    for command in (
        "estimate --collection C.json --input none.avro --output out --candidates list.txt",
        "evaluate --values V.csv --open --candidates list.txt",
        "evaluate --values V.csv --sensitive list.txt",
        "plan --values V.csv --epsilon 1 --reports 9 --sensitive list.txt",
        "total . --collection C.json --candidates list.txt",
    ):
        assert uldp.main(command.split()) == 2, command
        assert "list.txt must" in capsys.readouterr().err, command


def test_lists_of_spreadsheets_in_unicode_are_read() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        Path("list.txt").write_bytes("K\u00f6ln\r\nflu\r\nvalue\r\n".encode(encoding))
        assert read_lines("list.txt", most=9, longest=9) == ["K\u00f6ln", "flu", "value"]
