"""``uldp report --follow --serve``: the page of a stream that goes on, for readers on this machine."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest

from tests.project.documents import DOCS, blocks
from tests.support import report_rows as rows
from tests.support.commands import command
from tests.support.html_tree import chromium, needs_chromium, table, tree_of
from uldp_transforms.jobs.records.row_directory import RowDirectory
from uldp_transforms.jobs.records.run_directory import RunDirectory
from uldp_transforms.jobs.records.whole_period import FILE as TOTALS
from uldp_transforms_report import follow
from uldp_transforms_report.follow import Following
from uldp_transforms_report.gathering import Asked

PATIENCE = 600.0
VALUES = ["ant", "bee"]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Served:
    """A process that follows a directory."""

    def __init__(self, folder: Path):
        words = [*command("report"), str(folder), "--follow", "--serve", "0"]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        match = re.fullmatch(r"report: http://127\.0\.0\.1:(\d+)/\n", said)
        assert match, said
        self.port = int(match[1])

    def ask(self, path: str = "/", method: str = "GET", **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        answer = Answer(response.status, dict(response.getheaders()), response.read())
        connection.close()
        return answer

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    of = rows.collection(VALUES)
    rows.record(tmp_path, of)
    rows.write(tmp_path, "estimates-a-1.jsonl", [rows.estimate(of, 0, rows.waves(VALUES, 0))])
    found = Served(tmp_path)
    yield found
    found.process.kill()
    found.process.wait()


def until(condition: Any) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.1)
    raise TimeoutError


def test_the_page_keeps_up_with_the_rows(served: Served, tmp_path: Path) -> None:
    first = served.ask()
    assert first.status == 200
    assert "The latest window with numbers: Mon 6 Nov 2000" in tree_of(first.body.decode()).text
    tag = first.headers["ETag"]
    same = served.ask(**{"If-None-Match": tag})
    assert (same.status, same.body, same.headers["ETag"]) == (304, b"", tag)
    of = rows.collection(VALUES)
    rows.write(tmp_path, "estimates-a-2.jsonl", [rows.estimate(of, 1, rows.waves(VALUES, 1))])
    later = until(lambda: (got := served.ask(**{"If-None-Match": tag})).status == 200 and got)
    assert "The latest window with numbers: Tue 7 Nov 2000" in tree_of(later.body.decode()).text
    assert served.end(signal.SIGINT) == 0
    with pytest.raises(ConnectionRefusedError):
        served.ask()


def test_sigterm_ends_it_well(served: Served) -> None:
    assert served.end(signal.SIGTERM) == 0
    assert served.process.stderr is not None
    assert served.process.stderr.read() == ""


def test_what_else_is_asked(served: Served) -> None:
    """Only reading, only from this machine, and nothing but the page."""
    assert served.ask("/healthz").body == b"ok\n"
    script = served.ask("/follow.js")
    assert script.headers["Content-Type"].startswith("text/javascript") and b"isEqualNode" in script.body
    head = served.ask(method="HEAD")
    assert (head.status, head.body, int(head.headers["Content-Length"]) > 1000) == (200, b"", True)
    assert served.ask(method="POST")[::2] == (405, b"GET or HEAD\n")
    assert served.ask(method="POST").headers["Allow"] == "GET, HEAD"
    for path in ("/none", "/../report.py", "/estimates-a-1.jsonl"):
        assert served.ask(path)[::2] == (404, b"the page is at /\n")
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", ""):
        assert served.ask(Host=host)[::2] == (403, b"this page is for readers on its own machine\n")
    for host in ("localhost", f"localhost:{served.port}", "[::1]:80", "127.1.2.3"):
        assert served.ask(Host=host).status == 200
    policy = served.ask().headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ") and "script-src 'self'" in policy and "http" not in policy
    with socket.socket() as other:
        other.settimeout(PATIENCE)
        with pytest.raises(ConnectionRefusedError):  # it does not listen elsewhere
            other.connect(("127.0.0.2", served.port))


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [sys.executable, "-m", "uldp_transforms.jobs", "report", str(tmp_path), "--follow", "--serve", port]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (2, "report: [Errno 98] Address already in use\n")


# ----------------------------------------------------------------------------------------------- the application alone


def ask(following: Following, **environ: str) -> tuple[str, bytes]:
    """By WSGI, whose rules a validator holds both sides to."""
    environ["QUERY_STRING"] = ""
    setup_testing_defaults(environ)
    said: list[str] = []
    result = validator(following.application)(environ, lambda status, headers, *_: said.append(status))
    body = b"".join(result)
    result.close()  # type: ignore[attr-defined]
    return said[0], body


def test_the_application_of_another_server(tmp_path: Path) -> None:
    """It need not listen on this machine alone; a directory may come later than its page."""
    with Following(Asked(directory=str(tmp_path / "later"), title="Later"), every=0.05, local=False) as following:
        status, body = ask(following, HTTP_HOST="results.example")
        assert status == "200 OK" and b"No window has results yet." in body
        rows.survey(tmp_path / "later", VALUES, 1)
        until(lambda: b"survey" in ask(following, HTTP_HOST="results.example")[1])
    assert not [thread for thread in threading.enumerate() if thread.name == "report-follow"]


def test_the_program_of_the_page_on_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed, in a folder that has a directory of rows."""
    rows.survey(tmp_path / "output", VALUES, 1)
    monkeypatch.chdir(tmp_path)
    (program,) = blocks(DOCS / "report.md")
    names: dict[str, Any] = {}
    exec(program.code, names)
    names["server"].server_close()
    assert b"survey" in ask(names["following"])[1]


def test_what_cannot_be_read_is_said_once_and_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "estimates.jsonl").write_text("[]\n", encoding="utf-8")
    following = Following(Asked(directory=str(tmp_path), title="Broken"))
    for _ in range(2):
        following.look()
    sentence = f"{tmp_path / 'estimates.jsonl'} must contain rows of uldp estimate (the content is not shown)"
    assert capsys.readouterr().err == f"report: cannot make the page, trying again: {sentence}\n"
    assert ask(following) == ("503 Service Unavailable", b"there is no page of the directory yet\n")
    rows.survey(tmp_path, VALUES, 1)
    following.look()
    assert ask(following)[0] == "200 OK"
    (tmp_path / "estimates.jsonl").write_text("[]\n", encoding="utf-8")
    following.look()
    assert ask(following)[0] == "200 OK"  # the last page that there was


def test_every_change_of_a_file_of_rows_is_seen(tmp_path: Path) -> None:
    """Another size at the same time, another time of the same size, and the file of totals."""
    rows.survey(tmp_path, VALUES, 1)
    path, directory = tmp_path / "estimates.jsonl", RowDirectory(str(tmp_path))
    stamps, second = [directory.stamp()], 10**9
    assert directory.stamp() == stamps[0]
    for size, time_ns in ((1, 5 * second), (1, 6 * second), (2, 6 * second)):
        path.write_bytes(b" " * size)
        os.utime(path, ns=(time_ns, time_ns))
        stamps.append(directory.stamp())
    (tmp_path / TOTALS).write_text("{}\n", encoding="utf-8")
    stamps.append(directory.stamp())
    assert all(stamp not in stamps[:at] for at, stamp in enumerate(stamps))


def test_a_run_that_is_killed_is_seen(tmp_path: Path) -> None:
    """Though its rows stay as they are: the page asks the lock of its directory."""
    rows.survey(tmp_path, VALUES, 1)
    rows.record(tmp_path, rows.collection(VALUES), run="b", end=None)
    directory = RunDirectory(str(tmp_path), "b", bounded=False, launched=False)
    directory.prepare()
    following = Following(Asked(directory=str(tmp_path), title="State"))
    states = []
    for _ in range(2):
        following.look()
        found = table(tree_of(ask(following)[1].decode()), "Starts of the job in this directory; times in UTC")
        states.append(found[-1][3])
        directory.close()
    assert states == ["running", "killed"]


@needs_chromium
def test_a_browser_changes_only_what_differs(tmp_path: Path) -> None:
    """What is open, focused and scrolled stays, while numbers change; the same elements are there before and after."""
    of = rows.survey(tmp_path / "rows", VALUES, 40)
    pages = []
    for share in (0.25, 0.375):
        latest = [rows.entry("ant", share), rows.entry("bee", 0.2)]
        rows.write(tmp_path / "rows", "estimates-x.jsonl", [rows.estimate(of, 40, latest)])
        following = Following(Asked(directory=str(tmp_path / "rows"), title="Live"))
        following.look()
        pages.append(ask(following)[1].decode())
    script = Path(follow.__file__).with_name("follow.js").read_text("utf-8")
    harness = """
      const answers = [%s];
      let asked = 0;
      globalThis.fetch = async (path, options) => (
        { status: asked++ ? 304 : 200, headers: new Map([["ETag", "x"]]), text: async () => answers[0] });
      const details = document.querySelector("details:not(.part, .take)"), wide = details.querySelector(".wide");
      details.open = true;
      wide.scrollTop = 7;
      details.querySelector("summary").focus();
      setTimeout(() => {
        const same = details.isConnected && details.open && wide.scrollTop === 7;
        document.title = [same, document.activeElement === details.querySelector("summary"), asked > 2].join();
      }, 9000);
    """
    harness %= json.dumps(pages[1]).replace("</", "<\\/")
    page = re.sub(r'<script src="follow.js" defer></script>', "", pages[0])
    (tmp_path / "p.html").write_text(f"{page}<script>{harness}{script}</script>", encoding="utf-8")
    seen = chromium(tmp_path / "p.html", tmp_path / "profile", milliseconds=15_000)
    assert re.findall(r"<title>(.*?)</title>", seen)[0] == "true,true,true"
    assert "37.5 %" in seen and "25.0 %" not in seen
    assert re.search(r'id="live"[^>]*>Updated at [^<]*; new results appear automatically\.', seen)


@needs_chromium
def test_a_browser_follows_a_stream(served: Served, tmp_path: Path) -> None:
    """The page as it is served, with its policy: its script runs."""
    seen = chromium(f"http://127.0.0.1:{served.port}/", tmp_path / "profile", milliseconds=6000)
    assert re.search(r'id="live"[^>]*>Updated at ', seen)
