"""Habits of other people's tables: codes of answers, gaps, times of spreadsheets, lists, and what is refused."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tests.support.without_time_zones import without_time_zones
from uldp_transforms.files.text_files import read_lines
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.files.event_times import Clock
from uldp_transforms.ldp import SpecError
from uldp_transforms.ldp.regression import regress

SECRET = "my-secret"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def surveyed(table: str, *options: str) -> list[dict[str, Any]]:
    Path("t.csv").write_text(table, encoding="utf-8")
    assert uldp.main(["survey", "t.csv", "--json", "rows", *options]) == 0
    return [json.loads(line) for line in Path("rows").read_text(encoding="utf-8").splitlines()]


# ---------------------------------------------------------------------- answers

CODED = "Q,p,n\n1,.2,60\n1,.8,140\n2,.2,110\n2,.8,45\n"


def test_codes_of_which_one_looks_like_yes_are_refused_until_both_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """1 and 2 are the codes of SPSS, Stata and Qualtrics."""
    columns = ("--answer", "Q", "--design", "crosswise:p", "--people", "n")
    Path("t.csv").write_text(CODED, encoding="utf-8")
    assert uldp.main(["survey", "t.csv", *columns]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert "--yes and --no" in found.err
    rows = surveyed(CODED, *columns, "--yes", "1", "--no", "2")
    assert [(row["num_reports"], row["num_ones"]) for row in rows] == [(170, 60), (185, 140)]
    assert [row["raw_frequency"] for row in rows] == [
        pytest.approx((60 / 170 - 0.8) / (0.4 - 1)),
        pytest.approx((140 / 185 - 0.2) / (1.6 - 1)),
    ]


@pytest.mark.parametrize(
    "answers",
    ["1,2", "0,2", "yes,nein", "Ja,no", "true,F", "1,2,9", "1.0,2.0", "1,2,NA"],
)
def test_answers_that_are_no_known_pair_are_refused(answers: str) -> None:
    for question in ("", "other,1\nother,0\n"):  # another question may have both
        lines = "".join(f"q,{answer}\n" for answer in answers.split(","))
        Path("t.csv").write_text(f"question,answer\n{lines}{question}", encoding="utf-8")
        options = ["--design", "direct", "--question", "question", "--max_unreadable", "1"]
        assert uldp.main(["survey", "t.csv", *options]) == 2


@pytest.mark.parametrize("pair", ["1,0", "1.0,0.0", "1.00,0", "yes,no", "YES,No", "True,False", "true,0", "yes,0.0"])
def test_answers_that_are_a_known_pair_are_taken(pair: str) -> None:
    """Also as programs write them after a gap."""
    one, zero = pair.split(",")
    [row] = surveyed("answer\n" + f"{one}\n" * 3 + f"{zero}\n" * 5 + '""\nNaN\n', "--design", "direct")
    assert (row["num_reports"], row["num_ones"]) == (8, 3)


def test_named_answers_add_up_and_are_the_same_number() -> None:
    text = "answer\nja\nJa\n1.0\nnein\n2.0\n"
    names = ("--yes", "ja", "--yes", "Ja", "--yes", "1", "--no", "nein", "--no", "2")
    [row] = surveyed(text, "--design", "direct", *names)
    assert (row["num_reports"], row["num_ones"]) == (5, 3)


@pytest.mark.parametrize(("wrong", "code"), [(5, 0), (6, 2)])
def test_more_rows_that_cannot_be_read_than_the_stated_share_are_refused(
    wrong: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    good = ["1", "0"] * 50
    Path("t.csv").write_text("answer\n" + "\n".join(good[wrong:] + [SECRET] * wrong) + "\n", encoding="utf-8")
    assert uldp.main(["survey", "t.csv", "--design", "direct"]) == code
    assert uldp.main(["survey", "t.csv", "--design", "direct", "--max_unreadable", ".06"]) == 0
    assert SECRET not in "".join(capsys.readouterr())


def test_one_question_has_one_name_in_both_forms_of_unicode() -> None:
    names = [unicodedata.normalize(form, "Caf\u00e9?") for form in ("NFC", "NFD")]
    assert names[0] != names[1]
    rows = surveyed(
        "q,answer\n" + "".join(f"{name},{x}\n" for name in names for x in (1, 0)),
        "--question",
        "q",
        "--design",
        "direct",
    )
    assert [(row["question"], row["num_reports"]) for row in rows] == [(names[0], 4)]


def test_a_covariate_of_names_is_compared_with_a_named_base(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(4)
    sex, region, answer = rng.integers(0, 3, 600), rng.integers(1, 4, 600), rng.integers(0, 2, 600)
    rows = "".join(f"{a},{'fmx'[s]},{r}\n" for a, s, r in zip(answer, sex, region))
    Path("t.csv").write_text(f"answer,sex,region\n{rows}", encoding="utf-8")
    common = ["regress", "t.csv", "--design", "forced:2/3,1/2", "--covariates", "sex,region", "--categories", "region"]
    assert uldp.main([*common, "--base", "sex=x"]) == 0
    said = capsys.readouterr().out.splitlines()
    names = ["(intercept)", "sex: f", "sex: m", "region: 2", "region: 3"]
    columns = [np.ones(600), sex == 0, sex == 1, region == 2, region == 3]
    channel = np.array([[5 / 6, 1 / 6], [1 / 6, 5 / 6]])
    found = regress(channel, answer, np.column_stack(columns).astype(float))
    for line, name, value, error in zip(said[1:], names, found.coefficients[0], found.standard_errors[0]):
        assert line.startswith(name)
        assert line.removeprefix(name).split()[:2] == [f"{value:.4f}", f"{error:.4f}"]
    assert said[6:8] == ["sex: compared with x", "region: compared with 1"]


# ---------------------------------------------------------------------- times

COLLECTION = {"version": 1, "id": "pets", "mechanism": {"id": "krr", "epsilon": 2.0}}
COLLECTION |= {"alphabet": {"id": "closed", "values": ["cat", "dog"]}}


def simulated(
    table: str, *options: str, collection: dict[str, Any] | None = None, code: int = 0
) -> list[dict[str, Any]]:
    Path("C.json").write_text(json.dumps(collection or COLLECTION), encoding="utf-8")
    Path("V.csv").write_text(table, encoding="utf-8")
    command = ["simulate", "--collection", "C.json", "--values", "V.csv", "--output", "R.avro", "--seed", "2"]
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


@pytest.mark.parametrize("mark", ["NA", "n/a", "NaN", "null", "NULL", "<NA>", "#N/A"])
def test_texts_that_mean_a_missing_cell_are_no_values(mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    table = f"value\ncat\n{mark}\ndog\ncat\n"
    Path("V.csv").write_text(table, encoding="utf-8")
    plan = ["plan", "--values", "V.csv", "--epsilon", "1", "--reports", "100", "--json", "P.json"]
    assert uldp.main(plan) == 2
    assert "line 3: value must be a text or a number, got none in 1 of 4 rows" in capsys.readouterr().err
    assert uldp.main([*plan, "--missing", "skip"]) == 0
    assert json.loads(Path("P.json").read_text(encoding="utf-8"))["alphabet"]["values"] == ["cat", "dog"]
    assert uldp.main([*plan, "--missing_texts", ""]) == 0
    assert json.loads(Path("P.json").read_text(encoding="utf-8"))["alphabet"]["values"] == sorted(["cat", "dog", mark])
    listed = COLLECTION | {"alphabet": {"id": "closed", "values": ["cat", "dog", mark]}}
    assert len(simulated(table, collection=listed)) == 4


def test_numbers_with_gaps_in_parquet() -> None:
    """pandas writes whole numbers beside a missing one as floats."""
    pa.parquet.write_table(pa.table({"value": [1.0, float("nan"), 2.0, None]}), "V.parquet")
    plan = ["plan", "--values", "V.parquet", "--epsilon", "1", "--reports", "100", "--json", "P.json"]
    assert uldp.main(plan) == 2
    assert uldp.main([*plan, "--missing", "skip"]) == 0
    assert json.loads(Path("P.json").read_text(encoding="utf-8"))["alphabet"]["values"] == ["1", "2"]


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


# ---------------------------------------------------------------------- files that are no tables


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04xl/workbook.xml", "a spreadsheet or a zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a spreadsheet"),
        (b"$FL2@(#) SPSS DATA FILE", "an SPSS file"),
        (b"<stata_dta><header>", "a Stata file"),
    ],
)
def test_files_of_other_programs_are_named(content: bytes, what: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("t.csv").write_bytes(content)
    sentence = f"t.csv must be CSV, JSON lines or Parquet, got {what}; save it as CSV\n"
    for command in (
        "survey t.csv --design direct",
        "navigations t.csv",
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
