"""Files of people's values and times, limit by limit: what the commands that read them share."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from uldp_transforms.ldp import SpecError
from uldp_transforms_tables import values_file
from uldp_transforms_tables.cell_texts import texts_of
from uldp_transforms_tables.event_times import Clock
from uldp_transforms_tables.json_table import cell_of, object_of_line
from uldp_transforms_tables.tables import table_of
from uldp_transforms_tables.values_file import ValuesFile


def refusal(call: Any) -> str:
    with pytest.raises(SpecError) as caught:
        call()
    return str(caught.value)


# ---------------------------------------------------------------------- times


def read(texts: Any, zone: str | None = None, form: str | None = None) -> list[int]:
    array = texts if isinstance(texts, pa.Array) else pa.array(texts)
    return Clock("at", zone, form, any_year=True).milliseconds(array, "row {}".format).tolist()


NEITHER = "at must be RFC 3339 or seconds since 1970, got neither; --time_format names another form"


def test_a_column_may_have_times_of_all_forms() -> None:
    texts = ["1970-01-01T01:00:00+01:00", "1.5", "1970-01-01 01:00:02", "-2", "1970-01-02", "1e1", "+3.0004"]
    assert read(texts, "Europe/Berlin") == [0, 1500, 2000, -2000, 82_800_000, 10_000, 3000]


@pytest.mark.parametrize("bad", range(6))
def test_a_fault_is_named_by_its_row_among_times_of_all_forms(bad: int) -> None:
    """Of each form: a day that is not there, a local time that is there twice, and a text that is no time."""
    good = ["2001-06-01T00:00:00Z", "1", "2001-06-01 00:00:00"] * 2
    twice = (
        "at must have an offset from UTC where clocks are changed, got a time that Europe/Berlin has twice or not at"
    )
    for text, sentence in (
        ("2001-02-29T00:00:00Z", NEITHER),
        ("2001-02-29 00:00:00", NEITHER),
        ("2001-10-28 02:30:00", f"{twice} all"),
        ("soon", NEITHER),
    ):
        texts = [text if at == bad else each for at, each in enumerate(good)]
        assert refusal(lambda texts=texts: read(texts, "Europe/Berlin")) == f"row {bad}: {sentence}"


def test_local_times_need_a_zone_and_all_times_are_there() -> None:
    needs = "at must have an offset from UTC, such as Z or +01:00, unless --timezone is given, got none"
    assert refusal(lambda: read(["1", "2", "2001-06-01", "2001-06-02"])) == f"row 2: {needs}"
    empty = "at must be RFC 3339 or seconds since 1970, got none; --missing skip leaves such rows out"
    assert refusal(lambda: read(pa.array(["1", "2", None, None]))) == f"row 2: {empty}"
    year = "at must lie in the years 1900 to 9998, got another year"
    assert refusal(lambda: read(["1", "1899-12-31T23:59:59.999Z", "9999-01-01T00:00:00Z"])) == f"row 1: {year}"
    assert refusal(lambda: read(["1", "9999-01-01T00:00:00Z"])) == f"row 1: {year}"
    for text in ("1e14", "1e20", "99999999999999999999", "-1e18", "1e99"):
        assert refusal(lambda text=text: read([text])) == f"row 0: {year}"
    assert read(["1900-01-01T00:00:00Z", "9998-12-31T23:59:59.999Z"]) == [-2_208_988_800_000, 253_370_764_799_999]


def test_digits_beyond_a_millisecond_are_cut() -> None:
    """Of seconds and of texts with any number of digits, before 1970 too."""
    texts = ["0.0019999999999999", "1.9999999999999999999", "-0.001000000001", "1e-3", "12e-4"]
    assert read(texts) == [1, 1999, -2, 1, 1]
    moments = ["1970-01-01T00:00:00.0019999999Z", "1969-12-31T23:59:59.9980000001z", "1970-01-01t00:00:00.5z"]
    assert read(moments) == [1, -2, 500]
    assert read(["1970-01-01 00:00:00.0019999999"], "UTC") == [1]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_parquet_have_any_unit(unit: str) -> None:
    per_second = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[unit]
    moments = pa.array([-per_second, 2 * per_second], pa.timestamp(unit, "UTC"))
    assert read(moments) == [-1000, 2000]
    assert read(pa.array([2 * per_second], pa.timestamp(unit)), "Europe/Berlin") == [2000 - 3_600_000]
    assert read(pa.array([1_999_999], pa.timestamp("ns", "UTC"))) == [1]
    assert read(pa.array([-1, -1_000_001], pa.timestamp("ns", "UTC"))) == [-1, -2]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.timestamp("s"), "2020-01-31 09:30:05"),
        (pa.timestamp("us"), "2020-01-31 09:30:05.000000"),
        (pa.timestamp("s", "UTC"), "2020-01-31 09:30:05Z"),
        (pa.timestamp("ms", "Europe/Berlin"), "2020-01-31 09:30:05.000Z"),
    ],
    ids=str,
)
def test_timestamps_among_values_are_texts(kind: pa.DataType, expected: str) -> None:
    """A moment ends with Z, in whatever time zone a column shows it; the time of a local clock does not."""
    moment = pa.array([1_580_463_005, None], pa.timestamp("s")).cast(pa.timestamp(kind.unit)).cast(pa.int64())
    assert texts_of(moment.cast(kind), "at").to_pylist() == [expected, None]


def test_bare_numbers_are_seconds_of_1990_to_2099() -> None:
    first, behind = 631_152_000, 4_102_444_800
    clock = Clock("at")
    assert clock.read(pa.array([first, behind - 1])).milliseconds.tolist() == [1000 * first, 1000 * (behind - 1)]
    assert clock.read(pa.array([first, behind - 1])).faults.tolist() == [0, 0]
    found = clock.read(pa.array([first - 1, behind]))
    assert found.milliseconds.tolist() == [0, 0]
    assert [clock.sentence(fault).partition("; ")[0] for fault in found.faults.tolist()] == [
        "at must be RFC 3339 or seconds since 1970 in the years 1990 to 2099, got another number"
    ] * 2


@pytest.mark.parametrize("timezone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_timestamps_of_absurd_years_do_not_wrap(unit: str, timezone: str | None, sign: int) -> None:
    """In microseconds of 64 bits 2^58 s are 0, and thus 1970."""
    zone = "UTC" if timezone is None else None
    moments = pa.array([0, sign << 58 if unit == "s" else sign * (2**63 - 1)], pa.timestamp(unit, zone))
    year = "at must lie in the years 1900 to 9998, got another year"
    assert refusal(lambda: read(moments, timezone)) == f"row 1: {year}"


@pytest.mark.parametrize("form", ["%d.%m.%y", "%Y", "a%Yb"])
def test_formats_with_a_year(form: str) -> None:
    text = {"%d.%m.%y": "01.01.70", "%Y": "1970", "a%Yb": "a1970b"}[form]
    assert read([text], "UTC", form) == [0]
    wrong = f"row 1: at must have the format {form} of --time_format, got another one"
    assert refusal(lambda: read([text, "x", "y"], "UTC", form)) == wrong


# ---------------------------------------------------------------------- tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "v.csv").write_text("who,value\nann,a\nbob,\n\ncid,b\ndan,  \neve,b\n", encoding="utf-8")
    return tmp_path


def everything(file: ValuesFile, *rows_at_once: int) -> list[list[str]]:
    return [values for values, _ in file.read(*rows_at_once)]


def test_missing_cells_are_counted_by_what_became_of_them(folder: Path) -> None:
    path = str(folder / "v.csv")
    for missing, expected, what in (
        ("skip", [["a"], ["b"], ["b"]], "their rows are left out"),
        ("keep", [["a", ""], ["b", ""], ["b"]], "they are read as the empty text"),
    ):
        file = ValuesFile(path, missing=missing)
        for _ in range(2):  # the counts are those of one reading
            assert everything(file, 2) == expected
            assert (file.num_rows, file.num_missing) == (5, {"value": 2})
        assert file.missing_sentences() == [f"{path}: 2 of 5 cells of value are missing; {what}"]
        whole = ValuesFile(path, "who", missing=missing)
        assert everything(whole) == [["ann", "bob", "cid", "dan", "eve"]]
        assert (whole.num_rows, whole.num_missing, whole.missing_sentences()) == (5, {}, [])
    got = f"{path} line 3: value must be a text or a number, got none in 2 of 5 rows; --missing skip leaves such rows "
    got += "out, --missing keep reads the empty text"
    assert refusal(lambda: everything(ValuesFile(path, missing="refuse"))) == got
    assert refusal(lambda: everything(ValuesFile(path))) == got
    assert refusal(lambda: everything(ValuesFile(path), 1)) == got


def test_times_stay_beside_the_values_that_are_left(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text("value,event_time\na,1\n,2\nb,3\nc,4\n,5\n", encoding="utf-8")
    file = ValuesFile(str(path), missing="skip", time_format="seconds")
    assert [(values, times.tolist()) for values, times in file.read(3) if times is not None] == [
        (["a", "b"], [1000, 3000]),
        (["c"], [4000]),
    ]
    rows = list(file.rows(4))
    assert [(part.numbers.tolist(), part.columns, part.times.tolist()) for part in rows if part.times is not None] == [
        ([0, 2, 3], {"value": ["a", "b", "c"]}, [1000, 3000, 4000]),
        ([], {"value": []}, []),
    ]
    path.write_text("value,event_time\na,1\nb,2\nc,x\n", encoding="utf-8")
    assert refusal(lambda: list(file.read(2))).startswith(f"{path} line 4: event_time must be")


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["value", "Event_Time"], "event_time, spelled like this, got ['Event_Time']"),
        (["value", "event time", "x"], "event_time, spelled like this, got ['event time']"),
        (["value", "EVENT-TIME"], "event_time, spelled like this, got ['EVENT-TIME']"),
        (["value", "event_time", "eventtime"], "event_time, spelled like this, got ['event_time', 'eventtime']"),
        (["VALUE", "value"], "value, spelled like this, got ['VALUE', 'value']"),
    ],
)
def test_a_column_that_is_nearly_named_so_is_refused(names: list[str], sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n", encoding="utf-8")
    assert refusal(lambda: ValuesFile(str(path))) == f"{path} must have exactly one column named {sentence}"


def test_kinds_of_tables(tmp_path: Path) -> None:
    """By the ends of their names; the places of rows, and about how many there are."""
    lines = ['{"value": "a", "n": 12.50}', "no object", "[1]", '{"value": 7, "more": true}', '{"value": "\\ud800"}']
    (tmp_path / "v.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = table_of(str(tmp_path / "v.jsonl"))
    assert found.columns() == ["value", "n", "more"]
    assert (found.about_rows(), found.place(0), found.place(4)) == (5, "line 1", "line 5")
    assert [batch.to_pydict() for batch in found.read(["value", "n"])] == [
        {"value": ["a", None, None, "7", None], "n": ["12.5", None, None, None, None]}
    ]
    (tmp_path / "empty.jsonl").write_text("no object\n", encoding="utf-8")
    assert "must have a JSON object in each line" in refusal(table_of(str(tmp_path / "empty.jsonl")).columns)
    pa.parquet.write_table(pa.table({"value": ["a", "b", "c"]}), tmp_path / "v.parquet")
    found = table_of(str(tmp_path / "v.parquet"))
    assert (found.columns(), found.about_rows(), found.place(0), found.place(2)) == (["value"], 3, "row 1", "row 3")
    (tmp_path / "v.csv.gz").write_bytes(gzip.compress(b'value\n"a\nb"\n\nc\n'))
    found = table_of(str(tmp_path / "v.csv.gz"))
    assert (found.columns(), found.place(0), found.place(1)) == (["value"], "line 3", "line 5")
    assert [batch.to_pydict() for batch in found.read(["value"])] == [{"value": ["a\nb", "c"]}]
    (tmp_path / "excel.csv").write_bytes(b"\xef\xbb\xbfvalue\r\na\r\n")
    assert everything(ValuesFile(str(tmp_path / "excel.csv"))) == [["a"]]
    (tmp_path / "nothing.csv").write_text("", encoding="utf-8")
    assert table_of(str(tmp_path / "nothing.csv")).columns() == []


def test_a_row_of_a_text_that_csv_cannot_count_is_named_by_its_number(tmp_path: Path) -> None:
    """Its limit is 131,072 characters, that of Arrow 16 MiB."""
    path = tmp_path / "v.csv"
    path.write_text("value,event_time\n" + "a" * 131_073 + ",1\nb,soon\n", encoding="utf-8")
    assert table_of(str(path)).place(1) == "row 2"
    path.write_text("value\n" + "a" * 131_072 + "\nb\n", encoding="utf-8")
    assert table_of(str(path)).place(1) == "line 3"


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8])
def test_parts_have_the_same_rows(size: int) -> None:
    """Whatever batches they come in; only the last part is shorter, and there is no empty one."""
    batches = [pa.RecordBatch.from_pydict({"n": part}) for part in ([1, 2, 3], [4], [5, 6, 7, 8])]
    parts = [table["n"].to_pylist() for table in values_file._in_parts(batches, size)]
    assert [number for part in parts for number in part] == list(range(1, 9))
    assert [len(part) for part in parts] == [size] * (8 // size) + [8 % size] * (8 % size > 0)
    assert list(values_file._in_parts([], size)) == []


def cells_of_line(line: bytes) -> dict[str, str | None]:
    row = object_of_line(line)
    assert row is not None
    return {name: cell_of(row, name) for name in row}


def test_cells_of_a_line() -> None:
    line = json.dumps({"text": "a\n", "whole": 10**30, "truth": True, "none": None, "list": ["a"]}).encode()
    assert cells_of_line(line) == {"text": "a\n", "whole": str(10**30), "truth": "true", "none": None, "list": None}
    cells = {"a": "1500", "b": "\U0001f600", "c": None, "d": "1", "e": None}
    assert cells_of_line(b'{"a": 1.50e3, "b": "\\ud83d\\ude00", "c": "\\udc00", "d": 1.0, "e": NaN}') == cells
    for other in (b"[1]", b"1", b"null", b"{", b'{"a": 1, "a": 2}', b"\xff", b"[" * 100_000):
        assert object_of_line(other) is None
    assert cell_of(None, "a") is None and cell_of({}, "a") is None


def test_kinds_of_columns(tmp_path: Path) -> None:
    path = str(tmp_path / "v.parquet")
    for array in (
        pa.array(["1", "2"]),
        pa.array(["1", "2"], pa.large_string()),
        pa.array([1, 2], pa.uint8()),
        pa.array([1, 2]).dictionary_encode(),
    ):
        pa.parquet.write_table(pa.table({"value": array}), path)
        assert everything(ValuesFile(path)) == [["1", "2"]]
    for wrong, kind in (
        (pa.array([[1]]), "list<element: int64>"),
        (pa.array([{"a": 1}]), "struct<a: int64>"),
        (pa.array([1], pa.duration("s")), "duration[s]"),
    ):
        pa.parquet.write_table(pa.table({"value": wrong}), path)
        sentence = f"column value must hold texts, numbers, truth values, dates or times, got {kind}"
        assert refusal(lambda: everything(ValuesFile(path))) == sentence
