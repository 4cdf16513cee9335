"""What the gateway is told and how it serves, without processes: options, application, packs, and the spool."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import json
import os
import resource
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import uvicorn

from packages.gateway.tests.support.desks import Kept, batches_of, blocks_of, desk_for
from packages.gateway.tests.support.gateways import singles
from tests.support.messages_cases import KRR, NOON, decoder, packed, single, write_files
from tests.support.power_loss import Disk
from uldp_transforms.ldp import SpecError
from uldp_transforms.messages.files import spool_names
from uldp_transforms_gateway import gateway_options, serve, spool, spool_file, web
from uldp_transforms_gateway.admission import Admission
from uldp_transforms_gateway.apps.app_keys import Key, Tokens
from uldp_transforms_gateway.apps.signed_tokens import UsedTokens
from uldp_transforms_gateway.apps.used_token_files import UsedTokenFiles
from uldp_transforms_gateway.apps.uses import Use
from uldp_transforms_gateway.batched_writer import BatchedWriter
from uldp_transforms_gateway.gateway_options import GatewayConfig, configure
from uldp_transforms_gateway.limits import Limits
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.origins import Origins
from uldp_transforms_gateway.outlets.outlet import Undelivered
from uldp_transforms_gateway.outlets.pubsub_outlet import PubSubOutlet
from uldp_transforms_gateway.packer import Packer
from uldp_transforms_gateway.spool import Spool
from uldp_transforms_gateway.spool_file import SpoolFile
from uldp_transforms_gateway.web import Desk, Door, application

TOPIC = "--topic projects/p/topics/t"
KEY = "key-of-the-app-0123456789"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(tmp_path, {"krr.json": KRR})
    (tmp_path / "keys").write_text(f"{KEY} app\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(words: str, reporting: bool = True) -> GatewayConfig:
    return configure([*(["--collection=krr.json"] if reporting else []), *words.split()])


# ---------------------------------------------------------------------- options

DEFAULTS = {
    "set_groups": None,
    "navigations": None,
    "spool": None,
    "spool_every": 60.0,
    "pack_size": 1_000,
    "pack_every": 0.2,
    "host": "127.0.0.1",
    "port": 8080,
    "origins": (),
    "keys": (),
    "signed_tokens": False,
    "token_reports": None,
    "used_tokens": None,
    "hosts": (),
    "app_requests": None,
    "app_bytes": None,
    "max_body": 1_000_000,
    "body_timeout": 20.0,
    "max_waiting": 10_000,
    "max_waiting_bytes": 64_000_000,
    "max_peer_connections": None,
    "max_peer_bytes": None,
}
GIVEN = (
    "--spool s --spool_every 90s --pack_size 7 --pack_every 1s --host ::1 --port 0 --allow_origin https://a.example "
    "--allow_origin https://b.example --token_file keys --signed_tokens --token_reports 3 --app_requests 4 "
    "--app_bytes 5 --max_body 6 --body_timeout 1m --max_waiting 8 --max_waiting_bytes 9 --max_peer_connections 10 "
    "--max_peer_bytes 11 --navigations n --used_tokens u --allow_host gw.example --allow_host gw"
)


@pytest.mark.usefixtures("folder")
def test_options_have_these_defaults_and_units() -> None:
    found = configured(TOPIC)
    assert isinstance(found.outlet, PubSubOutlet) and found.spec is not None
    assert {name: getattr(found, name) for name in DEFAULTS} == DEFAULTS
    assert {field.name for field in dataclasses.fields(found)} == {*DEFAULTS, "outlet", "spec"}
    found = configured(GIVEN)
    assert {name: getattr(found, name) for name in DEFAULTS} == {
        "set_groups": None,
        "navigations": "n",
        "spool": "s",
        "spool_every": 90.0,
        "pack_size": 7,
        "pack_every": 1.0,
        "host": "::1",
        "port": 0,
        "origins": ("https://a.example", "https://b.example"),
        "keys": (Key(KEY, "app"),),
        "signed_tokens": True,
        "token_reports": 3,
        "used_tokens": "u",
        "hosts": ("gw.example", "gw"),
        "app_requests": 4,
        "app_bytes": 5,
        "max_body": 6,
        "body_timeout": 60.0,
        "max_waiting": 8,
        "max_waiting_bytes": 9,
        "max_peer_connections": 10,
        "max_peer_bytes": 11,
    }
    assert found.outlet is None
    assert configured("--spool s --token_file keys --signed_tokens").token_reports == 1
    only = configured("--navigations n", reporting=False)
    assert (only.spec, only.outlet, only.spool) == (None, None, None)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ("--port 65535", None),
        ("--port 0", None),
        ("--port -1", "--port must be a number from 0 to 65535, got -1"),
        ("--port 65536", "--port must be a number from 0 to 65535, got 65536"),
        ("--max_body 9999000 --max_waiting_bytes 9999000 --max_peer_bytes 9999000", None),
        ("--max_body 9999001", "--max_body must be at most 9999000, got 9999001"),
        ("--max_body 9 --max_waiting_bytes 8", "--max_waiting_bytes must be at least --max_body, 9, got 8"),
        ("--max_body 9 --max_peer_bytes 8", "--max_peer_bytes must be at least --max_body, 9, got 8"),
        ("--pack_size 370296", None),
        ("--pack_size 370297", "--pack_size must be at most 370296, so that messages can be published, got 370297"),
    ],
)
def test_limits_have_limits(words: str, refused: str | None) -> None:
    if refused is None:
        configured(f"{TOPIC} {words}")
        return
    with pytest.raises(SpecError) as caught:
        configured(f"{TOPIC} {words}")
    assert str(caught.value) == refused


@pytest.mark.usefixtures("folder")
def test_what_the_job_would_refuse_by_time_and_id_is_told_on_the_command_line() -> None:
    spec = configured(f"{TOPIC} --window 1h --allowed_lateness 2h --deduplicate").spec
    assert spec is not None and spec.windows is not None
    assert (spec.windows.size, spec.allowed_lateness, spec.deduplicate) == (3_600_000, 7_200_000, True)
    spec = configured(TOPIC).spec
    assert spec is not None and (spec.windows, spec.deduplicate) == (None, False)
    assert gateway_options.MOST_BYTES == gateway_options.wire.MAX_MESSAGE_BYTES - 1_000


# ---------------------------------------------------------------------- the server

INFINITE = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("limits", "set_to"),
    [
        ((10, 100), (50, 100)),
        ((10, 40), (40, 40)),
        ((10, INFINITE), (50, INFINITE)),
        ((49, 100), (50, 100)),
        ((50, 100), None),
        ((60, 100), None),
        ((INFINITE, INFINITE), None),
    ],
)
def test_as_many_files_are_open_as_the_system_allows(
    limits: tuple[int, int], set_to: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = mock.Mock()
    monkeypatch.setattr(resource, "getrlimit", {resource.RLIMIT_NOFILE: limits}.get)
    monkeypatch.setattr(resource, "setrlimit", changed)
    serve._allow_files(50)
    assert [call.args for call in changed.call_args_list] == (
        [] if set_to is None else [(resource.RLIMIT_NOFILE, set_to)]
    )


def served(words: str, started: bool = True, reporting: bool = True) -> tuple[int, uvicorn.Config, Any, dict[str, Any]]:
    """The exit code of a gateway whose server does nothing, what the server was told, and calls of parts."""
    calls: dict[str, Any] = {}
    server = mock.Mock(started=started)
    with contextlib.ExitStack() as patched:
        for name in ("log_quietly", "_allow_files", "build", "Connections"):
            calls[name] = patched.enter_context(mock.patch.object(serve, name))
        calls["build"].return_value = web.Starlette()
        server_of = patched.enter_context(mock.patch.object(uvicorn, "Server", return_value=server))
        code = serve.job(configured(words, reporting))
    [config] = server_of.call_args.args
    return code, config, server, calls


@pytest.mark.usefixtures("folder")
def test_the_server_is_told_its_limits_and_to_log_nothing() -> None:
    code, config, server, calls = served(f"{TOPIC} --port 0 --max_waiting 100 --max_peer_connections 3")
    assert code == 0
    assert (config.limit_concurrency, config.timeout_graceful_shutdown) == (1_200, 60)
    assert (config.log_config, config.access_log, config.server_header, config.proxy_headers) == (
        None,
        False,
        False,
        False,
    )
    assert (config.ws, config.lifespan) == ("none", "on")
    calls["_allow_files"].assert_called_once_with(2_200)
    calls["log_quietly"].assert_called_once_with()
    assert calls["Connections"].call_args.args[:2] == (1_700, 3)
    [[listening]] = [call.kwargs["sockets"] for call in server.run.call_args_list]
    assert listening.fileno() == -1, "the socket is closed at the end"
    _, address, _ = calls["build"].call_args.args
    assert address.startswith("http://127.0.0.1:") and int(address.rpartition(":")[2]) > 0
    protocol: Any = config.http
    assert protocol.keywords == {"places": calls["Connections"].return_value}
    assert served(f"{TOPIC} --port 0", started=False)[0] == 1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_a_gateway_listens_with_a_long_queue(host: str, family: int) -> None:
    config = configured(f"{TOPIC} --host {host} --port 7")
    with mock.patch.object(socket, "create_server") as made:
        assert serve._listen(config) is made.return_value
        made.assert_called_once_with((host, 7), family=family, backlog=2048)
        made.side_effect = OSError(98, "Address already in use")
        with pytest.raises(SpecError) as caught:
            serve._listen(config)
    assert str(caught.value) == (f"--host and --port must be free to listen on, got {host}:7: Address already in use")


@pytest.mark.usefixtures("folder")
def test_a_gateway_listens_at_ipv6_addresses() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        *_, calls = served(f"{TOPIC} --host ::1 --port 0")
    except SpecError as refused:
        pytest.skip(f"this machine has no IPv6: {refused}")
    assert calls["build"].call_args.args[1].startswith("http://[::1]:")


def test_a_signal_ends_the_server_and_not_the_process() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with serve._signals_end_the_server_only():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.raise_signal(number)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.usefixtures("folder")
def test_windows_of_parts_of_hours_are_told_at_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    """Clients of a collection without client windows round event times to hours."""
    for window, number in (("1h", 0), ("15m", 1)):
        serve.build(configured(f"--spool s{number} --window {window}"), "http://x", Meters(print))
        said = capsys.readouterr().err
        assert said.count("names no client_window, so clients round event times down to the full hour") == number


@pytest.mark.usefixtures("folder")
def test_used_tokens_are_beside_the_reports_or_the_navigations(capsys: pytest.CaptureFixture[str]) -> None:
    signed = "--token_file keys --signed_tokens"
    assert serve._token_files(configured("--spool s --token_file keys")) is None
    assert capsys.readouterr().err == ""
    for words, place in ((f"--spool s --navigations n {signed}", "s"), (f"--navigations n {signed}", "n")):
        found = serve._token_files(configured(words, reporting="spool" in words))
        assert isinstance(found, UsedTokenFiles) and found._folder == Path(place, "tokens")
        assert found._folder.is_dir() and found._folder.stat().st_mode & 0o777 == 0o700
    assert serve._token_files(configured(f"{TOPIC} {signed}")) is None
    said = "gateway: used tokens are not stored without --used_tokens or --spool: after a restart, each can send its "
    assert capsys.readouterr().err == f"{said}message again, or another one\n"


@contextlib.asynccontextmanager
async def no_life() -> Any:
    yield


Answer = tuple[int, dict[str, str], bytes]


async def asked(app: Any, method: str, path: str, *chunks: bytes, **headers: str) -> Answer:
    """Status, headers and body of an answer of an application."""
    events = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    events += [{"type": "http.request", "body": b"", "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        return events.pop(0) if events else {"type": "http.disconnect"}

    async def send(event: Any) -> None:
        sent.append(event)

    named = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": named, "query_string": b"", "client": None}
    await asyncio.wait_for(app(scope, receive, send), 30)
    begin, *bodies = sent
    found = {name.decode(): text.decode() for name, text in begin["headers"]}
    return begin["status"], found, b"".join(event.get("body", b"") for event in bodies)


def door_of(own: Meters, **parts: Any) -> Door:
    return Door(Limits(10**6, 100, 10**7, own), 60, own, **parts)


def app_of(
    own: Meters, kept: Any, *, origins: Sequence[str] = (), spools: bool = False, most: int | None = None
) -> Any:
    """The application over what takes packs."""
    desk = Desk(Admission(decoder(), 10), Packer(kept, 10, 0.01, own), door_of(own), own, spools=spools, most=most)
    return application({"/reports": desk.reports}, own, origins, no_life())


@pytest.fixture
def own() -> Meters:
    return Meters([].append)


def post(app: Any, *chunks: bytes, **headers: str) -> tuple[int, Any]:
    status, _, body = asyncio.run(asked(app, "POST", "/reports", *chunks, **headers))
    return status, json.loads(body)


BOTH = packed(rows=[(1, NOON, bytes(16), b"\1"), (9, NOON, bytes(16), b"\1"), (9, NOON, bytes(16), b"\1")])


@pytest.mark.parametrize(("spools", "status", "word"), [(False, 200, "published"), (True, 202, "spooled")])
def test_an_answer_says_what_was_delivered_and_what_was_not(spools: bool, status: int, word: str, own: Meters) -> None:
    kept = Kept()
    app = app_of(own, kept, spools=spools)
    assert post(app, single()) == (status, {word: 1})
    assert post(app, BOTH) == (status, {word: 1, "refused": {"cohort_range": 2}})
    assert post(app, single()[:9], b"", single()[9:], content_encoding="identity") == (status, {word: 1})
    assert len(kept.messages) == 3
    assert own.registry.get_sample_value("uldp_gateway_requests_total", {"status": str(status)}) == 3
    assert own.registry.get_sample_value("uldp_gateway_request_seconds_count") == 3
    assert 0 < (own.registry.get_sample_value("uldp_gateway_request_seconds_sum") or 0) < 60
    found, reason = post(app, single()[:-1])
    assert (found, reason) == (400, {"reason": "malformed", "refused": {"malformed": 1}})


def test_more_reports_than_a_token_may_send_are_too_large(own: Meters) -> None:
    assert post(app_of(own, Kept(), most=3), BOTH)[0] == 200
    assert post(app_of(own, Kept(), most=2), BOTH) == (413, {"reason": "too_large"})
    found = own.registry.get_sample_value("uldp_gateway_reports_refused_total", {"reason": "too_large"})
    assert found == 1


def test_what_is_not_delivered_is_sent_again(own: Meters) -> None:
    status, headers, body = asyncio.run(asked(app_of(own, Kept(fails=True)), "POST", "/reports", single()))
    assert (status, headers["retry-after"], json.loads(body)) == (503, "1", {"reason": "unavailable"})
    health = asyncio.run(asked(app_of(own, Kept()), "GET", "/healthz"))
    assert (health[0], json.loads(health[2])) == (503, {"status": "undelivered"})
    assert post(app_of(own, Kept()), single())[0] == 200
    health = asyncio.run(asked(app_of(own, Kept()), "GET", "/healthz"))
    assert (health[0], json.loads(health[2])) == (200, {"status": "ok"})


def test_whoever_goes_away_is_no_fault_of_the_gateway(own: Meters) -> None:
    """Neither before the body is complete, nor while others of the same moment are judged."""

    async def goes() -> Answer:
        request = mock.Mock(headers={}, scope={"client": None, "headers": []})
        request.stream = mock.Mock(side_effect=web.ClientDisconnect)
        answer = await door_of(own).answer(request, mock.Mock(), mock.Mock())
        return answer.status_code, {}, bytes(answer.body)

    status, _, body = asyncio.run(goes())
    assert (status, json.loads(body)) == (400, {"reason": "disconnected"})
    assert own.is_well

    async def others() -> list[Any]:
        desk, kept = desk_for(Kept()), singles(3, 5)
        tasks = [asyncio.create_task(desk._deliver(message)) for message in kept]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = asyncio.run(asyncio.wait_for(others(), 30))
    assert isinstance(found[1], asyncio.CancelledError)
    assert [json.loads(found[at].body) for at in (0, 2)] == [{"published": 1}] * 2


def test_a_fault_of_the_judge_is_told_to_those_who_have_no_verdict_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where one of them has gone."""

    def judge(self: Admission, messages: Sequence[bytes], arrival: int) -> Any:
        yield from Admission(decoder(), 10).judge(messages[:1], arrival)
        raise ValueError("a text with data")

    desk = desk_for(Kept())
    monkeypatch.setattr(desk._admission, "judge", judge.__get__(desk._admission))

    async def answers() -> list[Any]:
        tasks = [asyncio.create_task(desk._deliver(message)) for message in singles(3, 5)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, gone, last = asyncio.run(asyncio.wait_for(answers(), 30))
    assert json.loads(first.body) == {"published": 1}
    assert isinstance(gone, asyncio.CancelledError)
    assert isinstance(last, Undelivered) and str(last) == "ValueError"


def test_only_these_paths_are_answered(own: Meters) -> None:
    app = app_of(own, Kept())
    for method, path, status in (
        ("GET", "/reports", 405),
        ("POST", "/healthz", 405),
        ("POST", "/metrics", 405),
        ("POST", "/reports/", 404),
        ("GET", "/docs", 404),
    ):
        assert asyncio.run(asked(app, method, path))[0] == status
    status, headers, body = asyncio.run(asked(app, "GET", "/metrics"))
    assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert b"uldp_gateway_reports_received_total 0.0\n" in body


PREFLIGHT = {"origin": "https://a.example", "access_control_request_method": "POST"}


def test_scripts_of_named_pages_may_read_answers(own: Meters) -> None:
    app = app_of(own, Kept(), origins=["https://a.example"])
    status, headers, _ = asyncio.run(
        asked(app, "OPTIONS", "/reports", **PREFLIGHT, access_control_request_headers="authorization,content-type")
    )
    assert (status, headers["access-control-allow-origin"]) == (200, "https://a.example")
    assert (headers["access-control-max-age"], headers["access-control-allow-methods"]) == ("86400", "POST")
    status, headers, _ = asyncio.run(asked(app, "POST", "/reports", single(), origin="https://a.example"))
    assert headers["access-control-expose-headers"] == "Retry-After"
    without = asyncio.run(asked(app_of(own, Kept()), "OPTIONS", "/reports", **PREFLIGHT))
    assert without[0] == 405 and "access-control-allow-origin" not in without[1]


def test_a_door_without_origins_or_keys_lets_everybody_in_but_other_pages(own: Meters) -> None:
    class Taker:
        async def deliver(self, body: bytes, use: Any) -> Any:
            assert use is None
            return web.JSONResponse({"size": len(body)})

        def again(self, body: bytes) -> Any:
            raise AssertionError(body)

    def status(door: Door, **headers: str) -> int:
        async def run() -> int:
            async def app(scope: Any, receive: Any, send: Any) -> None:
                await (await door.answer(web.Request(scope, receive), Taker(), mock.Mock()))(scope, receive, send)

            return (await asked(app, "POST", "/", b"12345", **headers))[0]

        return asyncio.run(run())

    assert status(door_of(own)) == 200
    assert status(door_of(own), origin="https://a.example") == 403
    assert status(door_of(own, origins=Origins(["https://a.example"])), origin="https://a.example") == 200
    keys = Tokens([Key(KEY, "app")], 2, 100, own)
    assert status(door_of(own, tokens=keys)) == 401
    for expected in (200, 200, 429):
        assert status(door_of(own, tokens=keys), authorization=f"Bearer {KEY}") == expected
    assert keys.check(f"Bearer {KEY}").app._bytes[0]._left == pytest.approx(90, abs=5)
    assert status(door_of(own), content_encoding="gzip") == 415


@pytest.mark.usefixtures("folder")
def test_all_parts_begin_before_the_first_request_and_end_after_the_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], own: Meters
) -> None:
    frozen = mock.Mock()
    monkeypatch.setattr(gc, "freeze", frozen)
    config = configured("--spool s --navigations n --token_file keys --signed_tokens --pack_every 1h")

    async def run() -> None:
        app = serve.build(config, "http://host:1", own)
        async with app.router.lifespan_context(app):
            assert capsys.readouterr().err == (
                "gateway: POST http://host:1/reports\ngateway: POST http://host:1/navigations\n"
            )
            frozen.assert_called_once_with()
            assert (await asked(app, "POST", "/reports", single()))[0] == 401
        assert capsys.readouterr().err == "gateway: stopped\n"

    asyncio.run(asyncio.wait_for(run(), 30))


@pytest.mark.usefixtures("folder")
def test_an_outlet_is_checked_at_the_start_and_gets_all_before_it_is_closed(own: Meters) -> None:
    """Without a spool; what is open is delivered first."""
    kept: Any = Kept()
    kept.check, kept.close = mock.Mock(), mock.AsyncMock(side_effect=lambda: kept.messages.append("closed"))
    config = dataclasses.replace(configured(f"{TOPIC} --pack_every 1h"), outlet=kept)

    async def run() -> None:
        app = serve.build(config, "http://host:1", own)
        kept.check.assert_called_once_with()
        with mock.patch.object(gc, "freeze"):
            async with app.router.lifespan_context(app):
                task = asyncio.create_task(asked(app, "POST", "/reports", single()))
                while not own.registry.get_sample_value("uldp_gateway_reports_accepted_total"):
                    await asyncio.sleep(0)
        status, _, body = await task
        assert (status, json.loads(body)) == (200, {"published": 1})

    asyncio.run(asyncio.wait_for(run(), 30))
    assert [message == "closed" for message in kept.messages] == [False, True]


# ---------------------------------------------------------------------- verdicts and packs


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ([1, 1, 1, 1], [[1, 1, 1], [1]]),
        ([3, 1], [[3], [1]]),
        ([1, 2, 1], [[1, 2], [1]]),
        ([9, 1], [[9], [1]]),
        ([1, 9, 1], [[1], [9], [1]]),
        ([2, 2, 2], [[2], [2], [2]]),
    ],
)
def test_as_many_messages_are_judged_together_as_a_pack_holds(sizes: list[int], parts: list[list[int]]) -> None:
    messages = [packed(rows=[(1, NOON, bytes(16), b"\1")] * size) for size in sizes]
    found = list(Admission(decoder(), 3)._parts(messages))
    assert [[web.wire.reports_in(message) for message in part] for part in found] == parts
    assert [message for part in found for message in part] == messages


def test_a_pack_that_is_full_goes_at_once_and_one_that_would_be_too_full_before() -> None:
    [reports] = batches_of(singles(12, 6))
    kept, later = Kept(), list[float]()

    async def run() -> None:
        packer = Packer(kept, 4, 7.0, Meters(print))
        loop = asyncio.get_running_loop()
        with mock.patch.object(loop, "call_later", side_effect=lambda delay, *_: later.append(delay) or mock.Mock()):
            packs = [packer.add(reports[:3]), packer.add(reports[3:4])]
            assert packs[0] is packs[1] and not packer._open
            packs.append(packer.add(reports[4:7]))
            packs.append(packer.add(reports[7:9], reports[9:10]))
            assert packs[2] is not packs[3] and [pack.number for pack, _ in packer._open.values()] == [3]
            await packer.drain()
        assert [pack.number for pack in packs] == [4, 4, 3, 3]
        assert not packer._under_way and packs[0]._batches == []

    asyncio.run(run())
    assert sorted(map(web.wire.reports_in, kept.messages)) == [3, 3, 4]
    assert later == [7.0] * 3


# ---------------------------------------------------------------------- the spool


async def at_once(work: Callable[..., Any], *arguments: Any) -> Any:
    """In place of a thread; others come meanwhile."""
    await asyncio.sleep(0)
    return work(*arguments)


async def settled() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def test_parts_that_come_while_the_disk_is_busy_are_written_together() -> None:
    """Whoever has gone, and a part that could not be written, keep no other one; the lock keeps all."""
    written, faults = list[list[bytes]](), [None, None, OSError(28, "No space left on device"), None]

    def append(parts: Sequence[bytes]) -> Exception | None:
        written.append([*parts])
        return faults[len(written) - 1]

    async def run() -> None:
        writer = BatchedWriter(append, "the disk says")
        await writer.start()
        first = asyncio.create_task(writer.write(b"first"))
        for _ in range(3):
            await asyncio.sleep(0)
        tasks = [asyncio.create_task(writer.write(part)) for part in (b"a", b"b", b"c")]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await settled()
        assert [task.done() and not task.cancelled() for task in (first, *tasks)] == [True, True, False, True]
        assert written == [[b"first"], [b"a", b"b", b"c"]]
        lost = asyncio.create_task(writer.write(b"lost"))
        await settled()
        assert lost.done() and str(lost.exception()) == "the disk says No space left on device"
        async with writer.disk:
            last = asyncio.create_task(writer.write(b"last"))
            await settled()
            assert len(written) == 3 and not last.done()
        await settled()
        assert last.done() and written[3] == [b"last"]
        await writer.close()

    with mock.patch.object(asyncio, "to_thread", at_once):
        asyncio.run(run())


def test_a_file_is_named_by_its_time_and_on_disk_with_each_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a loss of power at any moment, what append returned for is there, and a manifest has its file."""
    disk, blocks = Disk(monkeypatch), blocks_of(2)
    file = SpoolFile(tmp_path)
    name = file.path.name
    assert len(name) == len("reports-20261126T120000-0123456789ab.avro.part") and name.startswith("reports-20")
    assert disk.after_power_loss(tmp_path)[name] == file.path.read_bytes() != b""
    for block in blocks:
        file.append(block)
        assert disk.after_power_loss(tmp_path)[name] == file.path.read_bytes()
    content = file.path.read_bytes()
    file.path.write_bytes(content + blocks[0][0][:9])  # a kill
    whole = file.finish()
    assert whole is not None
    left = disk.after_power_loss(tmp_path)
    assert sorted(left) == sorted([whole.name, spool_names.manifest_path(whole).name])
    assert left[whole.name] == content
    [listed] = json.loads(left[spool_names.manifest_path(whole).name])["files"]
    assert (listed["name"], listed["messages"], listed["reports"]) == (whole.name, 4, 12)


def test_a_header_without_messages_is_no_file_and_other_bytes_are_kept(tmp_path: Path) -> None:
    for more, left in ((b"", []), (b"\0", ["damaged"])):
        file = SpoolFile(tmp_path)
        file.path.write_bytes(file.path.read_bytes() + more)
        assert file.finish() is None
        assert [path.name.rpartition(".")[2] for path in tmp_path.iterdir()] == left


class Target(Kept):
    """Takes messages, and notes how many come at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.most = 0, 0

    async def deliver(self, message: bytes) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        self.messages.append(message)


def test_sixteen_messages_are_published_at_a_time(tmp_path: Path) -> None:
    """Files in the order of their names; the counts of blocks that cannot be read decide what is kept."""
    target: Any = Target()
    spooling = Spool(str(tmp_path / "spool"), 60, target, Meters(print), print)
    unread = mock.Mock(spec=spool.Rejection)
    messages = [b"%d" % number for number in range(40)]
    with mock.patch.object(spool_file, "read", return_value=[*messages, unread]):
        assert asyncio.run(spooling._publish(tmp_path / "file", target)) == 1
        assert (target.messages, target.most) == (messages, 16)
        asyncio.run(spooling._publish(tmp_path / "file", target))
        spooling._sent.clear()  # another process, after a kill
        with (tmp_path / "file.sent").open("ab") as cut:
            cut.write(b"cut")
        asyncio.run(spooling._publish(tmp_path / "file", target))
        assert target.messages == messages, "none is published twice"
        spool_file.note_sent(tmp_path / "file", [41])
        assert spool_file.sent_before(tmp_path / "file") == {*range(40), 41}
    os.close(spooling._lock)


@pytest.mark.parametrize(
    ("age", "size", "is_over"), [(59.9, 99, False), (60.0, 99, True), (59.9, 100, True), (59.9, 101, True)]
)
def test_a_file_is_over_when_its_time_is_or_it_is_full(
    age: float, size: int, is_over: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spool.FULL == 64 * 1024 * 1024
    monkeypatch.setattr(spool, "FULL", 100)
    spooling: Any = Spool(str(tmp_path / "a" / "spool"), 60.0, None, Meters(print), print)
    assert not spooling._is_over()
    spooling._file, spooling._begun = mock.Mock(size=size), 1000.0
    with mock.patch.object(spool.time, "monotonic", lambda: 1000.0 + age):
        assert spooling._is_over() is is_over
    spooling._file = None
    (tmp_path / "a" / "spool" / f"x{spool_names.PART}").touch()
    assert spooling._is_over(), "one that could not be finished in time"
    os.close(spooling._lock)


@pytest.mark.parametrize(("every", "looks"), [(0.5, 0.5), (60.0, 1.0)])
def test_files_are_looked_at_every_second_or_oftener(every: float, looks: float, tmp_path: Path) -> None:
    spooling: Any = Spool(str(tmp_path), every, None, Meters(print), print)
    spooling._finished = mock.Mock()
    pause = mock.AsyncMock(side_effect=[None, asyncio.CancelledError])
    with mock.patch.object(spool.asyncio, "sleep", pause), pytest.raises(asyncio.CancelledError):
        asyncio.run(spooling._turn_over())
    assert [call.args for call in pause.call_args_list] == [(looks,)] * 2
    spooling._finished.set.assert_not_called()
    os.close(spooling._lock)


def test_an_unreadable_file_keeps_a_spool_from_nothing_at_the_start(tmp_path: Path) -> None:
    """Unless the disk itself fails; the folder is for this process and its user alone."""
    own = mock.Mock()
    (tmp_path / f"a{spool_names.PART}").touch()
    with mock.patch.object(spool_file, "finish", side_effect=ValueError("of this test")):
        spooling = Spool(str(tmp_path), 60, None, own, print)
    [error] = own.held_up.call_args.args
    assert str(error) == "of this test"
    os.close(spooling._lock)
    with mock.patch.object(spool_file, "finish", side_effect=OSError(5, "of this test")), pytest.raises(OSError):
        Spool(str(tmp_path), 60, None, own, print)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_a_spool_is_free_again_once_it_is_closed_and_says_what_is_left(tmp_path: Path) -> None:
    said = list[str]()

    async def run(*messages: bytes) -> None:
        spooling = Spool(str(tmp_path), 60, None, Meters(said.append), said.append)
        await spooling.start()
        for message in messages:
            await spooling.deliver(message)
        await spooling.close()

    asyncio.run(asyncio.wait_for(run(), 30))
    assert said == []
    asyncio.run(asyncio.wait_for(run(blocks_of(1)[0][0]), 60))
    assert said == [f"1 file(s) of reports are in {tmp_path}"]


def test_tokens_of_earlier_processes_are_known_until_they_expire() -> None:
    """Each once, however often it was stored."""
    clock: Callable[[], float] = lambda: 1000.0  # noqa: E731  # one for both
    names = (b"0", b"1", b"2", b"2")
    used = [Use(expires, name, b"m") for expires, name in zip((999, 1000, 1001, 1001), names)]
    files = mock.Mock(removed_until=0)
    files.read.return_value = [(use, True) for use in used]
    found = UsedTokens(clock=clock, files=files, elapsed=clock)
    assert found._number == 1
    assert {name for slot in found._slots.values() for name in slot} == {b"2"}
