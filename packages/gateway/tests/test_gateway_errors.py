"""Every sentence with which the gateway refuses to start, and what its parts raise."""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import os
import shlex
import socket
import struct
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import httptools
import pytest

import uldp_transforms_gateway as gateway
from tests.servers.pubsub_servers import IN_PROCESS, serving
from tests.support import live
from tests.support.messages_cases import KRR, packed, single, write_files
from tests.support.refusals.raised import calls_of, refusals_of, without_a_row
from uldp_transforms.jobs import cli
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.files import spool_names
from uldp_transforms_gateway import serve, spool_file, web
from uldp_transforms_gateway.apps.app_keys import App, Key, Tokens, read_keys
from uldp_transforms_gateway.apps.signed_tokens import Token, UsedTokens
from uldp_transforms_gateway.bounded_requests import MOST_HEADERS, BoundedRequests
from uldp_transforms_gateway.gateway_options import configure
from uldp_transforms_gateway.http_offers import IgnoresOffers
from uldp_transforms_gateway.limits import Limits
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.navigations.navigation_desk import MOST_BYTES, NavigationDesk
from uldp_transforms_gateway.origins import Origins
from uldp_transforms_gateway.outlets import pubsub_outlet
from uldp_transforms_gateway.outlets.kafka_outlet import KafkaOutlet
from uldp_transforms_gateway.outlets.outlet import Undelivered
from uldp_transforms_gateway.outlets.pubsub_outlet import PubSubOutlet
from uldp_transforms_gateway.packer import Pack
from uldp_transforms_gateway.refusals import Refused
from uldp_transforms_gateway.serve import _listen
from uldp_transforms_gateway.spool import Spool

TOPIC = f"--topic {live.TOPIC}"
KEY = "a-key-of-twenty-letters"
NOWHERE = "127.0.0.1:1"


def options(argv: str) -> Callable[[], Any]:
    return lambda: configure(shlex.split(f"--collection krr.json {argv}"))


def no_room() -> None:
    """More bytes than may wait, of a body that nobody else can make room for."""
    with Limits(20, 1, 10, Meters(print)).room_for(None) as room:
        room.came(11)


def asking_for_a_tunnel() -> None:
    """As the loop of a connection hands on what came."""
    connection: Any = SimpleNamespace(parser=httptools.HttpRequestParser(object()))
    IgnoresOffers._parse(connection, memoryview(b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n"))


def limits(length: str, waiting: int = 1) -> Callable[[], Any]:
    """Room for a body of this length, where one of 10 bytes may wait."""

    def call() -> None:
        with Limits(10, waiting, 10, Meters(print)).room_for(length):
            pass

    return call


def without_the_extra() -> None:
    with mock.patch.dict(sys.modules, {"confluent_kafka": None}):
        gateway.configure([])


def listening_twice() -> None:
    with socket.create_server(("127.0.0.1", 0)) as first:
        _listen(configure(f"--collection krr.json {TOPIC} --port {first.getsockname()[1]}".split()))


def checking(topic: str, address: str | None) -> Callable[[], Any]:
    """Of a topic, at a server of this process or at this address."""

    def call() -> None:
        with mock.patch.object(pubsub_outlet, "CHECK_SECONDS", 2.0):
            if address is None:
                with serving(IN_PROCESS):
                    PubSubOutlet(topic).check()
            with mock.patch.dict(os.environ, {"PUBSUB_EMULATOR_HOST": str(address)}):
                PubSubOutlet(topic).check()

    return call


def delivering_to_no_topic() -> None:
    async def run() -> None:
        outlet = PubSubOutlet(live.TOPIC)
        await outlet.start()
        try:
            await outlet.deliver(b"message")
        finally:
            await outlet.close()

    with serving(IN_PROCESS):
        asyncio.run(run())


def delivering_without_an_answer() -> None:
    outlet = PubSubOutlet(live.TOPIC)
    outlet._client = SimpleNamespace(publish=lambda *_, **__: concurrent.futures.Future())
    with mock.patch.object(pubsub_outlet, "GIVE_UP_SECONDS", 0.01):
        asyncio.run(outlet.deliver(b"message"))


def kafka(**properties: str) -> KafkaOutlet:
    return KafkaOutlet(NOWHERE, "reports", {"log_level": "0"} | {k.replace("_", "."): v for k, v in properties.items()})


def checking_kafka(topic: str, servers: str | None) -> Callable[[], Any]:
    """Of a topic, at these brokers or at one of librdkafka's mock cluster that makes no topics by itself."""

    def call() -> None:
        own = {"test.mock.num.brokers": "1", "allow.auto.create.topics": "false"} if servers is None else {}
        outlet = KafkaOutlet(servers or NOWHERE, topic, {"log_level": "0"} | own)
        with mock.patch("uldp_transforms_gateway.outlets.kafka_outlet.CHECK_SECONDS", 2.0):
            outlet.check()

    return call


def delivering_to_no_broker(messages: int, **properties: str) -> Callable[[], Any]:
    async def run() -> None:
        outlet = kafka(**properties)
        await outlet.start()
        with mock.patch("uldp_transforms_gateway.outlets.kafka_outlet.GIVE_UP_SECONDS", 0.1):
            tasks = [asyncio.ensure_future(outlet.deliver(b"message")) for _ in range(messages)]
            done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in pending:
                task.cancel()
            await outlet.close()
        await next(iter(done))

    return lambda: asyncio.run(run())


def body(patience: float, *chunks: bytes, **headers: str) -> Callable[[], Any]:
    """A body that comes in chunks and goes on for ever, of which ten bytes are wanted."""

    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk
        await asyncio.sleep(60)

    request: Any = SimpleNamespace(headers={k.replace("_", "-"): v for k, v in headers.items()}, stream=stream)

    async def run() -> None:
        with Limits(10, 1, 10, Meters(print)).room_for(None) as room:
            await web._body(request, room, App(), patience)

    return lambda: asyncio.run(run())


def spooling_twice() -> None:
    first = Spool("spool", 1.0, None, Meters(print), print)
    try:
        Spool("spool", 1.0, None, Meters(print), print)
    finally:
        os.close(first._lock)


def publishing(fault: Exception) -> Callable[[], None]:
    """A file with a message that a target does not take."""

    def publish() -> None:
        spooling, target = Spool(tempfile.mkdtemp(dir="."), 1.0, None, Meters(print), print), mock.Mock()
        target.deliver = mock.AsyncMock(side_effect=fault)
        with mock.patch.object(spool_file, "read", return_value=[b"message"]):
            asyncio.run(spooling._publish(Path("file"), target))

    return publish


def finishing_by_a_program_with_a_fault() -> None:
    folder = tempfile.mkdtemp(dir=".")
    spooling = Spool(folder, 1.0, None, Meters(print), print)
    Path(folder, f"a{spool_names.PART}").touch()
    with mock.patch.object(spool_file, "finish", side_effect=ValueError("of this test")):
        spooling._finish()


def waiting_for_a_pack_that_failed() -> None:
    async def run() -> None:
        pack = Pack()
        pack.settle(Undelivered("of this test"))
        await pack.delivered()

    asyncio.run(run())


def deleting_from_a_disk_that_is_read_only() -> None:
    spooling = Spool("stuck", 1.0, None, Meters(print), print)
    Path("stuck", f"a{spool_names.WHOLE}").touch()
    fault = OSError(30, "Read-only file system")
    with mock.patch.object(spool_file, "read", return_value=[]), mock.patch.object(Path, "unlink", side_effect=fault):
        asyncio.run(spooling._forward(mock.Mock()))


def a_head_of_many_lines() -> None:
    BoundedRequests.on_header(mock.Mock(headers=[(b"", b"")] * MOST_HEADERS, _trailers=0), b"name", b"value")


def sending_too_much() -> None:
    app = App(requests=1)
    app.begin()
    app.begin()


def too_many_navigations() -> None:
    desk = NavigationDesk(mock.Mock(), mock.Mock(), Meters(print))
    asyncio.run(desk.deliver(bytes(MOST_BYTES + 1)))


def too_many_reports() -> None:
    desk = web.Desk(mock.Mock(), mock.Mock(), mock.Mock(), Meters(print), spools=True, most=1)
    desk._check_number(single())
    desk._check_number(packed())


def a_token(expires: int) -> Token:
    """A well-formed token; its code is not looked at."""
    token = Token.parse(f"uldp1.{expires}.{'A' * 22}.{'A' * 43}")
    assert token is not None
    return token


def used_for_another_message() -> None:
    used = UsedTokens(clock=lambda: 0.0)
    used.use(a_token(60), b"first")
    used.use(a_token(60), b"second")


def tokens_of_another_directory() -> None:
    """A record of a token that expires in an hour is beside the reports."""
    period = int(time.time()) // 3600 + 1
    folder = Path("s", "tokens")
    folder.mkdir(parents=True)
    (folder / f"{period}-x.2").write_bytes(struct.pack(">q16s16s8sq", 3600 * period, b"", b"", b"", 0))
    options = "--collection krr.json --spool s --token_file keys --signed_tokens --used_tokens u"
    Path("keys").write_text("k" * 40, encoding="utf-8")
    serve._token_files(configure(shlex.split(options)))


def too_many_lines_of_navigations() -> None:
    desk = NavigationDesk(mock.Mock(), mock.Mock(), Meters(print), most=1)
    asyncio.run(desk.deliver(b"a line\nanother\n"))


def a_head_without_a_host() -> None:
    parser = SimpleNamespace(get_http_version=lambda: "1.1")
    BoundedRequests.on_headers_complete(mock.Mock(_hosts=0, parser=parser))


def of_a_file_that_cannot_be_finished() -> None:
    files = SimpleNamespace(settle=mock.AsyncMock(return_value=None))
    used = SimpleNamespace(_open={0: {b"token": 1}}, _files=files)
    asyncio.run(UsedTokens.is_delivered(used, SimpleNamespace(slot=0, name=b"token")))  # type: ignore[arg-type]  # stand-ins of both


def keys_in(content: str) -> Callable[[], Any]:
    """Reads a file of keys of apps with this content."""

    def call() -> None:
        Path("keys").write_text(content, encoding="utf-8")
        read_keys("keys")

    return call


def publishing_with(*words: str) -> Callable[[], Any]:
    """The Kafka outlet of a command line with these words."""

    def call() -> Any:
        parser = argparse.ArgumentParser()
        cli.add_options(parser, {KafkaOutlet.option: {}, **KafkaOutlet.own_options})
        return KafkaOutlet.of(parser.parse_args(["--kafka_topic=t", "--bootstrap_servers=b:1", *words]))

    return call


REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
    (Refused, too_many_navigations, "too_large"),
    (Refused, too_many_lines_of_navigations, "too_large"),
    (
        SpecError,
        tokens_of_another_directory,
        "--used_tokens must name the directory of tokens that were used before, 's/tokens', or that must be moved to "
        "'u', because tokens in it have not expired and would count twice",
    ),
    (ValueError, a_head_without_a_host, "a request must have one Host"),
    (Undelivered, of_a_file_that_cannot_be_finished, "a file of reports cannot be finished"),
    (Refused, lambda: Origins().check("http://own.example", "own.example"), "origin"),
    (Refused, lambda: Origins(hosts=["own.example"]).check_host("other.example"), "host"),
    *(
        (SpecError, lambda argv=argv: configure(shlex.split(argv)), sentence)
        for argv, sentence in (
            ("", "a gateway needs --collection or --navigations, got none"),
            (f"{TOPIC} --navigations n", "--topic needs --collection, got none"),
            ("--spool s --navigations n", "--spool needs --collection, got none"),
            ("--window 1h --navigations n", "--window needs --collection, got none"),
            ("--dimension a=header:b --navigations n", "--dimension needs --collection, got none"),
        )
    ),
    (OSError, deleting_from_a_disk_that_is_read_only, "[Errno 30] Read-only file system: "),
    (ValueError, a_head_of_many_lines, "too many headers"),
    *(
        (SpecError, options(argv), sentence)
        for argv, sentence in (
            ("", "a gateway needs --topic or --kafka_topic or --spool, got none"),
            ("--navigations n", "a gateway needs --topic or --kafka_topic or --spool, got none"),
            (
                "--spool s --navigations n --token_file t",
                "--navigations with --token_file needs --signed_tokens, because pages cannot keep a key, got none",
            ),
            ("--topic t", "--topic must be projects/PROJECT/topics/NAME, got 't'"),
            (f"{TOPIC} --kafka_topic t", "argument --kafka_topic: not allowed with argument --topic"),
            (f"{TOPIC} --bootstrap_servers b:1", "--bootstrap_servers needs --kafka_topic, got --topic"),
            ("--kafka_topic t", "--kafka_topic needs --bootstrap_servers or --kafka_config, got none"),
            (
                "--kafka_topic t --bootstrap_servers b:1 --kafka_config c",
                "--kafka_topic needs --bootstrap_servers or --kafka_config, got both",
            ),
            (
                "--kafka_topic t --kafka_config nowhere.properties",
                "--kafka_config must be a file that can be read, got [Errno 2] No such file or directory: "
                "'nowhere.properties'",
            ),
            ("--spool s --kafka_config c", "--kafka_config needs --kafka_topic, got none"),
            ("--spool s --kafka_property a=b", "--kafka_property needs --kafka_topic, got none"),
            (f"{TOPIC} --app_requests 5", "--app_requests needs --token_file, got none"),
            (f"{TOPIC} --app_bytes 5", "--app_bytes needs --token_file, got none"),
            (f"{TOPIC} --signed_tokens", "--signed_tokens needs --token_file, got none"),
            (f"{TOPIC} --token_reports 5", "--token_reports needs --signed_tokens, got none"),
            (f"{TOPIC} --used_tokens u", "--used_tokens needs --signed_tokens, got none"),
            (f"{TOPIC} --app_requests 0", "--app_requests must be a whole number above 0, got '0'"),
            (f"{TOPIC} --spool_every 1s", "--spool_every needs --spool, got none"),
            (f"{TOPIC} --slide 1h", "--slide needs --window, got none"),
            (f"{TOPIC} --allowed_lateness 1h", "--allowed_lateness needs --window, got none"),
            (
                f"{TOPIC} --dimension country=x",
                "--dimension must be NAME=header:KEY, such as country=header:cc, got 'country=x'",
            ),
            (
                f"{TOPIC} --dimension country=header:cc",
                "--dimension must name a dimension with set_by gateway: the collections have none, got 'country'",
            ),
            (f"{TOPIC} --port 70000", "--port must be a number from 0 to 65535, got 70000"),
            (f"{TOPIC} --max_body 10000000", "--max_body must be at most 9999000, got 10000000"),
            (
                f"{TOPIC} --max_waiting_bytes 5",
                "--max_waiting_bytes must be at least --max_body, 1000000, got 5",
            ),
            (f"{TOPIC} --max_peer_bytes 5", "--max_peer_bytes must be at least --max_body, 1000000, got 5"),
            (f"{TOPIC} --max_peer_connections 0", "--max_peer_connections must be a whole number above 0, got '0'"),
            (f"{TOPIC} --pack_size 0", "--pack_size must be a whole number above 0, got '0'"),
            (
                f"{TOPIC} --pack_size 400000",
                "--pack_size must be at most 370296, so that messages can be published, got 400000",
            ),
            (
                "--kafka_topic t --bootstrap_servers b:1 --kafka_property no.such=1",
                '--kafka_property must be a setting of librdkafka, got No such configuration property: "no.such"',
            ),
        )
    ),
    (
        SpecError,
        without_the_extra,
        "a gateway needs confluent_kafka, which its package brings; in a checkout: pip install . ./packages/gateway",
    ),
    (SpecError, listening_twice, "--host and --port must be free to listen on, got 127.0.0.1:"),
    (SpecError, checking(live.TOPIC, None), f"--topic must exist, got {live.TOPIC!r}"),
    (SpecError, checking(live.TOPIC, NOWHERE), "--topic must be a topic that Pub/Sub can serve, got "),
    (Undelivered, delivering_to_no_topic, "Pub/Sub says "),
    (Undelivered, delivering_without_an_answer, "Pub/Sub does not answer"),
    (SpecError, checking_kafka("reports", NOWHERE), "--bootstrap_servers must be brokers that answer, got "),
    (SpecError, checking_kafka("reports", None), "--kafka_topic must exist, got 'reports': "),
    (
        Undelivered,
        delivering_to_no_broker(2, queue_buffering_max_messages="1"),
        "Kafka says Local: Queue full",
    ),
    (
        Undelivered,
        delivering_to_no_broker(1, message_timeout_ms="300"),
        "Kafka says Local: Message timed out",
    ),
    (Refused, limits("11"), "too_large"),
    (Refused, no_room, "busy"),
    (httptools.HttpParserError, asking_for_a_tunnel, "CONNECT asks for a tunnel"),
    (Refused, limits("-1"), "content_length"),
    (Refused, limits("5", waiting=0), "busy"),
    (Refused, lambda: Origins(["https://a.example"]).check("https://b.example", "c.example"), "origin"),
    (Refused, lambda: Tokens([Key(KEY)]).check(None), "token"),
    (Refused, sending_too_much, "rate"),
    (Refused, lambda: Tokens([Key(KEY)]).check(f"Bearer {KEY}x"), "token"),
    (Refused, lambda: Tokens([Key(KEY)]).check(f"Basic {KEY}"), "token"),
    (Refused, lambda: Tokens([Key(KEY)], used=UsedTokens()).check(f"Bearer {KEY}"), "token"),
    (Refused, lambda: UsedTokens(clock=lambda: 100.0).check(a_token(50)), "token_expired"),
    (Refused, lambda: UsedTokens(clock=lambda: 0.0).check(a_token(1_000_000_000)), "token"),
    (Refused, lambda: UsedTokens(most=0, clock=lambda: 0.0).use(a_token(60), b"message"), "busy"),
    (Refused, used_for_another_message, "token_used"),
    (Refused, body(60, b"12345", b"678901"), "too_large"),
    (Refused, too_many_reports, "too_large"),
    (Refused, body(0.01, b"1"), "timeout"),
    (Refused, body(60, b"1", content_encoding="gzip"), "content_encoding"),
    (
        SpecError,
        spooling_twice,
        "--spool must be a folder that no other gateway uses, got 'spool', which another one has locked",
    ),
    (Undelivered, publishing(Undelivered("of this test")), "of this test"),
    (ValueError, publishing(ValueError("of this test")), "of this test"),
    (ValueError, finishing_by_a_program_with_a_fault, "of this test"),
    (Undelivered, waiting_for_a_pack_that_failed, "of this test"),
    (SpecError, keys_in("# none"), "--token_file must have at least one key, got none in keys"),
    (
        SpecError,
        keys_in("short"),
        "--token_file must have one key per line, 20 to 512 characters from A-Z a-z 0-9 . _ ~ + / -, and may name its "
        "app, with at most 64 of the characters a-z 0-9 . _ -, after a space, got another text in line 1 of keys (the "
        "text is not shown)",
    ),
    (
        SpecError,
        keys_in(f"{'k' * 20}\n{'k' * 20}"),
        "--token_file must have each key once, got one again in line 2 of keys",
    ),
    (
        SpecError,
        publishing_with("--kafka_property=sasl.password=hunter2"),
        "--kafka_property must not contain secrets, which belong in the file of --kafka_config, got sasl.password",
    ),
]


@pytest.mark.parametrize(("kind", "call", "sentence"), REFUSED, ids=[row[2][:60] for row in REFUSED])
def test_sentence(
    kind: type[Exception],
    call: Callable[[], Any],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_files(tmp_path, {"krr.json": KRR})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as caught:
        call()
    said = str(caught.value)
    assert said.startswith(sentence) if sentence[-1] in " :" else said == sentence
    assert type(caught.value) is kind
    assert len(said.splitlines()) == 1


def test_the_command_says_it_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, {"krr.json": KRR})
    assert gateway.main(["--collection", "krr.json"]) == 2
    assert capsys.readouterr().err == "gateway: a gateway needs --topic or --kafka_topic or --spool, got none\n"
    assert gateway.main(["--collection", "none.json", "--spool", "s"]) == 2
    assert capsys.readouterr().err == "gateway: none.json: No such file or directory\n"


def test_every_refusal_has_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines of all ``raise`` statements of the package, less those that the table has come through."""
    write_files(tmp_path, {"krr.json": KRR})
    monkeypatch.chdir(tmp_path)
    folder = Path(gateway.__file__).parent
    refusals = refusals_of({path.relative_to(folder).as_posix(): path for path in folder.rglob("*.py")})
    assert len(set(refusals.values())) > 40
    assert without_a_row(refusals, calls_of([REFUSED])) == []
