"""Open, create, replace and list files by their paths or, in a store that Beam knows, by their addresses (gs://...)."""

from __future__ import annotations

import glob
import os
from typing import IO, Any


def in_store(path: str) -> bool:
    """Whether a path is an address in a store rather than a file of this machine."""
    return "://" in path


def _stores() -> Any:
    from apache_beam.io.filesystems import FileSystems  # noqa: PLC0415  # takes two seconds; only stores need it

    return FileSystems


def _uncompressed() -> Any:
    from apache_beam.io.filesystem import CompressionTypes  # noqa: PLC0415  # as above

    return CompressionTypes.UNCOMPRESSED


def opened(path: str) -> IO[bytes]:
    """The bytes of a file as they are stored, to read from.

    Raises:
        OSError: if it cannot be read.
    """
    if in_store(path):
        return _stores().open(path, compression_type=_uncompressed())  # type: ignore[no-any-return]  # has no types
    return open(path, "rb")


def created(path: str) -> IO[bytes]:
    """A new, empty file to write bytes to, in folders that are made if need be.

    Raises:
        OSError: if it cannot be written.
    """
    if in_store(path):
        created_there = _stores().create(path, "application/octet-stream", _uncompressed())
        return created_there  # type: ignore[no-any-return]  # Beam's method has no types
    if folder := os.path.dirname(path):
        os.makedirs(folder, exist_ok=True)
    return open(path, "wb")


def exists(path: str) -> bool:
    """Whether there is a file or folder of this name."""
    return bool(_stores().exists(path)) if in_store(path) else os.path.exists(path)


def delete(path: str) -> None:
    """Remove a file; raises OSError if that is not possible."""
    if in_store(path):
        _stores().delete([path])
    else:
        os.remove(path)


def replace(source: str, target: str) -> None:
    """Give a file another name in the same place; what had that name is replaced.

    Raises:
        OSError: if that is not possible.
    """
    if not in_store(target):
        os.replace(source, target)
        return
    if exists(target):
        delete(target)
    _stores().rename([source], [target])


def rename(source: str, target: str) -> None:
    """Give a file or folder another name; raises OSError if that is not possible."""
    if in_store(target):
        _stores().rename([source], [target])
    else:
        os.rename(source, target)


def make_folder(path: str) -> None:
    """Make a folder, and those that it is in; raises OSError if that is not possible, or if it is there."""
    if in_store(path):
        _stores().mkdirs(path)
    else:
        os.makedirs(path)


def matching(pattern: str) -> list[str]:
    """Paths of the files that a pattern matches, sorted. ``**`` matches folders within folders.

    On this machine ``*`` matches no hidden files, as in a shell.
    """
    if in_store(pattern):
        return sorted(entry.path for entry in _stores().match([pattern])[0].metadata_list)
    return sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))


def joined(folder: str, name: str) -> str:
    """The path of a file in a folder."""
    return str(_stores().join(folder, name)) if in_store(folder) else os.path.join(folder, name)


def folder_of(path: str) -> str:
    """The path of the folder that a file is in."""
    return path.rpartition("/")[0] if in_store(path) else os.path.dirname(path)


def stamp_of(path: str) -> tuple[str, int, int]:
    """A value that changes with the content of a file; in a store with its size, because files there are new ones."""
    if in_store(path):
        return path, _stores().match([path])[0].metadata_list[0].size_in_bytes, 0
    found = os.stat(path)
    return path, found.st_size, found.st_mtime_ns


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2] if in_store(path) else os.path.basename(path)
