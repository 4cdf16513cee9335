"""HTTP as clients, proxies and attackers frame it, against the running gateway: one request is one request."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from packages.gateway.tests.support.framing import CASES, GOOD, WHOLE, head, statuses
from packages.gateway.tests.support.gateways import Running, gateway
from tests.support.live import PATIENCE
from uldp_transforms_gateway.http_offers import INVALID


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("gateway")
    options = ["--spool", str(folder / "spool"), "--pack_every=20ms", "--max_body=100000"]
    with gateway(options, folder) as found:
        yield found


def answers(address: str, packets: Sequence[bytes], number: int) -> list[int]:
    """Statuses of all answers of a connection: reads until so many are there, and then until all that comes is read.

    Bytes behind an answer that belong to no answer fail the test.
    """
    place, came = urlsplit(address), b""
    with socket.create_connection((str(place.hostname), place.port or 0), timeout=PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for packet in packets:
            with contextlib.suppress(ConnectionError):  # it may have answered and closed
                connection.sendall(packet)
            time.sleep(0.02 if len(packets) < 10 else 0.001)
        with contextlib.suppress(ConnectionError, TimeoutError):
            while True:
                connection.settimeout(0.3 if len(statuses(came)) >= number else PATIENCE)
                if not (part := connection.recv(65_536)):
                    break
                came += part
    return statuses(came)


@pytest.mark.parametrize("name", CASES)
def test_each_request_is_answered_once_and_no_body_is_a_request(name: str, running: Running) -> None:
    case = CASES[name]
    before = running.counted("reports_accepted_total")
    assert answers(running.address, case.packets, len(case.statuses)) == case.statuses
    assert running.counted("reports_accepted_total") - before == case.accepted
    assert running.send(GOOD).status == 202


def test_silent_connections_that_announce_bodies_take_no_room(tmp_path: Path) -> None:
    """64 heads that announce a megabyte each, in a gateway that may hold one: others are answered at once."""
    options = ["--spool", str(tmp_path / "spool"), "--pack_every=20ms", "--max_waiting_bytes=1000000"]
    with gateway(options, tmp_path) as found, contextlib.ExitStack() as open_ones:
        place = urlsplit(found.address)
        for _ in range(64):
            connection = socket.create_connection((str(place.hostname), place.port or 0), timeout=PATIENCE)
            open_ones.enter_context(connection)
            connection.sendall(head(length=1_000_000) + b"a")
        begin = time.monotonic()
        assert [found.send(GOOD).status for _ in range(20)] == [202] * 20
        assert time.monotonic() - begin < 20  # which is what a silent body may take


def test_a_peer_gets_so_many_connections(tmp_path: Path) -> None:
    options = ["--spool", str(tmp_path / "spool"), "--pack_every=20ms", "--max_peer_connections=3"]
    with gateway(options, tmp_path) as found, contextlib.ExitStack() as open_ones:
        place = urlsplit(found.address)
        address = (str(place.hostname), place.port or 0)
        for _ in range(3):
            open_ones.enter_context(socket.create_connection(address, timeout=PATIENCE)).sendall(b"POST")
        time.sleep(0.2)
        # at once: one that is only silent is closed after 20 s
        with socket.create_connection(address, timeout=10) as fourth, contextlib.suppress(ConnectionError):
            assert fourth.recv(1) == b""


@pytest.mark.parametrize(
    ("origin", "status"),
    [(b"https://foreign.example", 403), (b"null", 403), (b"http://x", 403), (b"https://x", 202), (None, 202)],
)
def test_a_page_of_another_origin_may_not_send(origin: bytes | None, status: int, running: Running) -> None:
    """Its browser would send a simple POST without asking, and only hide the answer."""
    line = b"" if origin is None else b"Origin: %s\r\n" % origin
    before = running.counted("reports_accepted_total")
    assert answers(running.address, [head(line) + GOOD], 1) == [status]
    assert running.counted("reports_accepted_total") - before == (status == 202)


@pytest.mark.parametrize(
    ("hosts", "version", "status"),
    [
        (b"Host: x\r\n", b"1.1", 202),
        (b"Host: x\r\nHost: x\r\n", b"1.1", 400),
        (b"Host: x\r\nhOST: evil.example\r\n", b"1.1", 400),
        (b"Host: x\r\nHost: y\r\n", b"1.0", 400),
        (b"Host: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nHost: y\r\n", b"1.1", 400),
        (b"", b"1.1", 400),
        (b"", b"1.0", 202),
    ],
)
def test_a_request_has_one_host(hosts: bytes, version: bytes, status: int, running: Running) -> None:
    """RFC 9112, section 3.2: more than one, or none in HTTP/1.1, is a bad request."""
    request = b"POST /reports HTTP/%s\r\n%sContent-Length: %d\r\n\r\n%s" % (version, hosts, len(GOOD), GOOD)
    assert answers(running.address, [request], 1) == [status]


def test_a_gateway_with_listed_hosts_answers_nobody_under_another_one(tmp_path: Path) -> None:
    """A page whose name resolves to the gateway neither sends nor reads; probes by address and localhost do."""
    options = [f"--spool={tmp_path / 'spool'}", "--pack_every=20ms", "--allow_host=gw.example"]
    with gateway(options, tmp_path) as found:
        for host, may in (("gw.example", True), ("GW.example:80", True), ("evil.example", False), (None, True)):
            others = {} if host is None else {"Host": host}
            assert found.send(GOOD, **others).status == (202 if may else 403)
            assert found.ask("GET", "/healthz", **others).status == (200 if may else 403)
            assert found.ask("GET", "/metrics", **others).status == (200 if may else 403)
            origin = {"Origin": f"http://{host}"} if host else {}
            assert found.send(GOOD, **others, **origin).status == (202 if may else 403)
        assert found.send(GOOD, Host="evil.example").content == {"reason": "host"}


def test_a_slash_more_is_no_address_and_no_redirect(running: Running) -> None:
    asked = WHOLE.replace(b"/reports", b"/reports/", 1).replace(b"Host: x", b"Host: evil.example")
    assert answers(running.address, [asked], 1) == [404]


def test_faults_write_a_line_a_second_at_most(running: Running) -> None:
    """And the next line says how many were left out, so that all faults are counted."""
    time.sleep(1.1)  # what came before is over
    before, begin = running.said().count("\n"), time.monotonic()
    for _ in range(300):
        assert answers(running.address, [b"\0\r\n\r\n"], 1) == [400]
    time.sleep(1.1)
    answers(running.address, [b"\0\r\n\r\n"], 1)
    lines = running.said().splitlines()[before:]
    assert 1 <= len(lines) <= time.monotonic() - begin + 1
    line = r"gateway: WARNING of uvicorn\.error at http_offers:\d+(?: \((\d+) more since the last line\))?"
    found = [re.fullmatch(line, text) for text in lines]
    assert sum(1 + int(match[1] or 0) for match in found if match) >= 301
    assert all(found), lines
    assert INVALID not in running.said()


JAVA = """
import java.net.URI;
import java.net.http.*;
import java.nio.file.*;

class Send {
  public static void main(String[] args) throws Exception {
    var client = HttpClient.newHttpClient();
    for (int i = 0; i < 3; i++) {
      var body = HttpRequest.BodyPublishers.ofByteArray(Files.readAllBytes(Path.of(args[1])));
      var request = HttpRequest.newBuilder(URI.create(args[0])).POST(body).build();
      System.out.println(client.send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
    }
  }
}
"""


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("options", [["--http2"], ["--http2", "-H", "Expect: 100-continue"], ["--http1.0"], []])
def test_curl(options: list[str], running: Running, tmp_path: Path) -> None:
    """Three messages over one connection where HTTP allows it; ``--http2`` offers HTTP/2 with the first."""
    (tmp_path / "message").write_bytes(GOOD)
    before, to = running.counted("reports_accepted_total"), f"{running.address}/reports"
    show = ["-sS", "-o", str(tmp_path / "answer"), "-w", "%{http_code} "]
    sending = [*show, *options, "--data-binary", f"@{tmp_path}/message", to]
    command = ["curl", *sending, "--next", *sending, "--next", *sending]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.split() == ["202"] * 3
    assert running.counted("reports_accepted_total") == before + 3


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("javac") is None, reason="a JDK is not installed")
def test_java_offers_http2_by_default(running: Running, tmp_path: Path) -> None:
    (tmp_path / "message").write_bytes(GOOD)
    (tmp_path / "Send.java").write_text(JAVA, "utf-8")
    before = running.counted("reports_accepted_total")
    command = ["java", str(tmp_path / "Send.java"), f"{running.address}/reports", str(tmp_path / "message")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.split() == ["202"] * 3
    assert running.counted("reports_accepted_total") == before + 3
