"""Decompression of the blocks of Avro files, with a bounded size. No Beam.

A codec is a function from the bytes of a block to its content, or to the reason why it cannot be read. Snappy, LZ4 and
Zstandard are those of pyarrow, so they need no further package.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable
from typing import Any

from uldp_transforms.ldp.reasons import Reason

MAX_BLOCK_BYTES = 16 << 20
"""Maximum size of a block, compressed or not."""

_MAX_XZ_BYTES = 128 << 20
"""Memory that the decoder of xz may take: the strongest preset needs 65 MiB."""

Codec = Callable[[bytes], bytes | Reason]


def codec_of(name: bytes) -> Codec | None:
    """The codec with this name in the header of a file; None if there is none."""
    codec = _CODECS.get(name)
    needed = _OF_PYARROW.get(name)
    return codec if needed is None or _pyarrow().Codec.is_available(needed) else None


def _pyarrow() -> Any:
    import pyarrow  # noqa: PLC0415  # most files need none of its codecs

    return pyarrow


def _bounded(content: bytes) -> bytes | Reason:
    return content if len(content) <= MAX_BLOCK_BYTES else Reason.BLOCK_TOO_LARGE


def _deflate(body: bytes) -> bytes | Reason:
    inflater = zlib.decompressobj(-15)
    try:
        inflated = inflater.decompress(body, MAX_BLOCK_BYTES + 1)
    except zlib.error:
        return Reason.CORRUPT_BLOCK
    if len(inflated) > MAX_BLOCK_BYTES:
        return Reason.BLOCK_TOO_LARGE
    # fastavro, as Python's avro, leaves the beginning of zlib's checksum there
    checksum = zlib.adler32(inflated).to_bytes(4, "big")[:3]
    return inflated if inflater.eof and inflater.unused_data in (b"", checksum) else Reason.CORRUPT_BLOCK


def _of_one_stream(decompressor: Any, body: bytes) -> bytes | Reason:
    """The content of exactly one complete stream of bzip2 or xz."""
    try:
        content = decompressor.decompress(body, MAX_BLOCK_BYTES + 1)
    except (OSError, EOFError, ValueError, lzma.LZMAError):
        return Reason.CORRUPT_BLOCK
    if len(content) > MAX_BLOCK_BYTES:
        return Reason.BLOCK_TOO_LARGE
    return bytes(content) if decompressor.eof and not decompressor.unused_data else Reason.CORRUPT_BLOCK


def _bzip2(body: bytes) -> bytes | Reason:
    return _of_one_stream(bz2.BZ2Decompressor(), body)


def _xz(body: bytes) -> bytes | Reason:
    return _of_one_stream(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_XZ_BYTES), body)


def _snappy(body: bytes) -> bytes | Reason:
    """A raw Snappy block, which begins with its size, followed by the CRC-32 of its content, big-endian."""
    content = _of_size(body[:-4], "snappy", _size_of_snappy(body))
    if isinstance(content, bytes) and zlib.crc32(content).to_bytes(4, "big") != body[-4:]:
        return Reason.CORRUPT_BLOCK
    return content


def _size_of_snappy(body: bytes) -> int:
    """The declared size: 7 bits per byte, lowest first; -1 if there is none."""
    size = 0
    for place, byte in enumerate(body[:5]):
        size |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return size
    return -1


def _lz4(body: bytes) -> bytes | Reason:
    """A raw LZ4 block after its size, 4 bytes, little-endian."""
    size = struct.unpack_from("<I", body)[0] if len(body) >= 4 else -1
    return _of_size(body[4:], "lz4_raw", size)


def _of_size(body: bytes, codec: str, size: int) -> bytes | Reason:
    """The content of a block that declares its size."""
    if size > MAX_BLOCK_BYTES:
        return Reason.BLOCK_TOO_LARGE
    if size <= 0:
        return Reason.CORRUPT_BLOCK if size or len(body) > 1 else b""
    pa = _pyarrow()
    try:
        content: bytes = pa.Codec(codec).decompress(body, size, asbytes=True)
    except (pa.ArrowException, OSError, ValueError):
        return Reason.CORRUPT_BLOCK
    return content if len(content) == size else Reason.CORRUPT_BLOCK


def _zstandard(body: bytes) -> bytes | Reason:
    pa = _pyarrow()
    try:
        with pa.CompressedInputStream(pa.BufferReader(body), "zstd") as stream:
            return _bounded(stream.read(MAX_BLOCK_BYTES + 1))
    except (pa.ArrowException, OSError, ValueError):
        return Reason.CORRUPT_BLOCK


def _null(body: bytes) -> bytes | Reason:
    return body


_CODECS: dict[bytes, Codec] = {
    b"null": _null,
    b"deflate": _deflate,
    b"bzip2": _bzip2,
    b"xz": _xz,
    b"snappy": _snappy,
    b"zstandard": _zstandard,
    b"lz4": _lz4,
}
"""All codecs that the specification of Avro names, and ``lz4`` as fastavro writes it."""

_OF_PYARROW = {b"snappy": "snappy", b"zstandard": "zstd", b"lz4": "lz4_raw"}
"""Their names in pyarrow, some builds of which lack them."""
