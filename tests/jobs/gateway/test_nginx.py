"""deploy/gateway/nginx.conf in front of a running gateway: TLS, limits, and what slow or greedy senders get."""

from __future__ import annotations

import contextlib
import http.client
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.support.gateways import Running, gateway
from tests.support.live import PATIENCE, ROOT
from tests.support.messages_cases import single

NGINX, OPENSSL = shutil.which("nginx"), shutil.which("openssl")
CONFIGURATION = ROOT / "deploy/gateway/nginx.conf"
pytestmark = pytest.mark.skipif(NGINX is None or OPENSSL is None, reason="there is no nginx, or no openssl, here")


class Proxy(NamedTuple):
    """nginx, and the gateway behind it."""

    port: int
    context: ssl.SSLContext
    behind: Running

    @contextlib.contextmanager
    def connected(self) -> Iterator[ssl.SSLSocket]:
        """A connection of bytes."""
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as plain,
            self.context.wrap_socket(plain, server_hostname="reports.example.org") as connection,
        ):
            yield connection

    def send(self, body: bytes, path: str = "/reports", method: str = "POST") -> tuple[int, str]:
        """Status and body of one request."""
        head = f"{method} {path} HTTP/1.1\r\nHost: reports.example.org\r\nContent-Length: {len(body)}\r\n"
        with self.connected() as connection:
            connection.sendall(head.encode() + b"Connection: close\r\n\r\n" + body)
            response = http.client.HTTPResponse(connection, method=method)
            response.begin()
            return response.status, response.read().decode()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The file as it stands, but for addresses, files, and the rate, which a test must reach."""
    folder = tmp_path_factory.mktemp("nginx")
    key, certificate, port = folder / "reports.key", folder / "reports.crt", free_port()
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=reports.example.org"
    named = ["-addext", "subjectAltName=DNS:reports.example.org", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([str(OPENSSL), *made.split(), *named], check=True, capture_output=True)
    with gateway([f"--spool={folder / 'spool'}", "--pack_every=20ms"], folder) as behind:
        text = CONFIGURATION.read_text("utf-8")
        for old, new in {
            "/run/nginx.pid": str(folder / "nginx.pid"),
            "/etc/uldp/reports.crt": str(certificate),
            "/etc/uldp/reports.key": str(key),
            "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
            "server 127.0.0.1:8080": f"server {urlsplit(behind.address).netloc}",
            "client_header_timeout 10s": "client_header_timeout 2s",
            "client_body_timeout 10s": "client_body_timeout 2s",
        }.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (folder / "nginx.conf").write_text(f"daemon off;\n{text}", encoding="utf-8")
        command = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf")]
        with (folder / "nginx.log").open("wb") as log, subprocess.Popen(command, stderr=log) as process:
            try:
                wait_for(port, process)
                yield Proxy(port, ssl.create_default_context(cafile=certificate), behind)
            finally:
                process.terminate()
        assert (folder / "nginx.log").read_text("utf-8") == "", "nothing of a sender is logged"


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError("nginx does not listen")


def test_reports_pass(proxy: Proxy) -> None:
    assert proxy.send(single()) == (202, '{"spooled":1}')
    assert proxy.send(single()[:-1])[0] == 400
    assert proxy.behind.counted("reports_accepted_total") >= 1


def test_what_is_not_for_the_public_is_hidden(proxy: Proxy) -> None:
    for path in ("/metrics", "/healthz", "/", "/reports/", "/reports/x"):
        assert proxy.send(b"", path, "GET")[0] == 404, path


def test_bodies_that_are_too_large_end_at_the_proxy(proxy: Proxy) -> None:
    before = proxy.behind.counted("requests_total")
    with proxy.connected() as connection:
        connection.sendall(b"POST /reports HTTP/1.1\r\nHost: reports.example.org\r\nContent-Length: 1048577\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
    assert proxy.behind.counted("requests_total") == before


@pytest.mark.parametrize(
    "said", [b"POST /rep", b"POST /reports HTTP/1.1\r\nHost: reports.example.org\r\nContent-Length: 50\r\n\r\nhalf"]
)
def test_slow_senders_do_not_reach_the_gateway(proxy: Proxy, said: bytes) -> None:
    """64 of them at once, which the proxy ends one after the other; meanwhile others are served."""
    before = proxy.behind.counted("requests_total")
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(proxy.connected()) for _ in range(64)]
        for connection in slow:
            connection.sendall(said)
        assert proxy.behind.counted("requests_waiting") == 0
        assert proxy.behind.counted("bytes_waiting") == 0
        for connection in slow:
            answer = b"".join(iter(lambda one=connection: one.recv(4096), b""))  # type: ignore[misc]
            assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
    assert proxy.behind.counted("requests_total") == before


def test_a_sender_that_asks_too_much_is_told_to_slow_down(proxy: Proxy) -> None:
    rate, burst = (int(re.findall(rf"{name}=(\d+)", CONFIGURATION.read_text("utf-8"))[0]) for name in ("rate", "burst"))
    begin, statuses = time.monotonic(), []
    with proxy.connected() as connection:
        for _ in range(3 * burst):
            connection.sendall(b"POST /reports HTTP/1.1\r\nHost: reports.example.org\r\nContent-Length: 0\r\n\r\n")
            response = http.client.HTTPResponse(connection, method="POST")
            response.begin()
            response.read()
            statuses.append(response.status)
    passed = statuses.count(400)  # an empty body is no message
    assert set(statuses) <= {400, 429}
    assert passed <= burst + 1 + rate * (time.monotonic() - begin + 1)
    time.sleep(1)
    assert proxy.send(single())[0] == 202, "after a second the sender may send again"


def test_the_page_names_the_file() -> None:
    assert "deploy/gateway/nginx.conf" in (ROOT / "docs/gateway.md").read_text("utf-8")
