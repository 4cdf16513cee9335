"""Parts of ``uldp live``: its crowd, its numbers, its page and its programs, each by itself and without waiting."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from labs import live
from labs.live import ask_page, crowd, known, leashed, live_options, programs, run_live
from labs.live.ask_page import AskPage
from labs.live.crowd import DEVICES, Crowd
from labs.live.known import Known, total
from labs.live.programs import NotReady, Program
from labs.live.sleep_question import COLLECTION, SHARES, SHOWN, crowd_sentence
from tests.support import report_rows as rows
from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.ldp import SpecError
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.windows import rfc3339

# --------------------------------------------------------------------------------------------------------------- crowd


@contextlib.contextmanager
def gateway(*statuses: int) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers with these, one after the other; and what it got."""
    left, bodies = list(statuses), list[bytes]()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])) + self.path.encode())
            self.send_response(left.pop(0))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()


def waits(of: Crowd, *ends: bool) -> list[float]:
    """The waits of a crowd, which return these."""
    left, seen = list(ends), list[float]()

    def wait(seconds: float) -> bool:
        seen.append(seconds)
        return left.pop(0)

    of._stopping.wait = wait  # type: ignore[method-assign, assignment]  # of this one alone
    return seen


def test_an_answer_is_sent_until_it_is_acknowledged() -> None:
    """The same bytes, every half second; what was rejected is not counted as acknowledged."""
    with gateway(503, 429, 202) as (address, bodies):
        one = Crowd(address, COLLECTION, SHARES, 0)
        seen = waits(one, False, False)
        one._send(b"message")
        assert bodies == [b"message/reports"] * 3 and (one.acknowledged, seen) == (1, [0.5, 0.5])
    with gateway(200, 400) as (address, _):
        one = Crowd(address, COLLECTION, SHARES, 0)
        waits(one, True)
        one._send(b"a")
        one._send(b"b")
        assert one.acknowledged == 1
    one = Crowd("http://127.0.0.1:1", COLLECTION, SHARES, 0)
    waits(one, False, True)
    one._send(b"nobody listens")
    assert one.acknowledged == 0


def test_people_answer_at_random_times_at_their_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 16 devices a sixteenth of them; event times are whole seconds, as on the question page."""
    scales: list[float] = []
    real = np.random.default_rng(7)

    def exponential(scale: float) -> float:
        scales.append(scale)
        return 0.25

    rng = SimpleNamespace(exponential=exponential, choice=real.choice)
    monkeypatch.setattr(
        crowd, "np", SimpleNamespace(random=SimpleNamespace(default_rng=lambda: rng), array=np.array, zeros=np.zeros)
    )
    monkeypatch.setattr(crowd.time, "time_ns", lambda: 1_700_000_000_999_999_999)
    one, sent = Crowd("http://127.0.0.1:1", COLLECTION, SHARES, 40), list[bytes]()
    seen = waits(one, False, False, True)
    one._send = sent.append  # type: ignore[method-assign, assignment]  # of this one alone
    one._device()
    assert scales == [DEVICES / 40] * 3 and seen == [0.25] * 3 and DEVICES == 16
    [reports] = MessageDecoder(CollectionCatalog([COLLECTION])).decode(sent).parts
    assert reports.reports.event_times.tolist() == [1_700_000_000_000] * 2 and sent[0] != sent[1]
    assert one._held.keys() == {1_700_000_000} and one._held[1_700_000_000][0] == 2


def test_a_crowd_has_devices_only_if_somebody_answers() -> None:
    assert len(Crowd("http://127.0.0.1:1", COLLECTION, SHARES, 0)._threads) == 0
    some = Crowd("http://127.0.0.1:1", COLLECTION, SHARES, 0.001)
    assert len(some._threads) == 16 and all(thread.daemon for thread in some._threads)
    with some as same:
        assert same is some
        assert all(thread.is_alive() for thread in some._threads)
    assert not any(thread.is_alive() for thread in some._threads) and some.acknowledged == 0


def test_shares_of_a_crowd_add_up_to_1() -> None:
    one = Crowd("http://127.0.0.1:1", COLLECTION, SHARES, 0)
    for share in (0.0, 1.0, 0.25):
        one.set_share("badly", share)
        assert sum(one.shares().values()) == pytest.approx(1.0) and one.shares()["badly"] == share
    one.set_share("well", 0.5)
    assert one.shares() == pytest.approx({"well": 0.5, "so-so": 1 / 6, "badly": 1 / 6, "hardly at all": 1 / 6})
    for share in (-0.01, 1.01):
        with pytest.raises(SpecError, match="share must be a number from 0 to 1"):
            one.set_share("well", share)


def test_people_hold_values_as_often_as_their_shares() -> None:
    one = Crowd("http://127.0.0.1:1", COLLECTION, {"a": 0.0, "b": 3.0, "c": 0.0}, 0)
    rng = np.random.default_rng(1)
    assert one._person(9, rng) == "b" and one.truth(9, 10) == (1, {"a": 0.0, "b": 3.0, "c": 0.0})
    assert {one._person(5, rng) for _ in range(50)} == {"b"}
    assert one.truth(5, 6) == (50, {"a": 0.0, "b": 3.0, "c": 0.0}) and one.truth(6, 9) == one.truth(0, 5) == (
        0,
        {"a": 0, "b": 0, "c": 0},
    )


# -------------------------------------------------------------------------------------------------------------- numbers


def sleep_row(second: int, share: float, **more: Any) -> dict[str, Any]:
    span = {"window_start": rfc3339(1000 * second), "window_end": rfc3339(1000 * (second + 20))}
    entries = [rows.entry(value, share if value == SHOWN else 0.1, 0.02) for value in SHARES]
    return rows.estimate(COLLECTION, 0, entries) | span | more


class People:
    rate, acknowledged = 40.0, 77

    def shares(self) -> dict[str, float]:
        return {SHOWN: 0.3}

    def truth(self, start: int, end: int) -> tuple[int, dict[str, float]]:
        return (0 if start == 40 else 5), {SHOWN: start + end / 1000}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    at = [100.0]
    monkeypatch.setattr(known, "time", SimpleNamespace(monotonic=lambda: at[0], time=time.time))
    return at


def test_the_last_windows_and_the_ledger_of_a_stream(tmp_path: Path, clock: list[float]) -> None:
    """As they are in its rows; the directory is looked at once a second at most."""
    people: Any = People()
    found = Known(str(tmp_path / "none"), people).now()
    nothing = {"value": SHOWN, "share": 0.3, "windows": [], "total": None, "books": {"acknowledged": 77}}
    assert found == nothing
    one = Known(str(tmp_path), people)
    days = [sleep_row(20 * at, at / 100, pane_timing="EARLY" if at == 13 else "ON_TIME") for at in range(14)]
    hidden = sleep_row(280, 0.1) | {"estimates": [], "status": "suppressed"}
    rows.write(tmp_path, "estimates.jsonl", [*days[::-1], hidden])
    source = {"option": "--x", "name": "x", "bounded": False, "resumes": True}
    RunRecord(run="a", started=rfc3339(0), source=source, specification={}).write(str(tmp_path))
    numbers = {"run": "a", "received": 10, "accepted": 6, "duplicates": 1, "rejected": {"x": 1, "y": 2}}
    rows.write(tmp_path, "ledger-a-1.jsonl", [numbers, numbers])
    os.utime(tmp_path / "ledger-a-1.jsonl", (time.time() - 30, time.time() - 30))
    found = one.now()
    assert [window["start"] for window in found["windows"]] == [20 * at for at in range(2, 14)]
    first, last = found["windows"][0], found["windows"][-1]
    assert first == {
        "start": 40,
        "end": 60,
        "early": False,
        "reports": 1000,
        "frequency": 0.02,
        "low": 0.0,
        "high": pytest.approx(0.02 + 1.96 * 0.02),
        "raw": 0.02,
        "error": 0.02,
        "truth": None,
    }
    assert last["early"] and last["truth"] == 260.28
    books = found["books"]
    age = books.pop("age")
    assert 29 < age < 90 and age == round(age, 1)
    assert books == {"received": 20, "accepted": 12, "duplicates": 2, "rejected": 6, "acknowledged": 77}
    assert found["total"]["reports"] == 14_000 and found["total"]["truth"] is None
    rows.write(tmp_path, "estimates.jsonl", [sleep_row(0, 0.5)])
    clock[0] = 100.999
    assert len(one.now()["windows"]) == 12
    clock[0] = 101.0
    assert len(one.now()["windows"]) == 1
    (tmp_path / "ledger-a-1.jsonl").unlink()
    clock[0] = 102.0
    assert one.now()["books"]["age"] is None
    people.rate = 0
    assert one.now()["share"] is None


def test_reading_takes_a_tenth_of_the_time_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([100.0, 105.0, 154.9, 155.0, 155.0])
    monkeypatch.setattr(known, "time", SimpleNamespace(monotonic=lambda: next(times), time=time.time))
    people: Any = People()
    one, looks = Known(str(tmp_path), people), list[int]()
    one._look = lambda: looks.append(1)  # type: ignore[method-assign]  # of this one alone
    for number in (1, 1, 2):
        one.now()
        assert len(looks) == number


def test_what_cannot_be_read_is_shown_as_before(tmp_path: Path, clock: list[float]) -> None:
    people: Any = People()
    one = Known(str(tmp_path), people)
    (tmp_path / "estimates.jsonl").write_text("{", encoding="utf-8")
    assert one.now()["windows"] == []


def test_all_windows_together_are_cut_to_shares() -> None:
    def window(reports: int, raw: float, error: float, truth: float | None = 0.0) -> dict[str, Any]:
        return {"reports": reports, "raw": raw, "error": error, "truth": truth}

    assert total([window(0, 0.1, 0.1)]) is None
    found = total([window(4, 1.5, 0.1)])
    of_one = 1 - 1.959963984540054 * 0.1  # the lower end of an estimate of 1
    cut = {"mean": 1.0, "low": pytest.approx(of_one), "high": 1.0}
    assert found == cut | {"reports": 4, "truth": 0.0, "confidence": 0.95}
    half = total([window(1, 0.4, 0.1), window(1, 0.6, 0.1, None)])
    assert half is not None and half["truth"] is None and half["mean"] == pytest.approx(0.5)
    assert half["high"] - 0.5 == pytest.approx(1.959963984540054 * 0.1 / 2**0.5)


# ------------------------------------------------------------------------------------------------------------- the page


def asked(page: AskPage, method: str, path: str, body: bytes = b"", **headers: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", page.server_port, timeout=600)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.headers, content


def test_the_page_serves_its_files_and_nothing_else() -> None:
    with run_live._serving(0) as page:
        page.tell("http://gateway", "http://results", "How?", "nobody", {"a": 1})
        page.show(lambda: {"value": "x"}, lambda value, share: None)
        kinds = {
            "/": "text/html; charset=utf-8",
            "/ask.css": "text/css; charset=utf-8",
            "/ask.js": "text/javascript; charset=utf-8",
            "/client/index.js": "text/javascript; charset=utf-8",
            "/client/src/client.js": "text/javascript; charset=utf-8",
            "/settings.json": "application/json",
            "/now.json": "application/json",
        }
        for path, kind in kinds.items():
            status, headers, content = asked(page, "GET", path)
            assert (status, headers["Content-Type"], headers["Content-Length"]) == (200, kind, str(len(content))), path
            policy = headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; ") and policy.endswith(" http://gateway")
            assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        assert json.loads(asked(page, "GET", "/now.json")[2]) == {"value": "x"}
        settings = {"gateway": "http://gateway", "results": "http://results", "question": "How?", "crowd": "nobody"}
        assert json.loads(asked(page, "GET", "/settings.json")[2]) == settings | {"form": {"a": 1}}
        for path in ("/ask_page.py", "/../ask.js", "/client/package.json", "/none"):
            assert asked(page, "GET", path)[0] == 404
    assert page.daemon_threads


def test_a_change_of_the_slider_is_short() -> None:
    moved: list[tuple[str, float]] = []
    with run_live._serving(0) as page:
        page.show(dict, lambda value, share: moved.append((value, share)))
        for length, status in ((1000, 204), (1001, 400)):
            body = json.dumps({"value": "x", "share": 0.5}).encode().rjust(length)
            assert asked(page, "POST", "/crowd", body, Origin=page.address)[0] == status
        assert asked(page, "POST", "/other", b"{}", Origin=page.address)[0] == 404
        assert asked(page, "POST", "/crowd", b"{}")[0] == 404
    assert moved == [("x", 0.5)] and ask_page.MOST_BYTES == 1000


@pytest.mark.parametrize("path", ["/other", "/crowd"])
def test_a_body_that_is_not_read_is_no_request(path: str) -> None:
    """Of another address, or longer than a change of the slider."""
    hidden = b"GET /now.json HTTP/1.1\r\nConnection: close\r\n\r\n"
    with run_live._serving(0) as page:
        page.show(dict, lambda value, share: None)
        body = (b"" if path == "/other" else b" " * 1000) + hidden
        head = f"POST {path} HTTP/1.1\r\nOrigin: {page.address}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", page.server_port), timeout=600) as connection:
            connection.sendall(head + body)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while part := connection.recv(4096):
                    answer += part
    assert answer.count(b"HTTP/1.1 ") == 1


def test_the_program_runs_with_its_options(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert live.configure(["--output", "o"]) == live_options.configure(["--output", "o"])
    jobs: list[Any] = []
    monkeypatch.setattr(run_live, "job", lambda options: jobs.append(options.port) or 7)
    assert live.main(["--output", "o", "--port", "9"]) == 7 and jobs == [9]
    assert live.main(["--port", "-1"]) == 2
    assert capsys.readouterr().err == "live: --port must be a number from 0 to 65535, got -1\n"


def test_options_have_their_defaults_and_limits(capsys: pytest.CaptureFixture[str]) -> None:
    found = live_options.configure(["--output", "o"])
    assert vars(found) == {
        "people": 40.0,
        "window": "20s",
        "early_every": "5s",
        "output": "o",
        "port": 8000,
        "results_port": 8001,
    }
    for name in ("port", "results_port"):
        assert getattr(live_options.configure(["--output=o", f"--{name}=65535"]), name) == 65535
        for wrong in (-1, 65536):
            with pytest.raises(SpecError, match=rf"^--{name} must be a number from 0 to 65535, got {wrong}$"):
                live_options.configure(["--output=o", f"--{name}={wrong}"])
    assert [live_options._rate(text) for text in ("0", "1000", "0.5")] == [0, 1000, 0.5]
    for wrong_rate in ("-0.1", "1000.1", "many", "nan"):
        with pytest.raises(Exception, match=rf"must be a number from 0 to 1000, got '{wrong_rate}'"):
            live_options._rate(wrong_rate)


def test_the_example_question_is_what_its_sentence_says() -> None:
    assert sum(SHARES.values()) == pytest.approx(1.0) and COLLECTION.version == 1
    assert COLLECTION.mechanism.epsilon == 1.5 and SHOWN in SHARES
    assert "“well” 40 %, “so-so” 30 %, “badly” 20 %, “hardly at all” 10 %; a slider" in crowd_sentence(2.5)
    assert "2.5 simulated people per second" in crowd_sentence(2.5) and crowd_sentence(0) == ""


# ------------------------------------------------------------------------------------------------------------- programs


class Child:
    """A process that prints lines, and ends when it is asked to, or only when it is killed."""

    def __init__(self, *lines: str, code: int | None = None, stubborn: bool = False):
        self.stderr, self.code, self.stubborn = iter(lines), code, stubborn
        self.done: list[Any] = []
        self.stdin = SimpleNamespace(close=lambda: self.done.append("closed"))

    def poll(self) -> int | None:
        return self.code

    def send_signal(self, number: int) -> None:
        self.done.append(number)

    def wait(self, seconds: float | None = None) -> int:
        self.done.append(seconds)
        if self.stubborn and seconds is not None:
            raise subprocess.TimeoutExpired("x", seconds)
        return 5

    def kill(self) -> None:
        self.done.append("killed")


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> Any:
    def made(*lines: str, **more: Any) -> tuple[Program, Child, dict[str, Any]]:
        of, given = Child(*lines, **more), dict[str, Any]()

        def popen(argv: Any, **options: Any) -> Child:
            given.update(options, argv=argv)
            return of

        monkeypatch.setattr(programs.subprocess, "Popen", popen)
        program = Program("gateway", ["--port", "0"], {"MORE": "1"}, "a warning")
        program._reader.join(600)
        return program, of, given

    return made


def test_a_program_is_leashed_and_heard(child: Any, capsys: pytest.CaptureFixture[str]) -> None:
    program, _, given = child("one\n", "of a warning\n", "at http://x/reports\n")
    assert given["argv"][1:] == ["-m", "labs.live.leashed", "gateway", "--port", "0"]
    assert given["start_new_session"] and given["text"] and given["env"]["MORE"] == "1" and "PATH" in given["env"]
    assert given["stdin"] == given["stderr"] == subprocess.PIPE
    assert program.says(r"at (\S+)/reports", 600) == "http://x" and program.runs
    assert capsys.readouterr().err == "one\nat http://x/reports\n"


def test_a_program_that_says_nothing_is_not_ready(child: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Because it ended, or in the time."""
    program, _, _ = child("one\n", code=3)
    said = "gateway must print its address within 600 s, got 1 line(s) without it"
    with pytest.raises(NotReady) as caught:
        program.says("(x)", 600)
    assert str(caught.value) == said and not program.runs
    times, slept = iter([5.0, 5.0, 6.9, 7.0]), list[float]()
    monkeypatch.setattr(programs, "time", SimpleNamespace(monotonic=lambda: next(times), sleep=slept.append))
    program, _, _ = child()
    with pytest.raises(NotReady, match="within 2 s, got 0 line"):
        program.says("(x)", 2)
    assert slept == [0.05, 0.05]


def test_a_program_is_asked_to_stop_once(child: Any) -> None:
    program, of, _ = child()
    program.ask_to_stop()
    assert of.done == [signal.SIGTERM]
    assert program.stop() == 5 and of.done == [signal.SIGTERM, 60.0, "closed"]
    ended, of, _ = child(code=5)
    assert ended.stop() == 5 and of.done == [60.0, "closed"]
    stubborn, of, _ = child(stubborn=True)
    assert stubborn.stop() == 5 and of.done == [signal.SIGTERM, 60.0, "killed", None, "closed"]


def test_a_leashed_program_ends_with_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """When standard input is closed; and with its own code when it returns."""
    parts, seen = iter([b"x", b"y", b""]), list[Any]()
    fake = SimpleNamespace(
        read=lambda place, size: seen.append(place) or next(parts),
        kill=lambda *given: seen.append(given),
        getpid=lambda: 77,
        _exit=seen.append,
    )
    monkeypatch.setattr(leashed, "os", fake)
    leashed._wait_for_the_end()
    assert seen == [0, 0, 0, (77, signal.SIGTERM)]
    seen.clear()
    started: list[Any] = []

    def thread(target: Any, daemon: bool) -> Any:
        return SimpleNamespace(start=lambda: started.append((target, daemon)))

    monkeypatch.setattr(leashed, "threading", SimpleNamespace(Thread=thread))
    monkeypatch.setattr(
        leashed,
        "sys",
        SimpleNamespace(
            argv=["x", "report", "--a"], stdout=SimpleNamespace(flush=list), stderr=SimpleNamespace(flush=list)
        ),
    )
    monkeypatch.setattr(leashed, "uldp", SimpleNamespace(main=lambda words: seen.append(words) or 4))
    leashed.main()
    assert seen == [["report", "--a"], 4] and leashed.sys.argv == ["uldp report", "--a"]
    assert started == [(leashed._wait_for_the_end, True)]


# ----------------------------------------------------------------------------------------------------------- the whole


def test_parts_end_in_the_order_of_the_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The gateway before the stream, which counts what it sent; the results page is asked first and ends last."""
    events: list[Any] = []

    class Fake:
        runs = True

        def __init__(self, name: str, argv: list[str], environment: Any = None, hidden: str | None = None):
            self.name = name
            events.append(("start", name, argv, environment, hidden))

        def says(self, pattern: str, seconds: float) -> str:
            return f"http://{self.name}"

        def stop(self) -> int:
            events.append(("stop", self.name))
            return 0

        def ask_to_stop(self) -> None:
            events.append(("ask", self.name))

    @contextlib.contextmanager
    def server() -> Iterator[Any]:
        yield SimpleNamespace(address="queue:1", backlog=lambda name: events.append(("backlog", name)))

    @contextlib.contextmanager
    def people(address: str, of: Any, shares: Any, rate: float) -> Iterator[Any]:
        events.append(("crowd", address, rate))
        yield SimpleNamespace(acknowledged=7, set_share=None)
        events.append(("crowd ends",))

    monkeypatch.setattr(run_live, "Program", Fake)
    monkeypatch.setattr(run_live, "PubsubServer", server)
    monkeypatch.setattr(run_live, "Crowd", people)
    monkeypatch.setattr(run_live, "create_topic", lambda address, topic: events.append(("topic", address, topic)))
    monkeypatch.setattr(run_live, "_accepted", lambda gateway: events.append(("accepted", gateway)) or 9)
    monkeypatch.setattr(run_live, "_say_the_end", lambda options, *numbers: events.append(("end", *numbers)))
    stop: Any = threading.Event()
    stop.set()
    options = live_options.configure(["--port=0", "--people=3", f"--output={tmp_path}"])
    with contextlib.ExitStack() as stack:
        assert run_live._run(options, stop, stack) == 0
    names = [event[:2] for event in events]
    assert names == [
        *(("start", "report"), ("topic", "queue:1"), ("start", "gateway"), ("start", "estimate")),
        *(("crowd", "http://gateway"), ("crowd ends",), ("accepted", "http://gateway"), ("ask", "report")),
        *(("stop", "gateway"), ("backlog", run_live.SUBSCRIPTION), ("stop", "estimate"), ("stop", "gateway")),
        *(("stop", "report"), ("end", 7)),
    ]
    assert events[-1] == ("end", 7, 9)
    started = {event[1]: event[2:] for event in events if event[0] == "start"}
    assert started["gateway"][1] == started["estimate"][1] == {"PUBSUB_EMULATOR_HOST": "queue:1"}
    assert [started[name][2] for name in ("report", "gateway", "estimate")] == [None, *[run_live.WARNING] * 2]
    assert re.search(r"Answer it yourself: http://127\.0\.0\.1:\d+/$", started["report"][0][-1])
    stream = " ".join(started["estimate"][0])
    assert "--deduplicate" in stream and "--smooth" in stream and "--min_reports 1 " in stream
    assert f"--flush_every 3s --output {tmp_path}" in stream and "--early_every 5s" in stream


def test_the_stream_is_stopped_when_it_has_read_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or makes no progress for half a minute."""
    for backlog, times, waited in (([2, 1, 0], [0.0, 1.0, 2.0], 2), ([9] * 9, [0.0, 29.9, 30.0], 1), ([0], [0.0], 0)):
        left, at, slept, stopped = iter(backlog), iter(times), list[float](), list[int]()
        monkeypatch.setattr(run_live, "time", SimpleNamespace(monotonic=lambda at=at: next(at), sleep=slept.append))
        server: Any = SimpleNamespace(backlog=lambda name, left=left: next(left))
        stream: Any = SimpleNamespace(runs=True, stop=lambda stopped=stopped: stopped.append(1))
        run_live._stop_stream(stream, server)
        assert (len(slept), stopped) == (waited, [1])


def test_the_end_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    options: Any = SimpleNamespace(output="o")
    for ledger, counted in (({"accepted": 12}, 12), (None, 0)):
        monkeypatch.setattr(
            run_live, "read_records", lambda path, ledger=ledger: [None, SimpleNamespace(ledger=ledger)]
        )
        run_live._say_the_end(options, 7, 9)
        assert capsys.readouterr().out == (
            f"live: 7 answers of simulated people and 2 of the page; the stream counted {counted}; its rows are in o\n"
        )


def test_the_gateway_tells_what_it_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"# HELP x\nuldp_gateway_reports_accepted_total 1.2e3\nuldp_gateway_reports_rejected_total 5\n"

    @contextlib.contextmanager
    def opened(address: str, timeout: float) -> Iterator[Any]:
        assert address == "http://g/metrics"
        yield SimpleNamespace(read=lambda: text)

    monkeypatch.setattr(run_live.urllib.request, "urlopen", opened)
    assert run_live._accepted("http://g") == 1200


def test_what_is_not_ready_ends_the_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*given: Any) -> int:
        raise NotReady("x must go on")

    monkeypatch.setattr(run_live, "_run", fails)
    options: Any = None
    assert run_live.job(options) == 1 and capsys.readouterr().err == "live: x must go on\n"
