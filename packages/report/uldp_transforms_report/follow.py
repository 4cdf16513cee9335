"""Serves the page of a directory that a stream writes to, updated when its rows change.

A thread reads the directory and builds the page; requests are answered from memory, so their number does not matter.
The server is read-only, and by default accessible only from this machine: results are for analysts, and there is no
password.

Other WSGI servers, or ASGI servers with an adapter, can serve ``Following(asked).application``.
"""

from __future__ import annotations

import functools
import hashlib
import ipaddress
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from socketserver import ThreadingMixIn
from types import TracebackType
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from uldp_transforms.jobs.records.row_directory import RowDirectory
from uldp_transforms_report.gathering import Asked, gather
from uldp_transforms_report.web_page import only_itself, page

SCRIPT = "follow.js"
EVERY = 2.0
"""Seconds between two reads of the directory."""

_PATIENCE = 10.0  # seconds of silence after which a connection is closed
_HEADERS = (
    (
        "Content-Security-Policy",
        only_itself(["'self'"]) + "; connect-src 'self'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-cache"),
)
_TEXT, _HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"

_Answer = tuple[str, str, bytes, list[tuple[str, str]]]
"""Status, content type, content, and further headers."""

Respond = Callable[..., Any]


class Following:
    """A page that follows a directory while the block lasts.

    Args:
        asked: selection of the content.
        every: seconds between two reads of the directory.
        local: whether to answer only requests that name this machine in their ``Host``, so that pages of other sites
            cannot read results through a browser on this machine.
    """

    def __init__(self, asked: Asked, *, every: float = EVERY, local: bool = True):
        self._asked, self._every, self._local = asked, every, local
        self._seen: Any = None
        self._body = b""
        self._fault = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_again, name="report-follow", daemon=True)

    def __enter__(self) -> Following:
        self.look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _look_again(self) -> None:
        while not self._stop.wait(self._every):
            self.look()

    def look(self) -> None:
        """Rebuild the page if the rows changed; unreadable files are tried again next time."""
        try:
            seen = RowDirectory(self._asked.directory).stamp()
            if self._body and seen == self._seen:
                return
            body = page(gather(self._asked), self._asked.limits, script=SCRIPT).encode("utf-8")
        except Exception as error:  # such as files that a job is replacing; a persistent error is printed once
            if repr(error) != self._fault:
                self._fault = repr(error)
                print(f"report: cannot make the page, trying again: {error}", file=sys.stderr)
            return
        self._seen, self._fault, self._body = seen, "", body

    def application(self, environ: dict[str, Any], start_response: Respond) -> Iterable[bytes]:
        """WSGI application: the page, its script, and a health check."""
        status, kind, body, more = self._refusal(environ) or self._answer(environ)
        headers = [*_HEADERS, *more, ("Content-Type", kind), ("Content-Length", str(len(body)))]
        start_response(status, headers)
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else body]

    def _refusal(self, environ: dict[str, Any]) -> _Answer | None:
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return "405 Method Not Allowed", _TEXT, b"GET or HEAD\n", [("Allow", "GET, HEAD")]
        if self._local and not _names_this_machine(environ.get("HTTP_HOST", "")):
            return "403 Forbidden", _TEXT, b"this page is for readers on its own machine\n", []
        return None

    def _answer(self, environ: dict[str, Any]) -> _Answer:
        path = environ.get("PATH_INFO") or "/"
        if path == "/":
            return self._page(environ.get("HTTP_IF_NONE_MATCH"))
        if path == f"/{SCRIPT}":
            return "200 OK", "text/javascript; charset=utf-8", _script(), []
        if path == "/healthz":
            return "200 OK", _TEXT, b"ok\n", []
        return "404 Not Found", _TEXT, b"the page is at /\n", []

    def _page(self, known: str | None) -> _Answer:
        body = self._body
        tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        if not body:
            return "503 Service Unavailable", _TEXT, b"there is no page of the directory yet\n", []
        if known == tag:
            return "304 Not Modified", _HTML, b"", [("ETag", tag)]
        return "200 OK", _HTML, body, [("ETag", tag)]


@functools.cache
def _script() -> bytes:
    return Path(__file__).with_name(SCRIPT).read_bytes()


def _names_this_machine(host: str) -> bool:
    """Whether a ``Host`` header names this machine, with any port."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    try:
        return name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


class _Server(ThreadingMixIn, WSGIServer):
    """A server with one thread per request; unfinished ones end with the process."""

    daemon_threads = True


class _Handler(WSGIRequestHandler):
    """Request handler that keeps no log, for the privacy of readers."""

    timeout = _PATIENCE

    def log_message(self, format: str, *args: Any) -> None:
        pass


def serve(asked: Asked, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until SIGINT (Ctrl-C) or SIGTERM, in the main thread.

    Args:
        asked: selection of the content.
        host, port: address to listen on; port 0: any free port.
        ready: called with the address.

    Raises:
        OSError: if the port is in use.
    """
    local = _names_this_machine(host)
    with _Server((host, port), _Handler) as server, Following(asked, local=local) as following:
        server.set_app(following.application)
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            ready(f"http://{host}:{server.server_port}/")
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, before)
