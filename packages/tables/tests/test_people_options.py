"""Files of people's values: one name for one option in all commands, and missing cells that are counted."""

from __future__ import annotations

import contextlib
import datetime
import functools
import io
import json
import re
import zoneinfo
from pathlib import Path

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from tests.support.commands import programs
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import SpecError
from uldp_transforms_tables.event_times import Clock
from uldp_transforms_tables.people_options import PEOPLE

T0 = 999_999_999
"""A second of 2001."""
READ_PEOPLE = ("plan", "evaluate", "simulate", "report")
FORMER = {"--column", "--truth_column"}
"""Deprecated names, which no help shows."""
COLLECTION = {"version": 1, "id": "pets", "num_cohorts": 3, "alphabet": {"id": "hashed", "num_buckets": 16}}
COLLECTION |= {"mechanism": {"id": "krr", "epsilon": 2.0}}


@functools.cache
def help_of(program: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.raises(SystemExit):
        uldp.main([program, "--help", "all"])
    return printed.getvalue()


def options_of(program: str) -> set[str]:
    return set(re.findall(r"^  (?:-\w, )?(--\w+)", help_of(program), re.MULTILINE))


@pytest.mark.parametrize("program", READ_PEOPLE)
def test_all_commands_describe_a_file_of_people_by_the_same_options(program: str) -> None:
    assert set(PEOPLE) <= options_of(program)
    text = " ".join(help_of(program).split())
    for name, settings in PEOPLE.items():
        assert f"{name} " in text and settings["help"].replace("%%", "%") in text


def test_no_command_has_another_name_for_these_columns() -> None:
    """Of all commands: what names a column ends in _column, and nobody else's word for these options is in use."""
    everything = {name: options_of(name) for name in programs() if name != "reproduce"}
    assert sum(map(bool, everything.values())) > 20
    synonyms = {*FORMER, "--time_zone", "--tz", "--date_format", "--event_time", "--values_column", "--na"}
    assert not {(name, option) for name, options in everything.items() for option in options & synonyms}
    columns = {option for options in everything.values() for option in options if "column" in option}
    assert all(option.endswith(("_column", "_columns")) or option == "--columns" for option in columns), columns


def file_of(folder: Path, *cells: str) -> str:
    path = folder / "V.csv"
    path.write_text(
        "who,value,event_time\n" + "".join(f"{row % 2},{cell},{T0 + row}\n" for row, cell in enumerate(cells))
    )
    return str(path)


def simulated(folder: Path, *options: str) -> int:
    (folder / "C.json").write_text(json.dumps(COLLECTION))
    command = ["simulate", str(folder / "C.json"), "--values", str(folder / "V.csv")]
    return uldp.main([*command, "--output", str(folder / "R.avro"), "--seed", "1", *options])


@pytest.mark.parametrize("cell", ["", " ", '""'])
def test_missing_cells_are_refused_counted_and_named(cell, tmp_path, capsys):
    path = file_of(tmp_path, "cat", "dog", cell, "cat", cell)
    assert simulated(tmp_path) == 2
    assert capsys.readouterr().err == (
        f"simulate: {path} line 4: value must be a text or a number, got none in 2 of 5 rows; "
        "--missing skip leaves such rows out, --missing keep reads the empty text\n"
    )
    assert not (tmp_path / "R.avro").exists()


def test_rows_that_are_left_out_keep_people_and_dimensions_together(tmp_path):
    """Each remaining person sends the reports that the same file without the other rows would have sent."""
    memo = {"id": "krr", "epsilon": 2.0, "epsilon_inf": 3.0}
    collection = COLLECTION | {"mechanism": memo, "alphabet": {"id": "closed", "values": ["cat", "dog"]}}
    (tmp_path / "C.json").write_text(json.dumps(collection | {"version": 2, "id": "memos", "num_cohorts": 1}))
    written = []
    rows = [f"p{row},{'' if row % 3 == 0 else 'cat'},{T0 + row}\n" for row in range(30)]
    for name, kept in (("all", rows), ("some", [row for row in rows if ",," not in row])):
        (tmp_path / "V.csv").write_text("who,value,event_time\n" + "".join(kept))
        command = ["simulate", str(tmp_path / "C.json"), "--values", str(tmp_path / "V.csv")]
        command += ["--output", str(tmp_path / f"{name}.avro"), "--seed", "4", "--person_column", "who"]
        assert uldp.main([*command, "--missing", "skip"]) == 0
        with open(tmp_path / f"{name}.avro", "rb") as file:
            written.append([(record["event_time"], record["payload"]) for record in fastavro.reader(file)])
    assert written[0] == written[1] and len(written[0]) == 20


@pytest.mark.parametrize("memo", [{}, {"epsilon_inf": 3.0}], ids=["fresh", "memos"])
def test_dimensions_that_are_set_on_the_way_are_columns_too(memo, tmp_path):
    dimensions = [
        {"name": "arm", "values": ["new"]},
        {"name": "country", "values": ["DE", "FR"], "set_by": "gateway"},
    ]
    fields = {"mechanism": {"id": "krr", "epsilon": 2.0} | memo, "dimensions": dimensions, "num_cohorts": 1}
    closed = {"id": "closed", "values": ["cat", "dog"]}
    (tmp_path / "C.json").write_text(json.dumps(COLLECTION | fields | {"alphabet": closed}))
    (tmp_path / "V.csv").write_text(
        "who,value,arm,country\na,cat,new,FR\nb,dog,old,DE\nc,cat,new,PL\nd,,new,DE\ne,dog,new,DE\n"
    )
    command = ["simulate", str(tmp_path / "C.json"), "--values", str(tmp_path / "V.csv")]
    command += ["--output", str(tmp_path / "r.avro"), "--seed", "4", "--missing", "skip"]
    assert uldp.main([*command, *(["--person_column", "who"] if memo else [])]) == 0
    with open(tmp_path / "r.avro", "rb") as file:
        assert [record["cohort"] for record in fastavro.reader(file)] == [1, 3 + 0, 2, 0]


@pytest.mark.parametrize(
    "command",
    [
        "plan --epsilon 1 --reports 1000",
        "evaluate --epsilons 1 --repetitions 1 --mechanisms krr --seed 1",
    ],
)
def test_plan_and_evaluate_do_not_take_missing_cells_for_a_value(command, tmp_path, capsys):
    path = file_of(tmp_path, "cat", "", "dog", "cat")
    argv = [*command.split(), "--values", path]
    program = argv[0]
    assert uldp.main(argv) == 2
    assert f"{program}: {path} line 3: value must be a text or a number, got none in 1 of 4 rows" in (
        capsys.readouterr().err
    )
    assert uldp.main([*argv, "--missing", "skip"]) == 0
    printed = capsys.readouterr()
    assert f"{program}: {path}: 1 of 4 cells of value are missing; their rows are left out\n" in printed.err
    assert re.search(r"\b2 values", printed.out), printed.out
    assert uldp.main([*argv, "--missing", "keep"]) == 0
    assert re.search(r"\b3 values", capsys.readouterr().out)


def test_options_of_a_file_need_the_file(capsys):
    for program in ("plan --num_values 3 --epsilon 1 --reports 9", "report --input . --output P.html"):
        assert uldp.main([*program.split(), "--time_column", "at"]) == 2
        needed = "--truth" if program.startswith("report") else "--values"
        assert capsys.readouterr().err.endswith(f": --time_column can be given only with {needed}, got at\n")


# --time_format


def read_times(texts: list[str], form: str, zone: str | None = None) -> list[int]:
    return Clock("at", zone, form).milliseconds(pa.array(texts), "row {}".format).tolist()


def test_times_of_any_format_are_read_as_python_reads_them():
    generator = np.random.default_rng(5)
    zone = zoneinfo.ZoneInfo("Europe/Berlin")
    days = [datetime.datetime(2024, 1, 1, tzinfo=zone) + datetime.timedelta(hours=int(n)) for n in range(0, 8760, 37)]
    days = [days[int(at)] for at in generator.permutation(len(days))]
    for form in ("%d.%m.%Y %H:%M", "%m/%d/%y %I:%M:%S %p", "%b %d %Y %H:%M:%S", "%Y%m%d%H%M%S"):
        texts = [day.strftime(form) for day in days]
        expected = [datetime.datetime.strptime(text, form).replace(tzinfo=zone) for text in texts]
        assert read_times(texts, form, "Europe/Berlin") == [int(moment.timestamp() * 1000) for moment in expected]


@pytest.mark.parametrize("form", ["%H:%M", "%Y %Q", "%Y %", "%Y %Y", "days", "%Y %I", "%Y %H %p"])
def test_a_format_that_would_be_misread_is_refused(form):
    with pytest.raises(SpecError) as caught:
        Clock("at", None, form)
    assert str(caught.value) == (
        "--time_format must have only texts and %Y %y %m %d %j %H %I %M %S %f %p %b %B %a %A %z (each once), with "
        "%Y or %y, and %I and %p together, or be one of seconds, milliseconds, microseconds, nanoseconds, excel, "
        f"got {form!r}"
    )
