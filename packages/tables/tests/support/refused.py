"""Refusals of ``uldp simulate`` and of people's tables: calls and their sentences."""

from __future__ import annotations

import argparse
import gzip
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from tests.support.commands import last_of_each
from tests.support.messages_cases import KRR, container, single
from tests.support.refusals.tables import Refusal
from uldp_transforms_tables.cell_texts import texts_of
from uldp_transforms_tables.people_options import PEOPLE, refuse_people_options
from uldp_transforms_tables.simulate import simulate_command as simulate
from uldp_transforms_tables.values_file import ValuesFile


def parquet(**columns: list[Any]) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


FILES = {
    "krr.json": KRR,
    "set.json": KRR.to_json() | {"dimensions": [{"name": "country", "values": ["DE"], "set_by": "attribute"}]},
    "good.avro": container([(1, single())]),
    "good.csv": "value,event_time\n0,1000000001\n",
    "other.csv": "values\n0\n",
    "header.csv": b"\xe4",
    "latin.csv": b"value\n0\n" + b"0\n" * 10_000 + b"\xe4\n",
    "stranger.csv": "value\n0\n9\n",
    "short.csv": "event_time,value\n1\n",
    "time.csv": "value,event_time\n0,soon\n",
    "year.csv": "value,event_time\n0,1e14\n",
    "field.csv": "value\n" + "0" * 200_000,
    "field-header.csv": "0" * 200_000,
    "other.csv.gz": "value\n",
    "header.csv.gz": b"\x1f\x8b\x08",
    "cut.csv.gz": gzip.compress(b"value\n" + b"0\n" * 100_000)[:-100],
    "nearly.csv": "value,Event Time\n0,1\n",
    "leap.csv": "value,event_time\n0,2023-02-29T00:00:00Z\n",
    "local.csv": "value,event_time\n0,2001-10-28 02:30:00\n",
    "day.parquet": "PAR1",
    "half.parquet": parquet(code=[1, 2], value=["1000000001", None], half=[[0.5], [1.5]]),
    "file": "",
}
"""What the calls read, in the folder in which they run."""

GZIP = "must be a complete gzip file, got another format or a damaged file"
NO_PEOPLE = {option.removeprefix("--"): None for option in PEOPLE}
"""The options of a table of people, none of them given."""

OBJECTS = (
    "a JSON object in each line, or an array of objects, whose members have different names; pandas writes them with "
    "orient='records', jq with -c"
)


def parts_with(**parts: bytes) -> Callable[[], Any]:
    """A call that reads a directory of files."""

    def call() -> None:
        shutil.rmtree("parts", ignore_errors=True)
        for name, content in parts.items():
            Path("parts", name).parent.mkdir(parents=True, exist_ok=True)
            Path("parts", name).write_bytes(content)
        list(ValuesFile("parts").rows())

    return call


def table_with(content: bytes) -> Callable[[], Any]:
    """A call that reads a table of people."""

    def call() -> None:
        Path("table.csv").write_bytes(content)
        list(ValuesFile("table.csv").rows())

    return call


def run(argv: str) -> Callable[[], Any]:
    """Does what a command line says, in which the last value of an option counts."""
    return lambda: simulate.job(simulate.configure(last_of_each(shlex.split(argv), ("--dimension_column",))))


def simulating(options: str) -> Callable[[], Any]:
    of = "" if options.startswith("set.json") else "krr.json"
    return run(f"{of} --values good.csv --output out.avro {options}")


REFUSED: list[Refusal] = [
    (IsADirectoryError, simulating("--output ."), "[Errno 21] Is a directory: '.'"),
    (FileNotFoundError, simulating("--output none/out"), "[Errno 2] No such file or directory: 'none/out'"),
    (simulating("--rate 5"), "--rate needs --topic, got --output"),
    (simulating("--seed -"), "--seed must be a non-negative whole number, got '-'"),
    (
        simulating("--values header.csv"),
        "header.csv must be CSV with a header, in UTF-8 (the content is not shown); line 1 is in another encoding, "
        "such as Windows-1252: save the table as CSV in UTF-8",
    ),
    (
        simulating("--values other.csv"),
        "other.csv must have a column named value, got 1 other column(s); --value_column names another, and CSV must "
        "begin with its header",
    ),
    (
        simulating("--values nearly.csv"),
        "nearly.csv must have exactly one column named event_time, spelled like this, got ['Event Time']",
    ),
    (
        simulating("--values latin.csv"),
        "latin.csv must be CSV with a header, in UTF-8 (the content is not shown); line 10003 is in another encoding, "
        "such as Windows-1252: save the table as CSV in UTF-8",
    ),
    (simulating("--output good.csv"), "--output must be a separate file, got 'good.csv'"),
    (
        simulating("--values stranger.csv"),
        "stranger.csv line 3 must have one of the 3 values of the collection; rows with other values: 1 of 2",
    ),
    (simulating("--values short.csv"), "short.csv line 2 must have the 2 columns of the header, got 1"),
    (
        simulating("--values time.csv"),
        "time.csv line 2: event_time must be RFC 3339 or seconds since 1970, got neither; "
        "--time_format names another form",
    ),
    (
        simulating("--values year.csv"),
        "year.csv line 2: event_time must lie in the years 1900 to 9998, got another year",
    ),
    (
        simulating("--values field.csv"),
        "field.csv row 1 must have one of the 3 values of the collection; rows with other values: 1 of 1",
    ),
    (
        simulating("--values field-header.csv"),
        "field-header.csv must be CSV with a header, in UTF-8 (the content is not shown)",
    ),
    (simulating("--values other.csv.gz"), f"other.csv.gz {GZIP}"),
    (simulating("--values header.csv.gz"), f"header.csv.gz {GZIP}"),
    (simulating("--values cut.csv.gz"), f"cut.csv.gz {GZIP}"),
    (
        simulating("--values good.avro"),
        "good.avro must be CSV, JSON lines or Parquet, got an Avro file; save it as CSV",
    ),
    (simulating("--values day.parquet"), "day.parquet must be a complete Parquet file (the content is not shown)"),
    (
        simulating("--values half.parquet --value_column half"),
        "column half must hold texts, numbers, truth values, dates or times, got list<element: double>",
    ),
    (
        simulating("--values half.parquet"),
        "half.parquet row 2: value must be a text or a number, got none in 1 of 2 rows; --missing skip leaves "
        "such rows out, --missing keep reads the empty text",
    ),
    (
        simulating("--values half.parquet --value_column code --time_column value"),
        "half.parquet row 2: value must be RFC 3339 or seconds since 1970, got none; --missing skip leaves such rows "
        "out",
    ),
    (
        simulating("--values leap.csv"),
        "leap.csv line 2: event_time must be RFC 3339 or seconds since 1970, got neither; "
        "--time_format names another form",
    ),
    (
        simulating("--values local.csv"),
        "local.csv line 2: event_time must have an offset from UTC, such as Z or +01:00, unless --timezone "
        "is given, got none",
    ),
    (
        simulating("--values local.csv --time_format %d.%m.%Y --timezone UTC"),
        "local.csv line 2: event_time must have the format %d.%m.%Y of --time_format, got another one",
    ),
    (
        simulating("--values local.csv --time_format %z"),
        "--time_format must have only texts and %Y %y %m %d %j %H %I %M %S %f %p %b %B %a %A %z (each once), with "
        "%Y or %y, and %I and %p together, or be one of seconds, milliseconds, microseconds, nanoseconds, excel, "
        "got '%z'",
    ),
    (
        simulating("--values local.csv --timezone Europe/Berlin"),
        "local.csv line 2: event_time must have an offset from UTC where clocks are changed, got a time that "
        "Europe/Berlin has twice or not at all",
    ),
    (simulating("--timezone Mars"), "--timezone must be the name of a time zone such as \"Europe/Berlin\", got 'Mars'"),
    (simulating("--form packed --pack 400000"), "--pack must keep messages below 10000000 bytes, got 400000"),
    (
        run("--collection krr.json --values good.csv --topic t"),
        "--topic must be projects/PROJECT/topics/NAME, got 't'",
    ),
    (simulating("--manifest file --output file"), "--manifest must be another file in the folder of "),
    (
        run("--collection krr.json --values good.csv --topic projects/p/topics/t --manifest m"),
        "--manifest needs --output, got --topic",
    ),
    (
        lambda: simulate.configure(["krr.json", "--value", "good.csv"]),
        "unrecognized arguments: --value; did you mean --values?",
    ),
    *(
        (parts_with(**parts), f"parts must have {sentence}")
        for parts, sentence in (
            ({"_SUCCESS": b"1"}, "at least one file with rows, got none"),
            ({"a/b": b"value\n"}, "files only, got a directory in it; write it without partitions"),
            ({"a": b"value\n", "b": b"value,x\n"}, "the same columns in all files, but a lacks one"),
            (
                {"a": parquet(value=["a"]), "b": parquet(value=[1])},
                "columns of the same types, but b has others",
            ),
        )
    ),
    (simulating("--person_column value"), "--person_column needs a collection with epsilon_inf, got krr without"),
    (
        lambda: refuse_people_options(argparse.Namespace(**NO_PEOPLE | {"value_column": "a"}), "--values"),
        "--value_column can be given only with --values, got a",
    ),
    *(
        (simulating(options), f"--dimension_column must {sentence}")
        for options, sentence in (
            ("--dimension_column a=x", "name dimensions of the collection (none), got 'a'"),
            (
                "set.json --dimension_column country=x --dimension_column country=y",
                "have one value for each name, got two different ones for country",
            ),
        )
    ),
    *(
        (table_with(content), sentence)
        for content, sentence in (
            (b"\xff\xfea\0\n", "table.csv must be complete UTF-16, as it begins (the content is not shown)"),
            (
                b"value\0\n",
                "table.csv must be CSV with a header, in UTF-8 (the content is not shown); line 1 has zero bytes, as "
                "UTF-16 and files of other programs do: save the table as CSV in UTF-8",
            ),
            (
                b'value\na\n"b\nc\n',
                "table.csv line 3 must end each quoted text with a quotation mark, got a text without an end",
            ),
            (
                b'value\n"a \\"b\\" c"\n',
                "table.csv line 2 must double quotation marks inside quoted texts, got a single one; Spark writes them "
                "so with escape='\"', R with qmethod='double'",
            ),
            (b'[{"value": 1}, 2]', f"table.csv must be complete, with {OBJECTS} (the content is not shown)"),
            (b'{"value": [1]}', f"table.csv must have {OBJECTS} (the content is not shown)"),
            (b'{"value": 1}\n2', "table.csv line 2 cannot be read: no JSON object whose members have different names"),
            (b"", "table.csv must have a header, or JSON objects, got none"),
            (
                parquet(value=["a"], event_time=pa.array([1.0], pa.float32())),
                "column event_time must have a type that holds times exactly, got float",
            ),
        )
    ),
    (lambda: texts_of(pa.array([b"\xff"]), "value"), "column value must hold texts in UTF-8, got other bytes"),
]
