"""A short run of the fuzzer, and that it finds what is wrong when something is; ``make fuzz`` is the long one."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.fuzz import fuzz
from tests.fuzz.fuzz_inputs import COLLECTIONS, PAYLOADS, Fuzzer
from tests.fuzz.fuzz_reference import Reference
from tests.support.messages_cases import GOOD, KRR, NOON, data, decoder, packed, single
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import containers, wire
from uldp_transforms.messages import decoder as decoders
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.messages.mixed_reports import Batches, MixedReports

pytestmark = pytest.mark.usefixtures("decoding_part")

MESSAGES, FILES = 32_000, 3_000


@pytest.mark.parametrize("side", fuzz.SIDES)
def test_messages_get_the_verdicts_of_the_reference(side: str) -> None:
    fuzzer, tally = Fuzzer(11), Counter[str]()
    for _ in range(0, MESSAGES, fuzz.CALL):
        tally += fuzz.check_messages(side, fuzzer.messages(fuzz.CALL))
    assert tally["messages"] == MESSAGES
    assert tally["accepted"] > MESSAGES / 20
    of_messages = {reason.code for reason in Reason if 0 < reason < 40}
    of_streams = {"no_report_id", "too_early", "too_old"}
    assert of_messages - set(tally) - {"too_large"} == (of_streams if side == "files" else set())


def test_files_are_read_as_by_the_reference() -> None:
    fuzzer, tally = Fuzzer(12), Counter[str]()
    for _ in range(FILES):
        tally += fuzz.check_file(fuzzer.file())
    assert {"bad_magic", "corrupt_block", "unknown_schema"} <= set(tally)
    assert tally["messages_of_files"] > FILES / 2


@pytest.mark.parametrize("side", fuzz.SIDES)
def test_a_message_alone_takes_bounded_memory(side: str) -> None:
    fuzzer = Fuzzer(13)
    messages = [*fuzzer.messages(150), *(fuzzer.large() for _ in range(8))]
    assert max(fuzz.peak_memory(side, message) for message in messages) < 16 * max(map(len, messages)) + (1 << 20)


def test_the_command_prints_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--messages=9000", "--files=20", "--seed=3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("9,000 messages")
    assert lines[-1] == "0 escapes"


def test_equal_seeds_draw_equal_inputs() -> None:
    first, second, third = (Fuzzer(seed) for seed in (1, 1, 2))
    assert first.messages(500) == second.messages(500) != third.messages(500)
    assert [first.file() for _ in range(50)] == [second.file() for _ in range(50)]


def test_the_table_of_payloads_fits_the_collections() -> None:
    assert set(PAYLOADS) == {of.id for of in COLLECTIONS}
    for of in COLLECTIONS:
        assert PAYLOADS[of.id].size == of.mechanism.payload_size
        assert PAYLOADS[of.id].fault(GOOD[of.id]) is None


# ---------------------------------------------------------------------- the fuzzer itself


def lenient_integers(*arguments: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    value, after, canonical = READ_VARINTS(*arguments)
    return value, after, np.ones_like(canonical)


READ_VARINTS, DECODE, SPLIT = wire.read_varints, MessageDecoder.decode, containers._split_block


def forgetful(self: MessageDecoder, messages: Any, received: Any = None) -> Any:
    decoded = DECODE(self, messages, received)
    return decoded._replace(rejections=decoded.rejections[:-1])


def raising(self: MessageDecoder, messages: Any, received: Any = None) -> Any:
    if any(message.startswith(b"\x02" * 2) for message in messages):
        raise IndexError("a planted fault")
    return DECODE(self, messages, received)


def doubling(self: MessageDecoder, messages: Any, received: Any = None) -> Any:
    decoded = DECODE(self, messages, received)
    return decoded._replace(batches=Batches([*decoded.parts, *decoded.parts[:1]]))


def masking(self: MessageDecoder, messages: Any, received: Any = None) -> Any:
    """Cohorts are taken modulo their number."""
    decoded = DECODE(self, messages, received)
    kept = [dataclasses.replace(batch, cohorts=batch.cohorts % np.uint16(2)) for batch in decoded.batches]
    return decoded._replace(batches=Batches(list(map(MixedReports.of, kept))))


def greedy(*arguments: Any) -> Any:
    found = SPLIT(*arguments)
    return [] if isinstance(found, Reason) else found


PLANTED: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "padded integers pass": (decoders.wire, "read_varints", lenient_integers),
    "a verdict is lost": (MessageDecoder, "decode", forgetful),
    "a report counts twice": (MessageDecoder, "decode", doubling),
    "an exception leaves the decoder": (MessageDecoder, "decode", raising),
    "cohorts are masked": (MessageDecoder, "decode", masking),
    "lost blocks are not told": (containers, "_split_block", greedy),
}


@pytest.fixture(params=PLANTED.values(), ids=PLANTED)
def planted(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(*request.param)
    yield


@pytest.mark.usefixtures("planted")
def test_a_planted_fault_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--messages=4000", "--files=400", "--seed=4"]) == 1
    assert not capsys.readouterr().out.endswith("\n0 escapes\n")


def test_a_message_that_takes_too_much_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "MEMORY_PER_MESSAGE", 0)
    monkeypatch.setattr(fuzz, "MEMORY_PER_BYTE", 1)
    with pytest.raises(fuzz.Escape, match="takes"):
        fuzz.peak_memory("files", single())


def test_the_reference_reads_the_golden_rules() -> None:
    """A few verdicts by hand: the reference must not be the decoder's mirror."""
    reference: Reference = fuzz.SIDES["stream"][1]
    assert reference.judge(single(), NOON).accepted == ((1, NOON, bytes(range(16)), b"\x02"),)
    assert reference.judge(single(payload=data(b"\x03")), NOON).refused == {
        ("value_domain", KRR.fingerprint[:8], None): 1
    }
    assert reference.judge(packed(rows=[(0, NOON, b"", b"\0")] * 2), NOON).refused == {
        ("no_report_id", KRR.fingerprint[:8], None): 2
    }
    assert reference.judge(b"", NOON).refused == {("malformed", None, None): 1}
    assert not decoder([KRR]).decode([single()])[1]
