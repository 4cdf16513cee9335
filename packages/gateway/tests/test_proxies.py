"""The files of deploy/gateway in front of a running gateway: TLS, limits, and what slow or greedy senders get."""

from __future__ import annotations

import contextlib
import functools
import http.client
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from packages.gateway.tests.support.gateways import Running, gateway
from tests.support.live import PATIENCE, ROOT
from tests.support.messages_cases import single

OPENSSL = shutil.which("openssl")
FOLDER = ROOT / "deploy/gateway"


class Kind(NamedTuple):
    """A program, its file, how it is started, what a test changes (addresses, names of files, and times), where the
    file says how much a sender may send at once, and where the program comes from."""

    program: str
    file: str
    start: tuple[str, ...]
    changes: dict[str, str]
    most: str
    source: str


NGINX = Kind(
    "nginx",
    "nginx.conf",
    ("-p", "{folder}", "-g", "daemon off;", "-c", "{file}"),
    {
        "/run/nginx.pid": "{folder}/nginx.pid",
        "/etc/uldp/reports.crt": "{folder}/reports.crt",
        "/etc/uldp/reports.key": "{folder}/reports.key",
        "listen 443 ssl": "listen 127.0.0.1:{port} ssl",
        "server 127.0.0.1:8080": "server {gateway.netloc}",
        "access_log off;": "access_log off; set_real_ip_from 127.0.0.1; real_ip_header X-Test;",
        "rate=20r/s": "rate=2r/s",  # so that a slow machine reaches it too
        "client_header_timeout 10s": "client_header_timeout 2s",
        "client_body_timeout 10s": "client_body_timeout 2s",
    },
    r"burst=(\d+)",
    "Debian: apt-get install nginx",
)
HAPROXY = Kind(
    "haproxy",
    "haproxy.cfg",
    ("-db", "-q", "-f", "{file}"),
    {
        "    user haproxy\n    group haproxy\n": "",
        "maxconn 16000": "maxconn 1000",  # as many files as a test may open
        "    bind [::]:443 v6only ssl crt /etc/uldp/reports.pem alpn h2,http/1.1\n": "",
        "/etc/uldp/reports.pem": "{folder}/reports.pem",
        "bind 0.0.0.0:443": "bind 127.0.0.1:{port}",
        "127.0.0.1:8080": "{gateway.netloc}",
        "    http-request track-sc0": "    http-request set-src hdr(X-Test) if {{ hdr(X-Test) -m found }}\n"
        "    http-request track-sc0",
        "store http_req_rate(10s)": "store http_req_rate(600s)",
        "timeout http-request 10s": "timeout http-request 2s",
        "wait-for-body time 10s": "wait-for-body time 2s",
    },
    r"sc0_http_req_rate gt (\d+)",
    "Debian: apt-get install haproxy",
)
ENVOY = Kind(
    "envoy",
    "envoy.yaml",
    ("-c", "{file}", "--log-level", "critical", "--use-dynamic-base-id", "--disable-hot-restart", "--concurrency", "1"),
    {
        "/etc/uldp/reports.crt": "{folder}/reports.crt",
        "/etc/uldp/reports.key": "{folder}/reports.key",
        "address: 0.0.0.0, port_value: 443": "address: 127.0.0.1, port_value: {port}",
        '      additional_addresses:\n        - address: {socket_address: {address: "::", port_value: 443}}\n': "",
        "address: 127.0.0.1, port_value: 8080": "address: 127.0.0.1, port_value: {gateway.port}",
        "use_remote_address: true": "original_ip_detection_extensions: [{{name: test, typed_config: {{"
        'header_name: X-Test, "@type": type.googleapis.com/envoy.extensions.http.original_ip_detection'
        ".custom_header.v3.CustomHeaderConfig}}}}]",
        "max_tokens: 100, tokens_per_fill: 20": "max_tokens: 100, tokens_per_fill: 2",
        "request_headers_timeout: 10s": "request_headers_timeout: 2s",
        "request_timeout: 10s": "request_timeout: 2s",
    },
    r"max_tokens: (\d+), tokens_per_fill: 20",
    "make envoy",
)
KINDS = {kind.program: kind for kind in (NGINX, HAPROXY, ENVOY)}


class Proxy(NamedTuple):
    """A proxy, and the gateway behind it."""

    kind: Kind
    port: int
    certificate: Path
    behind: Running

    @contextlib.contextmanager
    def connected(self) -> Iterator[ssl.SSLSocket]:
        """A connection of bytes."""
        with (
            socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as plain,
            ssl.create_default_context(cafile=self.certificate).wrap_socket(
                plain, server_hostname="reports.example.org"
            ) as connection,
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

    def send_nothing(self, addresses: Iterable[str]) -> Iterator[tuple[http.client.HTTPResponse, bytes]]:
        """Answers to requests without a body of these senders, one after the other over one connection."""
        with self.connected() as connection:
            for address in addresses:
                lines = [
                    "POST /reports HTTP/1.1",
                    "Host: reports.example.org",
                    "Content-Length: 0",
                    f"X-Test: {address}",
                ]
                connection.sendall("\r\n".join([*lines, "", ""]).encode())
                response = http.client.HTTPResponse(connection, method="POST")
                response.begin()
                yield response, response.read()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module", params=KINDS)
def proxy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """The file as it stands, but for addresses, files, and the rate, which a test must reach."""
    kind = KINDS[request.param]
    program = shutil.which(kind.program) or shutil.which(kind.program, path=ROOT / f"build/{kind.program}/bin")
    if program is None or OPENSSL is None:
        pytest.skip(f"there is no {kind.program}, or no openssl, here ({kind.source})")
    folder = tmp_path_factory.mktemp(kind.program)
    key, certificate, port = folder / "reports.key", folder / "reports.crt", free_port()
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=reports.example.org"
    named = ["-addext", "subjectAltName=DNS:reports.example.org", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([OPENSSL, *made.split(), *named], check=True, capture_output=True)
    (folder / "reports.pem").write_bytes(certificate.read_bytes() + key.read_bytes())
    with gateway([f"--spool={folder / 'spool'}", "--pack_every=20ms"], folder) as behind:
        text, places = (FOLDER / kind.file).read_text("utf-8"), {"folder": folder, "port": port}
        for old, new in kind.changes.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new.format(**places, gateway=urlsplit(behind.address)))
        (folder / kind.file).write_text(text, encoding="utf-8")
        command = [program, *(part.format(**places, file=folder / kind.file) for part in kind.start)]
        with (folder / "log").open("wb") as log, subprocess.Popen(command, stderr=log, stdout=log) as process:
            try:
                wait_for(port, process, folder / "log")
                yield Proxy(kind, port, certificate, behind)
            finally:
                process.terminate()
        assert (folder / "log").read_text("utf-8") == "", "nothing of a sender is logged"


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise AssertionError(f"the proxy does not listen: {log.read_text()}")


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
            answer = b"".join(iter(functools.partial(connection.recv, 4096), b""))
            assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
    assert proxy.behind.counted("requests_total") == before


GREEDY = "198.18.0.1"


def test_a_sender_that_asks_too_much_is_told_to_slow_down(proxy: Proxy) -> None:
    text = (FOLDER / proxy.kind.file).read_text("utf-8")
    [most] = map(int, re.findall(proxy.kind.most, text))
    begin, statuses = time.monotonic(), []
    for response, content in proxy.send_nothing([GREEDY] * (3 * most)):
        statuses.append(response.status)
        if response.status == 429:
            assert (response.headers["Retry-After"], content) == ("5", b'{"reason":"rate"}')
            assert response.headers["Access-Control-Allow-Origin"] == "*"
    passed = statuses.count(400)  # an empty body is no message
    assert set(statuses) <= {400, 429}
    assert most / 2 <= passed <= most + 1 + 2 * (time.monotonic() - begin + 1)
    assert proxy.send(single(), "/reports", "POST", "X-Test: 192.0.2.77")[0] == 202, "others may send"
    if proxy.kind is not HAPROXY:
        time.sleep(1)
        assert proxy.send(single(), "/reports", "POST", f"X-Test: {GREEDY}")[0] == 202, (
            "after a second the sender may send again"
        )


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
    if proxy.kind is not NGINX and network.startswith("::ffff"):
        pytest.skip("this file has a socket for each kind of address, so that no IPv4 address is mapped")
    statuses = [answer.status for answer, _ in proxy.send_nothing(network % number for number in range(1, 250))]
    assert (429 in statuses) == is_one
    assert set(statuses) <= {400, 429}


def test_a_page_of_the_proxy_itself_may_send(proxy: Proxy) -> None:
    """Its port is not 443, so browsers say it."""
    place = f"reports.example.org:{proxy.port}"
    for origin, status in ((f"https://{place}", 202), ("https://reports.example.org", 403)):
        lines = (f"Host: {place}", f"Origin: {origin}", "X-Test: 192.0.2.1")
        assert proxy.send(single(), "/reports", "POST", *lines)[0] == status


def test_whole_bodies_of_a_message_wait_at_the_proxy(proxy: Proxy) -> None:
    """A body that comes in two parts reaches the gateway when it is whole."""
    message, before = single(), proxy.behind.counted("requests_total")
    with proxy.connected() as connection:
        head = f"POST /reports HTTP/1.1\r\nHost: reports.example.org\r\nContent-Length: {len(message)}\r\n"
        connection.sendall(f"{head}X-Test: 192.0.2.78\r\n\r\n".encode() + message[:5])
        assert proxy.behind.counted("bytes_waiting") == 0
        assert proxy.behind.counted("requests_total") == before
        connection.sendall(message[5:])
        assert connection.recv(100).startswith(b"HTTP/1.1 202 ")


def test_an_offer_of_http_2_costs_no_report(proxy: Proxy) -> None:
    """As clients make it without TLS, and some with it; the answer is in HTTP/1.1."""
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    assert proxy.send(single(), "/reports", "POST", *offer, "X-Test: 192.0.2.80") == (202, '{"spooled":1}')


def test_http_2_reaches_the_gateway_as_http_1(proxy: Proxy, tmp_path: Path) -> None:
    """By curl, which offers both in the handshake."""
    if proxy.kind is NGINX:
        pytest.skip("nginx's file speaks HTTP/1.1")
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("there is no curl here")
    (tmp_path / "message").write_bytes(single())
    place = f"reports.example.org:{proxy.port}"
    options = [
        "--http2",
        "-sS",
        "--max-time",
        str(PATIENCE),
        "-w",
        "%{http_version} %{http_code}",
        "-o",
        str(tmp_path / "answer"),
    ]
    trust = ["--cacert", str(proxy.certificate), "--resolve", f"{place}:127.0.0.1", "-H", "X-Test: 192.0.2.79"]
    command = [curl, *options, *trust, "--data-binary", f"@{tmp_path / 'message'}", f"https://{place}/reports"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2 202", "")


def test_the_page_names_the_files() -> None:
    page = (ROOT / "docs/gateway.md").read_text("utf-8")
    assert {path.name for path in FOLDER.iterdir()} == {kind.file for kind in KINDS.values()}
    assert all(f"deploy/gateway/{kind.file}" in page for kind in KINDS.values())
