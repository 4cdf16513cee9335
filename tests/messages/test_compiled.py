"""The compiled part: equal results with and without it, and no message or table that harms the process."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fuzz.fuzz_inputs import COLLECTIONS, Fuzzer
from tests.fuzz.native import compare, compare_file
from tests.support.compiled_part import COMPILED, NUMPY, SOURCES, decoding_with
from tests.support.messages_cases import KRR, NOON, RAPPOR, URAP, URR, data, decoder, long, padded, single
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import native_module, wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.compiled import Splitter, report_ends, tables_of
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.messages.joined_messages import JoinedMessages
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME


def many(number: int) -> list[Collection]:
    """Collections with payloads of one to three bytes."""
    collections = []
    for i in range(number):
        alphabet = {"id": "closed", "values": [str(value) for value in range(2 + i % 20)]}
        mechanism = {"id": ("krr", "rappor")[i % 2], "epsilon": 1.0}
        spec = {"id": f"c{i}", "version": 1, "alphabet": alphabet, "num_cohorts": 1 + i % 7, "mechanism": mechanism}
        collections.append(Collection.from_json(spec))
    return collections


@pytest.mark.parametrize("side", ["files", "stream"])
def test_spoiled_messages_have_equal_verdicts(side: str) -> None:
    fuzzer = Fuzzer(27)
    for _ in range(5):
        assert compare(side, fuzzer.messages(4000), NOON)["accepted"] > 100


def test_spoiled_files_have_equal_messages() -> None:
    fuzzer, tally = Fuzzer(28), Counter[str]()
    for _ in range(300):
        tally += compare_file(fuzzer.file())
    assert tally["messages_of_files"] > 100
    assert tally["corrupt_block"] > 20


@pytest.mark.parametrize("number", [1, 2, 3, 40, 700])
def test_many_collections_have_equal_batches(number: int) -> None:
    collections, random_numbers = many(number), random.Random(number)
    messages = [
        m for c in collections for m in wire.encode_reports(c.perturb(["0", "1", "1"], event_times=np.full(3, NOON)))
    ]
    messages += [bytes([*m[: 1 + at], m[1 + at] ^ 1, *m[2 + at :]]) for at, m in enumerate(messages[:25])]
    random_numbers.shuffle(messages)
    decode = MessageDecoder(CollectionCatalog(collections)).decode
    found = []
    for part in (NUMPY, COMPILED):
        with decoding_with(part):
            found.append(decode(messages))
    assert found[0].batches == found[1].batches
    assert sum(map(len, found[1].batches)) >= 3 * number - 25
    assert found[0].num_received == found[1].num_received


@pytest.mark.parametrize("cohort", [-1, 0, 2, 3, 65_535, 65_536, (1 << 31) - 1, 1 << 31, -(1 << 31), (1 << 63) - 1])
def test_cohorts_at_the_limits(cohort: int) -> None:
    assert taken([single(KRR, cohort=long(cohort))]) == (0 <= cohort < KRR.num_strata)


@pytest.mark.parametrize("time", [MIN_EVENT_TIME, MAX_EVENT_TIME - 1])
def test_times_at_the_limits(time: int) -> None:
    assert taken([single(KRR, event_time=long(time))]) == 1
    outside = time - 1 if time == MIN_EVENT_TIME else time + 1
    assert taken([single(KRR, event_time=long(outside))]) == 0


@pytest.mark.parametrize("last", [1, 2, 0x7F])
def test_integers_of_more_than_64_bits_are_none(last: int) -> None:
    """Nine bytes of zeros and one more: the first 64 bits are those of 0 or of -(2^62)."""
    assert taken([single(KRR, cohort=b"\x80" * 9 + bytes([last]))]) == 0


@pytest.mark.parametrize("field", ["event_time", "cohort", "payload"])
def test_integers_that_are_longer_than_needed_are_none(field: str) -> None:
    whole = {"event_time": long(NOON), "cohort": long(1), "payload": long(1)}[field]
    behind = b"\2" if field == "payload" else b""
    assert taken([single(KRR, **{field: whole + behind})]) == 1
    assert taken([single(KRR, **{field: padded(whole) + behind})]) == 0


@pytest.mark.parametrize("times", [(3, 5, 4), (5, 3, 4), (4, 5, 3), (4,)], ids=str)
def test_the_range_of_times_is_that_of_all_reports(times: tuple[int, ...]) -> None:
    with decoding_with(COMPILED):
        messages = [single(KRR, event_time=long(NOON + time)) for time in times]
        found = Splitter(CollectionCatalog([KRR])).split(messages)
    assert found is not None
    assert (found.lowest - NOON, found.highest - NOON) == (min(times), max(times))


def test_beginnings_of_a_message_are_left_to_the_decoder() -> None:
    whole = single(KRR)
    for header in (b"", wire.REPORT_HEADER):
        assert taken([(header + whole)[:end] for end in range(len(header + whole))]) == 0
        assert taken([header + whole]) == 1
        assert taken([header + whole + b"\0"]) == 0
    assert taken([wire.BATCH_HEADER + whole, wire.REPORT_HEADER * 2 + whole]) == 0
    assert taken([]) == 0


def test_payloads_are_checked_where_the_tail_says_which_are_valid() -> None:
    assert taken([single(KRR, payload=data(bytes([symbol]))) for symbol in range(256)]) == 3
    assert taken([single(URR, payload=data(bytes([at % 256, at // 256]))) for at in range(1 << 16)]) == 300
    assert taken([single(RAPPOR, payload=data(bytes([7, last]))) for last in range(256)]) == 4
    assert taken([single(URAP, payload=data(bytes([7, last]))) for last in range(256)]) == 256  # left to Python


@pytest.mark.parametrize("number", [0, 1, 2, 4, 1 << 40])
def test_a_block_is_split_if_it_has_exactly_its_number_of_reports(number: int) -> None:
    assert ends_in(b"".join([single(KRR)] * 2), number) == ([34, 68] if number == 2 else None)


def test_a_block_is_split_if_every_report_is_whole_and_canonical() -> None:
    reports = [
        single(KRR, cohort=long(cohort), payload=data(bytes(size))) for cohort, size in ((0, 0), (-7, 3), (99, 70))
    ]
    body, ends = b"".join(reports), np.cumsum(list(map(len, reports))).tolist()
    assert ends_in(body, 3) == ends
    for cut in range(len(body)):
        assert ends_in(body[:cut], 3) is None
    for start in (0, *ends[:-1]):
        assert ends_in(body[:start] + b"\x04" + body[start + 1 :], 3) is None
    assert ends_in(body + b"\0", 3) is None
    for field in ("event_time", "cohort", "payload"):
        assert ends_in(single(KRR, **{field: b"\x80\x00"}), 1) is None
        assert ends_in(single(KRR, **{field: b"\xff" * 10}), 1) is None
    assert ends_in(single(KRR, payload=long(-1)), 1) is None


def ends_in(block: bytes, number: int) -> list[int] | None:
    with decoding_with(COMPILED):
        found = report_ends(number, block)
    return None if found is None else np.frombuffer(found, np.int64).tolist()


@pytest.mark.parametrize("ends", [[-1], [35], [20, 10, 34], [34, 35], [1 << 62]])
def test_ends_outside_of_the_data_are_refused(ends: list[int]) -> None:
    joined = JoinedMessages.of(single(KRR), ends)
    with (
        decoding_with(COMPILED),
        pytest.raises(ValueError, match="ends of split_joined must increase up to the end of the data, got others"),
    ):
        Splitter(CollectionCatalog(COLLECTIONS)).split(joined)


def test_other_objects_than_catalogs_are_refused() -> None:
    with decoding_with(COMPILED):
        module = native_module.native()
        assert module is not None
        for call in (lambda: module.split_reports(None, []), lambda: module.split_joined(None, b"", b"")):
            with pytest.raises(ValueError, match="invalid PyCapsule object"):
                call()


def test_a_decoder_that_was_used_can_be_sent_to_another_worker() -> None:
    with decoding_with(COMPILED):
        used = decoder([KRR])
        expected = used.decode([single(KRR)]).batches
        assert pickle.loads(pickle.dumps(used)).decode([single(KRR)]).batches == expected


def taken(messages: list[bytes]) -> int:
    """Number of messages that the compiled part accepts; all others are left."""
    with decoding_with(COMPILED):
        split = Splitter(CollectionCatalog(COLLECTIONS)).split(messages)
    assert split is not None and len(split.cohorts) + len(split.rest) == len(messages)
    return len(split.cohorts)


def _without(at: int) -> Callable[[list[Any]], None]:
    def spoil(tables: list[Any]) -> None:
        tables[at] = tables[at][:-8]

    return spoil


def _with(at: int, value: int) -> Callable[[list[Any]], None]:
    def spoil(tables: list[Any]) -> None:
        tables[at] = np.array([value], dtype=np.int64).tobytes() + tables[at][8:]

    return spoil


def _shift(value: int) -> Callable[[list[Any]], None]:
    def spoil(tables: list[Any]) -> None:
        tables[7] = value

    return spoil


def _short_header(tables: list[Any]) -> None:
    tables[8] = tables[8][:-1]


def _long_tail(tables: list[Any]) -> None:
    _with(2, 8)(tables)
    _with(4, 8)(tables)


def _empty(tables: list[Any]) -> None:
    tables[:6] = [b""] * 6


@pytest.mark.parametrize(
    "spoil",
    [
        *map(_without, range(7)),
        *(_with(at, value) for at in (1, 6) for value in (-1, 1 << 40)),
        *(_with(at, len(COLLECTIONS) + more) for at, more in ((1, 0), (6, 1))),
        *(_with(at, -1) for at in (2, 4)),
        _with(2, 0),  # shorter than its tail
        _with(4, 8),
        _long_tail,
        _short_header,
        _empty,
        _shift(0),
        _shift(64),
        _shift(-1),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(spoil: Callable[[list[Any]], None]) -> None:
    tables = list(tables_of(CollectionCatalog(COLLECTIONS)))
    spoil(tables)
    with decoding_with(COMPILED):
        module = native_module.native()
        assert module is not None
        with pytest.raises(ValueError, match="tables of new_catalog must fit together, got others"):
            module.new_catalog(*tables)


def test_only_a_module_of_this_interface_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(native_module, "MODULE", "other_native")
    (tmp_path / "other_native.py").write_text("INTERFACE = 0\n", encoding="utf-8")
    native_module.native.cache_clear()
    try:
        assert native_module.native() is None
        assert native_module.decoder_name() == "numpy"
        monkeypatch.setattr(native_module, "INTERFACE", 0)
        native_module.native.cache_clear()
        assert native_module.decoder_name() == "compiled"
    finally:
        native_module.native.cache_clear()


def test_the_source_states_the_interface() -> None:
    assert any(f"INTERFACE = {native_module.INTERFACE} " in source.read_text(encoding="utf-8") for source in SOURCES)


def test_the_package_is_made_of_all_files() -> None:
    setup = (SOURCES[0].parent / "setup.py").read_text(encoding="utf-8")
    files = [*SOURCES, *SOURCES[0].parent.glob("*.h")]
    assert len(files) == 5
    assert all(f'"{file.name}"' in setup for file in files)
