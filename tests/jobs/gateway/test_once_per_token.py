"""With signed tokens a report counts once per token: whatever is sent again, at once, after a failure or a kill."""

from __future__ import annotations

import asyncio
import contextlib
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

from tests.jobs.gateway.test_navigation_gateway import LINE, kept
from tests.jobs.gateway.test_signed_tokens import KEY, OTHER, sign
from tests.support import live
from tests.support.gateways import Running, gateway, posted, singles
from tests.support.live import PATIENCE
from tests.support.messages_cases import BATCH_HEADER, KRR, NOON, decoder, packed, single
from uldp_transforms.jobs.gateway import spool_file
from uldp_transforms.messages import wire

PUBLISHING = ["--topic", live.TOPIC]

KILLED = """
import itertools, os
_sync, _calls = os.fsync, itertools.count(1)
def _killed(descriptor):
    at, is_before = int(os.environ["KILL_AT"]), os.environ["KILL_BEFORE"] == "1"
    number = next(_calls)
    if number == at and is_before:
        os.kill(os.getpid(), 9)
    _sync(descriptor)
    if number == at:
        os.kill(os.getpid(), 9)
os.fsync = _killed
"""
"""Ends a process with SIGKILL at one of its calls of fsync: what was written is there, what follows is not."""


def started(folder: Path, *options: str, **others: Any) -> Any:
    (folder / "keys").write_text(f"{KEY} app\n{OTHER} other\n", encoding="utf-8")
    own = ["--pack_every=20ms", "--signed_tokens", f"--token_file={folder / 'keys'}"]
    return gateway([*options, *own], folder, **others)


def killed_at(folder: Path, call: int, is_before: bool, *options: str) -> Any:
    variables = {"KILL_AT": str(call), "KILL_BEFORE": str(int(is_before))}
    return started(folder, *options, first=KILLED, variables=variables)


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


def test_kills_at_each_call_of_fsync_lose_and_repeat_nothing_in_a_spool(tmp_path: Path) -> None:
    """Each process is killed at a later point; all messages are sent again until they are acknowledged."""
    spool, options = tmp_path / "spool", [f"--spool={tmp_path / 'spool'}", "--spool_every=100ms"]
    messages, tokens = singles(160, 3), [sign(KEY) for _ in range(160)]
    missing, died = dict(zip(tokens, messages)), 0
    sent: list[str] = []
    for call in range(1, 21):
        sent = tokens[: 8 * call]
        with contextlib.suppress(AssertionError), killed_at(tmp_path, call, call % 2 == 0, *options) as running:
            for token in sent:  # those of earlier processes first: acknowledged or not
                statuses = asyncio.run(posted(running.address, [dict(zip(tokens, messages))[token]], [token]))
                if statuses == [202]:
                    missing.pop(token, None)
                if statuses == [0]:
                    break
                time.sleep(0.01)
            running.process.wait(0.2 if statuses == [202] else PATIENCE)
        died += 1
    with started(tmp_path, *options) as running:
        assert asyncio.run(posted(running.address, messages, tokens)) == [202] * len(messages)
        stopped(running)
    assert died == 20 and len(missing) < len(messages)
    assert ids_in(spooled(spool)) == ids_of(messages)
