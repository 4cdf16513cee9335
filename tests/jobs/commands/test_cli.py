"""The command lines of ``simulate`` and ``estimate``: errors of one line, and results that plain numpy confirms."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import itertools
import json
import math
import os
import re
import shlex
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import numpy as np
import pytest

from tests.support.commands import last_of_each, programs
from tests.support.messages_cases import (
    BATCH,
    ID,
    KRR,
    NOON,
    RAPPOR,
    STRANGER,
    collection,
    container,
    data,
    long,
    packed,
    single,
    write_files,
)
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.engines.runners import check_options
from uldp_transforms.ldp import Collection
from uldp_transforms.rows.row_types import COUNTS_SCHEMA, ESTIMATE_SCHEMA, HEALTH_SCHEMA, LEDGER_SCHEMA, REJECTED_SCHEMA
from uldp_transforms.windows import rfc3339

PROGRAMS = ("simulate", "estimate")

# ---------------------------------------------------------------------- errors

SECRET = "SECRET"
CSV_GZ = gzip.compress(b"value\n" + b"0\n" * 10_000)

FILES = {
    "krr.json": KRR,
    "open.json": collection("open", {"id": "hashed", "num_buckets": 4}, "krr"),
    "bad.json": '{"id":\n  nothing}',
    "more.json": KRR.to_json() | {"more": 1},
    "list.json": "[]",
    "nan.json": '{"id": NaN}',
    "twice.json": '{"id": "a", "id": "b"}',
    "latin.json": b'{"id": "\xe4"}',
    "deep.json": "[" * 100_000,
    "long.json": "1" * 5_000,
    "good.csv": "value,event_time\n0,1000000001\n1,1000000002\n",
    "other.csv": f"{SECRET},event_time\n0,1\n",
    "stranger.csv": f"value\n0\n{SECRET}\n",
    "latin-header.csv": f"{SECRET}\xe4,value\n0\n".encode("latin-1"),
    "time.csv": f"value,event_time\n0,1000000001\n\n1,{SECRET}\n",
    "year.csv": "value,event_time\n0,1000000001\n1,99999999999999\n",
    "short.csv": f"event_time,value\n1,0\n{SECRET}\n",
    "field.csv": "value\n0\n" + SECRET * 30_000,
    "field-header.csv": SECRET * 30_000,
    "other.csv.gz": f"{SECRET}\n",
    "cut.csv.gz": CSV_GZ[:-20],
    "cut-header.csv.gz": CSV_GZ[:6],
    "broken.csv.gz": CSV_GZ[:20] + bytes(20) + CSV_GZ[40:],
    "good.avro": container([(1, single())]),
    "twice.txt": "a\nb\na\n",
    "file": "",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder, with all files, and a pipe, which is none."""
    write_files(tmp_path, FILES)
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SIMULATE = "krr.json --values good.csv --output out.avro"
JOB = "--collection krr.json --output out"
ESTIMATE = f"{JOB} --input good.avro"
STREAM = "--collection krr.json --subscription projects/p/subscriptions/s --output out"
KAFKA = "--collection krr.json --kafka_topic t --bootstrap_servers localhost:9092 --output out"
NEEDS = (
    "collection 'open' has an open alphabet and needs 1 to 1048576 candidate values (--candidates) "
    "or public values, got"
)

# program, arguments (a later one overrides an earlier one), and what it says: the whole sentence, or its beginning
# up to a space where the rest is not ours to choose
ERRORS = [
    # simulate: the command line
    ("simulate", "", "the following arguments are required: C.json, --values"),
    ("simulate", f"{SIMULATE} --rate 0", "--rate must be a number above 0, got '0'"),
    ("simulate", f"{SIMULATE} --rate nan", "--rate must be a number above 0, got 'nan'"),
    ("simulate", f"{SIMULATE} --pack 0", "--pack must be a whole number above 0, got '0'"),
    ("simulate", f"{SIMULATE} --pack 1.5", "--pack must be a whole number above 0, got '1.5'"),
    ("simulate", f"{SIMULATE} --form both", "--form must be one of single, packed, got 'both'"),
    ("simulate", f"{SIMULATE} --more", "unrecognized arguments: --more"),
    ("simulate", f"{SIMULATE} --see 5", "unrecognized arguments: --see 5"),
    # simulate: its files
    ("simulate", SIMULATE.replace("krr.json", "none.json"), "none.json: No such file or directory"),
    ("simulate", f"{SIMULATE} --values none.csv", "none.csv: No such file or directory"),
    ("simulate", f"{SIMULATE} --values .", "./broken.csv.gz must be a complete gzip file, got another "),
    (
        "simulate",
        f"{SIMULATE} --values other.csv",
        "other.csv must have a column named value, got 2 other column(s); --value_column names another, and CSV must "
        "begin with its header",
    ),
    (
        "simulate",
        f"{SIMULATE} --values stranger.csv",
        "stranger.csv line 3 must have one of the 3 values of the collection; rows with other values: 1 of 2",
    ),
    (
        "simulate",
        f"{SIMULATE} --values time.csv",
        "time.csv line 4: event_time must be RFC 3339 or seconds since 1970, got neither; "
        "--time_format names another form",
    ),
    (
        "simulate",
        f"{SIMULATE} --values year.csv",
        "year.csv line 3: event_time must lie in the years 1900 to 9998, got another year",
    ),
    ("simulate", f"{SIMULATE} --values short.csv", "short.csv line 3 must have the 2 columns of the header, got 1"),
    (
        "simulate",
        f"{SIMULATE} --values field.csv",
        "field.csv row 2 must have one of the 3 values of the collection; rows with other values: 1 of 2",
    ),
    (
        "simulate",
        f"{SIMULATE} --values field-header.csv",
        "field-header.csv must be CSV with a header, in UTF-8 (the content is not shown)",
    ),
    ("simulate", f"{SIMULATE} --values other.csv.gz", "other.csv.gz "),
    ("simulate", f"{SIMULATE} --values cut.csv.gz", "cut.csv.gz "),
    ("simulate", f"{SIMULATE} --values cut-header.csv.gz", "cut-header.csv.gz "),
    ("simulate", f"{SIMULATE} --values broken.csv.gz", "broken.csv.gz "),
    # estimate: the command line
    ("estimate", "", "the following arguments are required: --collection, --output"),
    (
        "estimate",
        "--collection krr.json --output out",
        "one of the arguments --input --subscription --kafka_topic is required",
    ),
    (
        "estimate",
        f"{ESTIMATE} --subscription projects/p/subscriptions/s",
        "argument --subscription: not allowed with argument --input",
    ),
    (
        "estimate",
        f"{KAFKA} --runner PortableRunner",
        "--kafka_topic needs --window: an unbounded stream without windows has no estimate, got none",
    ),
    ("estimate", f"{ESTIMATE} --kafka_topic t", "argument --kafka_topic: not allowed with argument --input"),
    (
        "estimate",
        f"{KAFKA} --kafka_timestamps Now",
        "--kafka_timestamps must be one of CreateTime, LogAppendTime, got 'Now'",
    ),
    (
        "estimate",
        f"{STREAM} --window 1h --subscription s",
        "--subscription must be projects/PROJECT/subscriptions/NAME, got 's'",
    ),
    ("estimate", f"{ESTIMATE} --runner best", "Unexpected pipeline runner: best. "),
    (
        "estimate",
        f"{ESTIMATE} --more",
        "unrecognized arguments: --more; options are those of --help all, of Apache Beam and of the job server at "
        "--job_endpoint",
    ),
    (
        "estimate",
        f"{ESTIMATE} --windows 1h",
        "unrecognized arguments: --windows; did you mean --window?",
    ),
    (
        "estimate",
        "--collection krr.json --inputs good.avro --output out",
        "unrecognized arguments: --inputs; did you mean --input?",
    ),
    (
        "estimate",
        "krr.json --input good.avro --output out",
        "unrecognized arguments: krr.json; did you mean --collection krr.json?",
    ),
    ("simulate", "krr.json --values good.csv --outptu x", "unrecognized arguments: --outptu; did you mean --output?"),
    ("simulate", "krr.json --values good.csv --xyzzy x", "one of the arguments --output --topic is required"),
    (
        "estimate",
        f"{ESTIMATE} more",
        "unrecognized arguments: more; options are those of --help all, of Apache Beam and of the job server at "
        "--job_endpoint",
    ),
    ("estimate", f"{ESTIMATE} --num_workers many", "argument --num_workers: invalid int value: 'many'"),
    # estimate: its files
    ("estimate", f"{ESTIMATE} --collection none.json", "none.json: No such file or directory"),
    ("estimate", f"{ESTIMATE} --candidates none.txt", "none.txt: No such file or directory"),
    (
        "estimate",
        f"{ESTIMATE} --candidates twice.txt",
        "twice.txt must have different values (in Unicode NFC), got the same one in lines 1 and 3",
    ),
    (
        "estimate",
        f"{ESTIMATE} --collection open.json",
        f"{NEEDS} 0",
    ),
]

COLLECTION_ERRORS = [
    ("bad.json", "bad.json must be JSON, got an error in line 2: Expecting value"),
    (
        "more.json",
        "more.json: Collection takes the keys id, version, alphabet, mechanism, num_cohorts, "
        "client_window, client_timezone, question, dimensions, noun, got 'more'",
    ),
    ("list.json", "list.json: Collection must be a JSON object, got []"),
    ("nan.json", "nan.json must hold finite numbers, got NaN"),
    ("twice.json", "twice.json must not repeat a key, got id more than once"),
    ("latin.json", "latin.json must be a UTF-8 text file, got other bytes"),
    ("deep.json", "deep.json "),
    ("long.json", "long.json "),
]


def check_error(program: str, argv: str, sentence: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and one line; nothing of a person's value in it."""
    code = run(program, argv)
    out, err = capfd.readouterr()
    said = err.removeprefix(f"{program}: ").replace(os.getcwd(), "HERE")
    assert (code, out) == (2, "")
    assert err.startswith(f"{program}: ")
    assert err.count("\n") == 1
    assert said == f"{sentence}\n" or (sentence[-1:] in ("", " ") and said.startswith(sentence))
    assert SECRET not in err


@pytest.mark.parametrize(("program", "argv", "sentence"), ERRORS, ids=[row[2][:60] or row[1] for row in ERRORS])
def test_a_wrong_command_line_is_one_line(program, argv, sentence, folder, capfd):
    check_error(program, argv, sentence, capfd)


def test_a_list_of_too_many_candidates_is_refused(folder, capfd):
    (folder / "many.txt").write_text("\n".join(map(str, range(1_048_577))))
    said = "many.txt must have at most 1048576 values, got more"
    check_error("estimate", f"{ESTIMATE} --collection open.json --candidates many.txt", said, capfd)


@pytest.mark.parametrize(("file", "sentence"), COLLECTION_ERRORS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_wrong_collection_is_one_line(program, file, sentence, folder, capfd):
    argv = {"simulate": SIMULATE, "estimate": ESTIMATE}[program].replace("krr.json", file)
    check_error(program, argv, sentence, capfd)


@pytest.mark.parametrize(
    "values",
    ["none.csv", "other.csv", "latin-header.csv", "cut-header.csv.gz", "field-header.csv"],
)
def test_nothing_is_written_if_the_values_cannot_be_read(values, folder, capfd):
    check_error("simulate", f"{SIMULATE} --values {values}", "", capfd)
    assert not (folder / "out.avro").exists()


def test_wrong_options_write_nothing(folder, capfd):
    check_error("estimate", f"{ESTIMATE} --window 5x", "", capfd)
    check_error("estimate", f"{ESTIMATE} --runner best", "", capfd)
    assert not (folder / "out").exists()


@pytest.mark.parametrize("program", programs())
def test_help_names_defaults_as_they_are_written(program, capsys):
    with pytest.raises(SystemExit):
        uldp.main([program, "--help"])
    printed = capsys.readouterr().out
    assert "default: [" not in printed and "default: (" not in printed
    assert re.search(r"\(default: [^()]*\)\s*\(default: ", printed) is None, "an option names its default twice"


@pytest.mark.parametrize(
    "argv",
    [
        "--runner DataflowRunner --project p --region r --temp_location gs://b/t --num_workers 3",
        "--setup_file ./setup.py --max_num_workers=9 --experiments a --experiments=b --streaming",
        "--runner FlinkRunner --flink_master localhost:8081 --environment_type LOOPBACK --parallelism 2",
    ],
)
def test_options_of_beam_are_known(argv):
    check_options(shlex.split(argv))


# ---------------------------------------------------------------------- simulate


def run(program: str, argv: str) -> int:
    adding = ["--collection", "--kafka_property"] if program == "estimate" else []
    return uldp.main([program, *last_of_each(shlex.split(argv), adding)])


def read_avro(path: Path) -> tuple[dict[str, str], list[dict[str, Any]]]:
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        return reader.metadata, list(reader)


def csv_text(rows: list[tuple[Any, ...]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize("form", ["single", "packed"])
def test_simulated_reports_are_those_of_the_values(form, folder, capsys):
    times = [NOON - 1, 0, -1, NOON + 7, 5]
    (folder / "values.csv").write_text(csv_text([("event_time", "value"), *((t / 1000, "2") for t in times)]))
    assert run("simulate", f"{SIMULATE} --values values.csv --time_format seconds --form {form} --pack 2") == 0
    assert capsys.readouterr() == ("", "simulate: 5 reports to out.avro, randomness: system\n")
    metadata, records = read_avro(folder / "out.avro")
    assert (metadata["uldp.collection"], metadata["uldp.randomness"]) == ("krr", "system")
    assert {record["collection"] for record in records} == {KRR.fingerprint[:8]}
    columns = columns_of(records)
    assert columns.times.tolist() == times
    assert set(columns.payloads[:, 0]) <= {0, 1, 2}
    if form == "packed":
        assert [len(record["cohorts"]) // 2 for record in records] == [2, 2, 1]


@pytest.mark.parametrize("form", ["single", "packed"])
def test_a_seed_makes_reproducible_bytes(form, folder, capsys):
    (folder / "good.csv.gz").write_bytes(gzip.compress((folder / "good.csv").read_bytes()))
    contents = []
    for options in ("--seed 1", "--seed 1", "--seed 1 --values good.csv.gz", "--seed 2", "", ""):
        assert run("simulate", f"{SIMULATE} --form {form} {options}") == 0
        contents.append((folder / "out.avro").read_bytes())
    assert contents[0] == contents[1] == contents[2]
    assert len(set(contents)) == 4
    assert "randomness: seeded (1), for simulation only\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["", "now", "1_000", "\u0661", "01/02/2001", "2001-13-01", "nan", "1e400", "0x10", "1,5", "--1"]
)
def test_other_times_are_refused(text, folder, capfd):
    (folder / "values.csv").write_text(f'value,event_time\n0,"{text}"\n')
    check_error("simulate", f"{SIMULATE} --values values.csv", "values.csv line 2: event_time must ", capfd)


def test_without_a_time_reports_carry_the_present(folder):
    (folder / "values.csv").write_text("value\n0\n1\n")
    before = time.time_ns() // 1_000_000
    assert run("simulate", f"{SIMULATE} --values values.csv") == 0
    assert all(before <= record["event_time"] <= time.time_ns() / 1e6 for record in read_avro(folder / "out.avro")[1])


def test_no_values_make_an_empty_file(folder):
    (folder / "values.csv").write_text("value\n")
    assert run("simulate", f"{SIMULATE} --values values.csv") == 0
    assert read_avro(folder / "out.avro")[1] == []


def test_packed_messages_stay_below_the_cap_of_messages(folder, capfd):
    """Else the main job would refuse what this program wrote."""
    sentence = "--pack must keep messages below 10000000 bytes, got 400000"
    check_error("simulate", f"{SIMULATE} --form packed --pack 400000", sentence, capfd)
    assert run("simulate", f"{SIMULATE} --form packed --pack 300000") == 0


# ---------------------------------------------------------------------- estimate

HOUR = 3_600_000
START = NOON // HOUR * HOUR
ITEMS = {"krr": KRR, "rappor": RAPPOR}
AVRO = {"estimates.avro": ESTIMATE_SCHEMA, "rejected.avro": REJECTED_SCHEMA, "counts.avro": COUNTS_SCHEMA}
JSON = {"estimates.jsonl": ESTIMATE_SCHEMA, "ledger.jsonl": LEDGER_SCHEMA, "health.jsonl": HEALTH_SCHEMA}


class Columns(NamedTuple):
    cohorts: np.ndarray
    times: np.ndarray
    payloads: np.ndarray


def columns_of(records: list[dict[str, Any]]) -> Columns:
    """The reports of a file, single or packed, with nothing but numpy."""
    if records and records[0]["form"] == 1:
        payloads = np.array([list(record["payload"]) for record in records], np.uint8)
        return Columns(*(np.array([record[name] for record in records]) for name in ("cohort", "event_time")), payloads)
    joined = {name: b"".join(record[name] for record in records) for name in ("cohorts", "event_times", "payloads")}
    cohorts, times = np.frombuffer(joined["cohorts"], "<u2"), np.frombuffer(joined["event_times"], "<i8")
    return Columns(cohorts, times, np.frombuffer(joined["payloads"], np.uint8).reshape(len(times), -1))


def frequencies(item: Collection, payloads: np.ndarray) -> np.ndarray:
    """The unbiased estimate by the formulas of the papers."""
    e, size = math.e, item.alphabet.num_symbols
    if item.mechanism.id == "krr":
        share = np.bincount(payloads[:, 0], minlength=size) / len(payloads)
        return (share * (e + size - 1) - 1) / (e - 1)
    psi = 1 / (math.sqrt(e) + 1)  # symmetric: theta = 1 - psi
    share = np.unpackbits(payloads, axis=1, bitorder="little", count=size).mean(axis=0)
    return (share - psi) / (1 - 2 * psi)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Setting(NamedTuple):
    """Options of a job, and what they mean in milliseconds."""

    options: str
    size: int | None = None
    slide: int | None = None
    base: int | None = None
    least: int = 100


SETTINGS = {
    "all": Setting(""),
    "fixed": Setting("--window 1h --min_reports 200", HOUR, HOUR, HOUR, 200),
    "sliding": Setting(
        "--window 90m --slide 1h --min_reports 1 --deduplicate --write_counts", HOUR * 3 // 2, HOUR, HOUR // 2, 1
    ),
}


class Job(NamedTuple):
    """What went in, and where the results are."""

    setting: Setting
    reports: dict[str, Columns]
    output: Path


@pytest.fixture(scope="module", params=SETTINGS)
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Two collections, files of both forms, 3000 reports over 5 hours, few of them in the first."""
    folder = tmp_path_factory.mktemp("job")
    setting = SETTINGS[request.param]
    write_files(folder, {"krr.json": KRR, "rappor.json": RAPPOR})
    rng = np.random.default_rng(1)
    times = START + (rng.beta(2, 1, size=3000) * 5 * HOUR).astype(int)
    parts: dict[str, list[Columns]] = {"krr": [], "rappor": []}
    for i, (name, form) in enumerate(itertools.product(parts, ("single", "packed"))):
        (folder / "values.csv").write_text(csv_text([("value", "event_time"), *((0, t / 1000) for t in times[i::4])]))
        arguments = f"--collection {folder}/{name}.json --values {folder}/values.csv --form {form} --pack 77"
        assert run("simulate", f"{arguments} --output {folder}/{name}-{form}.avro") == 0
        parts[name].append(columns_of(read_avro(folder / f"{name}-{form}.avro")[1]))
    collections = f"--collection {folder}/krr.json --collection {folder}/rappor.json --estimator empirical"
    assert run("estimate", f"{collections} --input {folder}/*.avro --output {folder}/out {setting.options}") == 0
    return Job(
        setting, {name: Columns(*map(np.concatenate, zip(*files))) for name, files in parts.items()}, folder / "out"
    )


def reports_by_window(job: Job) -> dict[tuple[str, str | None], np.ndarray]:
    """Payloads by collection and start of the window."""
    if job.setting.size is None:
        return {(name, None): columns.payloads for name, columns in job.reports.items()}
    result = {}
    for name, (_, times, payloads) in job.reports.items():
        for start in range(START - 2 * HOUR, START + 6 * HOUR, job.setting.slide):
            here = (start <= times) & (times < start + job.setting.size)
            if here.any():
                result[name, rfc3339(start)] = payloads[here]
    return result


def test_estimates_are_those_of_plain_numpy(job):
    expected = reports_by_window(job)
    rows = read_lines(job.output / "estimates.jsonl")
    assert sorted((row["collection_id"], row["window_start"]) for row in rows) == sorted(expected)
    for row in rows:
        payloads, item = expected[row["collection_id"], row["window_start"]], ITEMS[row["collection_id"]]
        assert (row["fingerprint"], row["pane_index"], row["pane_timing"]) == (item.fingerprint.hex(), 0, "ON_TIME")
        if len(payloads) < job.setting.least:
            assert (row["status"], row["estimates"]) == ("suppressed", [])
            assert row["num_reports"] is row["unexplained_mass"] is None
        else:
            assert (row["status"], row["num_reports"]) == ("ok", len(payloads))
            assert [entry["value"] for entry in row["estimates"]] == list(item.alphabet.known_values)
            shares = [entry["frequency"] for entry in row["estimates"]]
            assert shares == pytest.approx(frequencies(item, payloads).tolist(), abs=1e-6)  # psi has 32 bits only


def test_windows_end_when_they_should(job):
    for row in read_lines(job.output / "estimates.jsonl"):
        if job.setting.size is None:
            assert row["window_start"] is row["window_end"] is None
        else:
            start, end = (datetime.datetime.fromisoformat(row[name][:-1]) for name in ("window_start", "window_end"))
            assert end - start == datetime.timedelta(milliseconds=job.setting.size)


def test_windows_of_few_reports_are_suppressed(job):
    statuses = [row["status"] for row in read_lines(job.output / "estimates.jsonl")]
    assert "ok" in statuses
    assert ("suppressed" in statuses) == (job.setting.least == 200)


def test_the_ledger_balances(job):
    base = job.setting.base
    expected = {
        (name, rfc3339(start) if base else None): number
        for name, (_, times, _) in job.reports.items()
        for start, number in Counter((times // base * base if base else times * 0).tolist()).items()
    }
    rows = read_lines(job.output / "ledger.jsonl")
    assert len(rows) == len(expected)
    assert {(row["collection_id"], row["window_start"]): row["accepted"] for row in rows} == expected
    assert {(row["received"] - row["accepted"], row["duplicates"], len(row["rejected"])) for row in rows} == {(0, 0, 0)}


def test_all_files_follow_their_schemas(job):
    kept = "--write_counts" in job.setting.options
    names = {path.name for path in job.output.iterdir() if path.suffix in (".avro", ".jsonl")}
    assert names == {*AVRO, *JSON} - (set() if kept else {"counts.avro"})
    for name, schema in AVRO.items():
        if (job.output / name).exists():
            with (job.output / name).open("rb") as file:
                written = fastavro.reader(file).writer_schema
            canonical = fastavro.schema.to_parsing_canonical_form
            assert canonical(written) == canonical(schema)
    for name, schema in JSON.items():
        fields = [field["name"] for field in schema["fields"]]
        assert all(list(row) == fields for row in read_lines(job.output / name))


def test_avro_and_json_hold_the_same_estimates(job):
    times = ("window_start", "window_end")
    in_avro = read_avro(job.output / "estimates.avro")[1]
    for row in in_avro:
        row |= {name: row[name] and rfc3339(round(row[name].timestamp() * 1000)) for name in times}
    in_json = read_lines(job.output / "estimates.jsonl")
    assert sorted(map(json.dumps, in_avro)) == sorted(map(json.dumps, in_json))
    assert read_avro(job.output / "rejected.avro")[1] == []


# ---------------------------------------------------------------------- bad data among good

BAD_REPORTS = [
    single(STRANGER),
    single(cohort=long(9)),
    single(payload=data(b"")),
    single(payload=data(b"\x07")),
    single(event_time=long(1 << 62)),
]
BATCH_OF_FIVE = packed(rows=[(cohort, NOON, ID, b"\x02") for cohort in range(5)])
GARBAGE = {
    "good.avro": container([(3, single() * 3)]),
    "random.avro": bytes(range(256)) * 9,
    "empty.avro": b"",
    "foreign.avro": container([(1, b"\x02")], "int"),
    "blocks.avro": container([(1, single()), (7, single()), (1, single())]),
    "messages.avro": container([(6, b"".join(BAD_REPORTS) + single())]),
    "batches.avro": container([(2, BATCH_OF_FIVE + packed(STRANGER))], BATCH),
}
OF_MESSAGES = {"cohort_range": 3, "payload_length": 1, "value_domain": 1, "time_range": 1}
OF_NOBODY = {"unknown_collection": 3}
UNREAD_FILES = {"bad_magic": 2, "unknown_schema": 1, "corrupt_block": 1}
GOOD_REPORTS = 3 + 2 + 1 + 3
SUMMARY = (
    "estimate: 18 received = 9 accepted + 9 rejected (cohort_range 3, payload_length 1, time_range 1, "
    "unknown_collection 3, value_domain 1); unread files: 4 (bad_magic 2, corrupt_block 1, unknown_schema 1)\n"
    "estimate: 4 files could not be read in full (bad_magic 2, corrupt_block 1, unknown_schema 1): "
    "are they empty, cut off, compressed as a whole, or raw values, which uldp simulate must perturb first?; "
    "uldp check out names them"
)


def test_bad_data_is_counted_and_the_job_goes_on(folder, capfd):
    (folder / "in").mkdir()
    write_files(folder / "in", GARBAGE)
    assert run("estimate", f"{JOB} --input 'in/*.avro' --window 1h --min_reports 1 --max_rejected_share 1") == 7
    assert capfd.readouterr() == ("", f"{SUMMARY}\n")
    assert [row["num_reports"] for row in read_lines(folder / "out/estimates.jsonl")] == [GOOD_REPORTS]
    ledger = {(row["collection_id"], row["window_start"]): row for row in read_lines(folder / "out/ledger.jsonl")}
    assert {key: (row["received"], row["accepted"], row["rejected"]) for key, row in ledger.items()} == {
        ("krr", rfc3339(START)): (GOOD_REPORTS, GOOD_REPORTS, {}),
        ("krr", None): (sum(OF_MESSAGES.values()), 0, OF_MESSAGES),
        (None, None): (sum(OF_NOBODY.values()), 0, OF_NOBODY),
    }
    assert {key: row["unread_files"] for key, row in ledger.items() if row["unread_files"]} == {
        (None, None): UNREAD_FILES
    }
    assert all(row["unread_messages"] == {} for row in ledger.values())
    reasons: Counter[str] = Counter()
    files = {}
    for row in read_avro(folder / "out/rejected.avro")[1]:
        reasons[row["reason"]] += row["num_reports"] or row["num_files"]
        assert row["num_files"] == (row["source"] != "message")
        assert row["received_at"] is row["window_start"] is row["window_end"] is None
        assert (row["collection_id"] == "krr") == (row["reason"] in OF_MESSAGES)
        if row["source"] != "message":
            files[row["source"]] = (row["reason"], row["message_bytes"])
    assert reasons == OF_MESSAGES | OF_NOBODY | UNREAD_FILES
    assert files == {
        "random.avro": ("bad_magic", len(GARBAGE["random.avro"])),
        "empty.avro": ("bad_magic", 0),
        "foreign.avro": ("unknown_schema", len(GARBAGE["foreign.avro"])),
        "blocks.avro": ("corrupt_block", len(single())),
    }
