"""The recipe of CONTRIBUTING.md for a source and a sink: a class and a line in a table, and the program knows them."""

from __future__ import annotations

import argparse
import ast
import json
import shlex
import sys
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import TestStream

from tests.project.documents import ROOT, blocks
from tests.support.messages_cases import KRR, STRANGER, container, single, write_files
from uldp_transforms.jobs import estimate as program
from uldp_transforms.jobs import sinks, sources
from uldp_transforms.jobs.engines.runners import choose_local_engine
from uldp_transforms.jobs.estimate import options, run
from uldp_transforms.jobs.sinks import Sink
from uldp_transforms.jobs.sources import Source

# ---------------------------------------------------------------------- the classes of the recipe, and a stream


def written_in(folder: str, name: str) -> type[Any]:
    """The class that CONTRIBUTING.md writes for this folder, in a module there that no file holds."""
    (code,) = (block.code for block in blocks(ROOT / "CONTRIBUTING.md") if f"class {name}(" in block.code)
    module = types.ModuleType(f"uldp_transforms.jobs.{folder}.recipe")
    module.__package__ = module.__name__.rpartition(".")[0]
    sys.modules[module.__name__] = module  # where Beam looks for its functions
    exec(code, module.__dict__)
    return vars(module)[name]


HexLines = written_in("sources", "HexLines")
Lines = written_in("sinks", "Lines")


class Endless(Source):
    """A stream without end."""

    option = "--endless"
    help = "how many messages"
    kind = int
    bounded = False

    @classmethod
    def of(cls, args: argparse.Namespace, options: PipelineOptions) -> Endless:
        choose_local_engine(options, streaming=True)
        return cls()

    def read(self, pipeline: beam.Pipeline) -> beam.PCollection[bytes]:
        return pipeline | TestStream(coder=beam.coders.BytesCoder()).with_output_types(bytes)


@pytest.fixture(autouse=True)
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A line in each table, and a folder with input."""
    monkeypatch.chdir(tmp_path)
    messages = [single(), single(report_id=b"2" * 16), single(STRANGER), b"\x02garbage"]
    files = {
        "krr.json": KRR,
        "in.hex": "# reports\n" + "".join(f"{message.hex()}\n" for message in messages),
        "in.avro": container([(1, single())]),
        "folder/a": "",
    }
    write_files(tmp_path, files)
    lengths = len(sources.SOURCES), len(sinks.SINKS)
    sources.SOURCES.extend([HexLines, Endless])
    sinks.SINKS.append(Lines)
    yield
    del sources.SOURCES[lengths[0] :], sinks.SINKS[lengths[1] :]


def files(pattern: str) -> list[dict[str, Any]]:
    lines = [line for path in sorted(Path().glob(pattern)) for line in path.read_text("utf-8").splitlines()]
    return [json.loads(line) for line in lines]


COMMON = "--collection krr.json --output out --min_reports 1"

# ---------------------------------------------------------------------- the command line knows them


def test_help_explains_their_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(["--help", "all"])
    assert ended.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    for cls in (HexLines, Endless):
        assert cls.option in said
        assert cls.help in said
    for name, settings in {**HexLines.own_options, **Lines.options}.items():
        assert name in said
        assert settings["help"] in said


@pytest.mark.parametrize("kind", [None, "values", "estimates"])
def test_rows_go_from_the_new_source_to_the_new_sink(kind: str | None) -> None:
    argv = f"{COMMON} --hex_lines in.hex --hex_comment '#' --window 1h --lines rows"
    assert program.main(shlex.split(argv + (f" --lines_kind {kind}" if kind else ""))) == 0
    written = files("rows-*")
    estimates, ledger = files("out/estimates.jsonl"), files("out/ledger.jsonl")
    assert [row["num_reports"] for row in estimates] == [2]
    assert sum(row["received"] for row in ledger) == 3
    assert sum((Counter(row["unread_messages"]) for row in ledger), Counter()) == {"malformed": 1}
    if kind == "values":
        (row,) = estimates
        assert [(found["window_start"], found["value"]) for found in written] == [
            (row["window_start"], found["value"]) for found in row["estimates"]
        ]
    else:
        assert sorted(written, key=str) == sorted(estimates if kind else ledger, key=str)


def test_a_new_sink_takes_the_rows_of_an_old_source() -> None:
    assert program.main(shlex.split(f"{COMMON} --input in.avro --lines rows")) == 0
    assert files("rows-*") == files("out/ledger.jsonl")


def test_an_old_sink_takes_the_rows_of_a_new_source() -> None:
    assert program.main(shlex.split(f"{COMMON} --hex_lines in.hex --hex_comment '#'")) == 0
    assert not files("rows-*")
    assert files("out/estimates.jsonl")


def test_a_new_stream_is_unbounded() -> None:
    job = options.read_arguments(shlex.split(f"{COMMON} --endless 5 --window 1h"))
    assert isinstance(job.source, Endless)
    assert job.spec.bounded is False


NAMED = [source.option for source in sources.SOURCES]
WRONG = [
    ("--lines rows", f"one of the arguments {' '.join(NAMED)} --hex_lines --endless is required"),
    ("--hex_lines in.hex --input in.avro", "--input: not allowed with argument --hex_lines"),
    ("--input in.avro --hex_comment x", "--hex_comment needs --hex_lines, got --input"),
    ("--hex_lines in.hex --bootstrap_servers x", "--bootstrap_servers needs --kafka_topic, got --hex_lines"),
    ("--hex_lines in.hex --hex_comment=", "--hex_comment must have a letter, got none"),
    ("--endless many --window 1h", "--endless: invalid int value: 'many'"),
    ("--endless 5", "--endless needs --window: an unbounded stream without windows has no estimate, got none"),
    ("--endless 5 --window 1h --lines rows", "--lines needs a source that ends, got --endless"),
    ("--hex_lines in.hex --lines_kind ledger", "--lines_kind needs --lines, got none"),
    ("--hex_lines in.hex --lines folder", "--lines must be a path of files, got the directory 'folder'"),
    (
        "--hex_lines in.hex --early_every 1m",
        "--early_every needs --subscription or --kafka_topic or --endless, got --hex_lines",
    ),
]


@pytest.mark.parametrize(("argv", "sentence"), WRONG, ids=[argv for argv, _ in WRONG])
def test_options_that_are_missing_or_contradict_each_other_are_named(
    argv: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(shlex.split(f"{COMMON} {argv}")) == 2
    said = capsys.readouterr().err
    assert said.startswith("estimate: ")
    assert said.endswith(f"{sentence}\n")
    assert said.count("\n") == 1


# ---------------------------------------------------------------------- a new one touches one file and one line

TABLES = [*sources.SOURCES, *sinks.SINKS]
MODULES = [Path(module.__file__ or "") for module in (program, options, run)]


def words(tree: ast.AST) -> set[str]:
    """All names, attributes, imports and texts."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.update(node.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            found.update((node.module or "").split("."))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_the_program_names_no_source_and_no_sink(path: Path) -> None:
    """Neither their classes nor their modules nor their options; the directory of the row files is the job's own."""
    of_tables = {cls.__name__ for cls in TABLES} | {cls.__module__.rpartition(".")[2] for cls in TABLES}
    named = {cls.option for cls in TABLES if issubclass(cls, Source)}
    named |= {name for cls in TABLES for name in (cls.own_options if issubclass(cls, Source) else cls.options)}
    found = words(ast.parse(path.read_text("utf-8")))
    assert not found & (of_tables | named)
    assert not found & {name[2:] for name in named - {"--output"}}


def test_the_rule_would_find_one() -> None:
    text = "from uldp_transforms.jobs.sinks.row_files import RowFiles\nargs.subscription\nx = '--input'"
    assert words(ast.parse(text)) >= {"row_files", "RowFiles", "subscription", "--input"}


@pytest.mark.parametrize(("table", "kind"), [(sources, Source), (sinks, Sink)], ids=["sources", "sinks"])
def test_each_file_of_the_folder_is_a_line_of_the_table(table: Any, kind: Any) -> None:
    """In a module of its own, except for what all of them are."""
    modules = {path.stem for path in Path(table.__file__).parent.glob("*.py")} - {"__init__", kind.__name__.lower()}
    entries = [cls for cls in TABLES if issubclass(cls, kind)]
    assert sorted(cls.__module__.rpartition(".")[2] for cls in entries) == sorted(modules)
