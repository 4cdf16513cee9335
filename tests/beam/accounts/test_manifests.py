"""Manifests say what files must hold, and files say where their randomness is from; what is no file is refused."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import jsonschema
import pytest

from tests.support import replay
from tests.support.messages_cases import KRR, container, single, write_files
from tests.support.refusals.manifests import GOOD, WRONG
from uldp_transforms import EstimateReports, ReadReportFiles
from uldp_transforms.jobs import estimate, uldp
from uldp_transforms.jobs.reestimate import stored_counts
from uldp_transforms.ldp import SpecError
from uldp_transforms.messages.manifest import ListedFile, files_of_manifest, manifest_of
from uldp_transforms.schemas import load

SCHEMA = load("manifest.schema.json")


def simulated(name: str, number: int, options: str = "") -> str:
    """Writes a file of reports, with blocks of a few of them."""
    Path("values.csv").write_text("value\n" + "0\n" * number, encoding="utf-8")
    argv = f"krr.json --values values.csv --output {name}.avro --manifest {name}.json {options}"
    assert uldp.main(["simulate", *shlex.split(argv)]) == 0
    return f"{name}.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, {"krr.json": KRR})
    monkeypatch.chdir(tmp_path)
    return tmp_path


JOB = "--collection krr.json --input in*.avro --output out --min_reports 1 --max_rejected_share 1"


def outcome(options: str = "--manifest in*.json") -> tuple[int, dict[str, int]]:
    """The exit code, and the sums of the ledger; the ledger always balances."""
    code = estimate.main(shlex.split(f"{JOB} {options}"))
    rows = [json.loads(line) for line in Path("out/ledger.jsonl").read_text(encoding="utf-8").splitlines()]
    sums: dict[str, int] = {"received": 0, "accepted": 0}
    for row in rows:
        for name, number in {**row["rejected"], "received": row["received"], "accepted": row["accepted"]}.items():
            sums[name] = sums.get(name, 0) + number
    return code, sums


# ---------------------------------------------------------------------- the form


def test_what_simulate_lists_is_what_the_file_holds() -> None:
    for name, options, messages in (("in1", "", 25), ("in2", "--form packed --pack 10", 3)):
        listed = json.loads(Path(simulated(name, 25, options)).read_text(encoding="utf-8"))
        jsonschema.validate(listed, SCHEMA)
        content = Path(f"{name}.avro").read_bytes()
        expected = ListedFile(f"{name}.avro", len(content), hashlib.sha256(content).hexdigest(), messages, 25)
        assert files_of_manifest(listed) == [expected]
        assert manifest_of([expected]) == listed
    assert outcome() == (0, {"received": 50, "accepted": 50})


@pytest.mark.parametrize(("content", "sentence"), WRONG)
def test_other_manifests_are_refused(content: Any, sentence: str) -> None:
    with pytest.raises(SpecError) as error:
        files_of_manifest(content)
    assert str(error.value) == sentence
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(content)


def test_the_good_one_is_none_of_these() -> None:
    jsonschema.validate({"version": 1, "files": [GOOD]}, SCHEMA)
    assert len(files_of_manifest({"version": 1, "files": [GOOD]})) == 1


# ---------------------------------------------------------------------- what is missing shows


def blocks(number: int, of: int = 10) -> bytes:
    return container([(of, single() * of)] * number)


def listed(content: bytes, reports: int, name: str = "in.avro") -> None:
    file = ListedFile(name, len(content), hashlib.sha256(content).hexdigest(), reports, reports)
    write_files(Path(), {f"{name[:-5]}.json": manifest_of([file])})


def test_a_file_cut_at_the_end_of_a_block_is_not_as_listed() -> None:
    """Without a manifest it looks whole."""
    listed(blocks(5), 50)
    Path("in.avro").write_bytes(blocks(3))
    assert outcome("") == (0, {"received": 30, "accepted": 30})
    assert outcome() == (7, {"received": 50, "accepted": 30, "not_as_listed": 20})


def cut_inside(content: bytes) -> bytes:
    return content[:-1]


def replaced(content: bytes) -> bytes:
    """As long as before, and as many reports."""
    return content.replace(single(), single()[:9] + b"\x07" + single()[10:], 1)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (cut_inside, {"received": 50, "accepted": 40, "not_as_listed": 10}),
        (replaced, {"received": 50, "accepted": 50}),
        (lambda content: content + content[-len(blocks(1)) + len(blocks(0)) :], None),
        (lambda content: b"", {"received": 50, "accepted": 0, "not_as_listed": 50}),
        (lambda content: blocks(0), {"received": 50, "accepted": 0, "not_as_listed": 50}),
    ],
)
def test_a_file_that_changed_is_not_as_listed(
    change: Callable[[bytes], bytes], expected: dict[str, int] | None
) -> None:
    content = blocks(5)
    listed(content, 50)
    Path("in.avro").write_bytes(change(content))
    assert outcome() == (7, expected or {"received": 60, "accepted": 60})


def test_a_file_that_is_not_listed_is_refused_as_a_whole() -> None:
    listed(blocks(2), 20)
    write_files(Path(), {"in.avro": blocks(2), "in-more.avro": blocks(4)})
    assert outcome() == (7, {"received": 20, "accepted": 20})


def test_fewer_messages_of_the_same_bytes_are_not_as_listed() -> None:
    """The manifest may be wrong, too."""
    listed(blocks(2), 25)
    Path("in.avro").write_bytes(blocks(2))
    assert outcome() == (7, {"received": 25, "accepted": 20, "not_as_listed": 5})


def test_what_a_manifest_gets_wrong_is_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    listed(blocks(2), 20)
    Path("in.avro").write_bytes(blocks(2))
    listed(blocks(3), 30, "in-gone.avro")
    write_files(Path(), {"in-other.json": manifest_of([ListedFile("in.avro", 1, "0" * 64, 1, 1)]), "broken.json": "{"})
    here = os.getcwd()
    sentences = {
        "--manifest nothing*.json": "--manifest must match at least one file, got 'nothing*.json'",
        "--manifest in-gone.json": f"{here}/in-gone.json must list files that match '{here}/in*.avro', got "
        "'in-gone.avro'",
        "--manifest in[.-]*o*": f"{here}/in-gone.json must list",
        "--manifest broken.json": f"{here}/broken.json must be JSON, got an error in line 1: ",
    }
    for options, sentence in sentences.items():
        assert estimate.main(shlex.split(f"{JOB} {options}")) == 2
        assert capfd.readouterr().err.startswith(f"estimate: {sentence}")
    Path("in-gone.json").unlink()
    assert estimate.main(shlex.split(f"{JOB} --manifest in*.json")) == 2
    assert "must agree with the other manifests, got a different entry for 'in.avro'" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--output in.avro --manifest sub/m.json", "--manifest must be another file in the folder of --output, got "),
        ("--output in.avro --manifest in.avro", "--manifest must be another file in the folder of --output, got "),
        ("--output in.avro --manifest values.csv", "--manifest must be a separate file, got 'values.csv'"),
        ("--topic projects/p/topics/t --manifest m.json", "--manifest needs --output, got --topic"),
    ],
)
def test_a_manifest_stands_beside_its_file(options: str, sentence: str, capfd: pytest.CaptureFixture[str]) -> None:
    write_files(Path(), {"values.csv": "value\n0\n", "sub/x": ""})
    assert uldp.main(shlex.split(f"simulate krr.json --values values.csv {options}")) == 2
    assert capfd.readouterr().err.startswith(f"simulate: {sentence}")


# ---------------------------------------------------------------------- what a pattern matches and is no file


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def circle(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (dangling, "the broken link"),
        (circle, "the broken link"),
        (Path.mkdir, "the directory"),
        (os.mkfifo, "the special file"),
    ],
)
@pytest.mark.parametrize("pattern", ["in*.avro", "**in*.avro", "in[12].avro", "in?.avro"])
def test_what_is_no_file_is_named(
    make: Callable[[Path], None], kind: str, pattern: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first of several."""
    (folder / "in1.avro").write_bytes(blocks(1))
    make(folder / "in2.avro")
    make(folder / "other.avro")
    argv = f"--collection krr.json --input {folder}/{pattern} --output out"
    assert estimate.main(shlex.split(argv)) == 2
    sentence = f"must match files that can be read, got {kind} '{folder}/in2.avro'"
    assert capfd.readouterr().err == f"estimate: --input {sentence}\n"
    with pytest.raises(SpecError, match="ReadReportFiles") as error:
        ReadReportFiles(f"{folder}/{pattern}")
    assert str(error.value) == f"ReadReportFiles.pattern {sentence}"


def test_a_link_to_a_file_is_a_file(folder: Path) -> None:
    (folder / "in1.avro").write_bytes(blocks(1))
    (folder / "in2.avro").symlink_to("in1.avro")
    assert outcome("") == (0, {"received": 20, "accepted": 20})


# ---------------------------------------------------------------------- simulated


def marks(pattern: str) -> tuple[set[Any], set[Any]]:
    rows = replay.replay(replay.file_job([KRR], None, pattern))
    assert {row.simulated for row in rows["counts"]} == {row.simulated for row in rows["estimates"]}
    return {row.simulated for row in rows["estimates"]}, {row.simulated for row in rows["values"]}


def test_rows_say_whether_a_file_says_that_it_is_simulated(folder: Path) -> None:
    simulated("in1", 5)
    simulated("in2", 5)
    (folder / "in3.avro").write_bytes(blocks(1))
    assert marks(f"{folder}/in*.avro") == ({False}, {False})
    simulated("in4", 5, "--seed 1")
    assert marks(f"{folder}/in*.avro") == ({True}, {True})


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([True], True),
        ([False], False),
        ([None], None),
        ([False, None], None),
        ([None, True], True),
        ([False, True], True),
        ([False] * 2, False),
    ],
)
def test_counts_of_several_jobs_are_simulated_if_one_of_them_is(jobs: list[bool | None], expected: bool | None) -> None:
    assert stored_counts.simulated_of(jobs) is expected


def test_a_source_that_does_not_say_is_null() -> None:
    with replay.collector() as (collect, rows):
        with beam.Pipeline(runner="FnApiRunner") as pipeline:
            messages = pipeline | beam.Create([single()])
            _ = (messages | EstimateReports(collections=[KRR], min_reports=1)).estimates | collect
        assert [row.simulated for row, _, _ in rows] == [None]
