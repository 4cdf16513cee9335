"""The compiled part: equal results with and without it, and no message or table that harms the process."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fuzz.fuzz_inputs import COLLECTIONS, Fuzzer
from tests.fuzz.native import compare
from tests.support.compiled_part import COMPILED, NUMPY, SOURCE, decoding_with
from tests.support.messages_cases import KRR, NOON, decoder, long, single
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import native_module, wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.compiled import Splitter
from uldp_transforms.messages.decoder import MessageDecoder
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


def test_beginnings_of_a_message_are_left_to_the_decoder() -> None:
    whole = single(KRR)
    for header in (b"", wire.REPORT_HEADER):
        assert taken([(header + whole)[:end] for end in range(len(header + whole))]) == 0
        assert taken([header + whole]) == 1
        assert taken([header + whole + b"\0"]) == 0
    assert taken([wire.BATCH_HEADER + whole, wire.REPORT_HEADER * 2 + whole]) == 0
    assert taken([]) == 0


def taken(messages: list[bytes]) -> int:
    """Number of messages that the compiled part accepts; all others are left."""
    with decoding_with(COMPILED):
        split = Splitter(CollectionCatalog(COLLECTIONS)).split(messages)
    assert split is not None and len(split.cohorts) + len(split.rest) == len(messages)
    return len(split.cohorts)


def test_other_objects_than_bytes_are_refused() -> None:
    with decoding_with(COMPILED), pytest.raises(TypeError, match="expected bytes, str found"):
        decoder([KRR]).decode([single(KRR), "text"])  # type: ignore[list-item]


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
        tables[5] = value

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        *map(_without, range(5)),
        *(_with(at, value) for at in (1, 2) for value in (-1, 1 << 40)),
        *(_with(at, len(COLLECTIONS) + at - 1) for at in (1, 2)),
        _with(3, -1),
        _shift(0),
        _shift(64),
        _shift(-1),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(spoil: Callable[[list[Any]], None]) -> None:
    tables = list(Splitter(CollectionCatalog(COLLECTIONS))._tables)
    spoil(tables)
    with decoding_with(COMPILED):
        module = native_module.native()
        assert module is not None
        with pytest.raises(ValueError, match="tables of split_reports must fit together, got others"):
            module.split_reports([single(KRR)], *tables)


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
    assert f"INTERFACE = {native_module.INTERFACE}," in SOURCE.read_text(encoding="utf-8")
