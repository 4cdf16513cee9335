"""uldp survey: tables to estimates; rows that cannot be used are counted and named; refusals."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from uldp_transforms_survey import survey
from uldp_transforms_survey.survey.answer_options import AnswerColumns
from uldp_transforms_survey.survey.answer_table import read_answers

SECRET = "my-secret"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table(*lines: str) -> None:
    Path("answers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def estimates(options: str, path: str = "answers.csv") -> list[dict]:
    """What is written with --json."""
    assert survey.main(shlex.split(f"{path} {options} --json rows.jsonl")) == 0
    return [json.loads(line) for line in Path("rows.jsonl").read_text(encoding="utf-8").splitlines()]


CROSSWISE = ["answer,people", "0,562", "1,604"]  # Hoeglinger and Jann: shoplifting, rate 0.1594625


def test_an_estimate_of_real_answers(capsys):
    table(*CROSSWISE)
    [row] = estimates("--design crosswise:0.1594625 --people people")
    assert capsys.readouterr().out.splitlines() == [
        "design               people     yes   error     95 % interval  epsilon",
        "crosswise:0.1594625   1,166  0.4736  0.0215  0.4315 to 0.5163     1.66",
        "",
        "2 of 2 rows are used.",
    ]
    assert (row["num_reports"], row["num_ones"]) == (1166, 604)
    assert row["raw_frequency"] == pytest.approx(0.4736, abs=1e-4)
    assert row["standard_error"] == pytest.approx(0.0215, abs=1e-4)


@pytest.mark.parametrize(
    ("design", "share"),
    [
        ("crosswise:0.1594625", (604 / 1166 - 0.8405375) / (2 * 0.1594625 - 1)),
        ("crosswise:0.8405375", (604 / 1166 - 0.1594625) / (2 * 0.8405375 - 1)),
        ("forced:0.75,2/3", (604 / 1166 - 0.25 * 2 / 3) / 0.75),
        ("unrelated:0.778,0.49", (604 / 1166 - 0.222 * 0.49) / 0.778),
        ("direct", 604 / 1166),
    ],
)
def test_every_design(design, share):
    """The moment estimators of the literature."""
    table(*CROSSWISE)
    [row] = estimates(f"--design {design} --people people")
    assert row["design"] == design
    assert row["raw_frequency"] == pytest.approx(share, abs=1e-12)
    assert row["ci_low"] < share < row["ci_high"]
    assert (row["epsilon"] is None) == (design == "direct")


def test_a_share_below_0_stays_and_its_interval_begins_at_0():
    table("answer,people", "0,1278", "1,248")
    [row] = estimates("--design forced:0.75,2/3 --people people")
    assert row["raw_frequency"] == pytest.approx((248 / 1526 - 1 / 6) / 0.75)
    assert row["raw_frequency"] < 0 == row["frequency"] == row["ci_low"] < row["ci_high"]


@pytest.mark.parametrize(
    "design", ["design", "forced:truth,yes", "forced:0.75,yes", "forced:3/4,2/3"], ids=["texts", "rates", "one", "none"]
)
def test_rates_from_columns(design):
    table("answer,design,truth,yes", *['0,"forced:3/4,2/3",3/4,2/3'] * 7, *['1," forced: 3/4, 2/3",0.75, 2/3'] * 3)
    rows = estimates(f"--design {design}")
    assert sum(row["num_reports"] for row in rows) == 10
    shares = {row["design"]: row["raw_frequency"] * row["num_reports"] for row in rows}
    assert sum(shares.values()) == pytest.approx((3 - 10 / 6) / 0.75)


def test_questions_and_designs_are_estimated_one_by_one():
    table("q,a,rate", *["b,yes,0.2"] * 3, *["a,no,0.2"] * 4, *["b,YES,0.3"] * 5, *["b,No,0.3"] * 6)
    rows = estimates("--question q --answer a --design crosswise:rate")
    found = [(row["question"], row["design"], row["num_reports"], row["num_ones"]) for row in rows]
    assert found == [("a", "crosswise:0.2", 4, 0), ("b", "crosswise:0.2", 3, 3), ("b", "crosswise:0.3", 11, 5)]


def test_other_texts_of_answers():
    table("answer", "same", "same", "different")
    [row] = estimates("--design crosswise:0.2 --yes same --no different")
    assert (row["num_reports"], row["num_ones"]) == (3, 2)


def test_parquet_with_numbers(tmp_path):
    columns = {"answer": pa.array([1, 0, None], pa.int8()), "rate": [0.2, 0.2, 0.2], "people": [10, 20, 30]}
    columns["question"] = pa.array(["x", "x", "x"]).dictionary_encode()
    pa.parquet.write_table(pa.table(columns), "answers.parquet")
    [row] = estimates("--design crosswise:rate --people people --question question", "answers.parquet")
    assert (row["num_reports"], row["num_ones"], row["design"]) == (30, 10, "crosswise:0.2")


SPOILED = [
    "question,answer,design,people",
    "q,1,direct,1",
    ",1,direct,1",
    "q,NA,direct,1",
    f"q,{SECRET},direct,1",
    f"q,{SECRET},direct,1",
    "q,,direct,1",
    f"q,1,{SECRET},1",
    "q,1,,1",
    f"q,1,direct,{SECRET}",
    "q,1,direct,1.5",
    "q,1,direct,-1",
    "q,1,direct,0",
    "q,0,direct, nan ",
    *[f"q,{SECRET},direct,1"] * 3,
    "q,1,crosswise:0.5,1",
]


def test_cells_that_are_missing_or_unknown_are_counted_and_named(capsys):
    table(*SPOILED)
    rows = estimates("--question question --design design --people people --max_unreadable 1")
    assert [(row["num_reports"], row["num_ones"]) for row in rows] == [(1, 1)]
    said = capsys.readouterr().out
    assert said.splitlines()[3:] == [
        "1 of 17 rows are used.",
        "left out: 1 row: no question in question (line 3)",
        "left out: 2 rows: no answer in answer (line 4, line 7)",
        "left out: 5 rows: an answer in answer that is neither 1/yes/true nor 0/no/false (line 5, line 6, line 15 "
        "and 2 more)",
        "left out: 1 row: no design in design (line 9)",
        "left out: 2 rows: no known design in design (line 8, line 18)",
        "left out: 1 row: no number in people (line 14)",
        "left out: 1 row: something else than a number in people (line 10)",
        "left out: 2 rows: no whole number of people in people (line 11, line 12)",
        "left out: 1 row: 0 people in people (line 13)",
    ]
    assert SECRET not in said


def test_rates_that_are_missing_or_impossible_are_counted(capsys):
    table("answer,rate", "1,0.2", "1,", "1,0.5", f"1,{SECRET}")
    assert len(estimates("--design crosswise:rate --max_unreadable 1")) == 1
    assert capsys.readouterr().out.splitlines()[3:] == [
        "1 of 4 rows are used.",
        "left out: 1 row: no rate in rate (line 3)",
        "left out: 2 rows: no rates of crosswise that tell yes from no in rate (line 4, line 5)",
    ]


def test_a_table_without_usable_rows_ends_with_another_code(capsys):
    table("answer", "NA")
    assert survey.main(shlex.split("answers.csv --design direct")) == 1
    assert capsys.readouterr().out.splitlines()[0] == "0 of 1 rows are used."


def test_names_of_questions_do_not_command_the_terminal(capsys):
    table("q,answer", "\x1b[31mred,1")
    [row] = estimates("--question q --design direct")
    assert row["question"] == "\x1b[31mred"
    assert "\x1b" not in capsys.readouterr().out


NO_CSV = "must be CSV with a header, in UTF-8 (the content is not shown)"
RATE = "--design must have rates from 0 to 1 such as 0.16 or 1/6, or names of columns, got"
FORMS = "direct, crosswise:RATE, forced:TRUTH,YES, unrelated:TRUTH,YES"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--design kuk:0.2", f"--design must be {FORMS}, or the name of a column, got 'kuk:0.2'"),
        (
            "--design crosswise:rate",
            f"{RATE} 'rate'",
        ),
        (
            "--design crosswise:1.5",
            f"{RATE} '1.5'",
        ),
        ("--design crosswise:1/2", "SurveyDesign.rates must tell yes from no, got crosswise:1/2"),
        ("--design crosswise:0.1,0.2", "--design must be crosswise:RATE, got 'crosswise:0.1,0.2'"),
        ("--design forced:people", "--design must be forced:TRUTH,YES, got 'forced:people'"),
        (
            "--design direct --answer a",
            "--answer must name one column of answers.csv, got 'a', found 0 times; CSV must begin with its header",
        ),
        (
            "--design direct --question q",
            "--question must name one column of answers.csv, got 'q', found 0 times; CSV must begin with its header",
        ),
        (
            "--design direct --people twice",
            "--people must name one column of answers.csv, got 'twice', found 2 times",
        ),
        ("--design twice", "--design must name one column of answers.csv, got 'twice', found 2 times"),
        ("--design direct --yes a --no a", "--yes and --no must be different texts, got 'a' for both"),
    ],
)
def test_refused(options, sentence, capsys):
    table("answer,people,twice,twice", "1,1,1,1")
    assert survey.main(shlex.split(f"answers.csv {options}")) == 2
    assert capsys.readouterr() == ("", f"survey: {sentence}\n")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "question,answer\nq,1\n".encode("utf-16-le"),
            f"{NO_CSV}; line 1 has zero bytes, as UTF-16 and files of other programs do: save the "
            "table as CSV in UTF-8",
        ),
        (
            "question,answer\nq\xe9,1\n".encode("latin-1"),
            f"{NO_CSV}; line 2 is in another encoding, such as Windows-1252: save the table as CSV in UTF-8",
        ),
        (b"question,answer\nq,1\nq,1,1\n", "line 3 must have the 2 columns of the header, got 3"),
    ],
    ids=["utf-16 without a mark", "latin-1", "three cells"],
)
def test_other_files_than_csv_are_named(content, sentence, capsys):
    Path("answers.csv").write_bytes(content)
    assert survey.main(shlex.split("answers.csv --question question --design direct")) == 2
    between = " " if sentence.startswith(("must", "line")) else ""
    assert capsys.readouterr() == ("", f"survey: answers.csv{between}{sentence}\n")


def test_a_column_that_is_spelled_differently_is_named_and_others_are_not(capsys):
    """A table without a header begins with a person's answers."""
    table("Question ,answer", "q,1")
    assert survey.main(shlex.split("answers.csv --question question --design direct")) == 2
    expected = "--question must name one column of answers.csv, got 'question', found 0 times; one is named 'Question '"
    assert capsys.readouterr().err == f"survey: {expected}\n"
    table("ill,yes", "q,1")
    assert survey.main(shlex.split("answers.csv --question question --design direct")) == 2
    assert "ill" not in capsys.readouterr().err


def test_one_column_has_one_meaning(capsys):
    table("answer,people", "1,1")
    assert survey.main(shlex.split("answers.csv --question answer --design direct")) == 2
    sentence = "--question, --answer and --people must name different columns, got answer, answer"
    assert capsys.readouterr().err == f"survey: {sentence}\n"


def test_rates_in_a_column_that_are_no_numbers_leave_their_rows_out(capsys):
    table("answer,rate", "1,0.16", "1,15.9%", "0,16", '0,"0,16"', "0,", "1,0.5", "0,1/6")
    assert survey.main(shlex.split("answers.csv --design crosswise:rate --max_unreadable 1")) == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        "2 of 7 rows are used.",
        "left out: 1 row: no rate in rate (line 6)",
        "left out: 4 rows: no rates of crosswise that tell yes from no in rate (line 3, line 4, line 5 and 1 more)",
    ]


def test_a_table_without_rows_is_refused(capsys):
    table("answer")
    assert survey.main(shlex.split("answers.csv --design direct")) == 2
    assert capsys.readouterr().err == "survey: answers.csv must have at least one row, got none\n"


def test_a_file_that_does_not_exist_is_named(capsys):
    assert survey.main(shlex.split("none.csv --design direct")) == 2
    assert re.fullmatch(r"survey: none\.csv: No such file or directory\n", capsys.readouterr().err)


def test_without_covariates_a_table_has_no_columns_of_them():
    table(*CROSSWISE)
    names = {"question": None, "answer": "answer", "people": "people", "yes": None, "no": None}
    found = read_answers(AnswerColumns(path="answers.csv", design="direct", **names))
    assert found.covariates.shape == (2, 0)
