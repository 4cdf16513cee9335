"""Used tokens are on disk before a message is acknowledged: after a restart, they send no other message."""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import itertools
import os
import shutil
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from starlette.responses import Response

from packages.gateway.tests.support.gateways import Running, gateway
from packages.gateway.tests.support.navigation_lines_kept import LINE, kept
from packages.gateway.tests.support.tokens import KEY, OTHER, VECTOR, Clock, of, sent, sign
from tests.support.messages_cases import single
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_gateway import serve
from uldp_transforms_gateway.apps import used_token_files
from uldp_transforms_gateway.apps.once_per_token import OncePerToken
from uldp_transforms_gateway.apps.signed_tokens import UsedTokens
from uldp_transforms_gateway.apps.used_token_files import UsedTokenFiles
from uldp_transforms_gateway.apps.uses import Use
from uldp_transforms_gateway.outlets.outlet import Undelivered
from uldp_transforms_gateway.outlets.recorded_outlet import RecordedOutlet
from uldp_transforms_gateway.refusals import Refused

RECORD = used_token_files._RECORD.size


class Queue:
    """What is published, by all processes of a test; and, by calls from the first, which ones fail."""

    def __init__(self) -> None:
        self.published: list[bytes] = []
        self.fails = 0

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    async def deliver(self, message: bytes) -> None:
        await asyncio.sleep(0)
        if self.fails:
            self.fails -= 1
            raise Undelivered("of this test")
        self.published.append(message)


class Process:
    """One process of a gateway, as far as tokens are concerned; a message is delivered when the queue has it."""

    def __init__(self, folder: Path, clock: Clock, queue: Queue, elapsed: Clock | None = None):
        self.files = UsedTokenFiles(folder, clock)
        self._outlet = RecordedOutlet(queue, self.files)  # type: ignore[arg-type]  # a stand-in
        self._once = OncePerToken(UsedTokens(clock=clock, files=self.files, elapsed=elapsed or clock))

    async def deliver(self, message: bytes, use: Use | None) -> Response:
        assert use is not None
        await self._outlet.deliver(message, use)
        return Response(b"new", 200)

    def again(self, message: bytes) -> Response:
        return Response(b"copy", 200)

    async def send(self, message: bytes, text: str = VECTOR) -> bytes:
        return bytes((await self._once.answer(of(text), message, self)).body)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue() -> Queue:
    return Queue()


Steps = Callable[[Process], Awaitable[Any]]


def run(folder: Path, clock: Clock, queue: Queue, steps: Steps, elapsed: Clock | None = None) -> Any:
    """What happens in a process that ends well."""

    async def process() -> Any:
        found = Process(folder, clock, queue, elapsed)
        await found.files.start()
        try:
            return await steps(found)
        finally:
            await found.files.close()

    return asyncio.run(asyncio.wait_for(process(), 30))


def sends(folder: Path, clock: Clock, queue: Queue, *messages: bytes) -> list[bytes]:
    """The answers to these messages of one token in a process."""

    async def steps(process: Process) -> list[bytes]:
        return [await process.send(message) for message in messages]

    found: list[bytes] = run(folder, clock, queue, steps)
    return found


def record_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name != "lock")


def test_the_next_process_knows_what_a_token_has_sent(tmp_path: Path, clock: Clock, queue: Queue) -> None:
    assert sends(tmp_path, clock, queue, b"message", b"message") == [b"new", b"copy"]
    [file] = record_files(tmp_path)
    assert file.stat().st_size == 2 * RECORD, "the use and the seal; what came again is stored once"
    assert sends(tmp_path, clock, queue, b"message") == [b"copy"]
    assert [file] == record_files(tmp_path)
    with pytest.raises(Refused, match=r"^token_used$"):
        sends(tmp_path, clock, queue, b"another")
    assert queue.published == [b"message"]
    file.unlink()
    assert sends(tmp_path, clock, queue, b"another") == [b"new"], "it was the file that remembered"


@pytest.mark.parametrize("size", range(0, 2 * RECORD, 5))
def test_a_record_that_a_kill_cut_off_hides_no_other_one(size: int, tmp_path: Path, clock: Clock, queue: Queue) -> None:
    """Without its seal, a message is published again, which is all that a kill can do."""
    sends(tmp_path, clock, queue, b"message")
    [file] = record_files(tmp_path)
    content = file.read_bytes()
    file.write_bytes(content + content[:size])
    assert sends(tmp_path, clock, queue, b"message") == [b"copy"]
    file.write_bytes(content[:size])
    if size < RECORD:
        assert sends(tmp_path, clock, queue, b"another") == [b"new"], "the request of this one was not answered"
        return
    with pytest.raises(Refused, match=r"^token_used$"):
        sends(tmp_path, clock, queue, b"another")
    assert sends(tmp_path, clock, queue, b"message", b"message") == [b"new", b"copy"]
    assert sends(tmp_path, clock, queue, b"message") == [b"copy"]
    assert queue.published == [b"message"] * 2


@pytest.mark.parametrize("call", [1, 2], ids=["the use", "the seal"])
def test_what_cannot_be_stored_is_not_acknowledged_and_not_repeated(
    call: int, tmp_path: Path, clock: Clock, queue: Queue
) -> None:
    """Not before it is stored; another message has no chance meanwhile."""
    sync = os.fsync

    async def steps(process: Process) -> None:
        calls, is_full = itertools.count(1), True

        def fails(descriptor: int) -> None:
            if next(calls) >= 2 * call - 1 and is_full:  # a new file has two
                raise OSError(errno.ENOSPC, "No space left on device")
            sync(descriptor)

        sentence = rf"^used tokens cannot be stored in {tmp_path}: No space left on device$"
        with mock.patch("os.fsync", fails):
            for _ in range(3):
                with pytest.raises(Undelivered, match=sentence):
                    await process.send(b"message")
                with pytest.raises(Refused, match=r"^token_used$"):
                    await process.send(b"another")
        assert len(queue.published) == call - 1
        assert await process.send(b"message") == (b"new" if call == 1 else b"copy")
        assert await process.send(b"message") == b"copy"

    run(tmp_path, clock, queue, steps)
    assert sends(tmp_path, clock, queue, b"message") == [b"copy"]
    assert queue.published == [b"message"]


def test_a_message_that_was_not_delivered_is_later_and_once(tmp_path: Path, clock: Clock, queue: Queue) -> None:
    """Also by a later process; requests that come at once share one delivery, and its failure."""
    queue.fails = 2

    async def steps(process: Process) -> None:
        for _ in range(2):
            outcomes = await asyncio.gather(*(process.send(b"message") for _ in range(50)), return_exceptions=True)
            assert [str(outcome) for outcome in outcomes] == ["of this test"] * 50

    run(tmp_path, clock, queue, steps)
    assert sends(tmp_path, clock, queue, b"message", b"message") == [b"new", b"copy"]
    assert sends(tmp_path, clock, queue, b"message") == [b"copy"]
    assert queue.published == [b"message"]


def test_a_delivery_is_not_cancelled_with_its_request(tmp_path: Path, clock: Clock, queue: Queue) -> None:
    async def steps(process: Process) -> None:
        first = asyncio.create_task(process.send(b"message"))
        await asyncio.sleep(0)
        first.cancel()
        assert await process.send(b"message") == b"new"
        assert await process.send(b"message") == b"copy"

    run(tmp_path, clock, queue, steps)
    assert queue.published == [b"message"]


def test_one_process_at_a_time_uses_a_folder(tmp_path: Path, clock: Clock, queue: Queue) -> None:
    async def steps(_: Process) -> None:
        with pytest.raises(SpecError, match=r"^--used_tokens must be a folder that no other gateway uses, got '"):
            UsedTokenFiles(tmp_path, clock)

    run(tmp_path, clock, queue, steps)
    run(tmp_path, clock, queue, lambda process: process.send(b"message"))


def test_records_of_the_version_without_places_are_delivered_messages(
    tmp_path: Path, clock: Clock, queue: Queue
) -> None:
    token = of(VECTOR)
    name = hashlib.blake2b(token.id, digest_size=16, person=b"uldp token").digest()
    message = hashlib.blake2b(b"message", digest_size=16, key=token.id).digest()
    (tmp_path / f"{token.expires // 3600}-0123456789ab").write_bytes(
        struct.pack(">q16s16s", token.expires, name, message)
    )
    assert sends(tmp_path, clock, queue, b"message") == [b"copy"]
    with pytest.raises(Refused, match=r"^token_used$"):
        sends(tmp_path, clock, queue, b"another")


def test_files_of_tokens_that_expired_a_day_ago_are_deleted(tmp_path: Path, clock: Clock, queue: Queue) -> None:
    sends(tmp_path, clock, queue, b"message")
    [old] = record_files(tmp_path)
    clock.now = (1_800_000_000 // 3600 + 25) * 3600 - 1
    assert run(tmp_path, clock, queue, _number_of_records) == 1 and old.exists()
    clock.now += 1
    assert run(tmp_path, clock, queue, _number_of_records) == 0 and not old.exists()


async def _number_of_records(process: Process) -> int:
    return len([*process.files.read()])


# ---------------------------------------------------------------------- clocks


@pytest.mark.parametrize("ahead", [60, 3_600, 86_400, 3 * 86_400, 365 * 86_400])
@pytest.mark.parametrize("when", ["before the start", "while it runs"])
def test_a_clock_that_is_set_ahead_and_back_repeats_nothing(
    when: str, ahead: int, tmp_path: Path, clock: Clock, queue: Queue
) -> None:
    """Its tokens are valid again: those whose files are still there are known, and the others are refused."""
    others = [sign_at(number, 1_800_000_000 + ahead + 600) for number in range(3)]
    sends(tmp_path, clock, queue, b"message")
    elapsed = Clock()

    async def steps(process: Process) -> None:
        if when == "while it runs":
            assert await process.send(b"message") == b"copy"
            clock.now += ahead
        for other in others:
            assert await process.send(b"other", other) == b"new"
        elapsed.now += 10**6  # the process has been there for long: expired tokens are forgotten
        clock.now += 61
        for other in others:
            assert await process.send(b"other", other) == b"copy"
        clock.now = Clock.now
        try:
            assert await process.send(b"message") == b"copy"
        except Refused as refused:
            assert refused.reason == "token_expired" and ahead > 86_400, "its file is deleted"
        with pytest.raises(Refused):
            await process.send(b"another")

    if when == "before the start":
        clock.now += ahead
    run(tmp_path, clock, queue, steps, elapsed)
    assert Counter(queue.published) == Counter([b"message"] + [b"other"] * 3)


def sign_at(number: int, expires: int) -> str:
    """A token with an id of its own; its code is not looked at here."""
    name = base64.urlsafe_b64encode(number.to_bytes(16, "big")).rstrip(b"=").decode()
    return f"uldp1.{expires}.{name}.{'A' * 43}"


def test_a_file_says_nothing_without_the_token(tmp_path: Path, clock: Clock, queue: Queue) -> None:
    """Neither id nor a hash of the message alone is in it, and the order of a batch is not that of arrival."""
    clock.now = time.time()
    run(
        tmp_path,
        clock,
        queue,
        lambda process: asyncio.gather(*(process.send(b"message", sign(KEY)) for _ in range(100))),
    )
    records = [
        content[at : at + RECORD]
        for path in record_files(tmp_path)
        for content in [path.read_bytes()]
        for at in range(0, len(content), RECORD)
    ]
    uses = [record for record in records if any(record[:8])]
    assert len({record[24:40] for record in uses}) == 100, "one message of a hundred tokens has a hundred hashes"
    assert len(uses) == len(records) - len(uses) == 100
    for some in (uses, [record for record in records if not any(record[:8])]):
        expected = [record[8:] for record in some]
        assert expected == sorted(expected)


# ---------------------------------------------------------------------- at a running gateway


def started(folder: Path, *options: str) -> Any:
    (folder / "keys").write_text(f"{KEY} app\n{OTHER} other\n", encoding="utf-8")
    return gateway([*options, "--pack_every=20ms", "--signed_tokens", f"--token_file={folder / 'keys'}"], folder)


def test_a_captured_token_sends_nothing_else_after_a_kill(tmp_path: Path) -> None:
    token, message, another = sign(KEY), single(), single()[:-1]
    spool = tmp_path / "spool"
    with started(tmp_path, f"--spool={spool}") as running:
        assert sent(running, token, message)[0] == 202
        running.process.kill()
        running.process.wait()
    with started(tmp_path, f"--spool={spool}") as running:
        assert sent(running, token, another) == (401, {"reason": "token_used"})
        assert sent(running, token, message)[0] == 202
        running.process.kill()
        running.process.wait()
    shutil.rmtree(spool / used_token_files.FOLDER)
    with started(tmp_path, f"--spool={spool}") as running:
        assert sent(running, token, another)[0] == 400, "only the files told the token"


def navigated(running: Running, token: str, body: bytes = LINE) -> tuple[int, Any]:
    answer = running.ask("POST", "/navigations", body, Authorization=f"Bearer {token}")
    return answer.status, answer.content


def test_a_token_sends_navigations_or_reports(tmp_path: Path) -> None:
    """One message of either, also after a restart; refused lines are not kept."""
    tokens, folder = [sign(KEY) for _ in range(3)], tmp_path / "navigations"
    options = [f"--navigations={folder}", f"--spool={tmp_path / 'spool'}"]
    other = LINE.replace(b"high", b"low")
    with started(tmp_path, *options) as running:
        assert running.ask("POST", "/navigations", LINE).status == 401
        assert navigated(running, KEY) == (401, {"reason": "token"})
        assert navigated(running, tokens[0]) == navigated(running, tokens[0]) == (202, {"spooled": 1})
        assert navigated(running, tokens[0], other) == (401, {"reason": "token_used"})
        assert sent(running, tokens[0], single()) == (401, {"reason": "token_used"})
        assert sent(running, tokens[1], single())[0] == 202
        assert navigated(running, tokens[1]) == (401, {"reason": "token_used"})
        running.process.kill()
        running.process.wait()
    with started(tmp_path, *options) as running:
        assert navigated(running, tokens[0], other) == (401, {"reason": "token_used"})
        assert navigated(running, tokens[1]) == (401, {"reason": "token_used"})
        assert navigated(running, tokens[2], other) == (202, {"spooled": 1})
    assert sorted(line["confidence"] for line in kept(folder)) == ["high", "low"]


def test_a_gateway_for_navigations_alone_stores_its_tokens_there(tmp_path: Path) -> None:
    token, folder = sign(KEY), tmp_path / "navigations"
    (tmp_path / "keys").write_text(f"{KEY} app\n", encoding="utf-8")
    options = ["--navigations", str(folder), "--signed_tokens", f"--token_file={tmp_path / 'keys'}"]
    for status, body in ((202, LINE), (401, LINE.replace(b"high", b"low"))):
        with gateway(options, tmp_path, collection=None) as running:
            assert navigated(running, token, body)[0] == status
    assert [path.name for path in sorted(folder.iterdir())][-1] == used_token_files.FOLDER
    assert kept(folder)


def test_a_gateway_without_a_folder_says_that_a_restart_forgets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve._token_files(mock.Mock(signed_tokens=True, used_tokens=None, spool=None, navigations=None)) is None
    assert "gateway: used tokens are not stored without --used_tokens or --spool" in capsys.readouterr().err
