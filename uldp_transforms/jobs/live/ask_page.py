"""Serves the page that asks: its own files, the client in JavaScript, and what it has to know."""

from __future__ import annotations

import http.server
import json
from pathlib import Path
from typing import Any

from uldp_transforms.schemas import shipped

HERE = Path(__file__).parent
CLIENT = shipped("clients/javascript")

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
}


def files() -> dict[str, tuple[str, bytes]]:
    """Address -> kind and content of what is the same for every question."""
    paths = {f"/{path.name}": path for path in HERE.glob("ask.*")}
    paths |= {f"/client/{path.relative_to(CLIENT).as_posix()}": path for path in CLIENT.glob("src/*.js")}
    paths |= {"/": HERE / "ask.html", "/client/index.js": CLIENT / "index.js"}
    return {address: (_KINDS[path.suffix], path.read_bytes()) for address, path in paths.items()}


class AskPage(http.server.ThreadingHTTPServer):
    """The server, on this machine's loopback address.

    Args:
        port: 0: any that is free; raises OSError if it is taken.
    """

    daemon_threads = True

    def __init__(self, port: int):
        self.content = files()
        self.gateway = ""
        super().__init__(("127.0.0.1", port), _Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"

    def tell(self, gateway: str, results: str, question: str, crowd: str, form: dict[str, Any]) -> None:
        """Data of the page: two addresses, the question, a sentence on simulated people, the client's form."""
        self.gateway = gateway
        known = {"gateway": gateway, "results": results, "question": question, "crowd": crowd, "form": form}
        self.content["/settings.json"] = ("application/json", json.dumps(known).encode())


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: AskPage

    def do_GET(self) -> None:
        kind, content = self.server.content.get(self.path, ("text/plain", b""))
        self.send_response(200 if self.path in self.server.content else 404)
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
        """Nothing: who answers is nobody's business."""
