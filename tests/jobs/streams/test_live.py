"""``make live`` as it stands: all its processes, a real browser that answers, and the answer in the stream's books."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tests.support.browser import browser, needs_browser
from tests.support.commands import command
from tests.support.live import PATIENCE, ROOT
from uldp_transforms.jobs.live import live_options, run_live
from uldp_transforms.jobs.live.programs import NotReady, Program
from uldp_transforms.jobs.live.sleep_question import COLLECTION, SHARES, TEXT, crowd_sentence
from uldp_transforms.jobs.records.run_records import read_records
from uldp_transforms.ldp import SpecError
from uldp_transforms.ldp.client.client_form import client_form

LIVE = command("live")


class Running:
    """``pipelines.live`` in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path):
        self.process = process
        self.log = log

    def said(self) -> str:
        return self.log.read_text("utf-8")

    def address(self, of: str) -> str:
        end = time.monotonic() + PATIENCE
        while not (found := re.search(rf"^live: {of} at (\S+)$", self.said(), re.MULTILINE)):
            assert self.process.poll() is None and time.monotonic() < end, self.said()
            time.sleep(0.1)
        return found[1]

    def children(self) -> list[int]:
        """Process ids of the programs that it has started."""
        listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
        pairs = [tuple(map(int, line.split())) for line in listed.splitlines()[1:]]
        return [pid for pid, parent in pairs if parent == self.process.pid]


@contextlib.contextmanager
def live(folder: Path, *options: str) -> Iterator[Running]:
    log = folder / "live.log"
    argv = [*LIVE, "--port=0", "--results_port=0", f"--output={folder / 'output'}", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(argv, cwd=folder, stdout=out, stderr=out, env=environment)
    try:
        yield Running(process, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def gone(pids: list[int]) -> bool:
    """Whether these processes end soon."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.1)
    return False


@needs_browser
def test_a_click_is_counted(tmp_path: Path) -> None:
    """Two answers by hand among those of simulated people; the books are exact, and nothing runs on."""
    with live(tmp_path, "--window=10s", "--people=20") as running, browser(tmp_path) as window:
        asking, results = running.address("answer"), running.address("results")
        children = running.children()
        assert len(children) == 3
        window.resize(400, 1000)
        window.open(asking)
        window.wait_for("return document.querySelectorAll('#answers button').length")
        assert window.text("h1") == TEXT
        assert window.text("#crowd") == crowd_sentence(20)
        promise = "One answer leaves this device. With probability 40 % it is not the one you choose:"
        assert window.text("#promise").startswith(promise)
        assert "stays on this device" not in window.text("body")
        for number in (1, 2):
            window.click(f"#answers button:nth-child({number})")
            window.wait_for("return document.getElementById('received').innerText")
            assert window.text("#received") == "The gateway has it, and passed it on (HTTP 200)."
            assert window.text("#mine") == list(SHARES)[number - 1]
            assert window.text("#sent") in SHARES
            assert window.text("#meaning").startswith("With probability 40 % what was sent is not your answer:")
            assert window.run("return document.documentElement.scrollWidth <= innerWidth")
            window.click("#again")
        assert window.run("return localStorage.length") == 0
        window.open(results)
        window.wait_for("return document.body.innerText.includes('hardly at all')")
        assert crowd_sentence(20) in window.text("header")
        time.sleep(20)
        window.wait_for("return /reports/.test(document.body.innerText)")
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(PATIENCE) == 0, running.said()
    assert gone(children)
    said = running.said().splitlines()[-1]
    found = re.fullmatch(
        r"live: (\d+) answers of simulated people and (\d+) of the page; the stream counted (\d+); its rows .*", said
    )
    assert found, running.said()
    simulated, by_hand, counted = map(int, found.groups())
    assert simulated > 100
    assert by_hand == 2
    assert counted == simulated + 2
    [record] = read_records(str(tmp_path / "output"))
    assert record.ledger is not None
    assert record.ledger["balanced"]
    assert "Traceback" not in running.said()


def test_nothing_outlives_a_kill(tmp_path: Path) -> None:
    with live(tmp_path, "--people=0") as running:
        running.address("answer")
        children = running.children()
        assert len(children) == 3
        running.process.kill()
        running.process.wait()
        assert gone(children)


def test_a_crowd_of_nobody_is_not_mentioned() -> None:
    assert crowd_sentence(0) == ""
    assert "40 made-up people a second answer at random (“well” 40%" in crowd_sentence(40)


def test_the_page_says_the_probability_of_its_collection() -> None:
    """Of k-ary randomized response: (K - 1) / (e^epsilon + K - 1), as drawn by its weight out of 2^64."""
    form = client_form(COLLECTION)
    keep = int(form["sampler"]["keep_weight"]) / 2**64
    assert (1 - keep) * 3 / 4 == pytest.approx(3 / (math.exp(1.5) + 3), abs=1e-12)
    assert round(100 * (1 - keep) * 3 / 4) == 40


# ---------------------------------------------------------------------- refusals


def taken_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, run_live._serving(first.getsockname()[1]):
        pass


def program_that_ends() -> None:
    program = Program("export", ["none.json"])
    try:
        program.says("(never)", 60.0)
    finally:
        program.stop()


def part_that_ends() -> None:
    """A run whose programs all have ended when it first looks."""
    ended: Any = SimpleNamespace(runs=False, stop=lambda: 0, says=lambda *_: "http://127.0.0.1:1", name="report")
    with mock.patch.object(run_live, "Program", lambda *_: ended), contextlib.ExitStack() as stack:
        run_live._run(live_options.configure(["--port=0", "--people=0"]), threading.Event(), stack)


def test_each_start_has_a_directory_of_its_own() -> None:
    output = live_options.configure([]).output
    assert re.fullmatch(r"live-output/[0-9]{8}T[0-9]{6}Z", output), output
    assert live_options.configure(["--output", "mine"]).output == "mine"


REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
    (
        SpecError,
        lambda: live_options.configure(["--port=70000"]),
        "--port must be a number from 0 to 65535, got 70000",
    ),
    (
        SpecError,
        lambda: live_options.configure(["--people=many"]),
        "--people must be a number from 0 to 1000, got 'many'",
    ),
    (
        argparse.ArgumentTypeError,
        lambda: live_options._rate("1001"),
        "must be a number from 0 to 1000, got '1001'",
    ),
    (SpecError, taken_port, "--port must be free, got "),
    (NotReady, program_that_ends, "export must say where it listens within 60 s, got 1 line(s)"),
    (NotReady, part_that_ends, "report must go on, got its end"),
]


@pytest.mark.parametrize(("kind", "call", "sentence"), REFUSED, ids=[row[2][:60] for row in REFUSED])
def test_sentence(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    said = str(caught.value)
    assert said.startswith(sentence) if sentence[-1] == " " else said == sentence


def test_what_does_not_start_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, live(tmp_path, f"--port={first.getsockname()[1]}") as running:
        assert running.process.wait(PATIENCE) == 2
        assert re.fullmatch(r"live: --port must be free, got \d+: Address already in use\n", running.said())
