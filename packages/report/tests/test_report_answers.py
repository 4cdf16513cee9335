"""Answers of the page that follows a stream, request by request, without a server."""

from __future__ import annotations

import hashlib
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from uldp_transforms_report import follow
from uldp_transforms_report.follow import Following
from uldp_transforms_report.gathering import Asked

BODY = b"<html>page</html>"
TAG = f'"{hashlib.sha256(BODY).hexdigest()[:32]}"'


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(directory=str(tmp_path), title="T")


def answer(of: Following, path: str = "/", method: str = "GET", host: str = "localhost:80", **more: str) -> Any:
    seen: list[Any] = []
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "HTTP_HOST": host, **more}
    content = b"".join(of.application(environ, lambda status, headers: seen.extend((status, dict(headers)))))
    return seen[0], seen[1], content


def following(asked: Asked, body: bytes = BODY, **more: Any) -> Following:
    of = Following(asked, **more)
    of._body = body
    return of


def test_the_page_is_answered_once_and_then_by_its_tag(asked: Asked) -> None:
    of = following(asked)
    for path in ("/", ""):
        status, headers, content = answer(of, path)
        assert (status, content, headers["ETag"], headers["Content-Length"]) == ("200 OK", BODY, TAG, str(len(BODY)))
        assert headers["Content-Type"] == "text/html; charset=utf-8" and headers["Cache-Control"] == "no-cache"
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ") and "script-src 'self' 'sha256-" in policy
    assert policy.endswith("; connect-src 'self'; frame-ancestors 'none'")
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cross-Origin-Resource-Policy"] == "same-origin"
    status, headers, content = answer(of, HTTP_IF_NONE_MATCH=TAG)
    assert (status, content, headers["ETag"]) == ("304 Not Modified", b"", TAG)
    assert answer(of, HTTP_IF_NONE_MATCH='"other"')[0] == "200 OK"
    status, headers, content = answer(of, method="HEAD")
    assert (status, content, headers["Content-Length"]) == ("200 OK", b"", str(len(BODY)))


def test_other_addresses_and_methods(asked: Asked) -> None:
    of = following(asked)
    script = answer(of, "/follow.js")
    assert script[0] == "200 OK" and script[1]["Content-Type"] == "text/javascript; charset=utf-8"
    assert script[2] == Path(follow.__file__).with_name("follow.js").read_bytes()
    assert answer(of, "/healthz")[::2] == ("200 OK", b"ok\n")
    assert answer(of, "/none")[::2] == ("404 Not Found", b"the page is at /\n")
    status, headers, _ = answer(of, method="POST")
    assert (status, headers["Allow"]) == ("405 Method Not Allowed", "GET, HEAD")
    empty = answer(following(asked, b""))
    assert empty[::2] == ("503 Service Unavailable", b"there is no page of the directory yet\n")


HERE = ["localhost", "localhost:8001", "127.0.0.1", "127.9.9.9:80", "[::1]", "[::1]:80"]
ELSEWHERE = [
    "",
    "localhost.example.com",
    "localhost.example.com:80",
    "example.com",
    "10.0.0.1",
    "[::2]:80",
    "::1.example",
]


@pytest.mark.parametrize(
    ("host", "is_here"), [*((host, True) for host in HERE), *((host, False) for host in ELSEWHERE)]
)
def test_a_page_of_another_site_does_not_read_it(host: str, is_here: bool, asked: Asked) -> None:
    """By a name of its own that leads to this machine; unless the page is for others too."""
    assert follow._names_this_machine(host) is is_here
    assert answer(following(asked), host=host)[0] == ("200 OK" if is_here else "403 Forbidden")
    assert answer(following(asked, local=False), host=host)[0] == "200 OK"


def test_a_page_is_made_again_for_other_rows_alone(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be read is said once; the page stays as it was."""
    stamps: list[Any] = ["a", "a", "b", OSError("gone"), OSError("gone"), OSError("away"), "b", OSError("gone")]
    made: list[str] = []

    def stamp() -> Any:
        found = stamps.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(follow, "RowDirectory", lambda path: SimpleNamespace(stamp=stamp))
    monkeypatch.setattr(follow, "gather", lambda asked: asked)
    monkeypatch.setattr(follow, "page", lambda report, limits, script: made.append(script) or f"page {len(made)}")
    of = Following(asked)
    bodies = []
    for _ in range(8):
        of.look()
        bodies.append(of._body)
    assert bodies == [b"page 1", b"page 1", *[b"page 2"] * 6] and made == ["follow.js"] * 2
    again = "report: cannot make the page, trying again: "
    assert capsys.readouterr().err == f"{again}gone\n{again}away\n{again}gone\n"


def test_the_directory_is_looked_at_until_the_end(asked: Asked) -> None:
    of, waits, looks = Following(asked, every=7.5), list[float](), list[int]()
    ends = [False, False, True]
    of._stop.wait = lambda seconds: waits.append(seconds) or ends.pop(0)  # type: ignore[method-assign, assignment]  # of this one alone
    of.look = lambda: looks.append(1)  # type: ignore[method-assign]  # of this one alone
    of._look_again()
    assert waits == [7.5] * 3 and len(looks) == 2
    default = Following(asked)
    assert default._every == 2.0 and default._thread.daemon
    default.look = lambda: looks.append(1)  # type: ignore[method-assign]  # of this one alone
    with default as same:
        assert same is default and default._thread.is_alive() and len(looks) == 3
    assert not default._thread.is_alive()


@pytest.mark.parametrize(("host", "local"), [("127.0.0.1", True), ("0.0.0.0", False)])
def test_it_is_served_until_a_signal(host: str, local: bool, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """And then signals are as before."""
    events: list[Any] = []

    class Server:
        server_port = 77

        def __init__(self, address: Any, handler: Any):
            events.append((address, handler.timeout))

        def __enter__(self) -> Server:
            return self

        def __exit__(self, *given: Any) -> None:
            pass

        def set_app(self, application: Callable[..., Any]) -> None:
            events.append(application)

        def serve_forever(self, poll_interval: float) -> None:
            events.append((poll_interval, signal.getsignal(signal.SIGTERM)))
            raise KeyboardInterrupt

    locals_: list[bool] = []

    class Page:
        application = "app"

        def __init__(self, asked: Asked, local: bool):
            locals_.append(local)

        def __enter__(self) -> Page:
            return self

        def __exit__(self, *given: Any) -> None:
            pass

    monkeypatch.setattr(follow, "_Server", Server)
    monkeypatch.setattr(follow, "Following", Page)
    before = signal.getsignal(signal.SIGTERM)
    follow.serve(asked, host, 0, events.append)
    assert signal.getsignal(signal.SIGTERM) is before
    assert events == [((host, 0), 10.0), "app", f"http://{host}:77/", (0.2, signal.default_int_handler)]
    assert locals_ == [local] and follow._Server is Server
