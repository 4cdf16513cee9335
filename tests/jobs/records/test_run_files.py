"""Records, accounts and locks of runs, and what a killed one leaves: files by hand."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from uldp_transforms.files import stores
from uldp_transforms.jobs.records import run_accounts, run_directory
from uldp_transforms.jobs.records.run_directory import RunDirectory, is_in_use, unfinished_folders
from uldp_transforms.jobs.records.run_records import (
    RunRecord,
    files_of,
    new_run_id,
    of_jobs,
    read_lines,
    read_records,
    start_of_run,
)
from uldp_transforms.jobs.records.superseded_files import JOURNAL, Merge, read_journal, without_superseded
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import moment_of, now, rfc3339

RUN, OLDER = "20261122T081503.042Z-4f2a9c", "20261122T081503.041Z-ffffff"
SOURCE = {"option": "--x", "name": "x", "bounded": True, "resumes": False}


def record(run: str = RUN, **more: Any) -> RunRecord:
    given: dict[str, Any] = {"started": rfc3339(0), "source": SOURCE, "specification": {}} | more
    return RunRecord(run=run, **given)


# ------------------------------------------------------------------------------------------------------------- records


def test_a_record_is_written_as_it_is_read(tmp_path: Path) -> None:
    """One field a line, texts as they are; an earlier one is replaced."""
    record(sentence="before").write(str(tmp_path))
    ended = record(specification={"collections": [{"id": "Käse"}]}).with_end("stopped", "9 été", {"accepted": 9})
    ended.write(str(tmp_path))
    assert read_records(str(tmp_path)) == [ended]
    text = (tmp_path / f"run-{RUN}.json").read_text("utf-8")
    assert text.startswith(f'{{\n "run": "{RUN}",\n "software": "') and text.endswith("\n}\n")
    assert '"id": "Käse"' in text and '"sentence": "9 été"' in text
    assert (ended.end, ended.sentence, ended.ledger) == ("stopped", "9 été", {"accepted": 9})
    assert ended.ended is not None and abs(moment_of(ended.ended) - now()) < 60_000
    assert [path.name for path in tmp_path.iterdir()] == [f"run-{RUN}.json"]


def test_records_are_in_the_order_of_runs(tmp_path: Path) -> None:
    for run in (RUN, OLDER, "x"):
        record(run).write(str(tmp_path))
    assert [one.run for one in read_records(str(tmp_path))] == [OLDER, RUN, "x"]
    assert read_records(str(tmp_path / "none")) == []


def test_a_run_is_named_by_the_time() -> None:
    name = new_run_id()
    moment = re.fullmatch(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d\.\d{3})Z-[0-9a-f]{6}", name)
    assert moment is not None
    year, month, day, hour, minute, second = moment.groups()
    assert abs(moment_of(f"{year}-{month}-{day}T{hour}:{minute}:{second}Z") - now()) < 60_000


@pytest.mark.parametrize(("candidates", "number"), [(None, None), ((), 0), (("a", "b"), 2)])
def test_a_record_has_the_number_of_candidates_alone(candidates: Any, number: int | None) -> None:
    spec: Any = SimpleNamespace(run=RUN, candidates=candidates, to_json=lambda: {"candidates": ["secret"], "by": None})
    found = start_of_run(spec, SOURCE, launched=True)
    assert found.specification == {"candidates": number, "by": None}
    assert (found.run, found.source, found.launched, found.end, found.ended) == (RUN, SOURCE, True, None, None)
    assert abs(moment_of(found.started) - now()) < 60_000
    assert (found.bounded, found.resumes) == (True, False)


UNSOUND: list[dict[str, Any]] = [
    {"run": OLDER},
    {"run": 5},
    {"end": 5},
    {"sentence": ["x"]},
    {"started": "noon"},
    {"started": None},
    {"ended": "noon"},
    {"source": {"bounded": True}},
    {"source": {"resumes": True}},
    {"specification": 5},
    {"specification": {"collections": ["x"]}},
    {"specification": {"collections": [{}, 5]}},
    {"more": 1},
]


@pytest.mark.parametrize("change", UNSOUND, ids=json.dumps)
def test_a_file_that_is_no_record_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / f"run-{RUN}.json"
    path.write_text(json.dumps(vars(record()) | change), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        read_records(str(tmp_path))
    assert str(caught.value) == f"{path} must be a run record (the content is not shown)"


@pytest.mark.parametrize("change", [{}, {"ended": rfc3339(1)}, {"end": "failed", "sentence": "x"},
    {"specification": {"collections": None}}, {"specification": {"collections": [{}]}}])  # fmt: skip
def test_a_sound_record_is_read(change: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / f"run-{RUN}.json").write_text(json.dumps(vars(record()) | change), encoding="utf-8")
    assert [vars(one) for one in read_records(str(tmp_path))] == [vars(record()) | change]


def test_rows_are_read_as_they_are_or_refused_by_name(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    good.write_text('{"x": 1}\n{"x": 2}\n', encoding="utf-8")
    assert read_lines(map(str, [good, good])) == [{"x": 1}, {"x": 2}] * 2
    for content in ('{"x": 1}\n{"x"', "5\n", "null\n", '"x"\n', "[[1, 2, 3]]\n", "[" * 100_000):
        bad.write_text(content, encoding="utf-8")
        with pytest.raises(SpecError) as caught:
            read_lines([str(good), str(bad)])
        assert str(caught.value) == f"{bad} must contain rows of uldp estimate (the content is not shown)"


def test_an_error_that_names_its_file_is_passed_on() -> None:
    with pytest.raises(SpecError, match=r"^b is spoiled$"), of_jobs("a"):
        raise SpecError("b is spoiled")
    for stumble in (TypeError, KeyError, ValueError, AttributeError, IndexError, OverflowError, RecursionError):
        with pytest.raises(SpecError, match=r"^a must contain rows of uldp estimate"), of_jobs("a"):
            raise stumble
    with pytest.raises(OSError, match="gone"), of_jobs("a"):
        raise OSError("gone")


def test_files_of_a_store_are_found_by_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "joined", lambda folder, name: f"{folder}|{name}")
    monkeypatch.setattr(stores, "matching", lambda pattern: [pattern])
    assert files_of("s://b", "*.jsonl") == ["s://b|*.jsonl"]


def test_reading_records_needs_no_beam() -> None:
    program = "import sys, uldp_transforms.jobs.records.run_records; sys.exit('apache_beam' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# ------------------------------------------------------------------------------------------------------ merged files

PARTS = [f"ledger-{RUN}-{number}.jsonl" for number in (1, 2, 3)]
MERGED = f"ledger-{RUN}-merged-1.jsonl"


def journal(folder: Path, *parts: str, merged: str = MERGED) -> None:
    (folder / JOURNAL).write_text(json.dumps({"merged": merged, "parts": list(parts)}), encoding="utf-8")


def names(folder: Path) -> list[str]:
    return [os.path.basename(path) for path in files_of(str(folder), "ledger-*")]


def test_parts_are_left_out_as_soon_as_the_merged_file_is_there(tmp_path: Path) -> None:
    for name in PARTS:
        (tmp_path / name).touch()
    (tmp_path / "ledger-folder").mkdir()
    assert names(tmp_path) == PARTS and read_journal(str(tmp_path)) is None
    journal(tmp_path, *PARTS[:2])
    assert read_journal(str(tmp_path)) == Merge(MERGED, frozenset(PARTS[:2]))
    assert names(tmp_path) == PARTS
    (tmp_path / MERGED).touch()
    assert names(tmp_path) == [PARTS[2], MERGED]
    for parts in (["../x"], [PARTS[0], 5]):
        (tmp_path / JOURNAL).write_text(json.dumps({"merged": MERGED, "parts": parts}), encoding="utf-8")
        assert read_journal(str(tmp_path)) is None and names(tmp_path) == [*PARTS, MERGED]
    journal(tmp_path, f"values-{RUN}-1.jsonl")
    assert names(tmp_path) == [*PARTS, MERGED]


def test_a_list_is_made_again_if_a_merge_began_meanwhile(tmp_path: Path) -> None:
    """As often as one begins."""
    lists: Iterator[list[str]] = iter([["a"], ["b"], ["c"]])
    begun: Iterator[Callable[[], Any]] = iter(
        [lambda: journal(tmp_path, PARTS[0]), lambda: (tmp_path / ".compactions").write_text("7"), lambda: None]
    )

    def listed() -> list[str]:
        next(begun)()
        return next(lists)

    assert without_superseded(str(tmp_path), listed) == ["c"]


# ------------------------------------------------------------------------------------------------------------ accounts


def test_accounts_have_a_number_for_each_sum() -> None:
    assert run_accounts._sums_of({"rejected_b": 2, "windows_ok": 9, "rejected_a": 1, "accepted": 3}) == {
        "received": 0,
        "accepted": 3,
        "duplicates": 0,
        "rejected": {"a": 1, "b": 2},
        "unread_messages": {},
        "unread_files": {},
    }
    assert run_accounts._sums_of({"unread_messages_a": 2, "unread_files_b": 1}) == {
        "received": 0,
        "accepted": 0,
        "duplicates": 0,
        "rejected": {},
        "unread_messages": {"a": 2},
        "unread_files": {"b": 1},
    }
    assert run_accounts.EVERY == 1.0  # as the page of run records says


def test_accounts_of_nothing_are_accounts(tmp_path: Path) -> None:
    run_accounts.RunAccounts(str(tmp_path), "a", {}).save()
    found = run_accounts.read_accounts(str(tmp_path), "a")
    assert found is not None and (found["received"], found["accepted"], found["rejected"]) == (0, 0, {})
    path = tmp_path / "accounts-a.json"
    content = json.loads(path.read_text("utf-8"))
    for wrong in ({"received": True}, {"rejected": {"x": -1}}, {"duplicates": None}, {"rejected": 5}, {"time": 5}):
        path.write_text(json.dumps(content | wrong), encoding="utf-8")
        with pytest.raises(SpecError, match="must be the accounts of a run"):
            run_accounts.read_accounts(str(tmp_path), "a")


# ------------------------------------------------------------------------------------------------------- the directory


def directory(folder: Path, run: str = RUN, *, bounded: bool = True, launched: bool = False) -> RunDirectory:
    return RunDirectory(str(folder), run, bounded=bounded, launched=launched)


def test_rows_of_bounded_input_wait_beside_those_of_the_run_before(tmp_path: Path) -> None:
    unfinished = str(tmp_path / f"unfinished-{RUN}")
    assert directory(tmp_path).rows == unfinished
    assert directory(tmp_path, bounded=False).rows == directory(tmp_path, launched=True).rows == str(tmp_path)
    for run in (OLDER, RUN, "x"):
        record(run).write(str(tmp_path))
    record("0-stream", source=SOURCE | {"bounded": False}).write(str(tmp_path))
    of = directory(tmp_path)
    assert [one.run for one in of.open()] == ["0-stream", OLDER, RUN, "x"]
    of.prepare()
    assert unfinished_folders(str(tmp_path)) == [unfinished]
    (tmp_path / "estimates.jsonl").write_text("old", encoding="utf-8")
    Path(unfinished, "estimates.jsonl").write_text("new", encoding="utf-8")
    Path(unfinished, "beam-temp-estimates.jsonl").touch()
    of.publish()
    assert (tmp_path / "estimates.jsonl").read_text("utf-8") == "new"
    left = {f"run-{run}.json" for run in ("0-stream", RUN, "x")}
    assert {path.name for path in tmp_path.iterdir()} == {".lock", "estimates.jsonl", *left}
    of.close()


def test_remains_of_killed_runs_are_removed_and_links_are_not_followed(tmp_path: Path) -> None:
    out, kept = tmp_path / "out", tmp_path / "kept"
    (out / "unfinished-a" / "deep").mkdir(parents=True)
    kept.mkdir()
    (kept / "file").touch()
    (out / "unfinished-link").symlink_to(kept, target_is_directory=True)
    (out / "x.part").touch()
    (out / "x.jsonl").touch()
    of = directory(out, bounded=False)
    of.prepare()
    assert {path.name for path in out.iterdir()} == {".lock", "x.jsonl"} and (kept / "file").exists()
    of.prepare()  # again, with the lock of the first time
    of.close()


def test_the_lock_names_its_run_and_is_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_directory, "_LOCK_PATIENCE", 0.0)
    (tmp_path / ".lock").write_text("a much longer name than that of the run", encoding="utf-8")
    first, second = directory(tmp_path), directory(tmp_path, "other")
    assert is_in_use(str(tmp_path)) is False
    first.open()
    assert (tmp_path / ".lock").read_text("utf-8") == RUN
    assert is_in_use(str(tmp_path)) is True
    said = f"--output must be a directory that no other run is using, got {str(tmp_path)!r}, in use by run "
    with pytest.raises(SpecError) as caught:
        second.prepare()
    assert str(caught.value) == f"{said}{RUN}"
    first.close()
    first.close()
    assert is_in_use(str(tmp_path)) is False
    second.open()
    second.close()
    with open(tmp_path / ".lock", "r+", encoding="utf-8") as lock:
        lock.truncate(0)
        fcntl.flock(lock, fcntl.LOCK_SH)
        assert is_in_use(str(tmp_path)) is False  # only read by another program
        with pytest.raises(SpecError) as caught:
            first.open()
    assert str(caught.value) == f"{said}another"


def test_a_lock_is_waited_for_for_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is tried once more when the second is over."""
    times, waits = iter([5.0, 5.5, 6.0, 6.001]), list[float]()
    clock = SimpleNamespace(monotonic=lambda: next(times), sleep=waits.append)
    monkeypatch.setattr(run_directory, "time", clock)
    path = tmp_path / ".lock"
    with path.open("w", encoding="utf-8") as held, path.open("w", encoding="utf-8") as lock:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert run_directory._locked(lock, fcntl.LOCK_EX) is False
    assert waits == [0.05, 0.05]


def test_a_lock_that_becomes_free_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / ".lock"
    with path.open("w", encoding="utf-8") as held, path.open("w", encoding="utf-8") as lock:
        fcntl.flock(held, fcntl.LOCK_EX)
        clock = SimpleNamespace(monotonic=lambda: 5.0, sleep=lambda _: fcntl.flock(held, fcntl.LOCK_UN))
        monkeypatch.setattr(run_directory, "time", clock)
        assert run_directory._locked(lock, fcntl.LOCK_EX) is True


def test_a_lock_is_a_plain_file_of_its_own(tmp_path: Path) -> None:
    """Nobody executes it; a link is refused, and a pipe blocks nobody."""
    of, lock = directory(tmp_path), tmp_path / ".lock"
    before = os.umask(0)
    try:
        of.open()
    finally:
        os.umask(before)
    of.close()
    assert lock.stat().st_mode & 0o777 == 0o666
    lock.unlink()
    target = tmp_path / "target"
    target.write_text("kept", encoding="utf-8")
    lock.symlink_to(target)
    with pytest.raises(SpecError, match=r"must not contain a \.lock that is a symbolic link"):
        of.open()
    with pytest.raises(OSError, match="symbolic links"):
        is_in_use(str(tmp_path))
    assert target.read_text("utf-8") == "kept"
    lock.unlink()
    os.mkfifo(lock)
    assert is_in_use(str(tmp_path)) is False  # it returns


def test_what_cannot_be_removed_is_tried_three_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fail = True

    def remove(path: str) -> None:
        calls.append(path)
        if fail:
            raise OSError

    monkeypatch.setattr(run_directory, "_remove", remove)
    of = directory(tmp_path)
    of.abandon()
    assert calls == [f"{tmp_path}/unfinished-{RUN}/"] * 3
    fail = False
    of.abandon()
    directory(tmp_path, bounded=False).abandon()
    assert len(calls) == 4


def test_a_directory_in_a_store_has_no_lock_and_keeps_what_may_be_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only unfinished rows of runs with an end are removed there."""
    removed: list[str] = []
    found = ["s://b/o/unfinished-a/x", "s://b/o/unfinished-a/y", "s://b/o/unfinished-b/x"]
    monkeypatch.setattr(
        run_directory, "files_of", lambda path, pattern: found if pattern.endswith("/*") else ["s://b/p"]
    )
    monkeypatch.setattr(run_directory, "_remove", removed.append)
    monkeypatch.setattr(run_directory.stores, "joined", lambda folder, name: f"{folder}/{name}")
    of = RunDirectory("s://b/o", RUN, bounded=False, launched=False)
    of._remove_remains([record("a", end="failed"), record("b")])
    assert removed == ["s://b/o/unfinished-a/"]
    assert is_in_use("s://b/o") is None
    of._take_lock()
    assert of._lock is None


@pytest.mark.parametrize(
    ("bounded", "file"),
    [(True, f"{kind}-x") for kind in ("estimates", "ledger", "rejected", "health", "counts", "discovered")]
    + [(False, f"{kind}.jsonl") for kind in ("estimates", "ledger", "rejected", "health", "counts", "discovered")],
)
def test_a_directory_is_of_one_kind_of_job(bounded: bool, file: str, tmp_path: Path) -> None:
    (tmp_path / file).touch()
    kind = "a stream, and this job is over files" if bounded else "a job over files, and this is a stream"
    said = f"--output must be a directory of one kind of job, got {str(tmp_path)!r}, with rows of {kind}"
    of = directory(tmp_path, bounded=bounded)
    with pytest.raises(SpecError) as caught:
        of.open()
    of.close()
    assert str(caught.value) == said
    other = directory(tmp_path, bounded=not bounded)
    assert other.open() == []
    other.close()


@pytest.mark.parametrize("sign", "*?[\\")
def test_a_pattern_is_no_directory(sign: str, tmp_path: Path) -> None:
    said = "--output must be a path without the pattern characters * ? [ \\, got "
    with pytest.raises(SpecError) as caught:
        directory(tmp_path / f"a{sign}").open()
    assert str(caught.value).startswith(said)


def test_a_file_is_no_directory_and_none_is_made_by_looking(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SpecError, match="--output must be a directory, got the file"):
        directory(tmp_path / "file").open()
    assert directory(tmp_path / "none").open() == [] and is_in_use(str(tmp_path / "none")) is False
    assert not (tmp_path / "none").exists()
    of = directory(tmp_path / "new" / "deep")
    of.prepare()
    of.close()
    assert Path(of.rows).is_dir()
