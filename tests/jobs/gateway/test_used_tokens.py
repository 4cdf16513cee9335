"""Used tokens are on disk before a message is acknowledged: after a restart, they send no other message."""

from __future__ import annotations

import asyncio
import errno
import shutil
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.jobs.gateway.test_navigation_gateway import LINE, kept
from tests.jobs.gateway.test_signed_tokens import KEY, OTHER, VECTOR, Clock, of, sent, sign
from tests.support.gateways import Running, gateway
from tests.support.messages_cases import single
from uldp_transforms.jobs.gateway import serve
from uldp_transforms.jobs.gateway.apps import used_token_files
from uldp_transforms.jobs.gateway.apps.signed_tokens import UsedTokens
from uldp_transforms.jobs.gateway.apps.used_token_files import UsedTokenFiles
from uldp_transforms.jobs.gateway.outlets.outlet import Undelivered
from uldp_transforms.jobs.gateway.refusals import Refused

RECORD = used_token_files._RECORD.size


async def spend(used: UsedTokens, message: bytes, text: str = VECTOR) -> None:
    token = of(text)
    used.use(token, message)
    await used.keep(token, message)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def run(folder: Path, clock: Clock, *messages: bytes) -> None:
    """A process in which one token sends these messages."""

    async def process() -> None:
        files = UsedTokenFiles(folder, clock)
        used = UsedTokens(clock=clock, files=files, elapsed=clock)
        await files.start()
        try:
            for message in messages:
                await spend(used, message)
        finally:
            await files.close()

    asyncio.run(asyncio.wait_for(process(), 30))


def test_the_next_process_knows_what_a_token_has_sent(tmp_path: Path, clock: Clock) -> None:
    run(tmp_path, clock, b"message", b"message")
    [file] = tmp_path.iterdir()
    assert file.stat().st_size == RECORD, "what came again is stored once"
    run(tmp_path, clock, b"message")
    assert [file] == list(tmp_path.iterdir())
    with pytest.raises(Refused, match=r"^token_used$"):
        run(tmp_path, clock, b"another")
    file.unlink()
    run(tmp_path, clock, b"another")  # it was the file that remembered


@pytest.mark.parametrize("size", range(RECORD))
def test_a_record_that_a_kill_cut_off_hides_no_other_one(size: int, tmp_path: Path, clock: Clock) -> None:
    run(tmp_path, clock, b"message")
    [file] = tmp_path.iterdir()
    content = file.read_bytes()
    file.write_bytes(content + content[:size])
    with pytest.raises(Refused, match=r"^token_used$"):
        run(tmp_path, clock, b"another")
    file.write_bytes(content[:size])
    run(tmp_path, clock, b"another")  # the request of this one was not answered


def test_what_cannot_be_stored_is_not_acknowledged(tmp_path: Path, clock: Clock) -> None:
    """Also not when it comes again, until it is stored; another message has no chance meanwhile."""

    async def process() -> None:
        files = UsedTokenFiles(tmp_path, clock)
        used = UsedTokens(clock=clock, files=files)
        await files.start()
        full = mock.patch("os.fsync", side_effect=OSError(errno.ENOSPC, "No space left on device"))
        for _ in range(2):
            with full, pytest.raises(Undelivered, match=r"^used tokens cannot be stored: No space left on device$"):
                await spend(used, b"message")
            with pytest.raises(Refused, match=r"^token_used$"):
                await spend(used, b"another")
        await spend(used, b"message")
        await files.close()

    asyncio.run(asyncio.wait_for(process(), 30))
    with pytest.raises(Refused, match=r"^token_used$"):
        run(tmp_path, clock, b"another")


def test_files_of_tokens_that_expired_a_day_ago_are_deleted(tmp_path: Path, clock: Clock) -> None:
    run(tmp_path, clock, b"message")
    [old] = tmp_path.iterdir()
    clock.now = (1_800_000_000 // 3600 + 25) * 3600 - 1
    assert list(UsedTokenFiles(tmp_path, clock).read()) and old.exists()
    clock.now += 1
    assert not list(UsedTokenFiles(tmp_path, clock).read()) and not old.exists()


def test_a_file_says_nothing_without_the_token(tmp_path: Path, clock: Clock) -> None:
    """Neither id nor a hash of the message alone is in it, and the order of a batch is not that of arrival."""

    async def process() -> None:
        files = UsedTokenFiles(tmp_path, clock)
        used = UsedTokens(clock=clock, files=files)
        await files.start()
        await asyncio.gather(*(spend(used, b"message", sign(KEY)) for _ in range(100)))
        await files.close()

    clock.now = time.time()
    asyncio.run(asyncio.wait_for(process(), 30))
    records = [
        content[at : at + RECORD]
        for path in tmp_path.iterdir()
        for content in [path.read_bytes()]
        for at in range(0, len(content), RECORD)
    ]
    assert len({record[24:] for record in records}) == 100, "one message of a hundred tokens has a hundred hashes"
    assert len(records) == 100
    expected = [record[8:] for record in records]
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
    assert sorted(line["confidence"] for line in kept(folder)) == ["high", "high", "low"]


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
    assert serve._token_files(mock.Mock(signed_tokens=True, spool=None, navigations=None)) is None
    assert "gateway: used tokens are not stored without --spool" in capsys.readouterr().err
