"""The commands of a bad night, as the operator's page prints them: each is run where it is needed."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest

from tests.project.documents import DOCS, ROOT
from tests.support import forked
from tests.support.commands import command
from tests.support.project.quickstart_folder import COLLECTION, VALUES, batch_record
from tests.support.spool_writer import finished
from uldp_transforms import schemas
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.version import __version__

SECTION = (DOCS / "operations.md").read_text("utf-8").split("## A bad night\n")[1].split("\n## ")[0]
[BLOCK] = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
CHECK, TAIL, GREP, KILL, AGAIN = (line.partition("  #")[0].strip() for line in BLOCK.splitlines())
OPERATORS = " ".join((DOCS / "quickstart-operator.md").read_text("utf-8").split())
[ADD_UP] = re.findall(r"`(uldp reestimate DIR NEW [^`]+)`", OPERATORS)
JOB = "uldp estimate --collection C.json --write_counts"
FOLLOW = f"{JOB} --follow --window 1m --allowed_lateness 1m"
PATIENCE = 60


class Shell:
    """A folder with an installed `uldp`, whose commands are those of the page, placeholders included."""

    def __init__(self, folder: Path):
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "C.json").write_text(json.dumps(COLLECTION), encoding="utf-8")
        self.install(ROOT)

    def install(self, tree: Path) -> None:
        """Make `uldp` the program of a tree."""
        script = f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(tree))} exec {sys.executable} -m uldp_transforms.jobs "$@"\n'
        (self.folder / "bin/uldp").write_text(script, encoding="utf-8")
        (self.folder / "bin/uldp").chmod(0o755)

    def environment(self) -> dict[str, str]:
        return os.environ | {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        given: dict[str, Any] = {"cwd": self.folder, "env": self.environment(), "capture_output": True, "text": True}
        return subprocess.run(["bash", "-c", command], check=False, **given)

    def rows(self, kind: str, directory: str) -> list[dict[str, Any]]:
        texts = [path.read_text("utf-8") for path in sorted((self.folder / directory).glob(f"{kind}*.jsonl"))]
        return [json.loads(line) for text in texts for line in text.splitlines()]

    def estimate_files(self, values: list[str], liars: bool = False) -> None:
        """A job over reports of clients with these values; liars all send the most frequent report."""
        batch = Collection.from_json(COLLECTION).perturb(values, np.random.default_rng(7), [10**12] * len(values))
        payloads = batch.payloads
        if liars:
            kinds, numbers = np.unique(payloads, axis=0, return_counts=True)
            payloads = np.repeat(kinds[[numbers.argmax()]], len(payloads), axis=0)
        with (self.folder / "R.avro").open("wb") as file:
            record = batch_record() | {"payloads": payloads.tobytes()}
            fastavro.writer(file, schemas.load("report_batch.avsc"), [record])
        assert self.estimate() == 0, (self.folder / "LOG").read_text("utf-8")

    def estimate(self) -> int:
        """The exit code of the job over R.avro, which has imported Beam before: its start is tested elsewhere."""
        _, *arguments = shlex.split(f"{JOB} --input R.avro --window 1d --output DIR")
        done = forked.run(command("estimate")[2], arguments[1:], folder=self.folder)
        (self.folder / "LOG").write_text(done.stderr, encoding="utf-8")
        return done.returncode

    def send(self, spool: str, number: int) -> None:
        """A file of reports of ten minutes ago, in a spool."""
        (self.folder / spool).mkdir(exist_ok=True)
        (self.folder / spool / "lock").touch()  # as a gateway does
        past = time.time() // 60 * 60 - 600
        values = [VALUES[at % 4] for at in range(number)]
        times = [int(past) * 1000] * number
        batch = Collection.from_json(COLLECTION).perturb(values, np.random.default_rng(number), times)
        moment = datetime.datetime.fromtimestamp(past, datetime.timezone.utc)
        os.utime(finished(self.folder / spool, [wire.encode_batch(batch)], moment), (past, past))

    @contextlib.contextmanager
    def stream(self, spool: str, directory: str) -> Iterator[None]:
        """A stream, which is stopped by the page's command and must end well."""
        command = f"{FOLLOW} --input {spool} --output {directory}"
        with (self.folder / "LOG").open("w") as log:
            given: dict[str, Any] = {"cwd": self.folder, "env": self.environment(), "stdout": log, "stderr": log}
            started = subprocess.Popen([self.folder / "bin/uldp", *shlex.split(command)[1:]], **given)
        try:
            yield
            subprocess.run(["bash", "-c", KILL.replace("PID", str(started.pid))], check=True)
            assert started.wait(PATIENCE) == 0, (self.folder / "LOG").read_text("utf-8")
        finally:
            started.kill()
            started.wait()

    def until_estimated(self, directory: str, number: int) -> None:
        """Wait until the rows of all windows together have so many reports."""
        deadline = time.monotonic() + PATIENCE
        while self.reports(directory) != number:
            assert time.monotonic() < deadline, (self.folder / "LOG").read_text("utf-8")
            time.sleep(0.2)

    def reports(self, directory: str) -> int:
        """Reports of the latest rows of all windows."""
        latest = {row["window_start"]: row["num_reports"] for row in self.rows("estimates", directory)}
        return sum(latest.values())


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_after_a_good_night_nothing_is_wrong(shell: Shell) -> None:
    shell.estimate_files(["flu"] * 6000 + ["hiv"] * 4000)
    checked = shell.run(CHECK)
    assert checked.returncode == 0, checked.stdout
    assert "10000 received = 10000 accepted + 0 rejected" in shell.run(TAIL).stdout
    found = shell.run(GREP)
    assert (found.returncode, found.stdout) == (1, "")
    again = shell.run(AGAIN)
    assert again.returncode == 0, again.stderr
    [before], [after] = shell.rows("estimates", "DIR"), shell.rows("estimates", "NEW")
    assert after["estimates"] == before["estimates"] and after["num_reports"] == 10_000


def test_reports_that_honest_clients_do_not_send_are_found(shell: Shell) -> None:
    shell.estimate_files(["flu"] * 10_000, liars=True)
    [row] = map(json.loads, shell.run(GREP).stdout.splitlines())
    assert row["status"] == "alarm"
    checked = shell.run(CHECK)
    assert checked.returncode == 1 and "alarm" in checked.stdout


def test_the_last_line_of_a_job_names_the_cause(shell: Shell) -> None:
    (shell.folder / "R.avro").write_bytes(b"no reports")
    assert shell.estimate() != 0
    assert re.match(r"estimate: .*R\.avro|estimate: .*file", shell.run(TAIL).stdout)
    assert shell.run(CHECK).returncode == 1


def former_version(folder: Path) -> Path:
    """A tree whose program says that it is an older version."""
    for name in ("uldp_transforms", "schemas"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "uldp_transforms/version.py"
    file.write_text(file.read_text("utf-8").replace(__version__, "0.0.1"), encoding="utf-8")
    return folder


def test_a_rollback_goes_on_in_the_same_directory_or_adds_up_in_another(shell: Shell, tmp_path: Path) -> None:
    shell.send("SPOOL", 400)
    with shell.stream("SPOOL", "DIR"):
        shell.until_estimated("DIR", 400)
    shell.install(former_version(tmp_path / "former"))
    assert shell.run("uldp --version").stdout.startswith("uldp_transforms 0.0.1")
    shell.send("SPOOL", 300)
    with shell.stream("SPOOL", "DIR"):
        shell.until_estimated("DIR", 700)
    checked = shell.run(CHECK)
    assert checked.returncode == 0, checked.stdout
    shell.send("SPOOL2", 200)
    with shell.stream("SPOOL2", "NEW"):
        shell.until_estimated("NEW", 200)
    added = shell.run(ADD_UP)
    assert added.returncode == 0, added.stderr
    assert shell.reports("ALL") == 900
