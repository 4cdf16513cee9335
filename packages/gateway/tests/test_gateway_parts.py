"""Parts of the gateway: verdicts, packs, limits, files of the spool."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from starlette.requests import Request
from starlette.responses import Response

from packages.gateway.tests.support.desks import SAID, Kept, batches_of, blocks_of, desk_for
from packages.gateway.tests.support.gateways import singles
from tests.fuzz import fuzz
from tests.fuzz.fuzz_inputs import Fuzzer
from tests.support.messages_cases import (
    BATCH_HEADER,
    GOOD,
    KRR,
    NOON,
    RAPPOR,
    REPORT_HEADER,
    URR,
    decoder,
    long,
    num_reports,
    packed,
    rows_of,
    single,
    write_files,
)
from tests.support.spool_writer import finished
from uldp_transforms.jobs import estimate
from uldp_transforms.ldp import ReportBatch, SpecError
from uldp_transforms.messages import wire
from uldp_transforms.messages.files import spool_names
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms_gateway import spool, spool_file
from uldp_transforms_gateway.admission import Admission, Verdict
from uldp_transforms_gateway.apps.app_keys import Key, Tokens, read_keys
from uldp_transforms_gateway.limits import Limits
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.outlets.outlet import Undelivered
from uldp_transforms_gateway.packer import Pack, Packer
from uldp_transforms_gateway.refusals import Refused
from uldp_transforms_gateway.spool import Spool
from uldp_transforms_gateway.spool_file import SpoolFile
from uldp_transforms_gateway.web import Door

PATIENCE = 40.0
"""Seconds for what a spool does with a few messages; a fault of its writer would let all wait for ever."""


# ---------------------------------------------------------------------- verdicts


@pytest.mark.parametrize("side", fuzz.SIDES)
def test_verdicts_are_those_of_the_reference(side: str) -> None:
    """Message by message, though they are judged together, with a limit on what is handed on together."""
    decode, reference = fuzz.SIDES[side]
    messages, most = Fuzzer(31).messages(1_500), 50
    verdicts: list[Verdict] = []
    accepted: list[ReportBatch] = []
    for some, batches in Admission(decode, most).judge(messages, NOON):
        verdicts += some
        accepted += batches
        total = sum(map(len, batches))
        assert total == sum(verdict.accepted for verdict in some)
        assert total <= most or len(some) == 1
    assert len(verdicts) == len(messages)
    rows: Counter[Any] = Counter()
    for message, verdict in zip(messages, verdicts):
        expected = reference.judge(message, NOON)
        refused: Counter[str] = Counter()
        for (reason, *_), number in expected.refused.items():
            refused[reason] += number
        assert {reason.code: number for reason, number in verdict.refused.items()} == refused
        assert verdict.accepted == len(expected.accepted)
        assert verdict.fingerprint[:8] == (expected.collection if expected.accepted else b"")
        rows.update((expected.collection, row) for row in expected.accepted)
    assert rows_of(accepted) == rows
    assert len(rows) > 500


def test_the_reason_is_that_of_most_reports() -> None:
    rows = [(1, NOON, bytes(16), b"\x07"), (9, NOON, bytes(16), b"\x00"), (2, NOON, bytes(16), b"\x09")]
    [([verdict], _)] = Admission(decoder(), 100).judge([packed(KRR, rows)], NOON)
    assert (verdict.accepted, verdict.reason.code) == (0, "value_domain")


# ---------------------------------------------------------------------- packs


@pytest.mark.parametrize("with_ids", [True, False])
def test_a_pack_holds_what_was_put_in(with_ids: bool) -> None:
    """Every report with cohort, time, id and payload; those without ids in a message of their own."""
    ids = [bytes([i]) * 16 for i in range(4)]
    rows = [(i % 3, NOON - i * 10**9, ids[i], GOOD["rappor"]) for i in range(4)]
    messages = [single(RAPPOR), REPORT_HEADER + single(RAPPOR), BATCH_HEADER + packed(RAPPOR, rows)]
    if not with_ids:
        messages.append(packed(RAPPOR, [(0, 5, b"", GOOD["rappor"]), (1, -6, b"", GOOD["rappor"])]))
    batches = batches_of(messages)
    pack = Pack()
    for batch in batches:
        pack.add(batch)
    out = pack.messages()
    assert pack.number == num_reports(batches, []) == (6 if with_ids else 8)
    assert len(out) == (1 if with_ids else 2)
    assert rows_of(batches_of(out)) == rows_of(batches)


def test_the_order_of_arrival_is_not_kept() -> None:
    """1,000 reports stay in order with probability 1 / 1000!."""
    [batch] = batches_of(singles(1_000, 5))
    pack = Pack()
    pack.add(batch)
    [out] = batches_of(pack.messages())
    assert out.report_ids.tolist() != batch.report_ids.tolist()
    assert sorted(out.report_ids.tolist()) == sorted(batch.report_ids.tolist())


def test_no_two_packs_have_the_same_order() -> None:
    """A shuffle by a fixed seed could be undone by everybody; 1,000 reports agree with probability 1 / 1000!."""
    [batch] = batches_of(singles(1_000, 5))
    orders = []
    for _ in range(2):
        pack = Pack()
        pack.add(batch)
        [out] = batches_of(pack.messages())
        orders.append(out.report_ids.tolist())
    assert orders[0] != orders[1]


def test_reports_without_ids_are_delivered_beside_those_with_ids() -> None:
    """They are two messages of one pack, and nobody hears of a delivery before both."""
    messages = [single(RAPPOR), packed(RAPPOR, [(0, 5, b"", GOOD["rappor"]), (1, 5, b"", GOOD["rappor"])])]
    kept = Kept()

    async def run() -> None:
        packer = Packer(kept, 10, 60, Meters(SAID.append))
        packs = [packer.add(*batches_of(messages))]
        await packer.drain()
        for pack in packs:
            await pack.delivered()

    asyncio.run(run())
    assert sorted(map(wire.reports_in, kept.messages)) == [1, 2]
    assert rows_of(batches_of(kept.messages)) == rows_of(batches_of(messages))


def packing(sizes: Sequence[int], size: int, every: float, kept: Kept) -> tuple[list[int], Meters]:
    """Batches of these sizes, one after the other, through a packer; reports of each message, and the meters."""
    [reports] = batches_of(singles(sum(sizes), 6))
    meters = Meters(SAID.append)

    async def run() -> None:
        packer, first, packs = Packer(kept, size, every, meters), 0, []
        for number in sizes:
            packs.append(packer.add(reports[first : first + number]))
            first += number
            await asyncio.sleep(0)
        await packer.drain()
        for pack in packs:
            await pack.delivered()

    asyncio.run(run())
    return sorted(map(wire.reports_in, kept.messages)), meters


def test_packs_are_full_or_alone() -> None:
    """Up to 10 reports each; a batch of more stays whole."""
    found, meters = packing([1] * 25 + [7, 7, 30], 10, 60.0, Kept())
    assert found == [5, 7, 7, 10, 10, 30]
    assert b"uldp_gateway_reports_delivered_total 69.0\n" in meters.text()
    assert b"uldp_gateway_messages_delivered_total 6.0\n" in meters.text()


def test_a_pack_goes_when_its_time_is_over() -> None:
    [reports] = batches_of(singles(1, 7))
    kept = Kept()

    async def run() -> None:
        await asyncio.wait_for(Packer(kept, 10, 0.01, Meters(SAID.append)).add(reports).delivered(), 60)

    asyncio.run(run())
    assert list(map(wire.reports_in, kept.messages)) == [1]


def test_collections_have_packs_of_their_own() -> None:
    kept = Kept()

    async def run() -> None:
        packer = Packer(kept, 10, 60, Meters(SAID.append))
        for batch in batches_of([single(KRR), single(URR), single(KRR), packed(URR)]):
            packer.add(batch)
        await packer.drain()

    asyncio.run(run())
    assert sorted(map(wire.reports_in, kept.messages)) == [2, 3]
    assert {message[1:9] for message in kept.messages} == {KRR.fingerprint[:8], URR.fingerprint[:8]}


def test_all_who_wait_hear_of_a_failure() -> None:
    """The operator does too, but not each time; health is bad until a delivery goes well."""
    SAID.clear()
    kept = Kept(fails=True)
    meters = Meters(SAID.append)
    [reports] = batches_of(singles(40, 8))

    async def fails(packer: Packer, batch: ReportBatch) -> bool:
        try:
            await packer.add(batch).delivered()
        except Undelivered:
            return True
        return False

    async def run() -> list[bool]:
        packer = Packer(kept, 10, 60, meters)
        found = await asyncio.gather(*(fails(packer, reports[i : i + 1]) for i in range(40)))
        assert not meters.is_well
        kept.fails = False
        await asyncio.gather(*(fails(packer, reports[i : i + 1]) for i in range(10)))
        assert meters.is_well
        return found

    assert asyncio.run(run()) == [True] * 40
    assert SAID == ["reports cannot be delivered, and their senders are told: of this test"]
    assert b"uldp_gateway_delivery_failures_total 4.0\n" in meters.text()


class FailsFirst(Kept):
    """The first message does not arrive."""

    async def deliver(self, message: bytes) -> None:
        self.fails, failed = False, not self.messages and not SAID
        if failed:
            raise Undelivered("of this test")
        self.messages.append(message)


def test_nobody_is_told_of_another_pack() -> None:
    """Single and packed reports of one moment are two batches, and there is room for one of them in the open pack."""
    SAID.clear()
    kept, messages = FailsFirst(), singles(13, 11)
    [batch] = batches_of(messages[9:])

    async def answers() -> list[Any]:
        desk = desk_for(kept)
        first = [asyncio.create_task(desk._deliver(message)) for message in messages[:5]]
        await asyncio.sleep(0.01)
        later = [desk._deliver(message) for message in (*messages[5:9], wire.encode_batch(batch))]
        return await asyncio.gather(*first, *later, return_exceptions=True)

    found = asyncio.run(asyncio.wait_for(answers(), PATIENCE))
    acknowledged = sum(json.loads(answer.body)["published"] for answer in found if not isinstance(answer, Undelivered))
    assert [isinstance(answer, Undelivered) for answer in found] == [True] * 5 + [False] * 5
    assert acknowledged == sum(map(wire.reports_in, kept.messages)) == 8


def test_a_fault_of_the_judge_is_an_answer_to_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    SAID.clear()
    monkeypatch.setattr(Admission, "judge", lambda *_: 1 // 0)

    async def answers() -> list[Any]:
        desk = desk_for(Kept())
        return await asyncio.wait_for(
            asyncio.gather(*map(desk._deliver, singles(3, 12)), return_exceptions=True), timeout=PATIENCE
        )

    assert [str(answer) for answer in asyncio.run(answers())] == ["ZeroDivisionError"] * 3


@pytest.mark.parametrize(("length", "size"), [("0" * 5_000 + "5", 5), ("0" * 20 + "10", 10), ("", None), ("0", 0)])
def test_zeros_before_a_length_say_nothing(length: str, size: int | None) -> None:
    if size is not None:
        with Limits(10, 1, 10, Meters(SAID.append)).room_for(length) as room:
            room.came(size)
            with pytest.raises(Refused, match=r"^too_large$"):
                room.came(1)
    for longer in ("0" * 20 + "11", "0" * 30 + "9" * 40):
        with pytest.raises(Refused, match=r"^too_large$"), Limits(10, 1, 10, Meters(SAID.append)).room_for(longer):
            pass


def test_a_fault_of_the_program_is_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its type is named, not what it says, which may hold a report."""
    SAID.clear()
    monkeypatch.setattr(Pack, "messages", lambda _: 1 // 0)
    [reports] = batches_of(singles(1, 9))

    async def run() -> None:
        packer = Packer(Kept(), 1, 60, Meters(SAID.append))
        with pytest.raises(Undelivered, match=r"^ZeroDivisionError$"):
            await packer.add(reports).delivered()

    asyncio.run(run())
    assert SAID == ["reports cannot be delivered, and their senders are told: ZeroDivisionError"]


# ---------------------------------------------------------------------- files of the spool


def test_whatever_is_cut_off_whole_blocks_stay(tmp_path: Path) -> None:
    """A kill can leave any beginning of the file; what append returned for is in every longer one."""
    blocks = blocks_of(3)
    file = SpoolFile(tmp_path)
    ends = [file.size]
    for block in blocks:
        file.append(block)
        ends.append(file.size)
    content = file.path.read_bytes()
    assert len(content) == ends[-1]
    file.finish()
    for cut in range(0, len(content) + 1):
        part = tmp_path / f"reports-{cut}{spool_names.PART}"
        part.write_bytes(content[:cut])
        whole = spool_file.finish(part)
        if ends[0] < cut < ends[1]:  # it is put aside, for nobody can tell this from a fault of the disk
            assert spool_file.damaged_path(part).read_bytes() == content[:cut]
        kept = [message for block, end in zip(blocks, ends[1:]) if end <= cut for message in block]
        assert (list(spool_file.read(whole)) if whole else []) == kept
        assert not part.exists()
        if whole:
            assert whole.stat().st_size == max(end for end in ends if end <= cut)


@pytest.mark.parametrize(("at", "left"), [(30, 0), (-1, 2)], ids=["header", "second block of three"])
def test_what_was_damaged_otherwise_is_not_cut(at: int, left: int, tmp_path: Path) -> None:
    """By the disk: what follows the fault can still be read, or at least stays."""
    blocks = blocks_of(3)
    file = SpoolFile(tmp_path)
    for block in blocks:
        file.append(block)
    content = bytearray(file.path.read_bytes())
    content[at if at > 0 else content.index(blocks[1][0]) + 9] ^= 1
    file.path.write_bytes(content)
    whole = file.finish()
    assert (whole or spool_file.damaged_path(file.path)).read_bytes() == content
    kept = [item for item in spool_file.read(whole) if not isinstance(item, Rejection)] if whole else []
    assert kept == (blocks[0] + blocks[2] if left else [])


def test_the_spool_is_input_of_the_job(tmp_path: Path) -> None:
    """With the manifests that it wrote."""
    for block in blocks_of(4):
        file = SpoolFile(tmp_path)
        file.append(block)
        assert file.finish() is not None
    write_files(tmp_path, {"C.json": KRR})
    argv = f"--collection={tmp_path}/C.json --input={tmp_path}/*.avro --manifest={tmp_path}/*.manifest.json"
    assert estimate.main([*argv.split(), f"--output={tmp_path}/out"]) == 0
    [ledger] = map(json.loads, (tmp_path / "out" / "ledger.jsonl").read_text("utf-8").splitlines())
    assert (ledger["received"], ledger["accepted"], ledger["rejected"]) == (24, 24, {})


class FullFile:
    """A file on a disk that takes a few bytes more, and then none."""

    def __init__(self, file: Any):
        self._file = file
        self._left = 20

    def write(self, data: bytes) -> int:
        if not self._left:
            raise OSError(28, "No space left on device")
        taken, self._left = int(self._file.write(data[: self._left])), 0
        return taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_when_a_disk_is_full_nothing_that_was_acknowledged_is_lost(tmp_path: Path) -> None:
    """A block that was cut off is no part of the file, and what comes later goes to another one."""
    blocks = blocks_of(3)

    async def run() -> None:
        spool: Any = Spool(str(tmp_path), 60, None, Meters(SAID.append), SAID.append)
        await spool.start()
        await spool.deliver(blocks[0][0])
        spool._file._file = FullFile(spool._file._file)
        with pytest.raises(Undelivered, match=rf"^the spool {tmp_path} says No space left on device$"):
            await spool.deliver(blocks[1][0])
        await spool.deliver(blocks[2][0])
        await spool.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
    kept = [message for path in sorted(tmp_path.glob("*.avro")) for message in spool_file.read(path)]
    assert sorted(kept) == sorted([blocks[0][0], blocks[2][0]])
    assert not list(tmp_path.glob("*.part"))


def test_a_file_that_cannot_be_begun_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(spool_file.os, "fsync", full)
        with pytest.raises(OSError, match="No space left on device"):
            SpoolFile(tmp_path)
    assert not list(tmp_path.iterdir())


def spooled(folder: Path, target: Kept | None, messages: Sequence[bytes], every: float = 0.05) -> None:
    """A spool from beginning to end, in which these messages come."""

    async def run() -> None:
        spool: Any = Spool(str(folder), every, target, Meters(SAID.append), SAID.append)  # type: ignore[arg-type]  # a stand-in
        await spool.start()
        await asyncio.gather(*map(spool.deliver, messages))
        await spool.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))


def test_what_is_published_leaves_the_spool(tmp_path: Path) -> None:
    """What could not be is published by the next one."""
    SAID.clear()
    messages = [message for block in blocks_of(5) for message in block]
    spooled(tmp_path, Kept(fails=True), messages)
    [file] = tmp_path.glob("*.avro")
    assert SAID[-1] == f"1 file(s) of reports are in {tmp_path}"
    target = Kept()
    spooled(tmp_path, target, [])
    assert sorted(target.messages) == sorted(messages)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    assert not file.exists()


def test_a_file_that_is_damaged_is_published_as_far_as_possible_and_kept(tmp_path: Path) -> None:
    SAID.clear()
    blocks = blocks_of(3)
    file = SpoolFile(tmp_path)
    for block in blocks:
        file.append(block)
    whole = file.finish()
    assert whole is not None
    content = bytearray(whole.read_bytes())
    content[content.index(blocks[1][0]) + 9] ^= 1  # the length of a column
    whole.write_bytes(content)
    assert any(isinstance(item, Rejection) for item in spool_file.read(whole))
    target = Kept()
    spooled(tmp_path, target, [])
    assert sorted(target.messages) == sorted(blocks[0] + blocks[2])
    assert [f"{whole} has 1 block(s) that cannot be read; kept as .damaged"] == SAID
    assert spool_file.damaged_path(whole).read_bytes() == content


def test_a_spool_that_cannot_write_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpoolFile, "append", full)
    with pytest.raises(Undelivered, match=rf"^the spool {tmp_path} says No space left on device$"):
        spooled(tmp_path, None, [b"message"])


def test_a_fault_of_the_program_while_writing_leaves_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next message is written, also after somebody who waited has gone; the text of a fault is not repeated."""
    append, faults = SpoolFile.append, [ValueError("a text with data"), OSError("without a number")]
    blocks = blocks_of(3)

    def fails_twice(file: SpoolFile, messages: Sequence[bytes]) -> None:
        if faults:
            raise faults.pop(0)
        append(file, messages)

    monkeypatch.setattr(SpoolFile, "append", fails_twice)

    async def run() -> None:
        spooling: Any = Spool(str(tmp_path), 60, None, Meters(SAID.append), SAID.append)
        await spooling.start()
        for reason in ("ValueError", "OSError"):
            with pytest.raises(Undelivered, match=rf"^the spool {tmp_path} says {reason}$"):
                await spooling.deliver(blocks[0][0])
        async with spooling._writer.disk:  # the writer has taken both messages, and has not written them
            gone, stays = (asyncio.create_task(spooling.deliver(block[0])) for block in blocks[1:])
            await asyncio.sleep(0)  # both begin
            while spooling._writer._pending:
                await asyncio.sleep(0)
            gone.cancel()
        await stays
        await spooling.deliver(blocks[0][0])
        await spooling.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
    kept = [message for path in sorted(tmp_path.glob("*.avro")) for message in spool_file.read(path)]
    assert sorted(kept) == sorted(block[0] for block in blocks)


def test_what_cannot_be_finished_or_deleted_now_is_later_and_is_published_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the disk ends neither the spool nor its files, and is said."""
    SAID.clear()
    target, finish, unlink, left = Kept(), spool_file.finish, Path.unlink, [1, 2]
    message = blocks_of(1)[0][0]

    def fails_once(part: Path) -> Any:
        if left[0]:
            left[0] -= 1
            raise OSError(28, "No space left on device")
        return finish(part)

    def fails_twice(path: Path, *args: Any, **more: Any) -> None:
        if path.suffix == ".avro" and left[1]:
            left[1] -= 1
            raise OSError(30, "Read-only file system")
        unlink(path, *args, **more)

    monkeypatch.setattr(spool_file, "finish", fails_once)
    monkeypatch.setattr(Path, "unlink", fails_twice)
    monkeypatch.setattr(spool, "_AGAIN", 0.05)

    async def run() -> None:
        spooling: Any = Spool(str(tmp_path), 0.05, target, Meters(SAID.append), SAID.append)  # type: ignore[arg-type]  # a stand-in
        await spooling.start()
        await spooling.deliver(message)
        for _ in range(600):
            if not list(tmp_path.glob("*.avro*")):
                break
            await asyncio.sleep(0.1)
        await spooling.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
    assert target.messages == [message]
    assert left == [0, 0]
    start = "reports stay in the spool and are not lost: [Errno 28] No space left on device: "
    assert SAID[0].startswith(f"{start}'{tmp_path}/reports-")
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


class Faulty(Kept):
    """Cannot take some messages, by a fault of the program."""

    def __init__(self, bad: Sequence[bytes], faults: int):
        super().__init__()
        self.bad, self.left = set(bad), faults

    async def deliver(self, message: bytes) -> None:
        if message in self.bad and self.left:
            self.left -= 1
            raise ValueError("a text with data")
        await super().deliver(message)


@pytest.mark.parametrize(
    "fault", [ValueError("a text with data"), MemoryError(), RuntimeError("can't start new thread")]
)
def test_no_fault_of_the_program_ends_the_spool(
    fault: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a file is finished: it is finished later, and those after it at once. The text of a fault is not shown."""
    SAID.clear()
    finish, poisoned = spool_file.finish, []
    messages = [block[0] for block in blocks_of(3)]

    def fails(part: Path) -> Any:
        if not poisoned or (poisoned[0] == part and len(poisoned) < 3):
            poisoned.append(part)
            raise fault
        return finish(part)

    monkeypatch.setattr(spool_file, "finish", fails)
    monkeypatch.setattr(spool, "_AGAIN", 0.05)
    target = Kept()

    async def run() -> None:
        meters = Meters(SAID.append)
        spooling: Any = Spool(str(tmp_path), 0.05, target, meters, SAID.append)  # type: ignore[arg-type]  # a stand-in
        await spooling.start()
        for message in messages:
            await spooling.deliver(message)
            while spooling._file is not None:
                await asyncio.sleep(0.01)
        while len(target.messages) < 3:
            await asyncio.sleep(0.01)
        assert b"uldp_gateway_delivery_failures_total 3.0\n" in meters.text()
        await spooling.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
    assert len(poisoned) == 3
    assert sorted(target.messages) == sorted(messages)
    assert [f"reports stay in the spool and are not lost: {type(fault).__name__}"] == SAID
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_a_message_that_a_target_cannot_take_keeps_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages before and after it in the file and later files are published once, and it when that is possible."""
    SAID.clear()
    monkeypatch.setattr(spool, "AT_ONCE", 2)
    monkeypatch.setattr(spool, "_AGAIN", 0.01)
    blocks = blocks_of(7)
    for some in (blocks[:5], blocks[5:]):
        file = SpoolFile(tmp_path)
        for block in some:
            file.append(block[:1])
        file.finish()
    messages = [block[0] for block in blocks]
    target = Faulty(messages[1:2], faults=3)

    async def run() -> None:
        spooling: Any = Spool(str(tmp_path), 60, target, Meters(SAID.append), SAID.append)  # type: ignore[arg-type]  # a stand-in
        await spooling.start()
        while len(target.messages) < 7:
            await asyncio.sleep(0.01)
        await spooling.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
    assert sorted(target.messages) == sorted(messages)
    assert target.messages[-1] == messages[1]
    assert SAID == ["reports stay in the spool and are not lost: ValueError"]
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_without_a_thread_nobody_waits_for_ever(tmp_path: Path) -> None:
    async def run() -> None:
        spooling: Any = Spool(str(tmp_path), 60, None, Meters(SAID.append), SAID.append)
        await spooling.start()
        no_thread = mock.patch.object(asyncio, "to_thread", side_effect=RuntimeError("can't start new thread"))
        with no_thread, pytest.raises(Undelivered, match=rf"^the spool {tmp_path} says RuntimeError$"):
            await spooling.deliver(b"message")
        await spooling.deliver(blocks_of(1)[0][0])
        await spooling.close()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
    assert len(list(tmp_path.glob("*.avro"))) == 1


def test_a_fault_of_the_program_at_the_door_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """503, because the reports may be good; counted and said, without the text of the fault."""
    SAID.clear()
    monkeypatch.setattr("uldp_transforms_gateway.web._body", lambda *_: 1 // 0)
    meters = Meters(SAID.append)
    door = Door(Limits(10**6, 100, 10**7, meters), 60, meters)
    request = mock.Mock(scope={"client": None, "headers": []})

    async def answers() -> list[Any]:
        return [await door.answer(request, mock.Mock(), mock.Mock()) for _ in range(3)]

    found = asyncio.run(answers())
    assert [answer.status_code for answer in found] == [503] * 3
    assert {answer.headers["Retry-After"] for answer in found} == {"1"}
    assert SAID == ["reports cannot be delivered, and their senders are told: ZeroDivisionError"]
    assert b"uldp_gateway_delivery_failures_total 3.0\n" in meters.text()


@pytest.mark.parametrize(
    ("origins", "status"),
    [((b"http://127.0.0.1", b"http://evil"), 200), ((b"http://evil", b"http://127.0.0.1"), 403)],
)
def test_of_repeated_headers_the_first_counts(origins: Sequence[bytes], status: int) -> None:
    meters = Meters(SAID.append)
    door = Door(Limits(10**6, 100, 10**7, meters), 60, meters)
    headers = [(b"host", b"127.0.0.1"), *((b"origin", origin) for origin in origins)]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"abc"}

    async def deliver(message: bytes, _: Any) -> Response:
        return Response(message)

    async def answer() -> Response:
        scope = {"type": "http", "method": "POST", "path": "/", "client": None, "headers": headers}
        return await door.answer(Request(scope, receive), mock.Mock(deliver=deliver), mock.Mock())

    assert asyncio.run(answer()).status_code == status


def test_numbers_of_avro_are_those_of_the_specification() -> None:
    numbers = [0, 1, 63, 64, 8191, 8192, 1 << 40, *np.random.default_rng(1).integers(0, 1 << 50, 100).tolist()]
    assert [spool_file._long(number) for number in numbers] == list(map(long, numbers))


def test_files_of_keys_have_lines_of_keys(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    lines = ["# of the app", "", "first-key-0123456789", "  second+key/0123456789==\tandroid-2.1  "]
    file.write_text("\n".join(lines), encoding="utf-8")
    assert read_keys(str(file)) == [Key("first-key-0123456789"), Key("second+key/0123456789==", "android-2.1")]
    assert "second" not in repr(read_keys(str(file)))


SECRET = "too-short-a-key"
NO_KEY = (
    "--token_file must have one key per line, 20 to 512 characters from A-Z a-z 0-9 . _ ~ + / -, and may name its app, "
    "with at most 64 of the characters a-z 0-9 . _ -, after a space, got another text in line "
)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("# nothing\n", "--token_file must have at least one key, got none in "),
        (
            f"first-key-0123456789\n{SECRET}\n",
            f"{NO_KEY}2 of ",
        ),
        *(
            (
                f"first-key-0123456789 {SECRET}{more}\n",
                f"{NO_KEY}1 of ",
            )
            for more in (" twice", "A", '"', "{", "a" * 64)
        ),
        (
            f"first-key-0123456789 {SECRET}\n\nfirst-key-0123456789\n",
            "--token_file must have each key once, got one again in line 3 of ",
        ),
        (
            "ключ-ключ-ключ-ключ-ключ\n",
            f"{NO_KEY}1 of ",
        ),
    ],
)
def test_other_files_of_keys_are_refused_without_showing_them(tmp_path: Path, content: str, sentence: str) -> None:
    file = tmp_path / "keys"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        read_keys(str(file))
    assert str(caught.value).startswith(sentence)
    assert SECRET not in str(caught.value)


def test_each_key_opens_whatever_the_case_of_the_scheme() -> None:
    tokens = Tokens([Key("first-key-0123456789"), Key("second-key-0123456789")])
    tokens.check("Bearer first-key-0123456789")
    tokens.check("bearer  second-key-0123456789 ")
    Tokens().check(None)


def test_the_spools_of_the_core_s_tests_are_those_of_a_gateway(tmp_path: Path) -> None:
    """Byte for byte, but for names and the bytes between blocks, which are drawn."""
    messages = [packed(), packed(KRR, [(1, NOON, bytes(16), b"\1")])]
    file = SpoolFile(tmp_path)
    for message in messages:
        file.append([message])
    own = file.finish()
    assert own is not None
    other = finished(tmp_path, messages)
    contents = [path.read_bytes() for path in (own, other)]
    plain = [content.replace(content[-16:], b"") for content in contents]
    assert plain[0] == plain[1]
    names = [path.name for path in (own, other)]
    listed = [json.loads(spool_names.manifest_path(path).read_bytes())["files"] for path in (own, other)]
    assert [files[0]["name"] for files in listed] == names
    assert all(re.fullmatch(r"reports-\d{8}T\d{6}-[0-9a-f]{12}\.avro", name) for name in names)
    drawn = {"name": "", "sha256": ""}
    assert listed[0][0] | drawn == listed[1][0] | drawn
