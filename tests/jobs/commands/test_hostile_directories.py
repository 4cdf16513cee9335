"""Directories of rows in which somebody else has put something: links, names, control characters, other rows."""

from __future__ import annotations

import copy
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support import report_rows as rows
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.records.run_directory import RunDirectory, is_in_use
from uldp_transforms.jobs.records.run_records import read_records
from uldp_transforms.ldp.errors import SpecError

RUN = "20261122T000000.000Z-aaaaaa"
VALUES = ["ant", "bee"]


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder of somebody else, outside of the directory of rows."""
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "kept").write_text("kept", encoding="utf-8")
    return folder


def opened(path: Path) -> RunDirectory:
    path.mkdir(exist_ok=True)
    directory = RunDirectory(str(path), RUN, bounded=True, launched=False)
    directory.open()
    directory.prepare()
    return directory


# ---------------------------------------------------------------------- links


@pytest.mark.parametrize("name", ["unfinished-x", "x.part"])
def test_what_a_link_is_to_is_not_removed(name: str, precious: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    link = tmp_path / "out" / name
    link.symlink_to(precious if name == "unfinished-x" else precious / "kept")
    opened(tmp_path / "out").close()
    assert (precious / "kept").read_text("utf-8") == "kept"
    assert not link.is_symlink()


def test_a_run_whose_own_folder_became_a_link_removes_the_link(precious: Path, tmp_path: Path) -> None:
    directory = opened(tmp_path / "out")
    Path(directory.rows).rmdir()
    Path(directory.rows).symlink_to(precious)
    directory.abandon()
    directory.close()
    assert not Path(directory.rows).is_symlink()
    assert (precious / "kept").exists()


def test_a_lock_that_is_a_link_empties_nothing(precious: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".lock").symlink_to(precious / "kept")
    with pytest.raises(SpecError, match=r"^--output must not contain a .lock that is a symbolic link, got one at "):
        opened(tmp_path / "out")
    assert (precious / "kept").read_text("utf-8") == "kept"


def test_a_lock_that_is_a_pipe_lets_nobody_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    assert is_in_use(str(tmp_path)) is False


def test_a_file_is_not_written_through_a_link(precious: Path, tmp_path: Path) -> None:
    (tmp_path / "page.html.part").symlink_to(precious / "kept")
    with whole_file(str(tmp_path / "page.html")) as file:
        file.write(b"page")
    assert (precious / "kept").read_text("utf-8") == "kept"
    assert (tmp_path / "page.html").read_bytes() == b"page"
    assert not (tmp_path / "page.html").is_symlink()


# ---------------------------------------------------------------------- records


@pytest.mark.parametrize(
    "field",
    [
        {"run": "../../elsewhere"},
        {"run": "another"},
        {"run": 5},
        {"started": "yesterday"},
        {"started": None},
        {"ended": 7},
        {"sentence": ["x"]},
        {"end": {}},
        {"specification": 5},
        {"specification": []},
        {"specification": {"collections": 5}},
        {"specification": {"collections": ["/etc/passwd"]}},
    ],
    ids=str,
)
def test_a_record_is_what_its_file_is_named(field: dict[str, Any], tmp_path: Path) -> None:
    """Its run makes names of files, of which some are removed."""
    rows.record(tmp_path, rows.collection(VALUES))
    assert len(read_records(str(tmp_path))) == 1
    path = tmp_path / f"run-{rows.RUN}.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | field), encoding="utf-8")
    with pytest.raises(SpecError) as refused:
        read_records(str(tmp_path))
    assert str(refused.value) == f"{path} must be a run record (the content is not shown)"


def test_a_terminal_gets_no_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows.survey(tmp_path, VALUES, 2)
    path = tmp_path / f"run-{rows.RUN}.json"
    told = {"end": "failed", "sentence": "\x1b]0;title\x07\u202ebad\nall is well"}
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | told), encoding="utf-8")
    assert uldp.main(["check", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert f"check: run {rows.RUN}: \ufffd]0;title\ufffd\ufffdbad\ufffdall is well\n" in printed
    assert printed.replace("\n", "").isprintable()


# ---------------------------------------------------------------------- rows


FIELDS = {
    "estimates": ("collection_id", "fingerprint", "window_start", "window_end", "num_reports", "status", "estimates"),
    "entries": ("value", "frequency", "ci_low", "display_low", "smoothed_frequency"),
    "health": ("window_start", "window_end", "findings"),
}
WRONG: tuple[Any, ...] = (5, "x", None, [1], {}, 10**400)


def spoiled(folder: Path, kind: str, change: dict[str, Any]) -> None:
    """A directory of which one row was changed."""
    of = rows.survey(folder, VALUES, 3)
    estimates = [rows.estimate(of, at, rows.waves(VALUES, at)) for at in range(3)]
    health = [rows.finding(of, 1, "Shares moved.")]
    row = {"estimates": estimates[-1], "entries": estimates[-1]["estimates"][0], "health": health[0]}[kind]
    row.update(change)
    rows.write(folder, "estimates.jsonl", copy.deepcopy(estimates))
    rows.write(folder, "health.jsonl", health)


@pytest.mark.parametrize("kind", FIELDS)
def test_rows_of_other_types_are_refused_in_one_sentence(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or are shown: no value of a field ends a reader with anything else."""
    refused = 0
    for number, (field, value) in enumerate(itertools.product(FIELDS[kind], WRONG)):
        folder = tmp_path / str(number)
        spoiled(folder, kind, {field: value})
        for argv in (["check", str(folder)], ["report", str(folder), "--output", str(folder / "p.html")]):
            code = uldp.main(argv)
            sentence = f"{argv[0]}: {folder} must contain rows of uldp estimate (the content is not shown)\n"
            said = capsys.readouterr().err
            assert code in (0, 1) or said in (sentence, sentence.replace(f"{folder} ", f"{folder}/estimates.jsonl "))
            refused += code == 2
    assert refused > 0


def test_half_a_file_is_refused_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows.survey(tmp_path, VALUES, 3)
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    assert uldp.main(["check", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"check: {path} must contain rows of uldp estimate (the content is not shown)\n"
