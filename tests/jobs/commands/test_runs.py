"""Runs of the main job over files: how each ends, what it leaves behind, and that nothing stems from another run."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support import cases, live
from tests.support.messages_cases import container, write_files
from tests.support.tolerance import generator
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms.jobs.estimate.run import configure, root_cause
from uldp_transforms.jobs.records import run_directory
from uldp_transforms.jobs.records import run_records as runs
from uldp_transforms.jobs.records.run_directory import RunDirectory
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages import wire
from uldp_transforms.schemas import load

ANIMALS = cases.COLLECTIONS["closed-sensitive-urr"]
ENGINES = pytest.mark.parametrize("engine", ["FnApiRunner", "BundleBasedDirectRunner"])
FEW, MANY = 600, 300_000
RESULTS = {"estimates.avro", "estimates.jsonl", "health.jsonl", "ledger.jsonl", "rejected.avro"}


def reports(number: int) -> bytes:
    rng = generator("runs", number)
    values = rng.choice(cases.VALUES, number).tolist()
    batch = ANIMALS.perturb(values, rng, rng.integers(0, 86_400_000, number))
    return container([(len(messages := wire.encode_reports(batch)), b"".join(messages))])


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection, few reports, and so many that a job takes several seconds for them."""
    folder = tmp_path_factory.mktemp("inputs")
    write_files(folder, {"animals.json": ANIMALS, "few.avro": reports(FEW)})
    for part in range(20):
        (folder / f"many-{part}.avro").write_bytes(reports(MANY // 20))
    return folder


def options(inputs: Path, pattern: str, output: Path, *more: str) -> list[str]:
    return [f"--collection={inputs}/animals.json", f"--input={inputs}/{pattern}", f"--output={output}", *more]


def rows(output: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (output / f"{name}.jsonl").read_text("utf-8").splitlines()]


def records(output: Path) -> list[runs.RunRecord]:
    """All of them are what the schema says."""
    for path in output.glob("run-*.json"):
        jsonschema.validate(json.loads(path.read_text("utf-8")), load("run.schema.json"))
    return runs.read_records(str(output))


def left_behind(output: Path) -> set[str]:
    """What a directory has besides records of runs."""
    return {path.name for path in output.iterdir() if not re.fullmatch(r"run-.*\.json|\.lock", path.name)}


def start(argv: list[str], log: Path) -> live.Process:
    with log.open("wb") as said:
        return live.start(argv, said)


def wait_for(done: Callable[[], Any], process: live.Process, log: Path) -> None:
    end = time.monotonic() + live.PATIENCE
    while not done():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.02)


def is_writing(output: Path) -> bool:
    """Whether the job has begun to write: Beam made its folders inside that of the run."""
    return any(output.glob("unfinished-*/*"))


# ---------------------------------------------------------------------- ends


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
@ENGINES
def test_a_cancelled_job_leaves_the_results_of_the_run_before(
    engine: str, used: bool, number: signal.Signals, inputs: Path, tmp_path: Path
) -> None:
    output, log = tmp_path / "output", tmp_path / "log"
    if used:
        assert estimate.main(options(inputs, "few.avro", output)) == 0
    before = {name: (output / name).read_bytes() for name in RESULTS if used}
    process = start(options(inputs, "many-*.avro", output, f"--runner={engine}"), log)
    wait_for(lambda: is_writing(output), process, log)
    process.send_signal(number)
    assert process.wait(live.PATIENCE) == 130, log.read_text()
    line = log.read_text().removesuffix("\n")
    assert line == "estimate: cancelled: nothing was written; any results in the directory are from an earlier run"
    assert left_behind(output) == (RESULTS if used else set())
    assert {name: (output / name).read_bytes() for name in before} == before
    *earlier, last = records(output)
    assert [record.end for record in earlier] == ["complete"] * used
    assert (last.end, last.sentence, last.ledger) == ("cancelled", line.removeprefix("estimate: "), None)
    assert all(row["run"] == earlier[0].run for name in ("estimates", "ledger", "health") if used
               for row in rows(output, name))  # fmt: skip


def test_a_job_in_a_used_directory_replaces_everything_of_the_run_before(inputs: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    assert estimate.main(options(inputs, "few.avro", output)) == 0
    [first] = records(output)
    assert (first.end, first.bounded, first.resumes, first.launched) == ("complete", True, False, False)
    assert first.sentence == f"{FEW} received = {FEW} accepted + 0 rejected"
    sums = {"received": FEW, "accepted": FEW, "duplicates": 0, "rejected": {}, "balanced": True}
    assert first.ledger == sums | {"unread_messages": {}, "unread_files": {}}
    assert first.source == {"option": "--input", "name": f"{inputs}/few.avro", "bounded": True, "resumes": False}
    assert estimate.main(options(inputs, "many-0.avro", output, "--window=1d")) == 0
    [second] = records(output)
    assert second.run > first.run or second.run[:16] == first.run[:16]  # of one second: the rest is random
    assert left_behind(output) == RESULTS
    found = [row for name in ("estimates", "ledger", "health") for row in rows(output, name)]
    assert {row["run"] for row in found} == {second.run}
    assert sum(row["received"] for row in rows(output, "ledger")) == MANY // 20


@ENGINES
def test_the_last_line_of_a_job_that_failed_says_why(engine: str, inputs: Path, tmp_path: Path) -> None:
    """The folder that it writes to becomes a file."""
    output, log = tmp_path / "output", tmp_path / "log"
    process = start(options(inputs, "many-*.avro", output, f"--runner={engine}"), log)
    wait_for(lambda: is_writing(output), process, log)
    [folder] = output.glob("unfinished-*")
    spoil(folder)
    assert process.wait(live.PATIENCE) == 1, log.read_text()
    last = log.read_text().splitlines()[-1]
    # a worker that opens a file in it, one that makes it, or one that lists it comes first
    reasons = map(os.strerror, (errno.ENOTDIR, errno.EEXIST, errno.ENOENT))
    assert last.startswith(f"estimate: the run failed: {folder}") and last.endswith(tuple(reasons)), last
    [record] = records(output)
    assert (record.end, record.sentence) == ("failed", last.removeprefix("estimate: "))
    assert left_behind(output) <= {folder.name}


def spoil(folder: Path) -> None:
    """Put a file in the place of a folder that somebody writes to."""
    folder.rename(folder.with_name("moved"))
    folder.write_text("")
    subprocess.run(["rm", "-r", str(folder.with_name("moved"))], check=True)


def test_what_a_killed_job_leaves_is_removed_by_the_next(inputs: Path, tmp_path: Path) -> None:
    output, log = tmp_path / "output", tmp_path / "log"
    process = start(options(inputs, "many-*.avro", output), log)
    wait_for(lambda: is_writing(output), process, log)
    process.send_signal(signal.SIGKILL)
    assert process.wait(live.PATIENCE) == -signal.SIGKILL
    [killed] = records(output)
    assert killed.end is None
    assert left_behind(output) == {f"unfinished-{killed.run}"}
    assert run_directory.is_in_use(str(output)) is False
    assert estimate.main(options(inputs, "few.avro", output)) == 0
    assert left_behind(output) == RESULTS
    [last] = records(output)
    assert last.end == "complete"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "Permission denied", "/out"), "/out: Permission denied"),
        (RuntimeError("Traceback (most recent call last):\n  File\nValueError: no [while running 'X']\n\n"),
         "ValueError: no"),
        (RuntimeError("OSError: [Errno 28] No space left on device: '/out' [while running 'X']"),
         "/out: No space left on device"),
        (KeyError(), "KeyError"),
    ],
)  # fmt: skip
def test_the_root_of_an_error(error: Exception, sentence: str) -> None:
    assert root_cause(error) == sentence
    try:
        raise RuntimeError("around it") from error
    except RuntimeError as outer:
        assert root_cause(outer) == sentence


# ---------------------------------------------------------------------- signals


def test_after_cancellation_threads_and_destructors_say_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    class Interrupted:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    before = sys.unraisablehook, threading.excepthook
    sys.unraisablehook, threading.excepthook = sys.__unraisablehook__, threading.__excepthook__
    try:
        with Signals("estimate") as signals:
            interrupted = Interrupted()
            del interrupted
            assert signals.cancelled
            thread = threading.Thread(target=divmod, args=(1, 0))
            thread.start()
            thread.join()
        assert (sys.unraisablehook, threading.excepthook) == (sys.__unraisablehook__, threading.__excepthook__)
    finally:
        sys.unraisablehook, threading.excepthook = before
        logging.disable(logging.NOTSET)
    assert capfd.readouterr().err == ""


# ---------------------------------------------------------------------- one directory


@pytest.fixture
def held(inputs: Path, tmp_path: Path) -> Iterator[RunDirectory]:
    """A directory in which a run is alive."""
    job, _ = configure(options(inputs, "few.avro", tmp_path / "output"))
    yield job.directory
    job.directory.close()


def test_two_runs_at_once_are_refused(
    held: RunDirectory, inputs: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_directory, "_LOCK_PATIENCE", 0.1)
    assert run_directory.is_in_use(held.path) is True
    assert estimate.main(options(inputs, "few.avro", Path(held.path))) == 2
    sentence = f"--output must be a directory that no other run is using, got {held.path!r}, in use by run {held.run}"
    assert capfd.readouterr().err == f"estimate: {sentence}\n"
    held.close()
    assert run_directory.is_in_use(held.path) is False
    assert estimate.main(options(inputs, "few.avro", Path(held.path))) == 0


STREAM = "--subscription=projects/p-roject/subscriptions/s --window=1h"


def test_a_directory_has_one_kind_of_job(inputs: Path, tmp_path: Path) -> None:
    files, stream = tmp_path / "files", tmp_path / "stream"
    assert estimate.main(options(inputs, "few.avro", files)) == 0
    stream.mkdir()
    (stream / "estimates-20261122T081503Z-4f2a9c-0123.jsonl").write_text("")
    sentence = "--output must be a directory of one kind of job, got {!r}, with rows of {}"
    for argv, output, kind in (
        (options(inputs, "few.avro", stream), stream, "a stream, and this job is over files"),
        ([f"--collection={inputs}/animals.json", *STREAM.split(), f"--output={files}"], files,
         "a job over files, and this is a stream"),
    ):  # fmt: skip
        with pytest.raises(SpecError, match=f"^{re.escape(sentence.format(str(output), kind))}$"):
            configure(argv)
    assert left_behind(files) == RESULTS
