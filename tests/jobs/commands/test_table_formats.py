"""Every program that takes a table of people takes every kind of table: one small table, written in all formats and
with all forms of times, gives the same results as the numbers that it was made of. Files of other forms are refused
with a sentence that names the cure, and no cell."""

from __future__ import annotations

import bz2
import contextlib
import csv
import datetime
import decimal
import gzip
import io
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest

from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.report import report_command
from uldp_transforms.ldp import Collection, SpecError

Columns = dict[str, list[Any]]

ROWS = 60
START = 1_577_836_800  # 1 January 2020
TABLE: Columns = {
    "value": [("cat", "dog", "K\u00f6ln")[row % 3 % (2 if row % 5 else 3)] for row in range(ROWS)],
    "code": [1 + row % 2 for row in range(ROWS)],
    "age": [18 + 7 * row % 60 for row in range(ROWS)],
    "who": [f"p{row % 20}" for row in range(ROWS)],
    "arm": ["new" if row % 4 else "old" for row in range(ROWS)],
    "answer": [int(row % 3 == 0) for row in range(ROWS)],
    "sex": ["f" if row % 7 < 3 else "m" for row in range(ROWS)],
    "confidence": ["high" if row % 5 else "low" for row in range(ROWS)],
    "rate": [0.25 + 0.25 * (row % 2) for row in range(ROWS)],
    "duration": [100.5 + row for row in range(ROWS)],
    "event_time": [START + 60 * row for row in range(ROWS)],
}
NUMBERS = ("code", "age", "answer", "rate", "duration", "event_time")
TEXTS = [name for name in TABLE if name not in NUMBERS]

# ---------------------------------------------------------------------- formats


def text_of(table: Columns, delimiter: str = ",", quoting: int = csv.QUOTE_MINIMAL, end: str = "\n") -> str:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)  # type: ignore[arg-type]  # the constants are plain numbers here
    writer.writerow(table)
    writer.writerows(zip(*table.values()))
    return file.getvalue()


def with_line_ends(table: Columns) -> bytes:
    """A column of notes with line ends, quotes and delimiters, and empty lines between rows."""
    text = text_of(table | {"note": ['two\nlines, "quoted"; \t|', ""] * (ROWS // 2)})
    return text.encode() + b"\n\n"


def with_gaps(table: Columns) -> bytes:
    """Whole numbers as pandas writes them after a missing cell: 1.0, except the codes of a closed list."""
    return text_of(
        table | {"answer": [f"{cell}.0" for cell in table["answer"]], "code": [*map(float, table["code"])]}
    ).encode()


def json_lines(table: Columns) -> bytes:
    rows = [dict(zip(table, cells)) for cells in zip(*table.values())]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def json_with_strangers(table: Columns) -> bytes:
    """The first line has another member and a null; empty lines are no rows."""
    lines = json_lines(table).splitlines()
    first = json.loads(lines[0])
    lines[0] = json.dumps({"other": None} | dict(reversed(first.items()))).encode()
    return b"\n\n".join(lines) + b"\n\n"


def json_array(table: Columns) -> bytes:
    return json.dumps([dict(zip(table, cells)) for cells in zip(*table.values())], indent=1).encode()


def spreadsheet(table: Columns) -> bytes:
    """Unicode text of Excel: tabs and UTF-16."""
    return text_of(table, "\t", end="\r\n").encode("utf-16")


TEXT_FORMATS: dict[str, Callable[[Columns], bytes]] = {
    "plain.csv": lambda table: text_of(table).encode(),
    "spreadsheet.csv": lambda table: b"\xef\xbb\xbf" + text_of(table, end="\r\n").encode(),
    "semicolons.csv": lambda table: text_of(table, ";").encode(),
    "semicolons of Excel.csv": lambda table: b"\xef\xbb\xbf" + text_of(table, ";", end="\r\n").encode(),
    "named delimiter.csv": lambda table: ("sep=;\r\n" + text_of(table, ";", end="\r\n")).encode(),
    "tabs.tsv": lambda table: text_of(table, "\t").encode(),
    "bars.txt": lambda table: text_of(table, "|").encode(),
    "unicode.txt": spreadsheet,
    "quoted.csv": lambda table: text_of(table, quoting=csv.QUOTE_ALL).encode(),
    "old ends.csv": lambda table: text_of(table, end="\r").encode(),
    "no last end.csv": lambda table: text_of(table).rstrip("\n").encode(),
    "begins empty.csv": lambda table: b"\n\r\n" + text_of(table).encode(),
    "line ends.csv": with_line_ends,
    "gaps.csv": with_gaps,
    "ends with delimiters.csv": lambda table: text_of(table, end=",\n").encode(),
    "rows end with delimiters.csv": lambda table: (
        text_of(table, end=";\n").replace(";\n", "\n", 1).replace(",", ";").encode()
    ),
    "other columns twice.csv": lambda table: (
        text_of(table | {"x": [0] * ROWS, "y": [1] * ROWS}).replace(",x,y\n", ",x,x\n").encode()
    ),
    "column; with, comma.csv": lambda table: text_of(table | {"size; in, cm": ["1,5; 2"] * ROWS}).encode(),
    "decimal commas.csv": lambda table: text_of(table | {"size, cm": ["1,5"] * ROWS}, ";").replace('"', "").encode(),
    "packed.csv.gz": lambda table: gzip.compress(text_of(table).encode()),
    "two members.csv.gz": lambda table: b"".join(map(gzip.compress, text_of(table).encode().partition(b"\n"))),
    "packed.csv.bz2": lambda table: bz2.compress(text_of(table).encode()),
    "packed.csv.zst": lambda table: pa.compress(text_of(table).encode(), "zstd", asbytes=True),
    "no name of gzip.csv": lambda table: gzip.compress(text_of(table).encode()),
    "lines.jsonl": json_lines,
    "lines.ndjson": json_lines,
    "lines.json": json_lines,
    "strangers.jsonl": json_with_strangers,
    "lines of PowerShell.jsonl": lambda table: json_lines(table).decode().encode("utf-16"),
    "texts of BigQuery.json": lambda table: json_lines(
        table | {name: [*map(str, table[name])] for name in ("code", "age", "answer")}
    ),
    "packed.jsonl.gz": lambda table: gzip.compress(json_lines(table)),
    "array.json": json_array,
    "array.jsonl": json_array,
    "array of pandas.json": lambda table: pd.DataFrame(table).to_json(orient="records").encode(),
    "index of pandas.csv": lambda table: pd.DataFrame(table).to_csv().encode(),
    "row names of R.csv": lambda table: text_of(
        {"": [*range(1, ROWS + 1)]} | table, quoting=csv.QUOTE_NONNUMERIC
    ).encode(),
    "powers of R.csv": lambda table: text_of(table | {"code": [f"{cell}e+00" for cell in table["code"]]}).encode(),
    "backslashes.csv": lambda table: text_of(table | {"path": ["C:\\", '"C:\\"'] * (ROWS // 2)}).encode(),
}


def arrow(table: Columns, **types: pa.DataType) -> pa.Table:
    return pa.table(
        {name: pa.array(cells).cast(types[name]) if name in types else pa.array(cells) for name, cells in table.items()}
    )


def of_texts(kind: pa.DataType) -> Callable[[Columns, str], None]:
    """All texts of this type, and codes and answers as texts of it, too."""

    def write(table: Columns, path: str) -> None:
        written = table | {name: [*map(str, table[name])] for name in ("code", "answer", "age")}
        pa.parquet.write_table(arrow(written, **dict.fromkeys([*TEXTS, "code", "answer", "age"], kind)), path)

    return write


def of_numbers(kind: pa.DataType) -> Callable[[Columns, str], None]:
    names = ("code", "answer", "age")
    return lambda table, path: pa.parquet.write_table(arrow(table, **dict.fromkeys(names, kind)), path)


def decimals(table: Columns, path: str) -> None:
    cells = {name: [decimal.Decimal(str(cell)) for cell in table[name]] for name in NUMBERS}
    pa.parquet.write_table(arrow(table | cells, **dict.fromkeys(NUMBERS, pa.decimal128(30, 10))), path)


def codes(table: Columns, path: str) -> None:
    frame = arrow(table)
    coded = {name: frame[name].combine_chunks().dictionary_encode() for name in (*TEXTS, "code", "answer", "age")}
    pa.parquet.write_table(pa.table({name: coded.get(name, frame[name]) for name in table}), path, row_group_size=7)


def truth_values(table: Columns, path: str) -> None:
    pa.parquet.write_table(arrow(table | {"answer": [bool(cell) for cell in table["answer"]]}), path)


def of_pandas(table: Columns, path: str) -> None:
    """Nullable types, and categories."""
    frame = pd.DataFrame(table).convert_dtypes()
    frame["sex"] = frame["sex"].astype("category")
    frame["answer"] = frame["answer"].astype("Int64")
    frame.to_parquet(path)


def of_duckdb(table: Columns, path: str) -> None:
    with duckdb.connect() as database:
        database.register("people", arrow(table))
        kinds = (
            "answer::HUGEINT AS answer, age::DECIMAL(9, 2) AS age, encode(value) AS value, sex::ENUM('f', 'm') AS sex"
        )
        query = f"SELECT * REPLACE ({kinds}) FROM people"
        database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")


PARQUET_FORMATS: dict[str, Callable[[Columns, str], None]] = {
    "arrow.parquet": lambda table, path: pa.parquet.write_table(arrow(table), path),
    "no name of Parquet.csv": lambda table, path: pa.parquet.write_table(arrow(table), path),
    "large.parquet": of_texts(pa.large_string()),
    "views.parquet": of_texts(pa.string_view()),
    "bytes.parquet": of_texts(pa.binary()),
    "large bytes.parquet": of_texts(pa.large_binary()),
    "floats.parquet": of_numbers(pa.float64()),
    "short floats.parquet": of_numbers(pa.float32()),
    "unsigned.parquet": of_numbers(pa.uint8()),
    "decimals.parquet": decimals,
    "codes.parquet": codes,
    "truth values.parquet": truth_values,
    "pandas.parquet": of_pandas,
    "polars.parquet": lambda table, path: polars.DataFrame(table).write_parquet(path),
    "duckdb.parquet": of_duckdb,
}


def parts(ending: str, write_part: Callable[[Columns, str], None]) -> Callable[[Columns, str], None]:
    """A directory as Spark writes it, with an empty file and files that are no data."""

    def write_all(table: Columns, path: str) -> None:
        Path(path).mkdir(exist_ok=True)
        Path(path, "_SUCCESS").write_bytes(b"")
        Path(path, "._SUCCESS.crc").write_bytes(b"crc")
        Path(path, f"part-00002-c000.{ending}").write_bytes(b"")
        for number, rows in enumerate((slice(0, 25), slice(25, ROWS))):
            part = {name: cells[rows] for name, cells in table.items()}
            write_part(part, f"{path}/part-{number:05}-c000.{ending}")

    return write_all


def in_text(content: Callable[[Columns], bytes]) -> Callable[[Columns, str], None]:
    return lambda table, path: void(Path(path).write_bytes(content(table)))


def void(_: object) -> None:
    """Nothing."""


DIRECTORIES: dict[str, Callable[[Columns, str], None]] = {
    "csv of Spark": parts("csv", in_text(lambda table: text_of(table).encode())),
    "packed csv of Spark": parts("csv.gz", in_text(lambda table: gzip.compress(text_of(table).encode()))),
    "json of Spark": parts("json", in_text(json_lines)),
    "parquet of Spark": parts(
        "snappy.parquet", lambda table, path: pa.parquet.write_table(arrow(table), path, compression="snappy")
    ),
}
FORMATS = (*TEXT_FORMATS, *PARQUET_FORMATS, *DIRECTORIES)


def write(name: str, table: Columns = TABLE) -> str:
    """Write the table in a format, whose name is that of the file."""
    if name in TEXT_FORMATS:
        Path(name).write_bytes(TEXT_FORMATS[name](table))
    else:
        (PARQUET_FORMATS | DIRECTORIES)[name](table, name)
    return name


# ---------------------------------------------------------------------- programs

DIMENSIONS = [{"name": "group", "values": ["new", "old"]}]
CLOSED = {"version": 1, "id": "pets", "num_cohorts": 1, "mechanism": {"id": "krr", "epsilon": 2.0, "epsilon_inf": 3.0}}
CLOSED |= {"alphabet": {"id": "closed", "values": ["cat", "dog", "K\u00f6ln"]}, "dimensions": DIMENSIONS}
CODES = {"version": 1, "id": "codes", "mechanism": {"id": "krr", "epsilon": 2.0}}
CODES |= {"alphabet": {"id": "closed", "values": ["1", "2"]}}
AGES = {"version": 1, "id": "ages", "mechanism": {"id": "krr", "epsilon": 2.0}}
AGES |= {"alphabet": {"id": "ordered", "low": 0, "high": 100, "num_bins": 10}}


def done(*argv: str) -> None:
    assert uldp.main([*argv]) == 0, argv


def simulated(path: str, collection: dict[str, Any], *options: str) -> Any:
    Path("C.json").write_text(json.dumps(collection), encoding="utf-8")
    done("simulate", "--collection", "C.json", "--values", path, "--output", "R.avro", "--seed", "3", *options)
    with open("R.avro", "rb") as file:
        records = [(record["event_time"], record["cohort"], record["payload"]) for record in fastavro.reader(file)]
    return records


def drawn(collection: dict[str, Any], values: list[Any]) -> Any:
    """The reports that the library draws."""
    batch = Collection.from_json(collection).perturb([*map(str, values)], np.random.default_rng(3))
    return [bytes(payload) for payload in batch.payloads]


def simulate(path: str, *options: str) -> Any:
    """People with memos in groups: the times, and what the reports say."""
    found = simulated(path, CLOSED, "--person_column", "who", "--dimension_column", "group=arm", *options)
    assert [moment for moment, _, _ in found] == [1000 * moment for moment in TABLE["event_time"]]
    assert [cohort for _, cohort, _ in found] == [0 if arm == "new" else 1 for arm in TABLE["arm"]]
    return found


def simulate_codes(path: str, *options: str) -> Any:
    found = [payload for _, _, payload in simulated(path, CODES, "--value_column", "code", *options)]
    assert found == drawn(CODES, TABLE["code"])
    return found


def simulate_numbers(path: str, *options: str) -> Any:
    found = [payload for _, _, payload in simulated(path, AGES, "--value_column", "age", *options)]
    assert found == drawn(AGES, TABLE["age"])
    return found


def plan(path: str, *options: str) -> Any:
    done(
        "plan",
        "--values",
        path,
        "--epsilon",
        "1",
        "--reports",
        "1000",
        "--dimensions",
        "arm",
        "--json",
        "P.json",
        *options,
    )
    found = json.loads(Path("P.json").read_text(encoding="utf-8"))
    assert found["alphabet"]["values"] == sorted(set(TABLE["value"]))
    return found


def plan_numbers(path: str, *options: str) -> Any:
    Path("A.json").write_text(json.dumps(AGES), encoding="utf-8")
    common = ["--collection", "A.json", "--values", path, "--value_column", "age", "--epsilon", "1", "--reports", "100"]
    done("plan", *common, "--output", "P.json", *options)
    return json.loads(Path("P.json").read_text(encoding="utf-8"))


def evaluate(path: str, *options: str) -> Any:
    chosen = ["--epsilon", "1", "--mechanisms", "krr", "--repetitions", "1", "--seed", "1", "--estimators", "projected"]
    done("evaluate", "--values", path, *chosen, "--json", "E.json", *options)
    rows = json.loads(Path("E.json").read_text(encoding="utf-8"))
    return [{name: cell for name, cell in row.items() if not name.endswith("_us")} for row in rows]


def report(path: str, *options: str) -> Any:
    """The truth that the page shows."""
    argv = ["--input", ".", "--output", "P.html", "--truth", path, *options]
    truth = report_command.configure(argv).asked.truth
    assert truth is not None
    values = sorted(set(TABLE["value"]))
    shares = truth.shares("2020-01-01T00:00:00Z", "2020-01-01T00:10:00Z", values).tolist()
    assert shares == [TABLE["value"][:10].count(value) / 10 for value in values]
    return shares


def survey(path: str, *options: str) -> Any:
    done("survey", path, "--question", "value", "--design", "crosswise:0.2", "--json", "S.jsonl", *options)
    rows = [json.loads(line) for line in Path("S.jsonl").read_text(encoding="utf-8").splitlines()]
    pairs = list(zip(TABLE["value"], TABLE["answer"]))
    assert {row["question"]: (row["num_reports"], row["num_ones"]) for row in rows} == {
        value: (TABLE["value"].count(value), pairs.count((value, 1))) for value in set(TABLE["value"])
    }
    return rows


def regress(path: str, *options: str) -> Any:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        done("regress", path, "--design", "direct", "--covariates", "age,sex", *options)
    said = printed.getvalue()
    assert "\nsex: compared with f\n" in said
    assert f"\n{ROWS} of {ROWS} rows are used.\n" in said
    return said


def navigations(path: str, *options: str) -> Any:
    columns = ["--time_column", "event_time", "--window", "10m", "--json", "N.jsonl"]
    done("navigations", path, *columns, *options)
    rows = [json.loads(line) for line in Path("N.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["num_reports"] for row in rows] == [10] * 6 + [ROWS]
    assert rows[1]["window_start"] == "2020-01-01T00:10:00Z"
    assert rows[-1]["durations"][2]["mean"]["value"] == pytest.approx(np.mean(TABLE["duration"]))
    return rows


TIMED = (simulate, report, navigations)
PROGRAMS = (*TIMED, simulate_codes, simulate_numbers, plan, plan_numbers, evaluate, survey, regress)
"""The programs that take a table of people, answers or navigations. ``uldp demo`` writes and reads its own."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each program says about the plain table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("plain"))
        return {program.__name__: program(write("plain.csv")) for program in PROGRAMS}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_every_program_reads_every_format(program: Callable[..., Any], name: str, expected: dict[str, Any]) -> None:
    assert program(write(name)) == expected[program.__name__]


def moment(second: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(second, datetime.timezone.utc)


EXCEL = datetime.datetime(1899, 12, 30, tzinfo=datetime.timezone.utc)
UTC = ("--timezone", "UTC")
TIMES: dict[str, tuple[Callable[[int], Any], tuple[str, ...]]] = {
    "seconds as text": (str, ()),
    "seconds in float": (float, ()),
    "seconds with a word": (int, ("--time_format", "seconds")),
    "milliseconds": (lambda second: second * 1000, ("--time_format", "milliseconds")),
    "microseconds": (lambda second: second * 1_000_000, ("--time_format", "microseconds")),
    "nanoseconds": (lambda second: second * 1_000_000_000, ("--time_format", "nanoseconds")),
    "serial days": (
        lambda second: (moment(second) - EXCEL) / datetime.timedelta(days=1),
        ("--time_format", "excel", *UTC),
    ),
    "RFC 3339": (lambda second: f"{moment(second):%Y-%m-%dT%H:%M:%SZ}", ()),
    "offset of hours": (lambda second: f"{moment(second):%Y-%m-%d %H:%M:%S+00}", ()),
    "offset of four digits": (lambda second: f"{moment(second + 5400):%Y-%m-%d %H:%M:%S+0130}", ()),
    "offset behind a space": (lambda second: f"{moment(second):%Y-%m-%d %H:%M:%S +00:00}", ()),
    "UTC": (lambda second: f"{moment(second):%Y-%m-%d %H:%M:%S UTC}", ()),
    "fraction of BigQuery": (lambda second: f"{moment(second):%Y-%m-%d %H:%M:%S.000000 UTC}", ()),
    "fraction behind a comma": (lambda second: f"{moment(second):%Y-%m-%d %H:%M:%S,999Z}"[:-5] + ",000Z", ()),
    "web server": (lambda second: f"{moment(second):%d/%b/%Y:%H:%M:%S +0000}", ()),
    "slashes": (lambda second: f"{moment(second):%Y/%m/%d %H:%M:%S}", UTC),
    "Google Forms": (lambda second: f"{moment(second + 5400):%Y/%m/%d %-I:%M:%S %p} GMT+1:30", ()),
    "local": (lambda second: f"{moment(second + 3600):%Y-%m-%d %H:%M:%S}", ("--timezone", "Europe/Berlin")),
    "%z": (lambda second: f"{moment(second):%d.%m.%Y %H:%M +0000}", ("--time_format", "%d.%m.%Y %H:%M %z")),
    "%f": (lambda second: f"{moment(second):%Y%m%d %H%M%S.%f}", ("--time_format", "%Y%m%d %H%M%S.%f", *UTC)),
    "names": (
        lambda second: f"{moment(second):%a, %d %b %Y %I:%M %p}",
        ("--time_format", "%a, %d %b %Y %I:%M %p", *UTC),
    ),
    "moments": (moment, ()),
    "clocks": (lambda second: moment(second).replace(tzinfo=None), UTC),
}


@pytest.mark.parametrize("name", ["plain.csv", "lines.jsonl", "arrow.parquet", "codes.parquet"])
@pytest.mark.parametrize("form", TIMES)
@pytest.mark.parametrize("program", TIMED, ids=lambda program: program.__name__)
def test_every_program_with_times_reads_every_form_of_them(
    program: Callable[..., Any], form: str, name: str, expected: dict[str, Any]
) -> None:
    write_time, options = TIMES[form]
    cells = [write_time(second) for second in TABLE["event_time"]]
    if name.endswith((".jsonl", ".csv")):
        cells = [str(cell) if isinstance(cell, datetime.datetime) else cell for cell in cells]
    assert program(write(name, TABLE | {"event_time": cells}), *options) == expected[program.__name__]


# ---------------------------------------------------------------------- missing cells


@pytest.mark.parametrize("mark", ["", "NA", "NaN", "NULL", "<NA>", "#N/A", r"\N"])
@pytest.mark.parametrize("program", [plan, evaluate, survey], ids=lambda program: program.__name__)
def test_a_mark_of_a_missing_cell_is_no_value(
    program: Callable[..., Any], mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results are those of the table without the row."""
    options = () if program is survey else ("--missing", "skip")
    marked = TABLE | {"value": [mark, *TABLE["value"][1:]]}
    without = {name: cells[1:] for name, cells in TABLE.items()}
    monkeypatch.setitem(globals(), "TABLE", without)
    assert program(write("plain.csv", marked), *options) == program(write("quoted.csv", without), *options)


def test_a_mark_of_a_missing_time_leaves_its_row_out() -> None:
    for mark in ("", "NA", r"\N"):
        write("plain.csv", TABLE | {"event_time": [mark, *TABLE["event_time"][1:]]})
        found = simulated("plain.csv", CODES, "--value_column", "code", "--missing", "skip")
        assert [moment for moment, _, _ in found] == [1000 * moment for moment in TABLE["event_time"][1:]]


# ---------------------------------------------------------------------- files of other forms

ORIENTS = ("columns", "index", "split", "table", "values")


def pretty(table: Columns) -> bytes:
    return "\n".join(json.dumps(dict(zip(table, cells)), indent=2) for cells in zip(*table.values())).encode()


def of_pandas_json(orient: Any, indent: int | None) -> Callable[[Columns], bytes]:
    return lambda table: pd.DataFrame(table).to_json(orient=orient, indent=indent).encode()


def escaped(table: Columns) -> bytes:
    """Quotation marks inside texts as Spark, MySQL and write.table of R write them."""
    text = text_of(table | {"arm": ['say "hi" you', *table["arm"][1:]]}, quoting=csv.QUOTE_ALL)
    return text.replace('""hi""', r"\"hi\"").encode()


def zipped(table: Columns, mode: str = "zip") -> bytes:
    file = io.BytesIO()
    pd.DataFrame(table).to_csv(file, index=False, compression=mode)  # type: ignore[call-overload]  # its type lists constants
    return file.getvalue()


def avro(table: Columns) -> bytes:
    fields = [{"name": name, "type": ["null", "string"]} for name in TEXTS]
    file = io.BytesIO()
    rows = [dict(zip(TEXTS, cells)) for cells in zip(*(table[name] for name in TEXTS))]
    fastavro.writer(file, {"type": "record", "name": "Root", "fields": fields}, rows)
    return file.getvalue()


def pickled(table: Columns) -> bytes:
    return pickle.dumps(pd.DataFrame(table))


def aligned(table: Columns) -> bytes:
    """What psql prints."""
    rows = [" " + " | ".join(map(str, cells)) + " " for cells in (table, *zip(*table.values()))]
    return "\n".join([rows[0], "+".join("---" for _ in table), *rows[1:], "(60 rows)"]).encode()


SHAPE, HEADER, SAVE = "orient='records', jq with -c", "CSV must begin with its header", "save it as CSV"
ENCODING = "save the table as CSV in UTF-8"
OTHERS: dict[str, tuple[Callable[[Columns], bytes], str]] = {
    **{f"{orient}.json": (of_pandas_json(orient, None), SHAPE) for orient in ORIENTS},
    **{f"{orient} over lines.json": (of_pandas_json(orient, 2), SHAPE) for orient in ORIENTS},
    "pretty.json": (pretty, SHAPE),
    "pretty.jsonl": (pretty, SHAPE),
    "cut array.json": (lambda table: json_array(table)[:-9], "must be complete"),
    "cut.csv.gz": (lambda table: gzip.compress(text_of(table).encode())[:-20], "complete gzip file"),
    "zip.csv.zip": (zipped, SAVE),
    "xz.csv.xz": (lambda table: zipped(table, "xz"), SAVE),
    "tar.csv.tar": (lambda table: zipped(table, "tar"), ENCODING),
    "export.avro": (avro, SAVE),
    "frame.pkl": (pickled, ENCODING),
    "no mark.csv": (lambda table: text_of(table).encode("utf-16-le"), ENCODING),
    "Windows.csv": (lambda table: text_of(table).encode("cp1252"), ENCODING),
    "title.csv": (lambda table: b"Results of 2024\n\n" + text_of(table).encode(), HEADER),
    "no header.csv": (lambda table: text_of(table).encode().partition(b"\n")[2], HEADER),
    "spaces of R.txt": (lambda table: text_of(table, " ").encode(), HEADER),
    "short header of R.txt": (
        lambda table: text_of({"": [*range(ROWS)]} | table, "\t").encode()[1:],
        "columns of the header, got 12",
    ),
    "escaped.csv": (escaped, "must double quotation marks inside quoted texts"),
    "aligned.txt": (aligned, "named"),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_every_program_names_the_cure_of_other_files(
    program: Callable[..., Any], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content, cure = OTHERS[name]
    Path(name).write_bytes(content(TABLE))
    said = refused(program, name, capsys)
    assert cure in said
    assert not {"cat", "dog", "K\u00f6ln", "p1", "say", "hi"} & set(re.findall(r"\w+", said.replace(name, "")))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_every_program_refuses_directories_that_are_no_table(
    program: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write("csv of Spark")
    part = Path("csv of Spark/part-00001-c000.csv")
    part.write_text(part.read_text(encoding="utf-8").replace("event_time", "time", 1), encoding="utf-8")
    assert "must have the same columns in all files" in refused(program, "csv of Spark", capsys)
    with duckdb.connect() as database:
        database.register("people", arrow(TABLE))
        database.execute("COPY people TO 'partitions' (FORMAT parquet, PARTITION_BY (arm))")
    assert "write it without partitions" in refused(program, "partitions", capsys)
    Path("nothing").mkdir()
    Path("nothing/_SUCCESS").write_bytes(b"")
    assert "must have at least one file with rows" in refused(program, "nothing", capsys)


def refused(program: Callable[..., Any], name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The sentence with which a program ends."""
    with pytest.raises((AssertionError, SpecError)) as caught:
        program(name)
    printed = capsys.readouterr()
    said = str(caught.value) if caught.type is SpecError else printed.err
    assert len(said.strip().splitlines()) == 1, (said, printed.out)
    return said


@pytest.mark.parametrize("name", ["csv of Spark", "json of Spark", "parquet of Spark"])
def test_rows_of_a_directory_are_named_with_their_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(name, TABLE | {"value": [*TABLE["value"][:30], "stranger", *TABLE["value"][31:]]})
    said = refused(simulate, name, capsys)
    place = {"csv of Spark": "line 7", "json of Spark": "line 6", "parquet of Spark": "row 6"}[name]
    assert re.search(rf"^simulate: {name} part-00001-c000\.[a-z.]+ {place} must have one of the 3 values", said)
