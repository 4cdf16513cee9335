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

    def send(self, body: bytes, path: str = "/reports", method: str = "POST", *more: str) -> tuple[int, str]:
        """Status and body of one request."""
        lines = [f"{method} {path} HTTP/1.1", f"Content-Length: {len(body)}", "Connection: close", *more]
        if not any(line.startswith("Host") for line in lines):
            lines.append("Host: reports.example.org")
        with self.connected() as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
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
            "access_log off;": "access_log off; set_real_ip_from 127.0.0.1; real_ip_header X-Test;",
            "rate=20r/s": "rate=2r/s",  # so that a slow machine reaches it too
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
            content = response.read()
            statuses.append(response.status)
            if response.status == 429:
                assert (response.headers["Retry-After"], content) == ("5", b'{"reason":"rate"}')
                assert response.headers["Access-Control-Allow-Origin"] == "*"
    passed = statuses.count(400)  # an empty body is no message
    assert set(statuses) <= {400, 429}
    assert passed <= burst + 1 + rate * (time.monotonic() - begin + 1)
    time.sleep(1)
    assert proxy.send(single())[0] == 202, "after a second the sender may send again"


NETWORKS = {
    "2001:db8::%x": True,  # one /64, whose text leaves out zeros
    "2001:db8:0:0:%x:1:1:1": True,
    "2001:db8:1::%x:0:1": True,
    "2001:db8:1:2:%x::": True,
    "::ffff:198.51.100.%d": True,
    "203.0.113.%d": True,
    "10.0.%d.1": False,
    "2001:db8:2:%x::1": False,
    "::ffff:10.1.%d.1": False,
}


@pytest.mark.parametrize(("network", "is_one"), NETWORKS.items(), ids=NETWORKS)
def test_a_network_is_one_sender(proxy: Proxy, network: str, is_one: bool) -> None:
    """Otherwise the owner of a network sends from each of its addresses; and others are not limited with it."""
    statuses = [proxy.send(b"", "/reports", "POST", f"X-Test: {network % number}")[0] for number in range(1, 250)]
    assert (429 in statuses) == is_one
    assert set(statuses) <= {400, 429}


def test_a_page_of_the_proxy_itself_may_send(proxy: Proxy) -> None:
    """Its port is not 443, so browsers say it."""
    place = f"reports.example.org:{proxy.port}"
    for origin, status in ((f"https://{place}", 202), ("https://reports.example.org", 403)):
        lines = (f"Host: {place}", f"Origin: {origin}", "X-Test: 192.0.2.1")
        assert proxy.send(single(), "/reports", "POST", *lines)[0] == status


def test_the_page_names_the_file() -> None:
    assert "deploy/gateway/nginx.conf" in (ROOT / "docs/gateway.md").read_text("utf-8")
