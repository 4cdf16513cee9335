"""Serves the survey page: its files, the JavaScript client, the current results, and the slider for the simulated
people."""

from __future__ import annotations

import http.server
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CLIENT = Path(__file__).parents[2] / "clients" / "javascript"

MOST_BYTES = 1000
"""Of a change of the slider."""

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
}


def files() -> dict[str, tuple[str, bytes]]:
    """Address -> content type and content of the files that do not depend on the question."""
    paths = {f"/{path.name}": path for path in HERE.glob("ask*.*") if path.suffix in _KINDS}
    paths |= {f"/client/{path.relative_to(CLIENT).as_posix()}": path for path in CLIENT.glob("src/*.js")}
    paths |= {"/": HERE / "ask.html", "/client/index.js": CLIENT / "index.js"}
    return {address: (_KINDS[path.suffix], path.read_bytes()) for address, path in paths.items()}


class AskPage(http.server.ThreadingHTTPServer):
    """HTTP server on the loopback address of this machine.

    Args:
        port: port number; 0: any free port; raises OSError if the port is in use.
    """

    daemon_threads = True

    def __init__(self, port: int):
        self.content = files()
        self.gateway = ""
        self.now: Callable[[], dict[str, Any]] = dict
        self.change: Callable[[str, float], None] | None = None
        super().__init__(("127.0.0.1", port), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"

    def tell(self, gateway: str, results: str, question: str, crowd: str, form: dict[str, Any]) -> None:
        """Set the data of the page: two addresses, the question, a sentence about simulated people, the client form."""
        self.gateway = gateway
        known = {"gateway": gateway, "results": results, "question": question, "crowd": crowd, "form": form}
        self.content["/settings.json"] = ("application/json", json.dumps(known).encode())

    def show(self, now: Callable[[], dict[str, Any]], change: Callable[[str, float], None]) -> None:
        """Set the function that answers ``/now.json``, and the one that the slider calls with a value and its share."""
        self.now, self.change = now, change


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: AskPage

    def do_GET(self) -> None:
        if self.path == "/now.json":
            self._answer(200, "application/json", json.dumps(self.server.now()).encode())
            return
        kind, content = self.server.content.get(self.path, ("text/plain", b""))
        self._answer(200 if self.path in self.server.content else 404, kind, content)

    def do_POST(self) -> None:
        """The slider, for this page alone: a page of another origin cannot change the crowd."""
        length = self.headers.get("Content-Length", "")
        if self.path != "/crowd" or self.headers.get("Origin") != self.server.address or self.server.change is None:
            self.close_connection = True  # the body is not read
            self._answer(404, "text/plain", b"")
            return
        try:
            wanted = json.loads(self.rfile.read(min(int(length), MOST_BYTES)))
            self.server.change(str(wanted["value"]), float(wanted["share"]))
        except (ValueError, KeyError, TypeError):  # SpecError too
            self.close_connection = True
            self._answer(400, "text/plain", b"")
        else:
            self._answer(204, "text/plain", b"")

    def _answer(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header(
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'; "
            f"connect-src 'self' {self.server.gateway}",
        )
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, to protect the people who answer."""
