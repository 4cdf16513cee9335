"""What an app may send in a minute, by itself and at a running gateway, and how scripts of pages send with a key."""

from __future__ import annotations

import contextlib
import http.client
import math
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packages.gateway.tests.support.gateways import Running, gateway, metric
from tests.support.live import PATIENCE
from tests.support.messages_cases import single
from uldp_transforms_gateway.apps.app_keys import MINUTE, Allowance, App, Key, Tokens
from uldp_transforms_gateway.refusals import Refused

OLD, NEW = "old-key-of-an-app-0123456789", "new-key-of-an-app-0123456789"
OTHER, NAMELESS = "key-of-other-app-0123456789", "key-without-name-0123456789"
PAGE = "https://page.example"
REQUESTS = 6


class Clock:
    """Seconds that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@given(st.integers(1, 1000), st.lists(st.tuples(st.floats(0, 100), st.integers(0, 300)), max_size=60))
def test_no_minute_has_more_than_twice_its_allowance(a_minute: int, steps: list[tuple[float, int]]) -> None:
    """What is spent in any stretch of time is at most the allowance, what grew back, and one amount of debt."""
    clock = Clock()
    allowance, spent = Allowance(a_minute, clock), []
    for pause, amount in steps:
        clock.now += pause
        if not allowance.wait():
            allowance.spend(amount)
            spent.append((clock.now, amount))
    for first, (begin, _) in enumerate(spent):
        for last, (end, debt) in enumerate(spent[first:], first):
            total = sum(amount for _, amount in spent[first : last + 1])
            assert total <= a_minute * (1 + (end - begin) / MINUTE) + debt + 1e-6 * a_minute


@given(st.integers(1, 1000), st.integers(1, 10_000))
def test_after_the_wait_that_is_told_the_app_may_send(a_minute: int, amount: int) -> None:
    clock = Clock()
    allowance = Allowance(a_minute, clock)
    allowance.spend(amount)
    wait = allowance.wait()
    assert (wait > 0) == (amount > a_minute - 1)
    clock.now += math.ceil(wait)
    assert allowance.wait() < 1e-6


def test_an_app_without_limits_is_never_refused() -> None:
    app = App()
    for _ in range(10_000):
        app.begin()
        app.came(10**9)


def test_bytes_count_when_they_arrive_and_the_next_request_waits() -> None:
    app = App(size=100)
    app.begin()
    app.came(60)
    app.came(100)
    with pytest.raises(Refused) as caught:
        app.begin()
    assert (caught.value.status, caught.value.reason) == (429, "rate")
    assert 36 <= int((caught.value.headers or {})["Retry-After"]) <= 37  # 60 bytes of debt and one to spend


@given(st.integers(1, 1000), st.lists(st.tuples(st.floats(0, 100), st.integers(0, 10**6)), max_size=60))
def test_a_debt_is_at_most_a_minute(size: int, steps: list[tuple[float, int]]) -> None:
    """However many bytes came, whoever asks later waits for a minute at most."""
    clock = Clock()
    app = App(size=size)
    app._bytes = [Allowance(size, clock, debt=size)]
    for pause, amount in steps:
        clock.now += pause
        with contextlib.suppress(Refused):
            app.came(amount, object())
        assert app._bytes[0].wait() <= MINUTE * (1 + 1 / size) + 1e-6


def test_one_body_at_a_time_exceeds_what_is_left() -> None:
    """The others that began before are refused; it may go on, and the bytes of an app are bounded."""
    app, bodies = App(size=100), [object() for _ in range(40)]
    for body in bodies:
        app.begin()
        app.came(1, body)
    app.came(1_000, bodies[3])
    for body in bodies:
        if body is not bodies[3]:
            with pytest.raises(Refused) as caught:
                app.came(1_000, body)
            assert (caught.value.status, caught.value.reason) == (429, "rate")
            assert 1 <= int((caught.value.headers or {})["Retry-After"]) <= MINUTE + 1
    app.came(1_000, bodies[3])
    with pytest.raises(Refused):
        app.begin()


def test_keys_of_one_name_are_one_app() -> None:
    tokens = Tokens([Key(OLD, "app"), Key(NEW, "app"), Key(OTHER), Key(NAMELESS)])
    found = [tokens.check(f"Bearer {key}").app for key in (OLD, NEW, OTHER, NAMELESS)]
    assert found[0] is found[1]
    assert len(set(map(id, found))) == 3


# ---------------------------------------------------------------------- at a running gateway


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("apps")
    lines = [f"{OLD} app", f"{NEW} app", f"{OTHER} other", NAMELESS]
    (folder / "keys").write_text("\n".join(lines), encoding="utf-8")
    options = [f"--spool={folder / 'spool'}", "--pack_every=20ms", f"--allow_origin={PAGE}"]
    with gateway([*options, f"--token_file={folder / 'keys'}", f"--app_requests={REQUESTS}"], folder) as found:
        yield found
        held = [path.read_bytes() for path in Path(folder, "spool").iterdir() if path.is_file()]
        for key in (OLD, NEW, OTHER, NAMELESS):
            assert key not in found.said()
            assert key not in found.ask("GET", "/metrics").content
            assert not any(key.encode() in content for content in held)


def test_an_app_that_sends_too_much_is_told_when_to_come_again(running: Running) -> None:
    begin, passed, retry = time.monotonic(), 0, None
    while retry is None:
        answer = running.send(single(), Authorization=f"Bearer {(OLD, NEW)[passed % 2]}")
        if answer.status == 429:
            assert answer.content == {"reason": "rate"}
            retry = int(answer.headers["retry-after"])
        else:
            assert answer.status == 202
            passed += 1
    assert REQUESTS <= passed <= REQUESTS + 1 + (time.monotonic() - begin) * REQUESTS / MINUTE
    assert 1 <= retry <= MINUTE / REQUESTS
    for key in (OTHER, NAMELESS):
        assert running.send(single(), Authorization=f"Bearer {key}").status == 202, "others may send"
    text = running.ask("GET", "/metrics").content
    assert f'uldp_gateway_app_requests_total{{app="app"}} {float(passed)}' in text
    assert 'uldp_gateway_app_limited_total{app="app"} 1.0' in text
    assert {'app="app"', 'app="other"', 'app=""'} == {
        line.partition("{")[2].partition("}")[0] for line in text.splitlines() if line.startswith("uldp_gateway_app_")
    }
    assert metric(text, "reports_accepted_total") == passed + 2


def raw(running: Running, method: str, *lines: str, body: bytes = b"") -> tuple[int, dict[str, str]]:
    """Status and headers of the answer to these bytes, as a browser sends them."""
    place = urlsplit(running.address)
    head = [f"{method} /reports HTTP/1.1", f"Host: {place.netloc}", f"Content-Length: {len(body)}", *lines, "", ""]
    with contextlib.closing(socket.create_connection((str(place.hostname), place.port or 0), PATIENCE)) as connection:
        connection.sendall("\r\n".join(head).encode("ascii") + body)
        response = http.client.HTTPResponse(connection, method=method)
        response.begin()
        response.read()
        return response.status, {name.lower(): text.lower() for name, text in response.getheaders()}


def test_bodies_that_come_together_make_nobody_wait_for_hours(tmp_path: Path) -> None:
    """40 connections send a byte each, and then a megabyte; whoever comes later waits for a minute at most."""
    (tmp_path / "keys").write_text(f"{OLD} app\n", encoding="utf-8")
    options = [f"--spool={tmp_path / 'spool'}", f"--token_file={tmp_path / 'keys'}", "--app_bytes=100000"]
    with gateway(options, tmp_path) as found, contextlib.ExitStack() as stack:
        place = urlsplit(found.address)
        head = f"POST /reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {OLD}\r\nContent-Length: 999999\r\n\r\n"
        connections = [socket.create_connection((str(place.hostname), place.port or 0), PATIENCE) for _ in range(40)]
        for connection in connections:
            stack.enter_context(contextlib.closing(connection))
            connection.sendall(head.encode("ascii") + b"\2")
        while found.counted("bytes_waiting") < 40:
            time.sleep(0.01)
        for connection in connections:
            with contextlib.suppress(ConnectionError):  # the gateway refuses it before it has come
                connection.sendall(bytes(999_998))
        answer = found.send(single(), Authorization=f"Bearer {OLD}")
        assert (answer.status, answer.content) == (429, {"reason": "rate"})
        assert 1 <= int(answer.headers["retry-after"]) <= MINUTE + 1
        assert found.counted("app_limited_total") >= 39


ASKS = "Access-Control-Request-Method: POST"


@pytest.mark.parametrize("asked", ["authorization", "authorization,content-type"])
def test_a_browser_that_asks_first_learns_that_a_key_may_be_sent(running: Running, asked: str) -> None:
    """A preflight has no key, and none is required; it is asked of a page's origin only."""
    header = f"Access-Control-Request-Headers: {asked}"
    status, headers = raw(running, "OPTIONS", f"Origin: {PAGE}", ASKS, header)
    assert (status, headers["access-control-allow-origin"]) == (200, PAGE)
    assert headers["access-control-allow-methods"] == "post"
    assert set(asked.split(",")) <= set(headers["access-control-allow-headers"].split(", "))
    assert headers["access-control-max-age"] == "86400"
    assert "access-control-allow-credentials" not in headers
    assert "origin" in headers["vary"]


@pytest.mark.parametrize(
    "lines",
    [
        ("Origin: https://other.example", ASKS),
        (f"Origin: {PAGE}", "Access-Control-Request-Method: DELETE"),
        (f"Origin: {PAGE}", ASKS, "Access-Control-Request-Headers: x-other"),
    ],
)
def test_a_browser_that_asks_for_something_else_is_refused(running: Running, lines: tuple[str, ...]) -> None:
    status, headers = raw(running, "OPTIONS", *lines)
    assert status == 400
    if "other.example" in lines[0]:
        assert "access-control-allow-origin" not in headers


def test_a_script_of_the_page_can_read_each_answer(running: Running) -> None:
    """The one to a good key, to a wrong one, and the time to wait."""
    for key, expected in ((NAMELESS, {202}), (NAMELESS[:-1], {401}), (OTHER, {202, 429})):
        line = f"Authorization: Bearer {key}"
        status, headers = raw(running, "POST", f"Origin: {PAGE}", line, body=single())
        assert status in expected
        assert headers["access-control-allow-origin"] == PAGE
        assert "retry-after" in headers["access-control-expose-headers"]
