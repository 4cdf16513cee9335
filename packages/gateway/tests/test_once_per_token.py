"""With signed tokens a report counts once per token: whatever is sent again, at once, after a failure or a kill."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from google.cloud import pubsub_v1

from packages.gateway.tests.support.gateways import NotListening, Running, gateway, posted, singles
from packages.gateway.tests.support.navigation_lines_kept import LINE, kept
from packages.gateway.tests.support.tokens import KEY, OTHER, sign
from tests.support import live
from tests.support.live import PATIENCE
from tests.support.messages_cases import BATCH_HEADER, KRR, NOON, decoder, packed, single
from uldp_transforms.messages import wire
from uldp_transforms_gateway import spool_file

PUBLISHING = ["--topic", live.TOPIC]

KILLED = """
import itertools, os
_sync, _calls, _sizes = os.fsync, itertools.count(1), {}
def _killed(descriptor):
    at, is_before = int(os.environ["KILL_AT"]), os.environ["KILL_BEFORE"] == "1"
    number, found = next(_calls), os.fstat(descriptor)
    if number == at and is_before:
        before = _sizes.get(found.st_ino, found.st_size)
        if found.st_size > before:
            os.ftruncate(descriptor, (before + found.st_size) // 2)
        os.kill(os.getpid(), 9)
    _sync(descriptor)
    _sizes[found.st_ino] = found.st_size
    if number == at:
        os.kill(os.getpid(), 9)
os.fsync = _killed
"""
"""Ends a process with SIGKILL at one of its calls of fsync: what was written is there, what follows is not.

Before the call, half of what was just appended is there; after it, all.
"""


def started(folder: Path, *options: str, **others: Any) -> Any:
    (folder / "keys").write_text(f"{KEY} app\n{OTHER} other\n", encoding="utf-8")
    own = ["--pack_every=20ms", "--signed_tokens", f"--token_file={folder / 'keys'}"]
    return gateway([*options, *own], folder, **others)


def killed_at(folder: Path, call: int, is_before: bool, *options: str, **others: Any) -> Any:
    variables = {"KILL_AT": str(call), "KILL_BEFORE": str(int(is_before))}
    return started(folder, *options, first=KILLED, variables=variables, **others)


def stopped(running: Running) -> None:
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(PATIENCE) == 0


def spooled(folder: Path) -> list[bytes]:
    """The messages in the finished files of a spool, as its readers see them."""
    found = [message for path in sorted(folder.glob("*.avro")) for message in spool_file.read(path)]
    assert all(isinstance(message, bytes) for message in found)
    return found  # type: ignore[return-value]  # see above


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


def ids_in(messages: Sequence[bytes]) -> Counter[bytes]:
    batches, rejections, *_ = decoder().decode(list(messages))
    assert not rejections
    return Counter(report_id.tobytes() for batch in batches for report_id in batch.report_ids)


def ids_of(messages: Sequence[bytes]) -> Counter[bytes]:
    return Counter(message[9:25] for message in messages)


def send(running: Running, token: str, message: bytes) -> tuple[int, Any]:
    answer = running.send(message, Authorization=f"Bearer {token}")
    return answer.status, answer.content


# ---------------------------------------------------------------------- copies


def test_a_message_that_is_posted_1001_times_counts_once(tmp_path: Path) -> None:
    """One after the other, then over 50 connections at once, with the answer of the first; and after a restart."""
    tokens, messages, spool = [sign(KEY), sign(OTHER)], singles(2, 1), tmp_path / "spool"
    with started(tmp_path, f"--spool={spool}") as running:
        assert asyncio.run(posted(running.address, messages[:1] * 1_001, tokens[:1] * 1_001)) == [202] * 1_001
        assert send(running, tokens[0], messages[0]) == (202, {"spooled": 1})

        async def at_once() -> list[list[int]]:
            return await asyncio.gather(
                *(posted(running.address, messages[1:] * 20, tokens[1:] * 20) for _ in range(50))
            )

        assert asyncio.run(at_once()) == [[202] * 20] * 50
        assert running.counted("copies_total") == 1_001 + 999
        assert running.counted("reports_delivered_total") == running.counted("reports_accepted_total") == 2
        stopped(running)
    with started(tmp_path, f"--spool={spool}") as running:
        for token, message in zip(tokens, messages):
            assert send(running, token, message) == (202, {"spooled": 1})
        assert send(running, tokens[0], messages[1]) == (401, {"reason": "token_used"})
        stopped(running)
    assert ids_in(spooled(spool)) == ids_of(messages)


@pytest.mark.parametrize("header", [b"", BATCH_HEADER], ids=["plain", "single-object encoding"])
def test_a_batch_counts_once_and_has_no_more_reports_than_its_token(header: bytes, tmp_path: Path) -> None:
    """Also one without ids, of which some reports are bad; with and without the header of single-object encoding."""
    rows = [(1, NOON + i, bytes([i]) * 16, b"\x02") for i in range(5)]
    good, long, nameless = packed(KRR, rows[:3]), packed(KRR, rows), packed(KRR, [(1, NOON, b"", b"\x02")] * 2)
    partly = packed(KRR, [(1, NOON, bytes([9]) * 16, b"\x02"), (7, NOON, bytes([8]) * 16, b"\x02")])
    spool = tmp_path / "spool"
    with started(tmp_path, f"--spool={spool}", "--token_reports=3") as running:
        for message, number in ((good, 3), (nameless, 2), (partly, 1)):
            token = sign(KEY)
            for _ in range(3):
                status, content = send(running, token, header + message)
                assert status == 202
            assert number <= content["spooled"] <= wire.reports_in(message)
        for _ in range(2):
            assert send(running, sign(KEY), header + long) == (413, {"reason": "too_large"})
        stopped(running)
    found = spooled(spool)
    assert sum(map(wire.reports_in, found)) == 3 + 2 + 1
    assert ids_in(found) == Counter([row[2] for row in rows[:3]] + [bytes([9]) * 16])


def test_copies_of_a_refused_message_are_judged_again(tmp_path: Path) -> None:
    token, bad = sign(KEY), single()[:-1]
    with started(tmp_path, f"--spool={tmp_path / 'spool'}") as running:
        for _ in range(2):
            assert send(running, token, bad)[0] == 400
        assert send(running, token, single()) == (401, {"reason": "token_used"})


# ---------------------------------------------------------------------- kills


@pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
def test_kills_at_each_call_of_fsync_lose_and_repeat_nothing_in_a_spool(is_before: bool, tmp_path: Path) -> None:
    """Each process is killed at a later point; all messages are sent again until they are acknowledged."""
    spool, options = tmp_path / "spool", [f"--spool={tmp_path / 'spool'}", "--spool_every=100ms"]
    messages, tokens = singles(160, 3), [sign(KEY) for _ in range(160)]
    served = 0
    for call in range(1, 21):
        with contextlib.ExitStack() as stack:
            try:
                running = stack.enter_context(killed_at(tmp_path, call, is_before, *options))
            except NotListening:  # killed
                continue
            served += 1
            for message, token in zip(messages[: 8 * call], tokens):  # also those of earlier processes
                if asyncio.run(posted(running.address, [message], [token])) == [0]:
                    break
                time.sleep(0.01)
            assert running.process.wait(PATIENCE) == -signal.SIGKILL
    assert served >= 10, "most processes were killed while they took messages"
    with started(tmp_path, *options) as running:
        assert asyncio.run(posted(running.address, messages, tokens)) == [202] * len(messages)
        stopped(running)
    assert ids_in(spooled(spool)) == ids_of(messages)


def posted_by_many(running: Running, messages: Sequence[bytes], tokens: Sequence[str]) -> list[list[int]]:
    """The statuses over 20 connections, each of which sends every twentieth message."""

    async def run() -> list[list[int]]:
        parts = [(messages[first::20], tokens[first::20]) for first in range(20)]
        return await asyncio.gather(*(posted(running.address, some, own) for some, own in parts))

    return asyncio.run(run())


def sent_until_killed(running: Running, messages: Sequence[bytes], tokens: Sequence[str]) -> set[bytes]:
    """Ids of the reports that were acknowledged before a kill at a random moment; 20 connections send them.

    At least one is: of more messages than connections that are done, a connection has sent its next one.
    """
    delay = random.uniform(0, 0.5)  # any moment will do: the test holds for each

    def kill() -> None:
        while running.counted("reports_delivered_total") + running.counted("copies_total") <= 20:
            time.sleep(0.01)
        time.sleep(delay)
        running.process.kill()

    killing = threading.Thread(target=kill)
    killing.start()
    statuses = posted_by_many(running, messages, tokens)
    killing.join()
    running.process.wait(PATIENCE)
    done = set()
    for first, part in enumerate(statuses):
        assert set(part) <= {200, 202, 0}
        done |= {message[9:25] for message, status in zip(messages[first::20], part) if status}
    assert done
    return done


def test_kills_under_load_lose_and_repeat_nothing_in_a_spool(tmp_path: Path) -> None:
    spool, options = tmp_path / "spool", [f"--spool={tmp_path / 'spool'}", "--spool_every=150ms"]
    messages, tokens = singles(3_000, 4), [sign(KEY) for _ in range(3_000)]
    for _ in range(5):
        with started(tmp_path, *options) as running:
            sent_until_killed(running, messages, tokens)
    with started(tmp_path, *options) as running:
        for _ in range(2):
            assert {status for part in posted_by_many(running, messages, tokens) for status in part} == {202}
        stopped(running)
    assert ids_in(spooled(spool)) == ids_of(messages)


@pytest.mark.parametrize("is_spooled", [False, True], ids=["published", "spooled"])
def test_a_kill_repeats_at_most_what_was_under_way_to_a_queue(is_spooled: bool, tmp_path: Path) -> None:
    """A message that was acknowledged before the kill is not published again when it comes again."""
    messages, tokens = singles(2_000, 5), [sign(KEY) for _ in range(2_000)]
    own = (
        [f"--spool={tmp_path / 'spool'}", "--spool_every=100ms"] if is_spooled else [f"--used_tokens={tmp_path / 't'}"]
    )
    with live.broker():
        with started(tmp_path, *PUBLISHING, *own) as running:
            done = sent_until_killed(running, messages, tokens)
        before = ids_in(published())
        with started(tmp_path, *PUBLISHING, *own) as running:
            for _ in range(2):
                statuses = {status for part in posted_by_many(running, messages, tokens) for status in part}
                assert statuses == {202 if is_spooled else 200}
            stopped(running)
        after = ids_in(published())
    there = before + after
    assert set(there) == set(ids_of(messages)), "nothing is lost"
    assert max(there.values()) <= 2
    if not is_spooled:
        assert done <= set(before)
        assert not done & set(after), "what was acknowledged is not published again"


def test_a_retry_after_an_outage_is_delivered_once(tmp_path: Path) -> None:
    """The queue is away: 503, as often as it is tried; then the message is published once, and copies are not."""
    token, message = sign(KEY), singles(1, 6)[0]
    with live.broker(), started(tmp_path, *PUBLISHING, f"--used_tokens={tmp_path / 'used'}") as running:
        with pubsub_v1.PublisherClient() as publisher, pubsub_v1.SubscriberClient() as subscriber:
            publisher.delete_topic(topic=live.TOPIC)
            for _ in range(2):
                assert send(running, token, message) == (503, {"reason": "unavailable"})
            assert send(running, token, single()) == (401, {"reason": "token_used"})
            publisher.create_topic(name=live.TOPIC)
            subscriber.delete_subscription(subscription=live.SUBSCRIPTION)
            subscriber.create_subscription(name=live.SUBSCRIPTION, topic=live.TOPIC)
        for _ in range(3):
            assert send(running, token, message) == (200, {"published": 1})
        assert ids_in(published()) == ids_of([message])
        running.process.kill()
        running.process.wait()
        with started(tmp_path, *PUBLISHING, f"--used_tokens={tmp_path / 'used'}") as later:
            assert send(later, token, message) == (200, {"published": 1})
        assert not published()


FULL = """
import errno, os
_sync = os.fsync
def _full(descriptor):
    if os.path.exists(os.environ["FULL"]) and os.environ["PART"] in os.readlink(f"/proc/self/fd/{descriptor}"):
        raise OSError(errno.ENOSPC, "No space left on device")
    _sync(descriptor)
os.fsync = _full
"""
"""A disk without space for some of the files, while there is a file FULL."""


@pytest.mark.parametrize("part", ["tokens", "avro", "manifest", ""], ids=["tokens", "reports", "manifests", "all"])
def test_a_full_disk_loses_and_repeats_nothing(part: str, tmp_path: Path) -> None:
    """Who sends is told 503 until there is space; the sentence for the operator names the folder."""
    spool, full = tmp_path / "spool", tmp_path / "full"
    messages, tokens = singles(60, 7), [sign(KEY) for _ in range(60)]
    variables, options = {"FULL": str(full), "PART": part}, [f"--spool={spool}", "--spool_every=100ms"]
    with started(tmp_path, *options, first=FULL, variables=variables) as running:
        for first in range(0, 60, 20):
            full.touch()
            statuses = asyncio.run(posted(running.address, messages[: first + 20], tokens[: first + 20]))
            assert set(statuses) <= {202, 503} and (503 in statuses or part == "manifest")
            time.sleep(0.3)
            full.unlink()
            again = asyncio.run(posted(running.address, messages[: first + 10], tokens[: first + 10]))
            assert set(again) <= {202, 503}
            time.sleep(1.5)  # files that could not be finished are
        assert asyncio.run(posted(running.address, messages, tokens)) == [202] * 60
        if part != "manifest":
            assert f"{spool}" in running.said() and "No space left on device" in running.said()
        running.process.kill()
        running.process.wait()
    with started(tmp_path, *options) as running:
        assert asyncio.run(posted(running.address, messages, tokens)) == [202] * 60
        stopped(running)
    assert ids_in(spooled(spool)) == ids_of(messages)


@pytest.fixture
def kafka() -> Iterator[str]:
    """The address of a cluster of librdkafka's own tests, which is in the library; it lives as long as its producer."""
    hub = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    [broker] = hub.list_topics(timeout=PATIENCE).brokers.values()
    hub.produce("reports", b"\x02")  # makes the topic
    assert hub.flush(60) == 0
    yield f"{broker.host}:{broker.port}"


def test_a_topic_of_kafka_has_each_message_once(kafka: str, tmp_path: Path) -> None:
    """Copies at once, later, and after a kill of what was acknowledged."""
    messages, tokens = singles(200, 8), [sign(KEY) for _ in range(200)]
    options = ["--kafka_topic=reports", f"--bootstrap_servers={kafka}", f"--used_tokens={tmp_path / 'used'}"]

    async def thrice(address: str) -> list[list[int]]:
        return await asyncio.gather(*(posted(address, messages, tokens) for _ in range(3)))

    for _ in range(2):
        with started(tmp_path, *options) as running:
            assert asyncio.run(thrice(running.address)) == [[200] * 200] * 3
            running.process.kill()
            running.process.wait()
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "test", "auto.offset.reset": "earliest"})
    consumer.subscribe(["reports"])
    found: list[bytes] = []
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if (record := consumer.poll(1.0)) is not None:
            assert record.error() is None
            found.append(record.value())
    consumer.close()
    found.remove(b"\x02")
    assert ids_in(found) == ids_of(messages)


# ---------------------------------------------------------------------- navigations


def line(number: int) -> bytes:
    return json.dumps({"confidence": "high", "rate": 0.5, "duration": number}).encode()


def navigated(running: Running, token: str, body: bytes = LINE) -> tuple[int, Any]:
    answer = running.ask("POST", "/navigations", body, Authorization=f"Bearer {token}")
    return answer.status, answer.content


@pytest.mark.parametrize("most", [1, 3])
def test_a_token_sends_no_more_navigations_than_reports(most: int, tmp_path: Path) -> None:
    folder, options = tmp_path / "navigations", [] if most == 1 else [f"--token_reports={most}"]
    with started(tmp_path, f"--navigations={folder}", *options, collection=None) as running:
        for number in (most + 1, 1_400):
            assert navigated(running, sign(KEY), b"\n".join([LINE] * number)) == (413, {"reason": "too_large"})
        with_bad = b"\n".join([LINE] * most + [b"bad"])
        assert navigated(running, sign(KEY), with_bad) == (413, {"reason": "too_large"}), "bad lines count too"
        token, body = sign(KEY), b"\n".join(line(i) for i in range(most))
        for _ in range(20):
            assert navigated(running, token, body) == (202, {"spooled": most})
    assert [each["duration"] for each in kept(folder)] == list(range(most))


@pytest.mark.parametrize("is_before", [True, False], ids=["before", "after"])
def test_kills_lose_and_repeat_no_navigation(is_before: bool, tmp_path: Path) -> None:
    """At each call of fsync; all lines are sent again."""
    folder, options = tmp_path / "navigations", [f"--navigations={tmp_path / 'navigations'}", "--token_reports=2"]
    bodies = [b"\n".join([line(2 * number), line(2 * number + 1)]) for number in range(60)]
    tokens = [sign(KEY) for _ in bodies]
    served = 0
    for call in range(1, 13):
        with contextlib.ExitStack() as stack:
            try:
                running = stack.enter_context(killed_at(tmp_path, call, is_before, *options, collection=None))
            except NotListening:  # killed
                continue
            served += 1
            with contextlib.suppress(OSError, http.client.HTTPException):
                for token, body in list(zip(tokens, bodies))[: 5 * call]:
                    navigated(running, token, body)
            assert running.process.wait(PATIENCE) == -signal.SIGKILL
    assert served >= 6, "most processes were killed while they took lines"
    with started(tmp_path, *options, collection=None) as running:
        for token, body in zip(tokens, bodies):
            assert navigated(running, token, body) == (202, {"spooled": 2})
        stopped(running)
    assert Counter(each["duration"] for each in kept(folder)) == Counter(range(120))


@pytest.mark.parametrize("before", ["spool", "navigations"])
def test_a_restart_with_another_directory_of_used_tokens_repeats_nothing(before: str, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / before, tmp_path / "elsewhere"
    collection = KRR if before == "spool" else None
    first = f"--{before}={folder}"
    then = [first, f"--used_tokens={elsewhere}"] if before == "spool" else [first, f"--spool={tmp_path / 'new'}"]
    chosen = elsewhere if before == "spool" else tmp_path / "new" / "tokens"
    token, message = sign(KEY), single() if before == "spool" else LINE
    send_it = send if before == "spool" else navigated
    with started(tmp_path, first, collection=collection) as running:
        assert send_it(running, token, message)[0] == 202
        stopped(running)
    with pytest.raises(AssertionError, match="must be moved to"), started(tmp_path, *then):
        pass
    chosen.parent.mkdir(exist_ok=True)
    (folder / "tokens").rename(chosen)
    with started(tmp_path, *then) as running:
        assert send_it(running, token, message) == (202, {"spooled": 1})
        stopped(running)
    assert len(spooled(folder) if before == "spool" else kept(folder)) == 1
