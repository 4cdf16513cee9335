"""Avro files: everything that can be read is read, everything else is refused, nothing is believed."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import random
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import Any

import fastavro
import pytest

from tests.support.messages_cases import BATCH, KRR, NOON, REPORT, container, data, long, packed, padded, single
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import containers, wire
from uldp_transforms.messages.files import codecs
from uldp_transforms.messages.rejection import Rejection

splits_blocks = pytest.mark.usefixtures("decoding_part")
"""Of a test whose files have blocks that are split into messages, with numpy alone and by the compiled part."""

SYNC = b"sixteen  bytes !"


def read(content: bytes) -> tuple[list[bytes], list[Rejection]]:
    """Messages and rejections of a file."""
    items = list(containers.read_messages(io.BytesIO(content), "a.avro"))
    messages = [item for item in items if isinstance(item, bytes)]
    rejections = [item for item in items if isinstance(item, Rejection)]
    assert len(messages) + len(rejections) == len(items)
    assert all(rejection.source == "a.avro" and rejection.num_reports == 0 for rejection in rejections)
    assert [rejection.num_files for rejection in rejections] == [1, *[0] * len(rejections)][: len(rejections)]
    return messages, rejections


def reasons(rejections: list[Rejection]) -> list[str]:
    return [rejection.reason.code for rejection in rejections]


def reports(count: int, first: int = 0) -> list[bytes]:
    """Reports that differ."""
    return [single(event_time=long(NOON + i), report_id=i.to_bytes(16, "big")) for i in range(first, first + count)]


def deflated(body: bytes) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflater.compress(body) + deflater.flush()


def block(messages: list[bytes]) -> tuple[int, bytes]:
    return len(messages), b"".join(messages)


THREE = [reports(2), reports(3, 2), reports(2, 5)]
ALL = list(itertools.chain.from_iterable(THREE))


# ---------------------------------------------------------------------- good files


@splits_blocks
@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("sync_interval", [1, 300, 16_000, 1 << 20])
@pytest.mark.parametrize("metadata", [None, {"uldp.collection": "krr", "empty": ""}])
@pytest.mark.parametrize("form", ["single", "packed"])
@pytest.mark.parametrize("number", [0, 1, 1000])
def test_files_of_fastavro_are_read(codec, sync_interval, metadata, form, number):
    batch = KRR.perturb(["0", "1"] * number, event_times=range(2 * number))
    if form == "single":
        schema, records, messages = wire.REPORT_SCHEMA, wire.report_records(batch), wire.encode_reports(batch)
    else:
        parts = [batch[i : i + 7] for i in range(0, len(batch), 7)]
        schema, records = wire.BATCH_SCHEMA, [wire.batch_record(part) for part in parts]
        messages = [wire.encode_batch(part) for part in parts]
    out = io.BytesIO()
    fastavro.writer(out, schema, records, codec=codec, sync_interval=sync_interval, metadata=metadata)
    assert read(out.getvalue()) == (messages, [])


@splits_blocks
@pytest.mark.parametrize(("make", "schema"), [(reports, REPORT), (lambda n: [packed()] * n, BATCH)])
@pytest.mark.parametrize("sizes", [[], [1], [3, 1, 2], [1, 0, 1], [0]], ids=str)
@pytest.mark.parametrize("codec", [b"null", b"deflate", None])
def test_files_made_by_hand_are_read(make, schema, sizes, codec):
    parts = [make(size) for size in sizes]
    pack = deflated if codec == b"deflate" else bytes
    content = container([(len(part), pack(b"".join(part))) for part in parts], schema, codec)
    assert read(content) == (list(itertools.chain.from_iterable(parts)), [])


@splits_blocks
def test_a_header_may_come_in_several_parts_with_their_sizes():
    entries = [data(b"avro.schema") + data(json.dumps(REPORT).encode()), data(b"avro.codec") + data(b"null")]
    sized = [long(-1) + long(len(entry)) + entry for entry in entries]
    for parts in (sized, [long(1) + entry for entry in entries], [sized[0], long(1) + entries[1]]):
        content = b"".join([b"Obj\x01", *parts, long(0), SYNC, long(1), data(single()), SYNC])
        assert read(content) == ([single()], [])


@splits_blocks
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("schema", [REPORT, BATCH], ids=["single", "packed"])
def test_documentation_and_layout_of_the_schema_do_not_matter(schema, indent):
    bare = {key: schema[key] for key in ("type", "name", "namespace")}
    fields = [{key: value for key, value in field.items() if key != "doc"} for field in schema["fields"]]
    text = json.dumps(bare | {"fields": fields}, indent=indent).encode()
    message = single() if schema is REPORT else packed()
    assert read(container([(1, message)], text)) == ([message], [])


# ---------------------------------------------------------------------- bad files

EDITS: dict[str, dict[str, Any]] = {
    "name": {"name": "Other"},
    "namespace": {"namespace": "other"},
    "no fields": {"fields": []},
    "one field less": {"fields": REPORT["fields"][:-1]},
    "one field more": {"fields": [*REPORT["fields"], {"name": "more", "type": "int"}]},
    "other order": {"fields": REPORT["fields"][::-1]},
    "renamed field": {"fields": [REPORT["fields"][0] | {"name": "kind"}, *REPORT["fields"][1:]]},
    "other type": {"fields": [REPORT["fields"][0] | {"type": "long"}, *REPORT["fields"][1:]]},
    "recursive": {"fields": [*REPORT["fields"], {"name": "more", "type": ["null", "uldp.Report"]}]},
    "boundless": {"fields": [{"name": "more", "type": {"type": "fixed", "name": "F", "size": 1e400}}]},
}


def deep(head: str, tail: str, depth: int) -> bytes:
    return (head * depth + '"int"' + tail * depth).encode()


SCHEMAS_OF_OTHERS = {
    **{what: json.dumps(REPORT | edit).encode() for what, edit in EDITS.items()},
    "both": json.dumps([REPORT, BATCH]).encode(),
    "primitive": b'"bytes"',
    **{
        repr(text): text
        for text in (b"", b"{", b"3", b"null", b"[]", b"{}", b'"x"', b"\xff\xfe", b"NaN", b'{"type":{}}')
    },
    **{f"lists, {depth} deep": deep("[", "]", depth) for depth in (100, 900, 1000, 200_000)},
    **{f"types, {depth} deep": deep('{"type":', "}", depth) for depth in (100, 900, 1000, 100_000)},
    **{
        f"arrays, {depth} deep": deep('{"type":"array","items":', "}", depth)
        for depth in (100, 300, 480, 900, 1000, 40_000)
    },
}


@pytest.mark.parametrize("schema", SCHEMAS_OF_OTHERS.values(), ids=SCHEMAS_OF_OTHERS)
def test_files_of_another_schema_are_refused(schema):
    messages, rejections = read(container([(1, single())], schema))
    assert (messages, reasons(rejections)) == ([], ["unknown_schema"])


def test_a_file_without_a_schema_is_refused():
    content = b"".join(
        [b"Obj\x01", long(1), data(b"avro.codec"), data(b"null"), long(0), SYNC, long(1), data(single())]
    )
    assert reasons(read(content + SYNC)[1]) == ["unknown_schema"]


@pytest.mark.parametrize("codec", [b"brotli", b"gzip", b"zstd", b"", b"NULL", b"deflate ", b"\xff", b"x" * 999])
def test_other_codecs_are_refused(codec):
    messages, rejections = read(container([(1, single())], codec=codec))
    assert (messages, reasons(rejections)) == ([], ["unknown_codec"])
    other_schema = container([(1, single())], SCHEMAS_OF_OTHERS["primitive"], codec)
    assert reasons(read(other_schema)[1]) == ["unknown_schema"], "whoever wrote it, it is none of ours"


HEADER = container([])
NOT_CONTAINERS = {
    "empty": b"",
    "one byte": b"O",
    "magic only": b"Obj\x01",
    "another version": b"Obj\x02" + HEADER[4:],
    "no magic": HEADER[1:],
    "gzip": gzip.compress(HEADER, mtime=0),
    "a bare message": single(),
    "text": b"value\nant\n" * 1000,
    "zeros": bytes(100_000),
    "zeros behind the magic": b"Obj\x01" + bytes(10),
    "padded count": b"Obj\x01" + padded(long(2)) + HEADER[5:],
    "a key of negative size": b"Obj\x01" + long(1) + long(-1) + HEADER[5:],
    "a key of huge size": b"Obj\x01" + long(1) + long(1 << 62) + HEADER[5:],
    "more entries than bytes": b"Obj\x01" + long(1 << 62) + HEADER[5:],
    "the least count": b"Obj\x01" + long(-(1 << 63)) + long(0) + HEADER[5:],
    "empty entries only": b"Obj\x01" + long(1 << 40) + bytes(1 << 17),
    "a megabyte of metadata": container([(1, single())], more=bytes(1 << 20)),
    **{f"cut after {end} bytes": HEADER[:end] for end in range(0, len(HEADER), 37)},
    "cut before the last byte": HEADER[:-1],
}


@pytest.mark.parametrize("content", NOT_CONTAINERS.values(), ids=NOT_CONTAINERS)
def test_other_files_are_refused(content):
    messages, rejections = read(content)
    assert (messages, reasons(rejections)) == ([], ["bad_magic"])
    assert rejections[0].message_bytes == min(len(content), 1 << 20)


# ---------------------------------------------------------------------- bad blocks

FALSE_BLOCKS = {
    "one more": (3, b"".join(THREE[0])),
    "one less": (1, b"".join(THREE[0])),
    "none": (0, b"".join(THREE[0])),
    "one of nothing": (1, b""),
    "negative": (-2, b"".join(THREE[0])),
    "2**31": (1 << 31, b"".join(THREE[0])),
    "2**62": (1 << 62, b"".join(THREE[0])),
    "the least int64": (-(1 << 63), b"".join(THREE[0])),
    "a byte more": (2, b"".join(THREE[0]) + b"\0"),
    "a byte less": (2, b"".join(THREE[0])[:-1]),
    "a form of its own": (1, b"\x06" + single()[1:]),
    "a batch among reports": (2, single() + packed()),
    "another integer": (1, single(cohort=padded(long(1)))),
    "a payload of negative size": (1, single(payload=long(-1))),
    "zeros": (1, bytes(100)),
}


@splits_blocks
@pytest.mark.parametrize("false", FALSE_BLOCKS.values(), ids=FALSE_BLOCKS)
@pytest.mark.parametrize("codec", [b"null", b"deflate"])
def test_a_block_that_lies_is_lost_alone(false, codec):
    pack = deflated if codec == b"deflate" else bytes
    parts = [block(THREE[0]), false, block(THREE[2])]
    messages, rejections = read(container([(n, pack(body)) for n, body in parts], codec=codec))
    assert messages == THREE[0] + THREE[2]
    assert reasons(rejections) == ["corrupt_block"]


@splits_blocks
@pytest.mark.parametrize("size", [-1, -(1 << 63), 1 << 20, containers.MAX_BLOCK_BYTES, 1 << 40, (1 << 63) - 1])
def test_a_block_of_false_size_is_skipped_to_the_next_marker(size):
    start, rest = container([block(THREE[0])]), container([block(THREE[2])])[len(HEADER) :]
    false = long(2) + long(size) + b"".join(THREE[1]) + SYNC
    messages, rejections = read(start + false + rest)
    assert messages == THREE[0] + THREE[2]
    assert reasons(rejections) == ["block_too_large" if size > containers.MAX_BLOCK_BYTES else "corrupt_block"]
    assert rejections[0].message_bytes == len(false)


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff" * 50, deflated(b"".join(THREE[1]))[:-1], b"".join(THREE[1])],
    ids=["empty", "random", "cut", "not deflated"],
)
def test_a_block_that_does_not_inflate_is_lost_alone(body):
    parts = [(2, deflated(b"".join(THREE[0]))), (3, body), (2, deflated(b"".join(THREE[2])))]
    messages, rejections = read(container(parts, codec=b"deflate"))
    assert (messages, reasons(rejections)) == (THREE[0] + THREE[2], ["corrupt_block"])


@splits_blocks
def test_what_fastavro_leaves_behind_a_deflated_block_is_ignored():
    """Three bytes of a checksum that zlib appends and Avro does not have."""
    content = container([(2, zlib.compress(b"".join(THREE[0]))[2:-1])], codec=b"deflate")
    assert read(content) == (THREE[0], [])


@splits_blocks
@pytest.mark.parametrize("more", [b"\0", b"more", single(), zlib.compress(b"")[-4:], deflated(single())], ids=len)
def test_anything_else_behind_a_deflated_block_is_a_fault(more):
    """Nobody looks at it, so it could hide what is missing."""
    first, second = b"".join(THREE[0]), b"".join(THREE[1])
    content = container([(2, deflated(first) + more), (3, deflated(second))], codec=b"deflate")
    messages, rejections = read(content)
    assert (messages, reasons(rejections)) == (THREE[1], ["corrupt_block"])


@splits_blocks
@pytest.mark.parametrize("cut", [1, 2, 4])
def test_of_a_checksum_behind_a_block_exactly_three_bytes_are_known(cut):
    first = b"".join(THREE[0])
    messages, rejections = read(container([(2, deflated(first) + zlib.compress(first)[-4:][:cut])], codec=b"deflate"))
    assert (messages, reasons(rejections)) == ([], ["corrupt_block"])


# ---------------------------------------------------------------------- what is accounted for


def account_of(content: bytes) -> containers.Account:
    account = containers.Account()
    assert list(containers.read_messages(io.BytesIO(content), "a.avro", account)) is not None
    return account


@splits_blocks
@pytest.mark.parametrize("codec", [b"null", b"deflate"])
def test_every_byte_of_a_file_is_accounted_for(codec):
    """Of a good one, a cut one, one with rubbish inside, and one that is refused as a whole."""
    content, ends = three_blocks(codec)
    for cut in range(len(content) + 1):
        account = account_of(content[:cut])
        assert account.is_complete(cut)
        assert account.refused == (cut < ends[0])
        assert account.refused or account.num_bytes == cut
        assert account.refused or not account.is_complete(cut + 1)
    for at in range(ends[0], len(content), 7):
        assert account_of(content[:at] + b"\xff" + content[at + 1 :]).num_bytes == len(content)
    assert account_of(content[: ends[1]] + b"\xff" * 3_000_000 + SYNC + content[ends[1] :]).is_complete(
        len(content) + 3_000_000 + len(SYNC)
    )


@splits_blocks
def test_what_nobody_took_is_not_accounted_for():
    content, ends = three_blocks(b"null")
    account = containers.Account()
    items = containers.read_messages(io.BytesIO(content), "a.avro", account)
    for _ in THREE[0] + THREE[1][:1]:
        next(items)
    assert account.num_bytes == ends[1]
    assert not account.is_complete(len(content))


@pytest.mark.parametrize("randomness", [None, "system", "seeded (1), for simulation only", "\xff"])
def test_a_file_says_where_its_randomness_is_from(randomness):
    out = io.BytesIO()
    metadata = {} if randomness is None else {containers.RANDOMNESS: randomness}
    fastavro.writer(out, wire.REPORT_SCHEMA, [], metadata=metadata)
    assert account_of(out.getvalue()).randomness == randomness


def three_blocks(codec: bytes) -> tuple[bytes, list[int]]:
    """A file of three blocks, and where header and blocks end."""
    pack = deflated if codec == b"deflate" else bytes
    files = [container([(len(p), pack(b"".join(p))) for p in THREE[:n]], codec=codec) for n in range(4)]
    return files[3], list(map(len, files))


@splits_blocks
@pytest.mark.parametrize("codec", [b"null", b"deflate"])
@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_no_flipped_byte_costs_more_than_its_block(codec, mask):
    """A marker belongs to the block before it and is needed to find the one behind it: its loss costs both."""
    content, ends = three_blocks(codec)
    for at in range(len(content)):
        messages, rejections = read(content[:at] + bytes([content[at] ^ mask]) + content[at + 1 :])
        assert len(messages) == len(ALL) or rejections, at
        for number, part in enumerate(THREE):
            in_block = ends[number] <= at < ends[number + 1]
            in_marker_before = number and ends[number] - len(SYNC) <= at < ends[number]
            if at >= ends[0] and not in_block and not in_marker_before:
                assert set(part) <= set(messages), at


@splits_blocks
@pytest.mark.parametrize("codec", [b"null", b"deflate"])
def test_a_cut_file_is_read_up_to_the_cut(codec):
    content, ends = three_blocks(codec)
    for cut in range(len(content)):
        messages, rejections = read(content[:cut])
        whole = sum(end <= cut for end in ends[1:])
        assert messages == list(itertools.chain.from_iterable(THREE[:whole]))
        assert len(rejections) == (cut not in ends)


@splits_blocks
@pytest.mark.parametrize("before", range(len(SYNC) + 1))
def test_a_marker_is_found_wherever_the_reading_stops(before):
    """Files are read a megabyte at a time; here a marker stands across the end of the second one."""
    content, ends = three_blocks(b"null")
    rubbish = b"\xff" * ((2 << 20) - before - ends[1])
    assert read(content[: ends[1]] + rubbish + SYNC + content[ends[1] :])[0] == ALL


@splits_blocks
@pytest.mark.parametrize("seed", range(20))
def test_random_damage_never_escapes(seed):
    rng = random.Random(seed)
    content, _ = three_blocks(rng.choice([b"null", b"deflate"]))
    for _ in range(100):
        at, size = rng.randrange(len(content)), rng.randrange(1, 40)
        part = rng.choice([rng.randbytes(size), bytes(size), content[rng.randrange(len(content)) :][:size], b""])
        messages, rejections = read(content[:at] + part + content[at + rng.choice([0, size]) :])
        assert len(messages) >= len(ALL) or rejections


# ---------------------------------------------------------------------- finding the reports of a block


@splits_blocks
@pytest.mark.parametrize("extra", [0, 1, 5])
def test_payloads_may_look_like_the_beginning_of_a_report(extra):
    """Form and collection stand inside a payload by chance: the block is then read report by report."""
    head = single()[:9]
    look_alikes = [single(payload=data(head * n)) for n in range(4)]
    messages = [*look_alikes, *reports(extra), *look_alikes[::-1]]
    assert read(container([block(messages)])) == (messages, [])


@splits_blocks
def test_a_report_may_be_one_byte_over_and_over():
    """0x02 is the form, every byte of the collection and the id, time and cohort 1, and the size of the payload."""
    message = b"\x02" * 29
    assert read(container([(1000, message * 1000)])) == ([message] * 1000, [])


@splits_blocks
def test_a_look_alike_cannot_hide_a_false_count():
    """As many places that look like a beginning as the block claims reports, but one of them inside a payload."""
    inner = single()
    messages = [single(payload=data(inner)), single()]
    assert read(container([block(messages)])) == (messages, [])
    assert reasons(read(container([(3, b"".join(messages))]))[1]) == ["corrupt_block"]


# ---------------------------------------------------------------------- bounds of memory and time


def peak_memory(content: bytes) -> tuple[list[bytes], list[Rejection], int]:
    tracemalloc.start()
    try:
        messages, rejections = read(content)
        return messages, rejections, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


BOMB = 1 << 30


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """A file of a megabyte, one of whose blocks inflates to a gigabyte."""
    deflater = zlib.compressobj(1, zlib.DEFLATED, -15)
    part = deflater.compress(bytes(1 << 24)) + deflater.flush(zlib.Z_FULL_FLUSH)
    body = part * (BOMB >> 24) + deflater.flush()
    return container([(1, deflated(single())), (BOMB // 28, body), (1, deflated(single()))], codec=b"deflate")


def test_blocks_in_each_other_are_one_block():
    """Each of 2,000 says that it ends at the last marker, and cannot be inflated: only the first one is looked at.

    Otherwise the bytes of the last ones would be inflated 2,000 times.
    """
    number, step = 2_000, 5 + len(SYNC)
    inner = b"".join((long(1) + long(left * step - 4)).ljust(5, b"\xff") + SYNC for left in range(number, 0, -1))
    content = container([(1, inner), (1, deflated(single()))], codec=b"deflate")
    messages, rejections = read(content)
    assert (messages, reasons(rejections)) == ([single()], ["corrupt_block"])
    assert rejections[0].message_bytes == len(long(1) + data(inner) + SYNC)


def test_a_bomb_is_refused_before_it_is_inflated(bomb):
    messages, rejections, peak = peak_memory(bomb)
    assert (messages, reasons(rejections)) == ([single()] * 2, ["block_too_large"])
    assert peak < 4 * containers.MAX_BLOCK_BYTES


@splits_blocks
@pytest.mark.parametrize(("byte", "count"), [(0x00, 1 << 21), (0xFF, 1 << 21), (0x02, 1), (0x02, 10_000)])
def test_the_largest_block_takes_a_few_times_its_size(byte, count):
    """Whatever it holds: of one byte over and over, all of it may look like beginnings of reports."""
    body = bytes([byte]) * (containers.MAX_BLOCK_BYTES - 1)
    messages, rejections, peak = peak_memory(container([(count, deflated(body))], codec=b"deflate"))
    assert (messages, reasons(rejections)) == ([], ["corrupt_block"])
    assert peak < 8 * containers.MAX_BLOCK_BYTES


@pytest.mark.parametrize("codec", [b"null", b"deflate"])
@pytest.mark.parametrize("excess", [-1, 0, 1, 2, 10])
def test_the_cap_on_blocks_is_exact(codec, excess, monkeypatch):
    for module in (containers, codecs):
        monkeypatch.setattr(module, "MAX_BLOCK_BYTES", 2_000)
    size, rng = 2_000 + excess, random.Random(excess)
    room = size - len(single(payload=long(size)))
    for letters in (b"a", b"ab", b"abcdefgh") * 20:  # what zlib holds back at the cap depends on the content
        message = single(payload=data(bytes(rng.choices(letters, k=room))))
        body = deflated(message) if codec == b"deflate" else message
        messages, rejections = read(container([(1, body)], codec=codec))
        assert messages == [message] * (excess <= 0)
        assert reasons(rejections) == ["block_too_large"] * (excess > 0)


class Endless(io.RawIOBase):
    """A file without end, which knows how far it was read."""

    def __init__(self, start: bytes, part: bytes):
        super().__init__()
        self.position = 0
        self._parts = itertools.chain([start], itertools.repeat(part))
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        assert size >= 0, "a file is never read whole"
        while len(self._rest) < size:
            self._rest += next(self._parts)
        result, self._rest = self._rest[:size], self._rest[size:]
        self.position += len(result)
        return result


@splits_blocks
def test_a_long_file_is_read_with_a_bounded_look_ahead():
    part = container([block(reports(1000))])[len(HEADER) :]
    file = Endless(HEADER, part * 10)
    consumed = 0
    for message in itertools.islice(containers.read_messages(file, "a.avro"), 200_000):
        assert isinstance(message, bytes)
        consumed += len(message)
        assert file.position - consumed < 3 << 20


@pytest.mark.slow
def test_time_grows_with_the_file_and_not_with_its_square():
    """Markers everywhere, each followed by a block that claims to be as long as the file."""

    def seconds(number: int) -> float:
        content = HEADER + (long(1) + long(containers.MAX_BLOCK_BYTES) + SYNC) * number
        begin = time.perf_counter()
        messages, rejections = read(content)
        assert (messages, len(rejections)) == ([], number)
        return time.perf_counter() - begin

    assert min(seconds(40_000) for _ in range(2)) < 4 * 3 * min(seconds(10_000) for _ in range(2))


@splits_blocks
def test_a_slow_file_gives_the_same():
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 7))

    content, _ = three_blocks(b"deflate")
    assert list(containers.read_messages(Slow(content), "a.avro")) == ALL


@splits_blocks
def test_a_file_is_read_as_it_is_asked_for():
    def blocks() -> Iterator[bytes]:
        yield HEADER + container([block(THREE[0])])[len(HEADER) :]
        raise OSError("the network is gone")

    class Broken(io.RawIOBase):
        def __init__(self) -> None:
            super().__init__()
            self._blocks = blocks()

        def read(self, size: int = -1) -> bytes:
            return next(self._blocks)

    with pytest.raises(OSError, match="the network is gone"):
        list(containers.read_messages(Broken(), "a.avro"))


def test_every_reason_of_files_has_a_test():
    assert {reason.code for reason in Reason if reason >= 40} == {
        "bad_magic",
        "corrupt_block",
        "block_too_large",
        "not_as_listed",  # in tests/beam/accounts/test_manifests.py
        "unknown_codec",
    }
