"""The gateway as people run it: a process, real connections, a Pub/Sub server, a Kafka cluster or a folder."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from confluent_kafka import Consumer, Producer
from google.cloud import pubsub_v1

from packages.gateway.tests.support.gateways import Running, asked, gateway, posted, posted_at_once, singles
from tests.servers.pubsub.pubsub_server import PubsubServer
from tests.support import live
from tests.support.live import PATIENCE
from tests.support.messages_cases import (
    BATCH_HEADER,
    KRR,
    NOON,
    REPORT_HEADER,
    STRANGER,
    data,
    decoder,
    long,
    packed,
    padded,
    rows_of,
    single,
)
from uldp_transforms.messages import wire
from uldp_transforms_gateway import spool_file

PUBLISHING = ["--topic", live.TOPIC]
SOON = ["--pack_every=20ms"]


def published() -> list[bytes]:
    """What the subscription has, all of it."""
    found: list[bytes] = []
    with pubsub_v1.SubscriberClient() as subscriber:
        while messages := subscriber.pull(
            subscription=live.SUBSCRIPTION, max_messages=1000, timeout=PATIENCE
        ).received_messages:
            found += [received.message.data for received in messages]
            subscriber.acknowledge(subscription=live.SUBSCRIPTION, ack_ids=[received.ack_id for received in messages])
    return found


def ids_in(messages: list[bytes]) -> Counter[bytes]:
    """Ids of reports; all messages must be good."""
    batches, rejections, *_ = decoder().decode(messages)
    assert not rejections
    return Counter(report_id.tobytes() for batch in batches for report_id in batch.report_ids)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One gateway for many tests, and a topic."""
    options = [*PUBLISHING, *SOON, "--allow_origin=https://page.example", "--max_body=100000"]
    with live.broker(), gateway(options, tmp_path_factory.mktemp("gateway")) as found:
        yield found


# ---------------------------------------------------------------------- what is answered


def test_what_is_accepted_is_published(running: Running) -> None:
    """Single and packed, plain and in single-object encoding."""
    published()
    messages = [single(), REPORT_HEADER + single(), packed(), BATCH_HEADER + packed()]
    answers = [running.send(message) for message in messages]
    assert [(answer.status, answer.content) for answer in answers] == [
        (200, {"published": number}) for number in (1, 1, 2, 2)
    ]
    found = published()
    assert {message[:1] for message in found} == {b"\x04"}
    assert rows_of(decoder().decode(found).batches) == rows_of(decoder().decode(messages).batches)


REFUSED = {
    "unknown_schema": (400, b"\x07 something else"),
    "malformed": (400, single()[:-1]),
    "trailing_bytes": (400, single() + b"x"),
    "non_canonical": (400, single(cohort=padded(long(1)))),
    "out_of_range": (400, single(cohort=long(1 << 40))),
    "unknown_collection": (422, single(STRANGER)),
    "cohort_range": (422, single(cohort=long(3))),
    "payload_length": (422, single(payload=data(b"\x00\x00"))),
    "value_domain": (422, single(payload=data(b"\x03"))),
    "time_range": (422, single(event_time=long(1 << 60))),
    "too_large": (413, b"\x02" * 100_001),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_the_job_would_refuse_is_refused_with_its_reason(running: Running, reason: str) -> None:
    status, message = REFUSED[reason]
    before = running.counted("reports_refused_total")
    answer = running.send(message)
    assert (answer.status, answer.content["reason"]) == (status, reason)
    assert running.counted("reports_refused_total") == before + 1
    assert f'uldp_gateway_reports_refused_total{{reason="{reason}"}}' in running.ask("GET", "/metrics").content


def test_an_empty_body_is_malformed(running: Running) -> None:
    assert running.send(b"").content == {"reason": "malformed", "refused": {"malformed": 1}}


def test_good_reports_of_a_message_are_published_without_the_bad_ones(running: Running) -> None:
    published()
    rows = [(1, NOON, bytes([i]) * 16, b"\x02") for i in range(3)] + [(7, NOON, bytes(16), b"\x02")]
    answer = running.send(packed(KRR, rows))
    assert (answer.status, answer.content) == (200, {"published": 3, "refused": {"cohort_range": 1}})
    assert ids_in(published()) == Counter(bytes([i]) * 16 for i in range(3))


def test_times_and_ids_are_judged_as_in_the_job(tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000
    with live.broker(), gateway([*PUBLISHING, *SOON, "--window=1h", "--deduplicate"], tmp_path) as found:
        assert found.send(single(event_time=long(now))).status == 200
        assert found.send(single(event_time=long(now + 400_000))).content["reason"] == "too_early"
        assert found.send(single(event_time=long(now - 3 * 3_600_000))).content["reason"] == "too_old"
        assert found.send(packed(KRR, [(1, now, b"", b"\x02")])).content["reason"] == "no_report_id"


def test_other_requests_get_answers_that_say_what_is_wrong(running: Running) -> None:
    assert running.ask("GET", "/reports").status == 405
    assert running.ask("GET", "/").status == 404
    assert running.send(single(), Content_Encoding="gzip").content == {"reason": "content_encoding"}
    assert running.ask("GET", "/healthz").content == {"status": "ok"}
    with contextlib.closing(running.connection()) as connection:  # without a length
        connection.request("POST", "/reports", iter([single()[:9], single()[9:]]), encode_chunked=True)
        assert connection.getresponse().status == 200
    with contextlib.closing(running.connection()) as connection:
        connection.request("POST", "/reports", iter([b"\x02" * 60_000] * 2), encode_chunked=True)
        assert connection.getresponse().status == 413


def test_pages_of_the_named_origin_may_send(running: Running) -> None:
    asks = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "content-type"}
    preflight = running.ask("OPTIONS", "/reports", Origin="https://page.example", **asks)
    assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (200, "https://page.example")
    answer = running.send(single(), Origin="https://page.example")
    assert answer.headers["access-control-allow-origin"] == "https://page.example"
    assert "retry-after" in answer.headers["access-control-expose-headers"].lower()
    assert "access-control-allow-origin" not in running.send(single(), Origin="https://other.example").headers


# ---------------------------------------------------------------------- packing


def test_requests_of_the_same_moment_go_together(tmp_path: Path) -> None:
    """Nothing is lost, nothing is there twice."""
    messages = singles(1_000, 20)
    with live.broker(), gateway([*PUBLISHING, "--pack_size=100", "--pack_every=5s"], tmp_path) as found:
        statuses = asyncio.run(posted_at_once(found.address, messages, 200))
        assert {status for part in statuses for status in part} == {200}
        sent = published()
        assert found.counted("messages_delivered_total") == len(sent) <= 21  # two in a row have more than 100 together
    assert ids_in(sent) == Counter(message[9:25] for message in messages)


# ---------------------------------------------------------------------- limits


def test_what_is_too_much_at_once_is_told_to_come_again(tmp_path: Path) -> None:
    """At most 50 requests wait; those that are told to come again are not published."""
    messages = singles(200, 21)
    options = [*PUBLISHING, "--max_waiting=50", "--pack_every=3s"]
    with live.broker(), gateway(options, tmp_path) as found:
        statuses = asyncio.run(posted_at_once(found.address, messages, 200))
        assert Counter(status for part in statuses for status in part) == Counter({200: 50, 429: 150})
        assert ids_in(published()).total() == 50
        with contextlib.ExitStack() as stack:
            waiting = threading.Thread(target=asyncio.run, args=(posted_at_once(found.address, messages[:50], 50),))
            waiting.start()
            stack.callback(waiting.join)
            while found.counted("requests_waiting") < 50:
                time.sleep(0.05)
            answer = found.send(messages[60])
        assert (answer.status, answer.content, answer.headers["retry-after"]) == (429, {"reason": "busy"}, "1")
        assert found.counted("requests_waiting") == found.counted("bytes_waiting") == 0
        assert found.send(messages[60]).status == 200


def test_memory_is_bounded_under_a_flood(tmp_path: Path) -> None:
    """400 connections send a megabyte each, 8 of which may wait; the least that a body costs is twice its size.

    Each connection may also have 256 KiB that came with its first byte, and the parser a copy: 226 MB together. Without
    the limit there would be the 400 bodies twice, 800 MB.
    """
    options = [*PUBLISHING, "--max_waiting_bytes=8000000", *SOON]
    flood = [b"\x04" + bytes(999_999)] * 1_200
    with live.broker(), gateway(options, tmp_path, fork=False) as found:
        before = resident(found)
        most = 0

        async def watch(sending: asyncio.Future[Any]) -> None:
            nonlocal most
            while not sending.done():
                most = max(most, await asyncio.to_thread(resident, found))
                await asyncio.sleep(0.05)

        async def run() -> list[list[int]]:
            sending = asyncio.ensure_future(posted_at_once(found.address, flood, 400))
            await watch(sending)
            return await sending

        statuses = Counter(status for part in asyncio.run(run()) for status in part)
        assert set(statuses) <= {400, 429}
        assert most - before < 350e6
        assert found.send(single()).status == 200


def resident(found: Running) -> float:
    """Bytes of memory of the process."""
    [number] = re.findall(r"^process_resident_memory_bytes (\S+)$", found.ask("GET", "/metrics").content, re.M)
    return float(number)


def test_a_body_that_does_not_come_is_given_up(tmp_path: Path) -> None:
    """Its connection gives its room back."""
    with live.broker(), gateway([*PUBLISHING, *SOON, "--body_timeout=1s"], tmp_path) as found:
        place = urlsplit(found.address)
        with socket.create_connection((str(place.hostname), place.port or 0), timeout=600) as slow:
            begin = time.monotonic()
            slow.sendall(b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n\x02")
            assert slow.recv(12) == b"HTTP/1.1 408"
            assert time.monotonic() - begin >= 1
        assert found.counted("requests_waiting") == 0


@pytest.mark.parametrize("flood", ["headers", "one header", "trailers"])
def test_what_stands_beside_a_body_is_bounded(flood: str, running: Running) -> None:
    """64 KiB and 100 headers; the server cuts the connection long before these 20 MB."""
    place = urlsplit(running.address)
    head = b"POST /reports HTTP/1.1\r\nHost: x\r\n"
    begin, part = {
        "headers": (head, b"a: b\r\n" * 10_000),
        "one header": (head + b"a: ", b"v" * 60_000),
        "trailers": (head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n" * 10_000),
    }[flood]
    with (
        socket.create_connection((str(place.hostname), place.port or 0), timeout=PATIENCE) as greedy,
        pytest.raises((ConnectionResetError, BrokenPipeError)),
    ):
        greedy.sendall(begin)
        for _ in range(20_000_000 // len(part)):
            greedy.sendall(part)
    assert running.send(single()).status == 200


def test_who_says_nothing_loses_its_connection(running: Running) -> None:
    """So does who says half a head, or half a head after an answer; 20 s, as the page says."""
    place = urlsplit(running.address)
    beginnings = [b"", b"POST /rep", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nPOST"]
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        for said in beginnings:
            silent = stack.enter_context(socket.create_connection((str(place.hostname), place.port or 0), timeout=600))
            silent.sendall(said)
            stack.callback(lambda one: [None for _ in iter(lambda: one.recv(4096), b"")], silent)
    assert 15 < time.monotonic() - begin < 300


# ---------------------------------------------------------------------- nothing is kept


MARKER = "MARKER-5c90"


def test_nothing_of_a_request_stands_in_a_log(tmp_path: Path) -> None:
    """Not of its path, headers, body or address; whether it is good, bad, no HTTP at all, or cannot be delivered."""
    secret = MARKER.encode()
    with PubsubServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PUBSUB_EMULATOR_HOST", server.address)
        live.Broker().close()
        with gateway([*PUBLISHING, *SOON, "--allow_origin=*"], tmp_path) as found:
            ports = []
            for message in (single(report_id=(secret * 2)[:16]), secret, single() + secret, packed() + secret, b""):
                with contextlib.closing(found.connection()) as connection:
                    asked(connection, "POST", f"/reports?{MARKER}", message, X_Mine=MARKER, Origin=f"https://{MARKER}")
                    ports.append(connection.sock.getsockname()[1])
                    asked(connection, "GET", f"/{MARKER}")
            place = urlsplit(found.address)
            for raw in (secret, b"POST /reports HTTP/1.1\r\nHost: " + secret + b"\r\nContent-Length: -1\r\n\r\n"):
                with socket.create_connection((str(place.hostname), place.port or 0)) as broken:
                    broken.sendall(raw + b"\r\n\r\n")
                    broken.recv(1000)
                    ports.append(broken.getsockname()[1])
            with contextlib.closing(found.connection()) as cut:
                cut.putrequest("POST", "/reports")
                cut.putheader("Content-Length", "100")
                cut.endheaders(secret)
            metrics = found.ask("GET", "/metrics").content
            server.__exit__()
            assert found.send(single(report_id=(secret * 2)[:16])).status == 503
            found.process.send_signal(signal.SIGTERM)
            assert found.process.wait(PATIENCE) == 0
    said = found.said()
    for text in (said, metrics):
        assert MARKER.lower() not in text.lower()
        assert secret.hex() not in text
        assert not [port for port in ports if re.search(rf"\b{port}\b", text)]
    assert said.splitlines()[0] == f"gateway: POST {found.address}/reports"
    allowed = r"gateway: (POST .*|stopped|reports cannot be delivered, .*: Pub/Sub .*|WARNING of [\w.]+ at \w+:\d+)"
    assert all(re.fullmatch(allowed, line) for line in said.splitlines()), said


def test_an_outage_is_told_to_who_sends_and_to_who_watches(tmp_path: Path) -> None:
    with PubsubServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PUBSUB_EMULATOR_HOST", server.address)
        live.Broker().close()
        with gateway([*PUBLISHING, *SOON], tmp_path) as found:
            with pubsub_v1.PublisherClient() as publisher:
                publisher.delete_topic(topic=live.TOPIC)
            answer = found.send(single())
            assert (answer.status, answer.content) == (503, {"reason": "unavailable"})
            assert answer.headers["retry-after"] == "1"
            assert found.ask("GET", "/healthz").status == 503
            assert found.counted("delivery_failures_total") == 1
            with pubsub_v1.PublisherClient() as publisher:
                publisher.create_topic(name=live.TOPIC)
            assert found.send(single()).status == 200
            assert found.ask("GET", "/healthz").status == 200


# ---------------------------------------------------------------------- ends


def test_told_to_stop_it_answers_what_was_begun(tmp_path: Path) -> None:
    """Packs that are open are published at once, or when their time is over; new connections are refused."""
    messages = singles(100, 22)
    with live.broker(), gateway([*PUBLISHING, "--pack_every=2s"], tmp_path) as found:
        statuses: list[list[int]] = []
        sending = threading.Thread(
            target=lambda: statuses.extend(asyncio.run(posted_at_once(found.address, messages, 100)))
        )
        sending.start()
        while found.counted("requests_waiting") < 100:
            time.sleep(0.02)
        found.process.send_signal(signal.SIGTERM)
        sending.join(PATIENCE)
        assert found.process.wait(PATIENCE) == 0
        assert statuses == [[200]] * 100
        assert ids_in(published()) == Counter(message[9:25] for message in messages)
    assert found.said().splitlines()[-1] == "gateway: stopped"


def acknowledged_before_a_kill(found: Running, messages: list[bytes], after: int) -> set[bytes]:
    """Ids of the reports that were acknowledged when the process was killed, after so many or a few more."""

    def kill() -> None:
        while found.counted("reports_delivered_total") < after:
            time.sleep(0.01)
        found.process.kill()

    killing = threading.Thread(target=kill)
    killing.start()
    statuses = asyncio.run(posted_at_once(found.address, messages, 50))
    killing.join()
    found.process.wait(PATIENCE)
    done = set()
    for first, part in enumerate(statuses):
        assert set(part) <= {200, 202, 0}
        done |= {message[9:25] for message, status in zip(messages[first::50], part) if status}
    return done


@pytest.mark.parametrize("after", [1, 2_000])
def test_after_a_kill_what_was_acknowledged_is_published(after: int, tmp_path: Path) -> None:
    messages = singles(30_000, 23)
    with live.broker(), gateway([*PUBLISHING, *SOON], tmp_path) as found:
        done = acknowledged_before_a_kill(found, messages, after)
        there = ids_in(published())
    assert len(done) < len(messages)
    assert done or after == 1  # which may be counted before its answer has left
    assert done <= set(there)
    assert there.total() == len(there) <= len(messages)


@pytest.mark.parametrize("after", [1, 2_000])
def test_after_a_kill_what_was_acknowledged_is_in_the_spool(after: int, tmp_path: Path) -> None:
    """And the next gateway publishes it."""
    messages, spool = singles(30_000, 24), tmp_path / "spool"
    with gateway(["--spool", str(spool), *SOON, "--spool_every=300ms"], tmp_path) as found:
        done = acknowledged_before_a_kill(found, messages, after)
    assert len(done) < len(messages)
    assert done or after == 1  # which may be counted before its answer has left
    with live.broker():
        with gateway(["--spool", str(spool), *PUBLISHING, *SOON], tmp_path) as found:
            answer = found.send(single())
            assert (answer.status, answer.content) == (202, {"spooled": 1})
            found.process.send_signal(signal.SIGTERM)
            assert found.process.wait(PATIENCE) == 0
        there = ids_in(published())
    assert done <= set(there)
    assert bytes(range(16)) in there
    assert [path.name for path in spool.iterdir()] == ["lock"]


def test_a_spool_without_a_topic_is_files(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    messages = singles(10, 25)
    with gateway(["--spool", str(spool), *SOON], tmp_path) as found:
        assert asyncio.run(posted(found.address, messages)) == [202] * 10
        found.process.send_signal(signal.SIGTERM)
        assert found.process.wait(PATIENCE) == 0
    [path] = spool.glob("*.avro")
    kept = list(spool_file.read(path))
    assert all(isinstance(message, bytes) for message in kept)
    assert ids_in(kept) == Counter(message[9:25] for message in messages)  # type: ignore[arg-type]  # see above
    assert f"gateway: 1 file(s) of reports are in {spool}" in found.said()


# ---------------------------------------------------------------------- Kafka


@pytest.fixture
def kafka() -> Iterator[str]:
    """The address of a cluster of librdkafka's own tests, which is in the library; it lives as long as its producer."""
    hub = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    [broker] = hub.list_topics(timeout=PATIENCE).brokers.values()
    hub.produce("reports", b"\x02")  # makes the topic
    assert hub.flush(60) == 0
    yield f"{broker.host}:{broker.port}"


def test_what_is_accepted_is_in_kafka(kafka: str, tmp_path: Path) -> None:
    messages = singles(300, 26)
    options = ["--kafka_topic=reports", f"--bootstrap_servers={kafka}", "--kafka_property=client.id=mine"]
    with gateway([*options, "--pack_size=100"], tmp_path) as found:
        statuses = asyncio.run(posted_at_once(found.address, messages, 100))
        assert {status for part in statuses for status in part} == {200}
        found.process.send_signal(signal.SIGTERM)
        assert found.process.wait(PATIENCE) == 0
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe(["reports"])
    found_there: list[bytes] = []
    end = time.monotonic() + PATIENCE
    while sum(map(wire.reports_in, found_there)) < 301 and time.monotonic() < end:
        if (record := consumer.poll(1.0)) is not None:
            assert record.error() is None
            found_there.append(record.value())
    consumer.close()
    found_there.remove(b"\x02")
    assert ids_in(found_there) == Counter(message[9:25] for message in messages)


def test_reports_of_all_verdicts_are_counted(tmp_path: Path) -> None:
    """received = accepted + refused, and accepted = delivered."""
    with live.broker(), gateway([*PUBLISHING, *SOON], tmp_path) as found:
        for message in (single(), packed(), single(STRANGER), b"x", packed(KRR, [(1, NOON, bytes(16), b"\x09")])):
            found.send(message)
        names = ("received", "accepted", "refused", "delivered")
        assert [found.counted(f"reports_{name}_total") for name in names] == [6, 3, 3, 3]
        assert found.counted("request_seconds_count") == 5
