"""A store of Beam's in memory, ``memory://...``: strict where stores may be, and without a server.

It renames onto no existing file, has no folders, and wants bytes as they are. Importing it makes Beam know it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata, FileSystem

SCHEME = "memory"
WRITTEN_AT = 1_700_000_000.5

FILES: dict[str, bytes] = {}
"""The content of each file; a test that uses the store empties it first."""


class _Written(io.BytesIO):
    def __init__(self, path: str):
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            FILES[self._path] = self.getvalue()
        super().close()


class MemoryStore(FileSystem):  # type: ignore[misc]  # Beam has no types for it
    @classmethod
    def scheme(cls) -> str:
        return SCHEME

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path: str) -> tuple[str, str]:
        folder, _, name = path.rpartition("/")
        return folder, name

    def mkdirs(self, path: str) -> None:
        if path in FILES:
            raise BeamIOError(f"{path} is a file")

    def has_dirs(self) -> bool:
        return False

    def _list(self, dir_or_prefix: str) -> Iterator[Any]:
        return (self.metadata(path) for path in FILES if path.startswith(dir_or_prefix))

    def create(self, path: str, mime_type: str = "", compression_type: str = CompressionTypes.AUTO) -> Any:
        _require_plain(compression_type)
        return _Written(path)

    def open(self, path: str, mime_type: str = "", compression_type: str = CompressionTypes.AUTO) -> Any:
        _require_plain(compression_type)
        if path not in FILES:
            raise BeamIOError(f"there is no {path}")
        return io.BytesIO(FILES[path])

    def copy(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            FILES[target] = FILES[source]

    def rename(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            if target in FILES:
                raise BeamIOError(f"there is a {target}")
            FILES[target] = FILES.pop(source)

    def exists(self, path: str) -> bool:
        return path in FILES

    def size(self, path: str) -> int:
        return len(FILES[path])

    def last_updated(self, path: str) -> float:
        return WRITTEN_AT

    def metadata(self, path: str) -> Any:
        return FileMetadata(path, len(FILES[path]), WRITTEN_AT)

    def delete(self, paths: list[str]) -> None:
        for path in paths:
            if FILES.pop(path, None) is None:
                raise BeamIOError(f"there is no {path}")


def _require_plain(compression_type: str) -> None:
    assert compression_type == CompressionTypes.UNCOMPRESSED
