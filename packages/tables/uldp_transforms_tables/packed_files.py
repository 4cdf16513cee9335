"""Local files that are compressed or not, as one reads them."""

from __future__ import annotations

import codecs
import contextlib
import io
from collections.abc import Iterator

import pyarrow as pa

from uldp_transforms.ldp.errors import SpecError

_PACKED: dict[bytes, tuple[str | None, str]] = {
    b"\x1f\x8b": ("gzip", ".gz"),
    b"BZh": ("bz2", ".bz2"),
    b"\x28\xb5\x2f\xfd": ("zstd", ".zst"),
}
"""First bytes -> how a file is compressed, and the end of its name."""

_BLOCK_BYTES = 1 << 24
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class PackedFile:
    """A file whose first bytes say how it is compressed; gzip, bzip2 and Zstandard.

    Attributes:
        path: of the file.
        ending: of the name of a compressed file, such as ".gz"; else empty.

    Raises:
        OSError: if it cannot be opened.
        SpecError: if it is not compressed as the end of its name says.
    """

    def __init__(self, path: str):
        self.path = path
        with open(path, "rb") as file:
            first = file.read(max(map(len, _PACKED)))
        kinds = (kind for start, kind in _PACKED.items() if first.startswith(start))
        self._packed, self.ending = next(kinds, (None, ""))
        wanted = next((kind for kind, ending in _PACKED.values() if path.endswith(ending)), None)
        if wanted is not None and self._packed != wanted:
            raise self._damaged(wanted)

    @contextlib.contextmanager
    def stream(self) -> Iterator[pa.NativeFile]:
        """The bytes of the file, decompressed, without a function in Python: Arrow's threads would need the interpreter
        to release it, which aborts a process that is ending.

        Raises:
            OSError: if it cannot be opened.
            SpecError: also in the block, if it is no complete compressed file.
        """
        try:
            with pa.input_stream(self.path, compression=self._packed) as file:
                yield file
        except OSError as error:
            raise (error if error.errno is not None else self._damaged(self._packed)) from None

    @contextlib.contextmanager
    def text(self) -> Iterator[pa.NativeFile]:
        """The same, but UTF-16 with a byte order mark, which Excel and PowerShell write, as UTF-8; held in memory.

        Raises:
            OSError, SpecError: as ``stream`` does; SpecError also if it is no complete UTF-16.
        """
        if not self.beginning(2).startswith(_UTF_16):
            with self.stream() as stream:
                yield stream
            return
        try:
            text = self.read().decode("utf-16").encode()
        except UnicodeDecodeError:
            raise SpecError(f"{self.path} must be complete UTF-16, as it begins (the content is not shown)") from None
        with pa.BufferReader(text) as stream:
            yield stream

    @contextlib.contextmanager
    def lines(self) -> Iterator[io.BufferedReader]:
        """The text for ``io``; raises as ``text`` does."""
        with self.text() as file, io.BufferedReader(file, _BLOCK_BYTES) as buffered:
            yield buffered

    def read(self) -> bytes:
        """All bytes; raises as ``stream`` does."""
        with self.stream() as file:
            return bytes(file.read())

    def beginning(self, size: int) -> bytes:
        """The first bytes; raises as ``stream`` does."""
        with self.stream() as file:
            return bytes(file.read(size))

    def contains(self, wanted: bytes) -> bool:
        """Whether the text contains these bytes; raises as ``text`` does."""
        before = b""
        with self.text() as file:
            for part in iter(lambda: bytes(file.read(_BLOCK_BYTES)), b""):
                if wanted in before + part:
                    return True
                before = part[-len(wanted) :]
        return False

    def line_ends(self) -> int:
        """Number of line feeds; raises as ``stream`` does."""
        with self.stream() as file:
            return sum(part.count(b"\n") for part in iter(lambda: file.read(_BLOCK_BYTES), b""))

    def _damaged(self, kind: str | None) -> SpecError:
        what = f"complete {kind} file" if kind else "file that can be read"
        return SpecError(f"{self.path} must be a {what}, got another format or a damaged file")
