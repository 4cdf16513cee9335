"""One small table of people and answers, in all formats and with all forms of times, and in forms that are refused."""

from __future__ import annotations

import bz2
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
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest

from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import SpecError

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


# ---------------------------------------------------------------------- times


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


FOREIGN = [
    (b"PK\x03\x04xl/workbook.xml", "a spreadsheet or a zip archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a spreadsheet"),
    (b"$FL2@(#) SPSS DATA FILE", "an SPSS file"),
    (b"<stata_dta><header>", "a Stata file"),
]
"""Beginnings of files of other programs, and what they are called."""

MARKS = ("", "NA", "NaN", "NULL", "<NA>", "#N/A", r"\N")
"""Texts that mean a missing cell."""

# ---------------------------------------------------------------------- calls of programs


def done(*argv: str) -> None:
    assert uldp.main([*argv]) == 0, argv


def refused(program: Callable[..., Any], name: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The sentence with which a program ends."""
    with pytest.raises((AssertionError, SpecError)) as caught:
        program(name)
    printed = capsys.readouterr()
    said = str(caught.value) if caught.type is SpecError else printed.err
    assert len(said.strip().splitlines()) == 1, (said, printed.out)
    return said


# ---------------------------------------------------------------------- laws of every program


def with_times(name: str, form: str) -> tuple[str, tuple[str, ...]]:
    """Write the table with times of a form; the name of the file, and the options that the form needs."""
    write_time, options = TIMES[form]
    cells = [write_time(second) for second in TABLE["event_time"]]
    if name.endswith((".jsonl", ".csv")):
        cells = [str(cell) if isinstance(cell, datetime.datetime) else cell for cell in cells]
    return write(name, TABLE | {"event_time": cells}), options


def check_cure(program: Callable[..., Any], name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of another form is refused with its cure, and without a cell of it."""
    content, cure = OTHERS[name]
    Path(name).write_bytes(content(TABLE))
    said = refused(program, name, capsys)
    assert cure in said
    assert not {"cat", "dog", "K\u00f6ln", "p1", "say", "hi"} & set(re.findall(r"\w+", said.replace(name, "")))


def check_directories(program: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Directories that are no table are refused."""
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


def check_mark(program: Callable[..., Any], mark: str, options: tuple[str, ...], patch: pytest.MonkeyPatch) -> None:
    """Of a table with the mark of a missing value, the results are those of the table without the row."""
    marked = TABLE | {"value": [mark, *TABLE["value"][1:]]}
    without = {name: cells[1:] for name, cells in TABLE.items()}
    for name, cells in without.items():
        patch.setitem(TABLE, name, cells)
    assert program(write("plain.csv", marked), *options) == program(write("quoted.csv", without), *options)
