"""``uldp compact``: fewer files, the same rows, at any moment and after a kill at any moment."""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import parquet

from packages.follow.tests.support.spools import Followed
from uldp_transforms import read_rows
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.jobs import check, reestimate, uldp
from uldp_transforms.jobs.records import superseded_files
from uldp_transforms.jobs.records.run_records import RunRecord, files_of
from uldp_transforms.jobs.records.superseded_files import GENERATION, JOURNAL, NAME, without_superseded
from uldp_transforms.rows.row_types import LEDGER_SCHEMA, LedgerRow
from uldp_transforms_follow import compact

RUN = "20261122T081503.042Z-4f2a9c"
NOTHING = {"collection_id": None, "collection_version": None, "fingerprint": None}
SPAN = {"window_start": "2026-11-22T08:00:00Z", "window_end": "2026-11-22T09:00:00Z"}


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of a stream with late panes: 6 files of a spool, counted one by one."""
    followed = Followed(tmp_path_factory.mktemp("stream"))
    for _ in range(6):
        followed.add_file(reports=20)
        followed.steps(2)
    [run] = {match[2] for path in followed.output.iterdir() if (match := NAME.fullmatch(path.name))}
    source = {"option": "--input", "name": "spool", "bounded": False, "resumes": False}
    specification = {"min_reports": 1, "allowed_lateness": "1h"}
    specification["collections"] = [json.loads((followed.spool.parent / "krr.json").read_text("utf-8"))]
    RunRecord(run=run, started="2026-11-22T08:15:03.042Z", source=source, specification=specification).write(
        str(followed.output)
    )
    return followed.output


@pytest.fixture
def output(stream: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stream, tmp_path / "output"))


def records(path: Path) -> list[str]:
    """The rows of a file, as texts."""
    if path.suffix == ".jsonl":
        return path.read_text("utf-8").splitlines()
    return [repr(row) for row in fastavro.reader(io.BytesIO(path.read_bytes()))]


def everything(output: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What each reader finds: all rows of each kind and format, the tables, the check, and the totals."""
    capsys.readouterr()
    found: dict[str, Any] = {}
    for kind in ("estimates", "ledger", "rejected", "health", "counts"):
        for form in ("jsonl", "avro"):
            paths = files_of(str(output), f"{kind}-*.{form}")
            found[f"{kind}.{form}"] = sorted(row for path in paths for row in records(Path(path)))
    for kind in ("estimates", "windows", "health", "ledger"):
        found[f"read_rows {kind}"] = read_rows(str(output), kind, "arrow").to_pylist()
    found["check"] = check.main([str(output), "--print_json"]), json.loads(capsys.readouterr().out)["findings"]
    assert reestimate.main([str(output), "--window=all", f"--totals={output.parent / 'totals'}"]) == 0
    found["total"] = capsys.readouterr().out, (output.parent / "totals").read_text("utf-8")
    return found


def number_of_files(output: Path) -> int:
    return sum(NAME.fullmatch(path.name) is not None for path in output.iterdir())


def test_every_reader_finds_what_it_found(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, files = everything(output, capsys), number_of_files(output)
    assert uldp.main(["compact", str(output), "--older_than=0s"]) == 0
    said = capsys.readouterr().out
    kinds = {match.group(1, 3) for path in output.iterdir() if (match := NAME.fullmatch(path.name))}
    rows = sum(len(before[f"{kind}.{form}"]) for kind, form in kinds)
    assert said == f"{files:,} files older than 0d became {len(kinds)}; {rows:,} rows\n"
    assert number_of_files(output) == len(kinds) < files // 4
    assert everything(output, capsys) == before
    names = set(os.listdir(output))
    assert uldp.main(["compact", str(output), "--older_than=0s"]) == 0
    assert capsys.readouterr().out == "no files older than 0d to merge\n"
    assert set(os.listdir(output)) == names
    assert not {JOURNAL, *(name for name in names if name.endswith(".unfinished"))} & names


def test_new_files_are_left_alone_and_merged_files_grow_old(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By default those of the last day; a merged file is as old as the newest of its parts."""
    before = number_of_files(output)
    assert uldp.main(["compact", str(output)]) == 0
    assert capsys.readouterr().out == "no files older than 1d to merge\n"
    ledger = sorted(output.glob("ledger-*"))
    for at, path in enumerate(ledger[:-1]):
        os.utime(path, ns=(10**18 + at, 10**18 + at))
    assert uldp.main(["compact", str(output)]) == 0
    assert number_of_files(output) == before - (len(ledger) - 2)
    [merged] = output.glob("ledger-*-merged-*")
    assert merged.stat().st_mtime_ns == 10**18 + len(ledger) - 2
    assert ledger[-1].exists()


def test_files_that_are_large_enough_stay(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And merged files stay small enough."""
    sizes = {path.name: path.stat().st_size for path in output.glob("estimates-*.jsonl")}
    full = 3 * max(sizes.values())
    monkeypatch.setattr(compact, "FULL", full)
    assert compact.main([str(output), "--older_than=0s"]) == 0
    merged = [path.stat().st_size for path in output.glob("estimates-*.jsonl")]
    assert sum(merged) == sum(sizes.values())
    assert 1 < len(merged) < len(sizes)
    assert max(merged) < full + max(sizes.values())


# ---------------------------------------------------------------------- kills


def killed_at(point: int, output: Path) -> bool:
    """Compact in a process that ends before its so manieth change on disk; whether it came to that."""
    child = os.fork()
    if child == 0:
        left = point

        def counted(work: Callable[..., Any]) -> Callable[..., Any]:
            def step(*args: Any, **options: Any) -> Any:
                nonlocal left
                if left == 0:
                    os._exit(9)
                left -= 1
                return work(*args, **options)

            return step

        for name in ("replace", "remove", "fsync", "utime", "rename"):
            setattr(os, name, counted(getattr(os, name)))
        code = 1
        try:
            code = compact.job(compact.Compaction(directory=str(output), older_than=0))
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 9)
    return code == 9


def small(folder: Path) -> Path:
    """A directory with three files of a ledger, and the record of their run."""
    folder.mkdir()
    source = {"option": "--x", "name": "x", "bounded": False, "resumes": True}
    RunRecord(run=RUN, started="2026-11-22T08:15:03.042Z", source=source, specification={}).write(str(folder))
    for number in (1, 20, 300):
        row = LedgerRow(**NOTHING, **SPAN, received=number, accepted=number, duplicates=0, rejected={}, run=RUN)
        (folder / f"ledger-{RUN}-{number:04}.jsonl").write_bytes(file_of([row], "jsonl", LEDGER_SCHEMA))
    return folder


def received(folder: Path) -> list[int]:
    paths = files_of(str(folder), f"ledger-{RUN}-*.jsonl")
    return sorted(json.loads(line)["received"] for path in paths for line in Path(path).read_text("utf-8").splitlines())


def test_a_kill_at_any_moment_neither_loses_nor_repeats_a_row(tmp_path: Path) -> None:
    """Readers see each row once at once; the next run finishes, or begins again."""
    seen: Counter[bool] = Counter()
    for point in range(1000):
        folder = small(tmp_path / str(point))
        was_killed = killed_at(point, folder)
        assert received(folder) == [1, 20, 300], point
        seen[(folder / JOURNAL).exists()] += 1
        assert compact.main([str(folder), "--older_than=0s"]) == 0
        assert received(folder) == [1, 20, 300], point
        [merged] = folder.glob("ledger-*")
        assert "-merged-" in merged.name
        assert {path.name for path in folder.iterdir()} == {
            *(merged.name, f"run-{RUN}.json", ".compact.lock", GENERATION),
        }
        if not was_killed:
            break
    assert point > 10
    assert seen[True] > 3 and seen[False] > 3


def test_rows_are_on_the_disk_before_their_parts_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power may fail at any moment: the merged rows, then the journal, then the name, then nothing of the parts."""
    done: list[str] = []

    def recorded(module: Any, name: str, said: Callable[..., str]) -> None:
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args: (done.append(said(*args)), real(*args))[1])

    run = "ledger-20260101T000000.000Z-0a0a0a"
    group = compact.Group((f"{run}-1.jsonl", f"{run}-2.jsonl"), run, "jsonl")
    for name in group.names:
        (tmp_path / name).write_text("{}\n", encoding="utf-8")
    recorded(compact, "sync_file", lambda file: "rows")
    recorded(compact, "sync_folder", lambda folder: "folder")
    recorded(os, "replace", lambda _, path: Path(path).name)
    recorded(os, "remove", lambda path: f"no {Path(path).name}")
    assert compact.merge(str(tmp_path), group) == 2
    steps = [one for one in done if not one.endswith(".unfinished")]
    assert steps[:5] == ["rows", JOURNAL, GENERATION, group.merged, "folder"]
    assert sorted(steps[5:7]) == [f"no {name}" for name in group.names]
    assert steps[7:] == ["folder", f"no {JOURNAL}", "folder"]


def test_a_reader_that_meets_a_merge_looks_again(tmp_path: Path) -> None:
    """Its list of names may have the merged file and its parts."""
    folder = small(tmp_path / "x")
    calls = 0

    def listed() -> list[str]:
        nonlocal calls
        calls += 1
        names = sorted(map(str, folder.glob("ledger-*")))
        if calls == 1:
            assert compact.main([str(folder), "--older_than=0s"]) == 0
            names += sorted(map(str, folder.glob("ledger-*")))
        return names

    assert len(without_superseded(str(folder), listed)) == 1
    assert calls == 2


def test_a_journal_names_nothing_outside_of_its_directory(tmp_path: Path) -> None:
    folder, outside = small(tmp_path / "x"), tmp_path / "precious"
    outside.write_text("kept", encoding="utf-8")
    first, second, third = (path.name for path in sorted(folder.glob("ledger-*")))
    for parts in (["../precious"], [second, "/etc/passwd"], [f"ledger-{RUN}-../../precious.jsonl"], [5], "x"):
        (folder / JOURNAL).write_text(json.dumps({"merged": first, "parts": parts}), encoding="utf-8")
        assert superseded_files.read_journal(str(folder)) is None
        assert received(folder) == [1, 20, 300]
        compact.finish(str(folder))
        assert outside.exists() and (folder / second).exists() and (folder / third).exists()


# ---------------------------------------------------------------------- what is refused


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert compact.main(list(argv)) == 2
    return capsys.readouterr().err


def test_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.touch()
    assert refused(capsys, str(file)) == f"compact: DIR must be a local directory, got {str(file)!r}\n"
    assert refused(capsys, "gs://b/x") == "compact: DIR must be a local directory, got 'gs://b/x'\n"
    sentence = f"compact: DIR must contain the record of a run, got {str(tmp_path)!r}\n"
    assert refused(capsys, str(tmp_path)) == sentence
    folder = small(tmp_path / "x")
    with (folder / ".compact.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sentence = f"compact: DIR must not be compacted by another program, got {str(folder)!r}\n"
        assert refused(capsys, str(folder)) == sentence


@pytest.mark.parametrize("spoiled", [b'{"a": 1', b"[1]\n", b'{"a": 1}\nb\n'])
def test_rows_that_are_none_change_nothing(spoiled: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = small(tmp_path / "x")
    path = folder / f"ledger-{RUN}-0020.jsonl"
    path.write_bytes(spoiled)
    before = {path.name: path.read_bytes() for path in folder.glob("ledger-*")}
    sentence = f"compact: {path} must contain rows of uldp estimate (the content is not shown)\n"
    assert refused(capsys, str(folder), "--older_than=0s") == sentence
    assert {path.name: path.read_bytes() for path in folder.glob("ledger-*")} == before
    assert not list(folder.glob("*unfinished")) and not (folder / JOURNAL).exists()


def avro_files(folder: Path, *types: str) -> list[Path]:
    paths = [folder / f"rejected-{RUN}-{number}.avro" for number in range(len(types))]
    for path, of in zip(paths, types):
        with path.open("wb") as file:
            schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": of}]}
            fastavro.writer(file, fastavro.parse_schema(schema), [{"x": 1}, {"x": 2}])
    return paths


def test_files_of_other_schemas_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = small(tmp_path / "x")
    _, other = avro_files(folder, "long", "double")
    sentence = f"compact: files of one run must have one schema, got another one in {other}\n"
    assert refused(capsys, str(folder), "--older_than=0s") == sentence
    other.write_bytes(b"Obj\1spoiled")
    assert "must contain rows of uldp estimate" in refused(capsys, str(folder), "--older_than=0s")


def test_parquet_files_are_merged_too(tmp_path: Path) -> None:
    folder = small(tmp_path / "x")
    for number in range(3):
        parquet.write_table(pa.table({"x": [number, None]}), folder / f"values-{RUN}-{number}.parquet")
    assert compact.main([str(folder), "--older_than=0s"]) == 0
    [path] = folder.glob("values-*")
    assert parquet.read_table(path).column("x").to_pylist() == [0, None, 1, None, 2, None]


# ---------------------------------------------------------------------- the same by their lines
