"""Limits of the gateway, each part without a network: peers, room for bodies, heads of requests, logs, numbers."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import uvicorn
from uvicorn.server import ServerState

from packages.gateway.tests.support.framing import CASES, CHUNKED, GOOD, head, in_chunks, statuses
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms_gateway import bounded_requests, limits, meters, quiet_log
from uldp_transforms_gateway.admission import Verdict
from uldp_transforms_gateway.bounded_requests import BoundedRequests
from uldp_transforms_gateway.limits import Body, Connections, Limits, peer_of
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.origins import Origins
from uldp_transforms_gateway.outlets.outlet import Undelivered
from uldp_transforms_gateway.quiet_log import QuietHandler, log_quietly
from uldp_transforms_gateway.refusals import Refused


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    for module in (limits, meters, quiet_log):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=found))
    return found


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def own(said: list[str]) -> Meters:
    return Meters(said.append)


def shown(own: Meters, name: str) -> float:
    found = own.registry.get_sample_value(f"uldp_gateway_{name}")
    assert found is not None, name
    return found


# ---------------------------------------------------------------------- peers and connections


@pytest.mark.parametrize(
    ("client", "peer"),
    [
        (None, ""),
        (("localhost", 1), ""),
        (("192.0.2.7", 1), "192.0.2.7"),
        (("::ffff:192.0.2.7", 1), "192.0.2.7"),
        (("2001:db8:1:2:3:4:5:6", 1), "2001:db8:1:2::/64"),
        (("2001:db8:1:2:ffff:ffff:ffff:ffff", 1), "2001:db8:1:2::/64"),
        (("2001:db8:1:3::", 1), "2001:db8:1:3::/64"),
    ],
)
def test_a_peer_is_an_address_or_a_network_of_64_bits(client: tuple[str, int] | None, peer: str) -> None:
    """Whoever has an IPv6 address has 2^64 of them."""
    assert peer_of(client) == peer


def test_places_are_those_of_all_and_those_of_a_peer(own: Meters) -> None:
    places = Connections(4, 2, own)
    assert [places.take(peer) for peer in "aaab"] == [True, True, False, True]
    assert (places.are_scarce, shown(own, "connections_refused_total")) == (True, 1)
    assert [places.take(peer) for peer in "cc"] == [True, False]
    assert shown(own, "connections_refused_total") == 2
    places.give_back("a")
    assert places.take("d")
    for peer in "abc":
        places.give_back(peer)
    assert places._taken == {"d": 1} and not places.are_scarce
    assert [Connections(2, None, own).take("a") for _ in range(2)] == [True] * 2
    places = Connections(4, None, own)
    assert [(places.take("a"), places.are_scarce) for _ in range(5)] == [
        *((True, False), (True, False), (True, True), (True, True)),
        (False, True),
    ]


# ---------------------------------------------------------------------- room for bodies


def test_bytes_are_limited_in_all_and_of_a_peer_and_given_back(own: Meters) -> None:
    found = Limits(10, 5, 20, own, peer_bytes=15)
    with found.room_for(None, "a") as first, found.room_for(None, "b") as second:
        first.came(6)
        first.came(4)
        second.came(10)
        assert shown(own, "bytes_waiting") == 20
        with found.room_for(None, "c") as third, pytest.raises(Refused, match=r"^busy$") as caught:
            third.came(1)
        assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "1"})
    assert shown(own, "bytes_waiting") == 0
    with found.room_for(None, "a") as first, found.room_for(None, "a") as second:
        first.came(10)
        second.came(5)
        with pytest.raises(Refused, match=r"^busy$"):
            second.came(1)
    assert not found._of_peers and not found._coming
    with Limits(20, 1, 20, own).room_for(None) as only:
        only.came(20)


def test_a_length_that_is_announced_is_the_most_that_may_come(own: Meters) -> None:
    for length in ("5a", "٣", "+5", "-5", "5.0"):
        with pytest.raises(Refused, match=r"^content_length$") as caught, Limits(10, 1, 10, own).room_for(length):
            pass
        assert caught.value.status == 400
    with Limits(10, 1, 10, own).room_for("3") as room:
        room.came(3)
        with pytest.raises(Refused, match=r"^too_large$") as caught:
            room.came(1)
        assert caught.value.status == 413


def test_complete_requests_wait_in_so_many_places(own: Meters) -> None:
    found = Limits(10, 2, 100, own)

    async def comes(body: Body) -> None:
        with body.reading(30):
            body.came(1)

    with found.room_for(None) as first, found.room_for(None) as second, found.room_for(None) as third:
        for number, body in enumerate((first, second)):
            assert shown(own, "requests_waiting") == number
            asyncio.run(comes(body))
        assert shown(own, "requests_waiting") == 2
        with pytest.raises(Refused, match=r"^busy$"):
            asyncio.run(comes(third))
        with pytest.raises(Refused, match=r"^busy$"), found.room_for(None):
            pass
    assert [shown(own, f"{what}_waiting") for what in ("requests", "bytes")] == [0, 0]
    with found.room_for(None):
        pass


def coming(found: Limits, clock: Clock, *bodies: tuple[float, int]) -> list[Any]:
    """Bodies that began at these seconds, with so many bytes."""
    made = []
    for began, size in bodies:
        clock.now = began
        body: Any = Body(found, f"of {began}", 100)
        body.give_up = mock.Mock()
        found._coming[body] = None
        if size:
            body.came(size)
        made.append(body)
    return made


def test_the_oldest_bodies_that_are_late_make_room(own: Meters, clock: Clock) -> None:
    """After a second, and only as many as are needed; empty ones have none to give."""
    found = Limits(100, 5, 20, own)
    empty, old, older, young, needy = coming(found, clock, (0, 0), (1, 6), (2, 6), (2.5, 6), (2.6, 2))
    clock.now = 3.0
    needy.came(5)
    assert [body.give_up.call_count for body in (empty, old, older, young, needy)] == [0, 1, 0, 0, 0]
    assert (old.size, needy.size, shown(own, "bytes_waiting")) == (0, 7, 19)
    clock.now = 2.999
    with pytest.raises(Refused, match=r"^busy$"):
        needy.came(5)
    assert (older.give_up.call_count, older.size, needy.size) == (0, 6, 7)
    clock.now = 3.5
    needy.came(7)
    assert [body.give_up.call_count for body in (older, young)] == [1, 0]
    with pytest.raises(Refused, match=r"^busy$"):
        needy.came(13)
    assert (young.give_up.call_count, young.size) == (0, 6)
    needy.came(6)
    assert (young.give_up.call_count, needy.size, shown(own, "bytes_waiting")) == (1, 20, 20)


@pytest.mark.parametrize("ends", ["in time", "late", "given up"])
def test_reading_has_an_end(ends: str, own: Meters) -> None:
    async def read() -> None:
        with Limits(10, 1, 10, own).room_for(None) as body:
            body.give_up()  # nothing is read yet
            with body.reading(0.01 if ends == "late" else 30):
                if ends == "given up":
                    body.give_up()
                await asyncio.sleep(0 if ends == "in time" else 30)

    if ends == "in time":
        asyncio.run(read())
        return
    with pytest.raises(Refused, match=r"^timeout$") as caught:
        asyncio.run(read())
    assert caught.value.status == 408


# ---------------------------------------------------------------------- heads of requests


class Wire:
    """A connection without a network: what a protocol writes, and when it asks to be called."""

    def __init__(self, places: Connections, peer: str = "192.0.2.7"):
        self.written, self.is_closed, self.was_aborted, self.was_cut = b"", False, False, False
        self.delays: list[float] = []
        self.seen: list[tuple[list[tuple[bytes, bytes]], bytes]] = []
        self._peer = peer
        loop = asyncio.get_running_loop()
        config = uvicorn.Config(
            self._app, interface="asgi3", lifespan="off", log_config=None, server_header=False, proxy_headers=False
        )
        state: dict[str, Any] = {}
        self.protocol: Any = BoundedRequests(places=places, config=config, server_state=ServerState(), app_state=state)
        self.handles: list[mock.Mock] = []
        self.protocol.loop = SimpleNamespace(call_later=self._call_later, create_task=loop.create_task)
        self.protocol.connection_made(self)

    def _call_later(self, delay: float, what: Callable[[], None]) -> mock.Mock:
        assert what == self.protocol.timeout_keep_alive_handler
        self.delays.append(delay)
        self.handles.append(mock.Mock(delay=delay))
        return self.handles[-1]

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            event = await receive()
            if event["type"] == "http.disconnect":
                return
            body, more = body + event.get("body", b""), event.get("more_body", False)
        self.seen.append((scope["headers"], body))
        await send(
            {
                "type": "http.response.start",
                "status": 202 if body == GOOD else 400,
                "headers": [(b"content-length", b"0")],
            }
        )
        await send({"type": "http.response.body", "body": b""})

    async def send(self, *packets: bytes) -> list[int]:
        """Hand on packets, and let all run that can; statuses of the answers."""
        for packet in packets:
            if not self.is_closed:
                self.protocol.data_received(packet)
            for _ in range(4):
                await asyncio.sleep(0)
        for _ in range(40):
            await asyncio.sleep(0)
        return statuses(self.written)

    # what a transport has
    def get_extra_info(self, name: str) -> Any:
        return {"peername": (self._peer, 5), "sockname": ("127.0.0.1", 80)}.get(name)

    def is_closing(self) -> bool:
        return self.is_closed

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = self.was_aborted = True

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def places_of(own: Meters, most: int = 1000, of_a_peer: int | None = None) -> Connections:
    return Connections(most, of_a_peer, own)


def exchanged(own: Meters, *packets: bytes) -> tuple[list[int], Wire]:
    """The statuses of the answers to some packets of one connection."""

    async def run() -> tuple[list[int], Wire]:
        wire = Wire(places_of(own))
        found = await wire.send(*packets)
        wire.was_cut = wire.is_closed
        wire.protocol.connection_lost(None)
        return found, wire

    return asyncio.run(run())


@pytest.mark.parametrize("name", CASES)
def test_framing_is_that_of_the_running_gateway(name: str, own: Meters) -> None:
    """Each request of ``test_http_framing`` is answered once, and a body is no request."""
    case = CASES[name]
    found, wire = exchanged(own, *case.packets)
    assert found == case.statuses
    assert sum(body == GOOD for _, body in wire.seen) == case.accepted


def test_a_request_has_a_hundred_headers_and_a_hundred_trailers(own: Meters) -> None:
    lines = [b"A%d: b\r\n" % number for number in range(98)]
    assert exchanged(own, head(*lines) + GOOD)[0] == [202]  # with Host and Content-Length
    assert exchanged(own, head(*lines, b"C: d\r\n") + GOOD)[0] == [400]
    for number, status in ((100, 202), (101, 400)):
        trailers = b"".join(b"T%d: b\r\n" % each for each in range(number))
        body = in_chunks(GOOD).removesuffix(b"\r\n") + trailers + b"\r\n"
        found, wire = exchanged(own, head(CHUNKED, length=None), body)
        assert found == [status]
        assert all(name in (b"host", b"transfer-encoding") for headers, _ in wire.seen for name, _ in headers)


def test_a_trailer_replaces_no_header(own: Meters) -> None:
    """A proxy may have set it."""
    body = in_chunks(GOOD).removesuffix(b"\r\n") + b"X-Country: zz\r\n\r\n"
    packets = [head(b"X-Country: de\r\n", CHUNKED, length=None) + body] * 2
    found, wire = exchanged(own, *packets)
    assert found == [202, 202]
    assert [dict(headers)[b"x-country"] for headers, _ in wire.seen] == [b"de"] * 2
    assert [len(headers) for headers, _ in wire.seen] == [3, 3]


@pytest.mark.parametrize(("more", "answers"), [(0, []), (1, [400])])
@pytest.mark.parametrize("with_body", [False, True])
def test_what_comes_beside_a_body_is_64_kib(with_body: bool, more: int, answers: list[int], own: Meters) -> None:
    """Not counting the packet of the first byte; chunked encoding may double a body."""
    first = head(CHUNKED, length=None) if with_body else head(length=None)[:-2]
    packets, room = [first], 65_536
    if with_body:
        packets += [b"100\r\n" + b"a" * 0x100 + b"\r\n"]
        room += 2 * 0x100 - len(packets[1])
        packets += [b"1;" + b"x" * (room - 2 + more)]
    else:
        packets += [b"A: " + b"a" * 60_000, b"a" * (room - 60_003 + more)]
    found, wire = exchanged(own, *packets)
    assert found == answers
    assert wire.was_cut == bool(answers)


def test_line_ends_before_a_request_are_bounded_too(own: Meters) -> None:
    lines = b"\r\n" * 32_768
    found, wire = exchanged(own, lines)
    assert (found, wire.was_cut) == ([], False)
    assert exchanged(own, lines + b"\r") == ([400], mock.ANY)


def test_an_earlier_request_leaves_no_bytes_to_the_next(own: Meters) -> None:
    """Neither counts for the other, whatever their bodies."""
    start = head(length=None)[:-2]
    first = [start, b"A: " + b"a" * 65_000, b"\r\nContent-Length: %d\r\n\r\n" % len(GOOD), GOOD]
    assert exchanged(own, *first, *first)[0] == [202, 202]
    assert exchanged(own, head() + GOOD, start, b"A: " + b"a" * 65_533, b"a")[0] == [202, 400]


@pytest.mark.parametrize(("scarce", "seconds"), [(False, 20.0), (True, 2.0)])
def test_a_head_is_complete_within_20_seconds_or_2_where_places_are_scarce(
    scarce: bool, seconds: float, own: Meters
) -> None:
    """From the opening, the first byte, and the answer before; a body has a limit of its own."""

    async def run() -> None:
        places = places_of(own, most=3 if scarce else 1000)
        if scarce:
            assert places.take("another")
        wire = Wire(places)
        [opened] = wire.handles
        await wire.send(b"P")
        first = wire.handles[-1]
        assert wire.delays == [seconds] * 2 and opened.cancel.called and not first.cancel.called
        await wire.send(head()[1:])
        assert first.cancel.called and len(wire.delays) == 2
        assert await wire.send(GOOD) == [202]
        assert wire.delays[2:].count(seconds) == 1
        last = [handle for handle in wire.handles if handle.delay == seconds][-1]
        assert not last.cancel.called
        wire.protocol.connection_lost(None)
        assert last.cancel.called
        assert places.take("192.0.2.7") and places._total == 1 + scarce

    asyncio.run(run())


def test_the_next_head_of_a_pipeline_is_waited_for_after_the_last_answer(own: Meters) -> None:
    async def run() -> None:
        wire = Wire(places_of(own))
        assert await wire.send((head() + GOOD) * 3) == [202] * 3
        waiting = [handle for handle in wire.handles if handle.delay == 20.0 and not handle.cancel.called]
        assert waiting == [wire.handles[-1]]
        wire.protocol.connection_lost(None)

    asyncio.run(run())


def test_a_connection_without_a_place_is_cut_and_gives_none_back(own: Meters) -> None:
    async def run() -> None:
        places = places_of(own, of_a_peer=1)
        first, second = Wire(places), Wire(places)
        assert (first.was_aborted, second.was_aborted) == (False, True)
        assert second.delays == []
        second.protocol.connection_lost(None)
        assert Wire(places).was_aborted
        for _ in range(2):
            first.protocol.connection_lost(None)
        assert places._total == 0
        assert not Wire(places).was_aborted

    asyncio.run(run())
    assert (bounded_requests.MOST_HEADERS, bounded_requests.MOST_BYTES) == (100, 65_536)


# ---------------------------------------------------------------------- pages


OWN = ("127.0.0.1", "127.0.0.1:8080", "[::1]", "[2001:db8::1]:8080", "localhost", "localhost:80", "a.localhost")
"""Names that no page can claim by DNS."""


@pytest.mark.parametrize(
    ("allowed", "origin", "host", "may"),
    [
        *(((), f"http://{own}", own, True) for own in OWN),
        *(
            ((), f"http://{name}", name, False)
            for name in ("a.example", "localhost.evil.example", "1.2.3.4.evil.example")
        ),
        *(
            ((), f"http://{name}", name, False)
            for name in ("a.example:80", "evil-localhost", "0x7f.1", "[evil]", "[::1")
        ),
        ((), None, None, True),
        ((), "https://a.example", "a.example", True),
        ((), "http://a.example:8080", "a.example:8080", False),
        (("http://a.example:8080",), "http://a.example:8080", "a.example:8080", True),
        ((), "ftp://a.example", "a.example", False),
        ((), "https://b.a.example", "a.example", False),
        ((), "https://a.example", "b.a.example", False),
        ((), "https://a.example", None, False),
        ((), "null", None, False),
        ((), "https://", "", False),
        ((), "a.example", "a.example", False),
        (("https://b.example",), "https://b.example", "a.example", True),
        (("https://b.example",), "http://b.example", "a.example", False),
        (("*",), "https://c.example", "a.example", True),
    ],
)
def test_a_page_may_send_from_its_own_host_or_an_allowed_one(
    allowed: tuple[str, ...], origin: str | None, host: str | None, may: bool
) -> None:
    if may:
        Origins(allowed).check(origin, host)
        return
    with pytest.raises(Refused, match=r"^origin$") as caught:
        Origins(allowed).check(origin, host)
    assert caught.value.status == 403


@pytest.mark.parametrize("host", [*OWN, "gw.example", "GW.example:8080", "gw.example.", "b.example:81", None])
def test_a_gateway_with_listed_hosts_answers_under_them_and_addresses(host: str | None) -> None:
    origins = Origins((), ["gw.example", "b.example:81"])
    for other in ("evil.example", "gw.example.evil.example", "b.example", "b.example:82", "", None):
        with pytest.raises(Refused, match=r"^host$") as caught:
            origins.check(None, other)
        assert caught.value.status == 403
    if host is not None:
        origins.check(None, host)
        origins.check(f"http://{host}", host)


# ---------------------------------------------------------------------- numbers and logs


def test_health_is_bad_for_ten_seconds_or_until_a_delivery(own: Meters, clock: Clock) -> None:
    assert own.is_well
    for failed in (own.undelivered, own.held_up):
        failed(Undelivered("of this test"))
        clock.now += 10.0
        assert not own.is_well
        clock.now += 0.01
        assert own.is_well
    own.undelivered(Undelivered("of this test"))
    own.delivered(3, [b"ab", b"cde"])
    assert own.is_well
    names = ("delivery_failures", "reports_delivered", "messages_delivered", "bytes_delivered")
    assert [shown(own, f"{name}_total") for name in names] == [3, 3, 2, 5]


def test_failures_are_said_every_ten_seconds_without_the_text_of_a_fault(
    own: Meters, clock: Clock, said: list[str]
) -> None:
    own.undelivered(Undelivered("first"))
    clock.now += 9.9
    own.held_up(OSError(28, "No space left on device"))
    clock.now += 0.1
    own.held_up(OSError(28, "No space left on device"))
    for error in (ValueError("a text with data"), Undelivered("the reason")):
        clock.now += 10
        own.held_up(error)
    assert said == [
        "reports cannot be delivered, and their senders are told: first",
        "reports stay in the spool and are not lost: [Errno 28] No space left on device",
        "reports stay in the spool and are not lost: ValueError",
        "reports stay in the spool and are not lost: the reason",
    ]


def test_each_verdict_is_counted(own: Meters) -> None:
    refused = Verdict(b"", 2, Counter({Reason.MALFORMED: 3, Reason.TOO_OLD: 4}))
    own.judged(refused)
    own.too_large()
    own.forwarded(5)
    assert [shown(own, f"{name}_total") for name in ("reports_received", "reports_accepted", "messages_forwarded")] == [
        *(10, 2, 5),
    ]
    text = own.text().decode()
    for reason, number in ((Reason.MALFORMED, 3), (Reason.TOO_OLD, 4), (Reason.TOO_LARGE, 1)):
        assert f'uldp_gateway_reports_refused_total{{reason="{reason.code}"}} {float(number)}\n' in text
    assert "process_cpu_seconds_total" in text and "_created" not in text


def test_times_of_answers_are_shown_up_to_half_a_minute(own: Meters) -> None:
    ends = [line.split('"')[1] for line in own.text().decode().splitlines() if "request_seconds_bucket" in line]
    assert " ".join(ends) == "0.005 0.01 0.025 0.05 0.1 0.25 0.5 1.0 2.5 5.0 10.0 30.0 +Inf"


def record(line: int, level: int = logging.WARNING, error: Exception | None = None) -> logging.LogRecord:
    info = None if error is None else (type(error), error, None)
    return logging.LogRecord("library", level, "place.py", line, "of %s", ("a person",), info)


def test_a_place_of_a_library_logs_a_line_a_second_without_content(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = QuietHandler()
    for moment, line in ((0, 5), (0.5, 5), (0.6, 6), (0.99, 5), (1.0, 5), (1.5, 5), (2.5, 5), (3.5, 5)):
        clock.now = 1000.0 + moment
        handler.emit(record(line, error=ValueError("a person") if line == 6 else None))
    assert capsys.readouterr().err.splitlines() == [
        "gateway: WARNING of library at place:5",
        "gateway: WARNING of library at place:6: ValueError",
        "gateway: WARNING of library at place:5 (2 more since the last line)",
        "gateway: WARNING of library at place:5 (1 more since the last line)",
        "gateway: WARNING of library at place:5",
    ]


@pytest.fixture
def restored() -> Iterator[None]:
    root = logging.getLogger()
    before = root.level, [*root.handlers]
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    logging.captureWarnings(False)


@pytest.mark.usefixtures("restored")
def test_warnings_of_all_libraries_are_quiet() -> None:
    with mock.patch.object(logging, "captureWarnings") as captured:
        log_quietly()
    root = logging.getLogger()
    assert [type(handler) for handler in root.handlers] == [QuietHandler]
    assert root.level == logging.WARNING
    captured.assert_called_once_with(True)
