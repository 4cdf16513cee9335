"""``make live`` as it stands: all its processes, a real browser that answers, and the answer in the stream's books."""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labs.live import live_options, run_live
from labs.live.ask_page import AskPage
from labs.live.crowd import Crowd
from labs.live.known import total
from labs.live.sleep_question import COLLECTION, SHARES, SHOWN, TEXT, crowd_sentence
from labs.tests.refusals.live import REFUSED
from tests.support.browser import Browser, browser, needs_browser
from tests.support.commands import command
from tests.support.live import PATIENCE, ROOT
from tests.support.refusals.raised import check_sentence
from tests.support.refusals.tables import with_kinds
from tests.support.tolerance import generator
from uldp_transforms.jobs.records.run_records import read_records
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
    ports = [
        option
        for option in ("--port=0", "--results_port=0")
        if not any(given.startswith(option[:-1]) for given in options)
    ]
    argv = [*LIVE, *ports, f"--output={folder / 'output'}", *options]
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
    end = time.monotonic() + 600
    while time.monotonic() < end:
        if not any(os.path.exists(f"/proc/{pid}") for pid in pids):
            return True
        time.sleep(0.1)
    return False


def move_the_crowd(window: Browser) -> None:
    """By the slider; the chart and the sentence above it follow the stream."""
    window.run("const s = document.getElementById('slider'); s.value = 600; s.dispatchEvent(new Event('input'))")
    assert window.text("#slide").startswith(f"Of 1,000 simulated people, 600 answer “{SHOWN}”")
    window.wait_for("return document.querySelectorAll('#chart .window').length")
    window.wait_for("return document.getElementById('sum').innerText.includes('answered')")
    assert window.run("return document.querySelectorAll('#chart line.truth').length") >= 2  # one in the legend
    read = re.match(r"([0-9.]+) % answered “badly”; between ([0-9.]+) % and ([0-9.]+) %", window.text("#sum"))
    assert read is not None, window.text("#sum")
    assert float(read[2]) <= float(read[1]) <= float(read[3])
    assert window.run("return (await (await fetch('/now.json')).json()).share") == 0.6


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
        promise = "This device sends one answer. With probability 40 %, it is not the one you choose,"
        assert window.text("#promise").startswith(promise)
        assert "stays on this device" not in window.text("body")
        move_the_crowd(window)
        for number in (1, 2):
            window.click(f"#answers button:nth-child({number})")
            window.wait_for("return document.getElementById('received').innerText")
            assert window.text("#received") == "The gateway received it and passed it on (HTTP 200)."
            assert window.text("#mine") == list(SHARES)[number - 1]
            assert window.text("#sent") in SHARES
            assert window.text("#meaning").startswith("With probability 40 %, the answer that was sent is not yours,")
            window.run("for (const each of document.querySelectorAll('details')) each.open = true")
            assert window.run("return document.documentElement.scrollWidth <= innerWidth")
            first, second = (line.split("\t")[-1] for line in window.text("#twins-rows").splitlines())
            assert first == second
            assert "above 99.9 %" in window.text("#many-rows").splitlines()[-1]
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


# ---------------------------------------------------------------------- what stands beside the question


def asked(page: AskPage, content: object, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", page.server_port, timeout=600)
    connection.request("POST", "/crowd", json.dumps(content), {"Origin": page.address, **headers})
    status = connection.getresponse().status
    connection.close()
    return status


def test_only_the_page_itself_changes_the_crowd() -> None:
    crowd = Crowd("http://127.0.0.1:1", COLLECTION, SHARES, 0)
    with run_live._serving(0) as page:
        assert asked(page, {"value": "badly", "share": 0.5}) == 404  # no crowd yet
        page.show(dict, crowd.set_share)
        for origin in ("https://example.com", "null", page.address.replace("127.0.0.1", "localhost")):
            assert asked(page, {"value": "badly", "share": 0.5}, Origin=origin) == 404
        for wrong in (
            {"value": "badly"},
            {"value": "none", "share": 0.5},
            {"value": "badly", "share": 2},
            [],
            "a" * 2000,
        ):
            assert asked(page, wrong) == 400
        assert asked(page, {"value": "badly", "share": float("nan")}) == 400
        assert crowd.shares() == SHARES
        assert asked(page, {"value": "badly", "share": 0.6}) == 204
    assert crowd.shares() == pytest.approx({"well": 0.2, "so-so": 0.15, "badly": 0.6, "hardly at all": 0.05})


def test_the_truth_of_a_window_is_that_of_its_people() -> None:
    crowd, rng = Crowd("http://127.0.0.1:1", COLLECTION, SHARES, 0), generator("crowd")
    for second, share in ((10, 0.2), (11, 0.2), (19, 0.8), (20, 0.5)):
        crowd.set_share("badly", share)
        assert crowd._person(second, rng) in SHARES
    number, truth = crowd.truth(10, 20)
    assert (number, truth["badly"]) == (3, pytest.approx(0.4))
    assert sum(truth.values()) == pytest.approx(1.0)
    assert crowd.truth(0, 10)[0] == 0


def test_all_windows_together_are_weighted_by_reports() -> None:
    windows = [
        {"reports": 100, "raw": 0.1, "error": 0.03, "truth": 0.2},
        {"reports": 300, "raw": 0.3, "error": 0.01, "truth": 0.4},
    ]
    found = total(windows)
    assert found is not None
    reach = 1.959963984540054 * math.sqrt((0.25 * 0.03) ** 2 + (0.75 * 0.01) ** 2)
    assert found == pytest.approx(
        {
            "reports": 400,
            "mean": 0.25,
            "low": 0.25 - reach,
            "high": 0.25 + reach,
            "truth": 0.35,
            "confidence": 0.95,
        }
    )
    assert total([]) is None
    assert total([{**windows[0], "truth": None}])["truth"] is None  # type: ignore[index]
    few = total([{"reports": 2, "raw": -0.4, "error": 0.9, "truth": None}])
    assert few is not None and few["mean"] == few["low"] == 0, "a share that is shown is none below 0"


def test_the_page_says_the_probability_of_its_collection() -> None:
    """Of k-ary randomized response: (K - 1) / (e^epsilon + K - 1), as drawn by its weight out of 2^64."""
    form = client_form(COLLECTION)
    keep = int(form["sampler"]["keep_weight"]) / 2**64
    assert (1 - keep) * 3 / 4 == pytest.approx(3 / (math.exp(1.5) + 3), abs=1e-12)
    assert round(100 * (1 - keep) * 3 / 4) == 40


# ---------------------------------------------------------------------- refusals


def test_each_start_has_a_directory_of_its_own() -> None:
    output = live_options.configure([]).output
    assert re.fullmatch(r"live-output/[0-9]{8}T[0-9]{6}Z", output), output
    assert live_options.configure(["--output", "mine"]).output == "mine"


@pytest.mark.parametrize(("kind", "call", "sentence"), with_kinds(REFUSED))
def test_sentence(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    check_sentence(kind, call, sentence)


def test_what_does_not_start_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as first, live(tmp_path, f"--port={first.getsockname()[1]}") as running:
        assert running.process.wait(PATIENCE) == 2
        assert re.fullmatch(r"live: --port must be free, got \d+: Address already in use\n", running.said())
