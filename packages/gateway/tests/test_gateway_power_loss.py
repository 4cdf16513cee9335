"""What the gateway promises to be on disk is there after a loss of power."""

from __future__ import annotations

import asyncio
import io
import json
import os
from pathlib import Path

import pytest

from tests.support.messages_cases import packed
from tests.support.power_loss import Disk
from uldp_transforms.messages.containers import read_messages
from uldp_transforms.messages.manifest import files_of_manifest, listed_file
from uldp_transforms_gateway.apps.used_token_files import FOLDER, UsedTokenFiles
from uldp_transforms_gateway.apps.uses import Place, Use
from uldp_transforms_gateway.spool_file import SpoolFile, finish

MESSAGES = [packed(), packed(rows=[(1, 0, bytes(16), b"\1")])]


def messages_in(content: bytes) -> list[object]:
    return list(read_messages(io.BytesIO(content), "spool"))


def test_what_the_gateway_answers_for_is_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``append`` returns before the answer 202 goes out."""
    disk = Disk(monkeypatch)
    file = SpoolFile(tmp_path)
    for number, message in enumerate(MESSAGES, 1):
        file.append([message])
        assert messages_in(disk.after_power_loss(tmp_path)[file.path.name]) == MESSAGES[:number]


def test_a_finished_file_and_its_manifest_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    file = SpoolFile(tmp_path)
    file.append(MESSAGES)
    whole = file.finish()
    assert whole is not None
    found = disk.after_power_loss(tmp_path)
    assert set(found) == {whole.name, whole.name.replace(".avro", ".manifest.json")}
    assert messages_in(found[whole.name]) == MESSAGES
    [listed] = files_of_manifest(json.loads(found[whole.name.replace(".avro", ".manifest.json")]))
    assert listed == listed_file(whole, whole.name, 2, listed.reports)


def test_a_block_that_was_cut_is_removed_from_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the file would be longer than its manifest says."""
    file = SpoolFile(tmp_path)
    file.append(MESSAGES)
    file._file.close()
    with file.path.open("ab") as cut:
        cut.write(b"\2half a block")
    disk = Disk(monkeypatch)
    with file.path.open("rb") as there:
        os.fsync(there.fileno())  # the kill left these bytes on disk
    whole = finish(file.path)
    assert whole is not None
    found = disk.after_power_loss(tmp_path)
    assert messages_in(found[whole.name]) == MESSAGES
    [listed] = files_of_manifest(json.loads(found[whole.name.replace(".avro", ".manifest.json")]))
    assert listed.bytes == len(found[whole.name])


def test_used_tokens_are_on_disk_before_their_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the folder: after the loss, a token sends no other message."""
    disk, folder = Disk(monkeypatch), tmp_path / FOLDER
    files = UsedTokenFiles(folder, lambda: 0.0)

    async def use() -> None:
        await files.start()
        for number in range(3):
            place = Place(bytes([number]) * 8, 9)
            await files.recorded([Use(7, bytes([number]) * 16, bytes(16))], place)
            [content] = (data for name, data in disk.after_power_loss(folder).items() if name != "lock")
            assert content[-56:] == bytes(7) + b"\7" + bytes([number]) * 16 + bytes(16) + place.file + bytes(7) + b"\t"
            assert len(content) == 56 * (2 * number + 1)
            await files.published(place)
            [content] = (data for name, data in disk.after_power_loss(folder).items() if name != "lock")
            assert content[-56:] == bytes(40) + place.file + bytes(7) + b"\t"
        await files.close()

    asyncio.run(use())
    assert FOLDER in disk.after_power_loss(tmp_path)
