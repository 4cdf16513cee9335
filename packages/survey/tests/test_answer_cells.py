"""Tables of answers and navigations, cell by cell: limits, sentences, rows of estimates, and pages."""

from __future__ import annotations

import html
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from uldp_transforms.jobs import pictures
from uldp_transforms.jobs.kafka.offsets import ConsumerSettings
from uldp_transforms.ldp import SpecError
from uldp_transforms.messages.navigation_line import LONGEST
from uldp_transforms_survey.answers.shares import DesignedAnswers
from uldp_transforms_survey.clear_numbers import Bounded, mean_of, quantile_of, share_of, two_answer_weights
from uldp_transforms_survey.navigations import (
    navigation_estimates,
    navigation_words,
    navigations_command,
    navigations_page,
)
from uldp_transforms_survey.navigations.navigation_lines import JsonRecords, table_of_paths
from uldp_transforms_survey.navigations.navigations_table import Columns, Navigations, read_navigations
from uldp_transforms_survey.survey import share_rows, survey_command, survey_table
from uldp_transforms_survey.survey.answer_options import DesignOption
from uldp_transforms_survey.survey.answer_table import read_answers
from uldp_transforms_survey.survey.cells import Cells, LeftOut, are_missing, require_column, used
from uldp_transforms_survey.survey_designs import SurveyDesign
from uldp_transforms_tables.tables import table_of


def refusal(call: Any) -> str:
    with pytest.raises(SpecError) as caught:
        call()
    return str(caught.value)


def cells_of(folder: Path, *columns: str) -> Cells:
    """Cells of a file with these columns, whose cells are between bars."""
    rows = zip(*(column.split("|") for column in columns))
    (folder / "t.csv").write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    names = [column.split("|")[0] for column in columns]
    return Cells("t.csv", table_of(str(folder / "t.csv")), names)


# ---------------------------------------------------------------------- cells


def test_sentences_about_rows() -> None:
    assert str(LeftOut("no x", 1, ("line 2",))) == "1 row: no x (line 2)"
    assert str(LeftOut("no x", 3, ("a", "b", "c"))) == "3 rows: no x (a, b, c)"
    assert str(LeftOut("no x", 1204, ("a", "b", "c"))) == "1,204 rows: no x (a, b, c and 1,201 more)"
    assert used(1234, 5678, [LeftOut("no x", 1, ("a",))]) == [
        "1,234 of 5,678 rows are used.",
        "left out: 1 row: no x (a)",
    ]


def test_a_row_has_one_reason(tmp_path: Path) -> None:
    """The first; reasons without rows of their own are not told, and three places are."""
    cells = cells_of(tmp_path, "a|1|2|3|4|5|6")
    cells.leave_out(np.array([1, 1, 1, 1, 0, 0], bool), "one")
    cells.leave_out(np.array([1, 0, 0, 0, 0, 0], bool), "two")
    cells.leave_out(np.array([0, 1, 0, 0, 1, 0], bool), "three")
    assert cells.keep.tolist() == [False] * 5 + [True]
    assert list(cells.left_out()) == [
        LeftOut("one", 4, ("line 2", "line 3", "line 4")),
        LeftOut("three", 1, ("line 6",)),
    ]


def test_numbers_are_those_that_other_programs_read(tmp_path: Path) -> None:
    texts = ["1", " 2.5 ", "-1e3", "1_000", "\u0661", "inf", "nan", "", "NA", "x", "1e999", "0x10"]
    cells = cells_of(tmp_path, "|".join(["n", *texts]), "|".join("m" * 13))
    assert cells.numbers("n").tolist() == [1, 2.5, -1000, *[0] * 9]
    assert cells.keep.tolist() == [True] * 3 + [False] * 9
    assert [(each.reason, each.num_rows) for each in cells.left_out()] == [
        ("no number in n", 3),
        ("something else than a number in n", 6),
    ]


def test_texts_are_numbered_in_their_order(tmp_path: Path) -> None:
    texts, codes = cells_of(tmp_path, "t|b| a|a |c|b").coded("t")
    assert (texts, codes.tolist()) == (("a", "b", "c"), [1, 0, 0, 2, 1])
    assert are_missing(["", "NA", "NaN", "null", "Null", "0", "no", "none"]).tolist() == [True] * 5 + [False] * 3
    table = pa.table({"t": pa.array(["b", None, "a"]).dictionary_encode()})
    pa.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    texts, codes = Cells("t", table_of(str(tmp_path / "t.parquet")), ["t", "t"]).coded("t")
    assert (texts, codes.tolist()) == (("", "a", "b"), [2, 0, 1])


@pytest.mark.parametrize(
    ("path", "names", "sentence"),
    [
        ("t.csv", ["b", "A "], "--x must name one column of t.csv, got 'a', found 0 times; one is named 'A '"),
        (
            "t.csv",
            ["a;", "b"],
            "--x must name one column of t.csv, got 'a', found 0 times; CSV must begin with its header",
        ),
        ("t.csv", ["a", "a", "A"], "--x must name one column of t.csv, got 'a', found 2 times"),
        ("t.csv", [], "t.csv must have a header, or JSON objects, got none"),
    ],
)
def test_a_column_that_is_not_there_once(path: str, names: list[str], sentence: str) -> None:
    assert refusal(lambda: require_column(path, names, "--x", "a")) == sentence
    require_column("t.xlsx", ["b", "a"], "--x", "a")


# ---------------------------------------------------------------------- answers


def answers_of(folder: Path, text: str, design: str = "direct", **names: str | tuple[str, ...]) -> Any:
    (folder / "t.csv").write_text(text, encoding="utf-8")
    none: dict[str, Any] = dict.fromkeys(("question", "people", "yes", "no"))
    given = none | {"path": str(folder / "t.csv"), "answer": "answer", "design": design, "max_unreadable": 1.0} | names
    return read_answers(survey_command.AnswerColumns(**given))


@pytest.mark.parametrize(
    ("people", "kept"),
    [("0", None), ("1", 1), (f"{2**53}", 2**53), (f"{2**53 + 2}", None), ("-1", None), ("0.5", None), ("2.0", 2)],
)
def test_numbers_of_people(people: str, kept: int | None, tmp_path: Path) -> None:
    found = answers_of(tmp_path, f"answer,n\n1,{people}\n0,3\n", people="n")
    assert found.people.tolist() == ([3] if kept is None else [kept, 3])
    assert found.num_rows == 2
    assert found.of_question(0).tolist() == [True] * len(found.people)


def test_answers_that_options_name(tmp_path: Path) -> None:
    """A named text is exact, the usual ones are in any letters; neither or both is no answer."""
    text = "answer\nja\nJA\nno\nNO\n1\n\n"
    found = answers_of(tmp_path, text, yes=("ja",))
    assert found.answer.tolist() == [1, 0, 0]
    assert found.used[1:] == [
        "left out: 2 rows: an answer in answer that is neither ja nor 0/no/false (line 3, line 6)"
    ]
    turned = answers_of(tmp_path, text, yes=("no",), no=("ja",))
    assert turned.answer.tolist() == [0, 1]
    both = answers_of(tmp_path, text, yes=("no", "ja"), no=("no", "NO"))
    assert both.answer.tolist() == [1, 0]
    named = answers_of(tmp_path, "answer,x\n,1\nx,1\n", yes=("x",), no=("",))
    assert named.answer.tolist() == [0, 1], "a missing cell may be named as an answer"


def test_designs_of_options() -> None:
    of_column = DesignOption.parse("direct", ["direct"])
    assert of_column == DesignOption(None, ("direct",), ("direct",))
    assert of_column.design(["crosswise:0.25"]) == SurveyDesign.parse("crosswise:0.25")
    mixed = DesignOption.parse("forced:3/4,yes", ["yes"])
    assert mixed == DesignOption("forced", ("3/4", "yes"), ("yes",))
    assert mixed.design([" 2/3 "]) == SurveyDesign("forced", ("3/4", "2/3"))
    for text, form in (("direct:0.1", "direct"), ("forced:0.1", "forced:TRUTH,YES"), ("crosswise", "crosswise:RATE")):
        assert refusal(lambda text=text: DesignOption.parse(text, [])) == f"--design must be {form}, got {text!r}"


def row_of(design: SurveyDesign, zeros: int, ones: int) -> dict[str, Any]:
    """The row of a question with these answers."""
    no, yes = (np.array([float(chance)]) for chance in design.ones)
    counted = DesignedAnswers(no=no, yes=yes, ones=np.array([float(ones)]), people=np.array([float(zeros + ones)]))
    return share_rows.of_design("q", design, np.array([zeros, ones]), counted)


def test_a_row_of_an_estimate() -> None:
    """Of the crosswise model at 1/4: 30 of 100 ones, and the moment estimate of the share."""
    design = SurveyDesign.parse("crosswise:0.25")
    found = row_of(design, 70, 30)
    share = (0.3 + 0.25 - 1) / (2 * 0.25 - 1)
    error = math.sqrt(0.3 * 0.7 / 100) / 0.5
    assert found["raw_frequency"] == pytest.approx(share)
    assert found["standard_error"] == pytest.approx(error, rel=0.02)
    assert found["ci_low"] < share < found["ci_high"]
    assert (found["frequency"], found["value"], found["question"]) == (pytest.approx(share), "yes", "q")
    assert (found["num_reports"], found["num_ones"], found["design"]) == (100, 30, "crosswise:0.25")
    assert found["epsilon"] == pytest.approx(math.log(3))
    assert survey_table.cells_of(found) == (
        "q",
        "crosswise:0.25",
        "100",
        f"{share:.4f}",
        f"{found['standard_error']:.4f}",
        f"{found['ci_low']:.4f} to {found['ci_high']:.4f}",
        "1.10",
    )
    direct = row_of(SurveyDesign.parse("direct"), 700, 1300)
    assert (direct["epsilon"], direct["raw_frequency"]) == (None, pytest.approx(0.65))
    assert survey_table.cells_of(direct)[-1] == "inf"
    assert survey_table.cells_of(direct)[2] == "2,000"


def test_a_share_of_rounding_errors_is_printed_without_a_sign() -> None:
    found = row_of(SurveyDesign.parse("direct"), 70, 30) | {"raw_frequency": -5e-18}
    assert survey_table.cells_of(found)[3] == "0.0000"


def test_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One question has no name; a file has one JSON object per line."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("q,answer,n\nb,1,30\na,0,70\nb,no,70\n", encoding="utf-8")
    assert survey_command.main(["t.csv", "--design=direct", "--people=n", "--question=q", "--json=rows"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["question", "design", "people", "yes", "error", "95", "%", "interval", "epsilon"]
    assert [line.split()[:4] for line in lines[1:3]] == [
        ["a", "direct", "70", "0.0000"],
        ["b", "direct", "100", "0.3000"],
    ]
    assert lines[3:] == ["", "3 of 3 rows are used."]
    rows = [json.loads(line) for line in Path("rows").read_text(encoding="utf-8").splitlines()]
    assert [(row["question"], row["num_reports"]) for row in rows] == [("a", 70), ("b", 100)]
    assert "Infinity" not in Path("rows").read_text(encoding="utf-8")
    assert survey_command.main(["t.csv", "--design=direct"]) == 0
    alone = capsys.readouterr().out.splitlines()
    assert alone[0].split() == ["design", "people", "yes", "error", "95", "%", "interval", "epsilon"]
    assert alone[1].split()[:3] == ["direct", "3", "0.3333"]
    Path("t.csv").write_text("answer\nNA\n", encoding="utf-8")
    assert survey_command.main(["t.csv", "--design=direct"]) == 1
    assert capsys.readouterr().out.startswith("0 of 1 rows are used.\n")


# ---------------------------------------------------------------------- navigations


def test_lines_in_memory_are_named_by_their_part() -> None:
    """Empty lines and parts have none; anything but an object has no cells."""
    table = JsonRecords("n", [("a", [b'{"x": 1}', b"", b"no"]), ("empty", []), ("b", [b'{"y": "2", "x": "3"}'])])
    assert table.columns() == ["x", "y"]
    assert [table.place(row) for row in range(3)] == ["a line 1", "a line 3", "b line 1"]
    assert table.about_rows() == 3
    [batch] = table.read(["y", "x"])
    assert batch.to_pydict() == {"y": [None, None, "2"], "x": ["1", None, "3"]}


def test_files_and_directories(tmp_path: Path) -> None:
    """One file is of any kind; of a directory the lines that a gateway writes, in the order of their names."""
    folder = tmp_path / "spool"
    folder.mkdir()
    for name in ("navigations-2.jsonl", "navigations-1.jsonl", "other.jsonl"):
        (folder / name).write_text(f'{{"x": "{name[-7]}"}}\n', encoding="utf-8")
    (tmp_path / "more.jsonl").write_text('{"x": "m"}\n', encoding="utf-8")
    (tmp_path / "t.csv").write_text("x\n7\n", encoding="utf-8")

    def read(*paths: Path) -> list[str]:
        table = table_of_paths([str(path) for path in paths])
        return [cell for batch in table.read(["x"]) for cell in batch.to_pydict()["x"]]

    assert read(folder) == ["1", "2"]
    assert read(folder, tmp_path / "more.jsonl") == ["1", "2", "m"]
    assert read(tmp_path / "t.csv") == ["7"]
    sentence = "several files must be JSON lines (.jsonl), got 't.csv'"
    assert refusal(lambda: read(tmp_path / "more.jsonl", tmp_path / "t.csv")) == sentence
    place = table_of_paths([str(folder), str(tmp_path / "more.jsonl")]).place(2)
    assert place == "more.jsonl line 1"


def navigations(text: str, folder: Path, *, timed: bool = False) -> Navigations:
    (folder / "n.csv").write_text(text, encoding="utf-8")
    columns = Columns(value="v", rate="r", duration="d", time="t" if timed else None)
    return read_navigations(table_of(str(folder / "n.csv")), "n", columns, max_unreadable=1)


def test_limits_of_navigations(tmp_path: Path) -> None:
    lines = ["high,0,0", "low,0.999,5.5", f"high,0.5,{LONGEST}", "high,1,1", "high,-0.001,1", "low,0,-0.5"]
    lines += [f"low,0,{LONGEST * 1.001}", "High,0,1", ",0,1"]
    found = navigations("v,r,d\n" + "\n".join(lines) + "\n", tmp_path)
    assert found.high.tolist() == [True, False, True]
    assert found.rates.tolist() == [0, 0.999, 0.5]
    assert found.durations.tolist() == [0, 5.5, LONGEST]
    assert (found.times.tolist(), found.num_rows) == ([], 9)
    assert [(each.reason, each.places) for each in found.left_out] == [
        ("no answer in v", ("line 10",)),
        ("an answer in v that is neither high nor low", ("line 9",)),
        ("a rate in r that is not from 0 to below 1", ("line 5", "line 6")),
        ("a time below 0 in d", ("line 7",)),
        (f"a time above {LONGEST:,.0f} in d", ("line 8",)),
    ]
    timed = navigations("v,r,d,t\nhigh,0,1,999999999.0019\nlow,0,1,999999998.9999\nlow,0,1,x\n", tmp_path, timed=True)
    assert timed.times.tolist() == [999_999_999_001, 999_999_998_999]


def test_a_gateway_takes_the_same_loading_times() -> None:
    path = Path(__file__).parents[2] / "gateway" / "uldp_transforms_gateway" / "gateway.openapi.json"
    described = json.loads(path.read_text(encoding="utf-8"))
    [body] = described["paths"]["/navigations"]["post"]["requestBody"]["content"].values()
    assert body["schema"]["properties"]["duration"]["maximum"] == LONGEST


RATES = np.array([0.1, 0.5, 0.1, 0.2] * 30)
HIGH = np.arange(120) % 3 > 0
FOUND = Navigations(
    high=HIGH,
    rates=RATES,
    durations=np.arange(120.0),
    times=np.array([9500, 500, 1000, 999] * 30),
    num_rows=130,
    left_out=(),
)


def test_estimates_of_navigations() -> None:
    """Of the classes high and low with their own weights, and of all as they are."""
    row = navigation_estimates.estimates(FOUND, 0.75)
    share, error = share_of(HIGH, RATES)
    assert [row[name] for name in ("raw_frequency", "ci_low", "ci_high", "standard_error")] == [*share, error]
    assert (row["num_reports"], row["value"], row["frequency"]) == (120, "high", share.value)
    weights = two_answer_weights(HIGH, RATES), two_answer_weights(~HIGH, RATES), np.ones(120)
    for each, name, own in zip(row["durations"], ("high", "low", "all"), weights, strict=True):
        assert each["class"] == name
        assert list(each["mean"].values()) == list(mean_of(own, FOUND.durations))
        assert each["quantile"]["q"] == 0.75
        assert [each["quantile"][name] for name in ("value", "low", "high")] == list(
            quantile_of(own, FOUND.durations, 0.75)
        )
    for held, frequency in ((True, 1.0), (False, 0.0)):
        sure = Navigations(
            high=np.full(20, held),
            rates=np.full(20, 0.5),
            durations=np.ones(20),
            times=np.zeros(0, np.int64),
            num_rows=20,
            left_out=(),
        )
        row = navigation_estimates.estimates(sure, 0.5)
        assert (row["frequency"], abs(row["raw_frequency"] - 0.5)) == (frequency, pytest.approx(1.0))
    plain = navigation_estimates._plain(Bounded(math.nan, -math.inf, 3.0))
    assert plain == {"value": None, "low": None, "high": 3.0}


def test_windows_of_navigations_begin_at_multiples_of_their_size() -> None:
    rows = list(navigation_estimates.estimates_of_windows(FOUND, 0.5, 1000))
    assert [(row["window_start"], row["window_end"], row["num_reports"]) for row in rows] == [
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z", 60),
        ("1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z", 30),
        ("1970-01-01T00:00:09Z", "1970-01-01T00:00:10Z", 30),
    ]
    rows_of = [np.isin(FOUND.times // 1000, second) for second in (0, 1, 9)]
    for row, chosen in zip(rows, rows_of):
        share, _ = share_of(HIGH[chosen], RATES[chosen])
        assert row["raw_frequency"] == pytest.approx(share.value)
        everything = row["durations"][2]["mean"]["value"]
        assert everything == pytest.approx(FOUND.durations[chosen].mean())


@pytest.mark.parametrize(
    ("value", "low", "high", "texts"),
    [
        (1234.5, 1000.4, 2000.6, ("1,234", "1,000 to 2,001")),
        (None, None, None, ("-", "not known")),
        (5.0, None, None, ("5", "not known")),
        (None, 0.0, None, ("-", "at least 0")),
        (7.0, None, 0.0, ("7", "at most 0")),
        (0.0, 0.0, 0.0, ("0", "exactly 0")),
        (400.26, 400.21, 400.34, ("400.26", "400.21 to 400.34")),
        (1500.0, 1499.2, 1500.9, ("1,500.0", "1,499.2 to 1,500.9")),
    ],
)
def test_intervals_in_words(value: float | None, low: float | None, high: float | None, texts: tuple[str, str]) -> None:
    assert navigation_words.shown({"value": value, "low": low, "high": high}) == texts


@pytest.mark.parametrize(
    ("share", "low", "high", "words"),
    [
        (0.0, 0.0, 0.018, ("0.0 %", "below 1.8 %", "0.0000 (below 0.0180)")),
        (1.0, 0.982, 1.0, ("100.0 %", "above 98.2 %", "1.0000 (above 0.9820)")),
        (0.01, 0.0, 0.018, ("1.0 %", "0.0 to 1.8 %", "0.0100 (0.0000 to 0.0180)")),
    ],
)
def test_a_share_of_navigations_of_0_or_1_has_one_end(share: float, low: float, high: float, words: Any) -> None:
    row = {"misfit": None, "frequency": share, "ci_low": low, "ci_high": high}
    assert (*navigation_words.percent_in_words(row), navigation_words.share_in_words(row)) == words


def test_lines_of_navigations() -> None:
    whole = navigation_estimates.estimates(FOUND, 0.9)
    lines = navigations_command._lines(whole)
    share = f"{whole['frequency']:.4f} ({whole['ci_low']:.4f} to {whole['ci_high']:.4f})"
    assert lines[:2] == [f"120 navigations, undisturbed: {share}", ""]
    assert lines[2].split() == ["navigations", "mean", "ms", "95", "%", "interval", "p90", "ms", "95", "%", "interval"]
    for line, each in zip(lines[3:6], whole["durations"], strict=True):
        words = [each["class"], *navigation_words.shown(each["mean"])]
        assert line.split() == " ".join([*words, *navigation_words.shown(each["quantile"])]).split()
    assert lines[6] == "" and lines[7].split()[:3] == ["rate", "navigations", "undisturbed"]
    assert [row["rate"] for row in whole["rates"]] == [0.1, 0.2, 0.5]
    for line, row in zip(lines[8:11], whole["rates"], strict=True):
        words = [f"{row['rate']:g}", str(row["num_reports"]), navigation_words.share_in_words(row)]
        assert line.split() == " ".join([*words, *navigation_words.shown(row["durations"][0]["quantile"])]).split()
    assert lines[11:] == []
    windows = list(navigation_estimates.estimates_of_windows(FOUND, 0.9, 1000))
    lines = navigations_command._window_lines(windows)
    assert lines[0].split() == ["window", "navigations", "undisturbed", "p90", "ms", "high", "95", "%", "interval"]
    assert lines[-1] == ""
    for line, row in zip(lines[1:-1], windows, strict=True):
        words = [row["window_start"], str(row["num_reports"]), navigation_words.share_in_words(row)]
        assert line.split() == " ".join([*words, *navigation_words.shown(row["durations"][0]["quantile"])]).split()


def test_options_of_navigations() -> None:
    plain = navigations_command.configure(["a", "b"])
    assert (plain.paths, plain.topic, plain.settings, plain.window) == (("a", "b"), None, None, None)
    assert (plain.quantile, plain.json, plain.html) == (0.75, None, None)
    assert plain.columns == Columns(value="confidence", rate="rate", duration="duration", time=None)
    timed = navigations_command.configure(["a", "--window", "2s", "--quantile", "0.5", "--json", "j", "--html", "h"])
    assert (timed.window, timed.quantile, timed.json, timed.html, timed.columns.time) == (2000, 0.5, "j", "h", "time")
    topic = navigations_command.configure(
        ["--kafka_topic", "t", "--bootstrap_servers", "s", "--kafka_property", "a=b", "--kafka_consumer_config", "f"]
    )
    assert (topic.topic, topic.settings) == ("t", ConsumerSettings("s", (("a", "b"),), "f"))
    for text in ("0", "1", "-1", "x", "nan"):
        with pytest.raises(SpecError, match=f"--quantile must be a number between 0 and 1, got '{text}'"):
            navigations_command.configure(["a", "--quantile", text])


def test_a_page_needs_its_package_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pictures, "entry_points", lambda **_: ())
    assert navigations_command.configure(["a"]).html is None
    assert navigations_command.main(["a", "--html", "p.html"]) == 2
    expected = "a report needs the package uldp-transforms-report; in a checkout: "
    expected += "pip install . ./packages/tables ./packages/report\n"
    assert capsys.readouterr().err == f"navigations: {expected}"


# ---------------------------------------------------------------------- the page


def test_the_page_of_navigations_escapes_and_names_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = navigation_estimates.estimates(FOUND, 0.9)
    windows = list(navigation_estimates.estimates_of_windows(FOUND, 0.9, 1000))
    monkeypatch.setattr(navigations_page, "_charts", lambda *_: [])  # seconds
    page = navigations_page.page_of(whole, windows, ["<b>1</b> & 2"])
    text = html.unescape(page)
    assert "<p>&lt;b&gt;1&lt;/b&gt; &amp; 2</p>" in page
    share, low, high = (100 * whole[name] for name in ("frequency", "ci_low", "ci_high"))
    assert f"{share:.1f} % of 120 navigations were undisturbed (95 % interval {low:.1f} to {high:.1f} %)." in text
    heads = re.findall(r'<th scope="col">(.*?)</th>', text)
    assert heads == [
        *("navigations", "mean ms", "95 % interval", "p90 ms", "95 % interval"),
        *("rate", "navigations", "undisturbed", "95 % interval"),
        *("p90 ms, high", "95 % interval", "p90 ms, low", "95 % interval"),
        *("window (UTC)", "navigations", "undisturbed", "95 % interval"),
        *("p90 ms, high", "95 % interval", "p90 ms, low", "95 % interval"),
    ]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr><th scope=\"row\">.*", text)]
    shown = navigation_words.shown
    assert rows[:3] == [[each["class"], *shown(each["mean"]), *shown(each["quantile"])] for each in whole["durations"]]
    for cells, row in zip(rows[3:], [*whole["rates"], *windows], strict=True):
        high_class, low_class, _ = row["durations"]
        between = f"{100 * row['ci_low']:.1f} to {100 * row['ci_high']:.1f} %"
        of_share = [str(row["num_reports"]), f"{100 * row['frequency']:.1f} %", between]
        assert cells == [
            row.get("window_start") or f"{row['rate']:g}",
            *of_share,
            *shown(high_class["quantile"]),
            *shown(low_class["quantile"]),
        ]


def test_what_is_drawn_of_a_window() -> None:
    """A class whose interval is open is not drawn; the other one is."""
    row = next(iter(navigation_estimates.estimates_of_windows(FOUND, 0.9, 10_000)))
    high, low, _ = row["durations"]
    high["quantile"], low["quantile"] = {"value": 3, "low": 1, "high": None}, {"value": 6, "low": 5, "high": 7}
    drawn = navigations_page._drawn(row)
    assert drawn == {
        "time": "1970-01-01T00:00:00Z",
        "said": f"1970-01-01T00:00:00Z: {100 * row['frequency']:.1f} % ({100 * row['ci_low']:.1f} to "
        f"{100 * row['ci_high']:.1f} %)",
        "share": row["raw_frequency"],
        "low": row["ci_low"],
        "high": row["ci_high"],
        "undisturbed": None,
        "undisturbed_low": None,
        "undisturbed_high": None,
        "disturbed": 6,
        "disturbed_low": 5,
        "disturbed_high": 7,
    }
