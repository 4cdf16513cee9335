"""Codecs of Avro files: what other writers compress is read, and no damaged or endless block exceeds its limit."""

from __future__ import annotations

import bz2
import io
import lzma
import random
import struct
import tracemalloc
import types
import zlib
from collections.abc import Callable

import fastavro
import pyarrow as pa
import pytest

from tests.support.messages.snappy_blocks import snappy
from tests.support.messages_cases import KRR, REPORT, container
from tests.support.tolerance import generator
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import read_messages
from uldp_transforms.messages.files import codecs
from uldp_transforms.messages.rejection import Rejection


def deflated(content: bytes) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflater.compress(content) + deflater.flush()


def varint(size: int) -> bytes:
    out = []
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*out, size])


def snappy_by_hand(content: bytes) -> bytes:
    """Snappy's format description: the size, then literals of up to 60 bytes; Avro adds the CRC-32."""
    parts = (content[at : at + 60] for at in range(0, len(content), 60))
    literals = b"".join(bytes([len(part) - 1 << 2]) + part for part in parts)
    return varint(len(content)) + literals + struct.pack(">I", zlib.crc32(content))


def lz4(content: bytes) -> bytes:
    return struct.pack("<I", len(content)) + pa.Codec("lz4_raw").compress(content, asbytes=True)


def zstandard_in_parts(content: bytes) -> bytes:
    """Without its size in the header, as Java writes it."""
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as stream:
        stream.write(content)
    return bytes(out.getvalue())


def zstandard(content: bytes) -> bytes:
    return pa.Codec("zstd").compress(content, asbytes=True)


WRITERS: dict[str, tuple[bytes, Callable[[bytes], bytes]]] = {
    "null": (b"null", bytes),
    "deflate": (b"deflate", deflated),
    "bzip2": (b"bzip2", bz2.compress),
    "xz": (b"xz", lzma.compress),
    "xz, strongest": (b"xz", lambda content: lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)),
    "snappy": (b"snappy", snappy),
    "snappy by hand": (b"snappy", snappy_by_hand),
    "zstandard": (b"zstandard", zstandard),
    "zstandard in parts": (b"zstandard", zstandard_in_parts),
    "lz4": (b"lz4", lz4),
}
MESSAGES = wire.encode_reports(KRR.perturb(["0", "1"] * 20, generator("codecs"), range(40)))
BODY = b"".join(MESSAGES)


def read(content: bytes) -> tuple[list[bytes], list[str]]:
    """Messages, and reasons of what could not be read."""
    items = list(read_messages(io.BytesIO(content), "a.avro"))
    rejections = [item for item in items if isinstance(item, Rejection)]
    assert not any(rejection.num_reports for rejection in rejections)
    return [item for item in items if isinstance(item, bytes)], [one.reason.code for one in rejections]


@pytest.mark.parametrize(("codec", "write"), WRITERS.values(), ids=WRITERS)
def test_blocks_of_other_writers_are_read(codec: bytes, write: Callable[[bytes], bytes]) -> None:
    content = container([(40, write(BODY)), (0, write(b"")), (1, write(MESSAGES[0]))], codec=codec)
    assert read(content) == ([*MESSAGES, MESSAGES[0]], [])


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_files_of_fastavro_are_read(codec: str) -> None:
    """Of the codecs that it writes without further packages."""
    out = io.BytesIO()
    batch = KRR.perturb(["0"] * 40, generator("fastavro"), range(40))
    fastavro.writer(out, REPORT, wire.report_records(batch), codec=codec, sync_interval=300)
    assert read(out.getvalue()) == (wire.encode_reports(batch), [])


@pytest.mark.parametrize(("codec", "write"), list(WRITERS.values())[1:], ids=list(WRITERS)[1:])
def test_a_damaged_block_is_lost_alone(codec: bytes, write: Callable[[bytes], bytes]) -> None:
    """Each byte flipped, each cut: the block has its messages, or it is lost, and the next one is read."""
    whole, rng = write(BODY), random.Random(7)
    places = sorted(rng.sample(range(len(whole)), min(len(whole), 150)))
    spoiled = [whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :] for at in places]
    spoiled += [whole[:at] for at in places] + [b"", whole + b"\0", b"\xff" * 20]
    lost = 0
    for body in spoiled:
        messages, reasons = read(container([(40, body), (40, whole)], codec=codec))
        assert messages[-40:] == MESSAGES
        assert len(messages) + 40 * len(reasons) == 80
        assert set(reasons) <= {"corrupt_block", "block_too_large"}
        lost += len(reasons)
    assert lost > len(spoiled) // 2


@pytest.mark.parametrize(("codec", "write"), list(WRITERS.values())[1:], ids=list(WRITERS)[1:])
@pytest.mark.parametrize("excess", [0, 1])
def test_the_cap_is_exact(
    codec: bytes, write: Callable[[bytes], bytes], excess: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codecs, "MAX_BLOCK_BYTES", 2_000)
    decode = codecs.codec_of(codec)
    assert decode is not None
    assert decode(write(bytes(2_000 + excess))) == (Reason.BLOCK_TOO_LARGE if excess else bytes(2_000))


@pytest.mark.parametrize(("codec", "write"), list(WRITERS.values())[1:], ids=list(WRITERS)[1:])
def test_a_bomb_takes_no_memory(codec: bytes, write: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """A block of 16 MiB of zeros is given up at 4; the strongest preset of xz itself needs 65 MiB."""
    monkeypatch.setattr(codecs, "MAX_BLOCK_BYTES", 4 << 20)
    bomb, decode = write(bytes(16 << 20)), codecs.codec_of(codec)
    assert decode is not None
    allocated = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        assert decode(bomb) is Reason.BLOCK_TOO_LARGE
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    needed = len(bomb) + (65 << 20 if codec == b"xz" else 0)
    assert peak + pa.total_allocated_bytes() - allocated < needed + 3 * codecs.MAX_BLOCK_BYTES


def test_a_codec_that_pyarrow_was_built_without_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    without = types.SimpleNamespace(Codec=types.SimpleNamespace(is_available=lambda name: name != "snappy"))
    monkeypatch.setattr(codecs, "_pyarrow", lambda: without)
    assert read(container([(40, snappy(BODY))], codec=b"snappy")) == ([], ["unknown_codec"])
    assert codecs.codec_of(b"zstandard") is not None


@pytest.mark.parametrize("place", [-1, 5])
def test_the_checksum_of_snappy_is_verified(place: int) -> None:
    """A byte of the checksum, and of a literal, after which the block still has its declared size."""
    body, read = bytearray(snappy_by_hand(b"0123456789")), codecs.codec_of(b"snappy")
    assert read is not None and read(bytes(body)) == b"0123456789"
    body[place] ^= 1
    assert read(bytes(body)) == Reason.CORRUPT_BLOCK
