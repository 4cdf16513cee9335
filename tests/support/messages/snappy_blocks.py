"""Snappy, raw as Avro stores it."""

from __future__ import annotations

import struct
import zlib

import pyarrow as pa


def snappy(content: bytes) -> bytes:
    return pa.Codec("snappy").compress(content, asbytes=True) + struct.pack(">I", zlib.crc32(content))
