"""People's values from CSV and Parquet tables: times of all clocks, and faults by their lines."""

from __future__ import annotations

import datetime
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.messages_cases import write_files
from uldp_transforms.ldp import SpecError
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME
from uldp_transforms_tables import delimited_table
from uldp_transforms_tables.event_times import Clock
from uldp_transforms_tables.simulate.simulate_command import main as simulate
from uldp_transforms_tables.values_file import ValuesFile

SECRET = "my-secret"
NEITHER = "event_time must be RFC 3339 or seconds since 1970, got neither; --time_format names another form"
COLLECTION = """{"version": 1, "id": "survey", "mechanism": {"id": "krr", "epsilon": 1.0},
  "alphabet": {"id": "closed", "values": ["0", "1", "2"]}}"""


def csv_file(folder: Path, text: str) -> str:
    (folder / "people.csv").write_text(text)
    return str(folder / "people.csv")


def everything(file: ValuesFile, rows_at_once: int = 2) -> tuple[list[str], list[int] | None]:
    parts = list(file.read(rows_at_once))
    assert all(len(values) == rows_at_once for values, _ in parts[:-1])
    times = None if file.time_column is None else [int(time) for _, some in parts for time in some]
    return [value for values, _ in parts for value in values], times


def refusal(call) -> str:
    with pytest.raises(SpecError) as caught:
        call()
    assert SECRET not in str(caught.value)
    return str(caught.value)


def one_moment(text: str) -> int:
    """A time as a column of one row has it."""
    return int(Clock("event_time", any_year=True).milliseconds(pa.array([text]), lambda _: "line 2")[0])


def test_columns_have_the_names_that_people_give_them(tmp_path):
    path = csv_file(tmp_path, "when,page\n1,home\n2,shop\n3,home\n")
    file = ValuesFile(path, "page", "when", time_format="seconds")
    assert file.columns == ["when", "page"]
    assert everything(file) == (["home", "shop", "home"], [1000, 2000, 3000])
    assert everything(ValuesFile(path, "page")) == (["home", "shop", "home"], None)
    assert everything(ValuesFile(path, "when", "when", time_format="seconds")) == (["1", "2", "3"], [1000, 2000, 3000])


@given(moment=st.integers(MIN_EVENT_TIME, MAX_EVENT_TIME - 1), hours=st.integers(-12, 12), form=st.integers(0, 2))
def test_any_moment_is_read_as_python_reads_it(moment, hours, form):
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    start = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    try:
        text = (start + datetime.timedelta(milliseconds=moment)).astimezone(zone).isoformat(" T T"[form + 1])
    except OverflowError:
        return
    assert one_moment(text if form else f"{moment / 1000:.3f}") == moment


def test_the_first_of_several_faults_is_named():
    texts = ["2024-02-29T00:00:00Z"] * 1000
    for row in (613, 700, 999):
        texts[row] = "2023-02-29T00:00:00Z"
    sentence = f"row 613: {NEITHER}"
    assert refusal(lambda: Clock("event_time").milliseconds(pa.array(texts), "row {}".format)) == sentence


def test_lines_are_counted_as_an_editor_counts_them(tmp_path):
    path = csv_file(tmp_path, f'note,value,event_time\n"two\nlines",0,999999999\n\n,1,{SECRET}\n')
    sentence = f"{path} line 5: {NEITHER}"
    assert refusal(lambda: everything(ValuesFile(path))) == sentence
    path = csv_file(tmp_path, f'note,value\n"two\nlines",0\n\n{SECRET}\n')
    assert (
        refusal(lambda: everything(ValuesFile(path))) == f"{path} line 5 must have the 2 columns of the header, got 1"
    )


def test_simulate_says_that_there_are_no_times(tmp_path, capsys):
    (tmp_path / "C.json").write_text(COLLECTION)
    path = csv_file(tmp_path, "who,value\nann,1\n")
    argv = [str(tmp_path / "C.json"), "--values", path, "--output", str(tmp_path / "r.avro")]
    assert simulate(argv) == 0
    assert capsys.readouterr().err.endswith(
        f"simulate: all reports are of now, for {path} has no column event_time but who, value; "
        "--time_column names another\n"
    )
    csv_file(tmp_path, "who,answer,at\nann,1,2024-07-01 12:00:00\n")
    named = ["--value_column", "answer", "--time_column", "at", "--timezone", "Asia/Tokyo"]
    assert simulate([*argv, *named]) == 0
    assert "of now" not in capsys.readouterr().err


def test_values_that_the_collection_does_not_list_are_named_by_their_lines(tmp_path, capsys):
    (tmp_path / "C.json").write_text(COLLECTION)
    path = csv_file(tmp_path, "value\n" + "0\n1\n" * 70_000 + f"{SECRET}\n2\n" * 3)
    argv = [str(tmp_path / "C.json"), "--values", path, "--output", str(tmp_path / "r.avro")]
    assert simulate(argv) == 2
    sentence = "line 140002 must have one of the 3 values of the collection; rows with other values: 3 of 140006"
    assert capsys.readouterr().err == f"simulate: {path} {sentence}\n"
    assert not (tmp_path / "r.avro").exists()


def test_arrow_holds_no_function_of_python(tmp_path, monkeypatch):
    """A thread of Arrow that releases one after the interpreter began to end aborts the process."""
    given, open_csv = [], pa.csv.open_csv
    monkeypatch.setattr(pa.csv, "open_csv", lambda file, *options: given.extend(options) or open_csv(file, *options))
    assert everything(ValuesFile(csv_file(tmp_path, "value\n0\n1\n"))) == (["0", "1"], None)
    assert [options.invalid_row_handler for options in given if isinstance(options, pa.csv.ParseOptions)] == [None]


@pytest.mark.slow
@pytest.mark.parametrize("row", [SECRET, "0,1"])
def test_simulate_ends_with_its_exit_code_whenever_a_row_is_bad(row, tmp_path):
    """While Arrow held a function, about one of five such processes ended by SIGABRT: 0.8 ** 40 is 0.0001."""
    (tmp_path / "C.json").write_text(COLLECTION)
    path = csv_file(tmp_path, f"value\n1\n{row}\n2\n")
    options = [str(tmp_path / "C.json"), "--values", path, "--output", str(tmp_path / "r.avro")]
    command = [sys.executable, "-m", "uldp_transforms.jobs", "simulate", *options]
    ends = [subprocess.run(command, capture_output=True, timeout=600, check=False) for _ in range(40)]
    assert {(end.returncode, end.stderr.count(b"\n")) for end in ends} == {(2, 1)}


def test_a_value_may_have_a_line_end_wherever_the_file_is_divided(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited_table, "_BLOCK_BYTES", 64)
    values = [f"{number}{chr(10) * (number % 3)}." for number in range(200)]
    path = csv_file(tmp_path, "value\n" + "".join(f'"{value}"\n' for value in values))
    assert everything(ValuesFile(path)) == (values, None)


@pytest.mark.parametrize("text", ["2016-12-31T23:59:60Z", "2016-12-31T24:00:01Z", "2017-02-29T00:00:00Z"])
def test_moments_that_unix_time_does_not_have_are_refused(text):
    """A leap second is the first of them."""
    with pytest.raises(SpecError, match="line 2: event_time must be RFC 3339 or seconds since 1970"):
        one_moment(text)


@pytest.mark.parametrize(
    ("header", "column"),
    [
        ("Value", "value"),
        (" value", "value"),
        ("VALUE,value", "value"),
        ("value,value", "value"),
        ("value,Event_Time", "event_time"),
        ("value,event time", "event_time"),
        ("value,event-time", "event_time"),
        ("value,event_time ", "event_time"),
        ("value,eventTime", "event_time"),
        ("event_time,value,event_time", "event_time"),
    ],
)
def test_a_column_that_is_nearly_named_is_refused(header, column, tmp_path):
    """Otherwise it would be left out in silence: a month of reports would carry the present time."""
    write_files(tmp_path, {"v.csv": f"{header}\n0,1,2\n"})
    with pytest.raises(SpecError, match=f"v.csv must have exactly one column named {column}, spelled like this, got "):
        ValuesFile(str(tmp_path / "v.csv"))


def test_other_columns_are_nobodys_business(tmp_path):
    write_files(tmp_path, {"v.csv": "values,value,time,event_times,event_time\n9,0,8,7,1000000001\n"})
    assert [(values, times.tolist()) for values, times in ValuesFile(str(tmp_path / "v.csv")).read(9)] == [
        (["0"], [1_000_000_001_000])
    ]
