"""Open, create, replace and list files on this machine or in a store that Beam supports (gs://...)."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
from typing import IO, Any


def in_store(path: str) -> bool:
    """Whether a path is an address in a store rather than a local file."""
    return "://" in path


def _stores() -> Any:
    from apache_beam.io.filesystems import FileSystems  # noqa: PLC0415  # takes two seconds; only stores need it

    return FileSystems


def _uncompressed() -> Any:
    from apache_beam.io.filesystem import CompressionTypes  # noqa: PLC0415  # as above

    return CompressionTypes.UNCOMPRESSED


def opened(path: str) -> IO[bytes]:
    """Open a file for reading its bytes, without decompression.

    Raises:
        OSError: if the file cannot be read.
    """
    if in_store(path):
        return _stores().open(path, compression_type=_uncompressed())  # type: ignore[no-any-return]  # has no types
    return open(path, "rb")


def created(path: str) -> IO[bytes]:
    """Create a new, empty file for writing bytes, with its parent folders.

    Raises:
        OSError: if the file cannot be written.
    """
    if in_store(path):
        created_there = _stores().create(path, "application/octet-stream", _uncompressed())
        return created_there  # type: ignore[no-any-return]  # Beam's method has no types
    if folder := os.path.dirname(path):
        os.makedirs(folder, exist_ok=True)
    return open(path, "wb")


def exists(path: str) -> bool:
    """Whether a file or folder with this path exists."""
    return bool(_stores().exists(path)) if in_store(path) else os.path.exists(path)


def delete(path: str) -> None:
    """Delete a file; raises OSError if that fails."""
    if in_store(path):
        _stores().delete([path])
    else:
        os.remove(path)


def delete_folder(path: str) -> None:
    """Delete a folder that has only files; raises OSError if that fails."""
    if in_store(path):
        _stores().delete(matching(joined(path, "*")))
        with contextlib.suppress(OSError):  # most stores have no folders
            _stores().delete([f"{path}/"])
    else:
        shutil.rmtree(path)


def replace(source: str, target: str) -> None:
    """Rename a file in the same place, replacing an existing file of that name.

    Raises:
        OSError: if that fails.
    """
    if not in_store(target):
        os.replace(source, target)
        return
    if exists(target):
        delete(target)
    _stores().rename([source], [target])


def rename(source: str, target: str) -> None:
    """Rename a file or folder; raises OSError if that fails."""
    if in_store(target):
        _stores().rename([source], [target])
    else:
        os.rename(source, target)


def make_folder(path: str) -> None:
    """Create a folder and its parents; raises OSError if that fails or if the folder exists."""
    if in_store(path):
        _stores().mkdirs(path)
    else:
        os.makedirs(path)


def matching(pattern: str) -> list[str]:
    """Paths of the files that a pattern matches, sorted. ``**`` matches folders within folders.

    Locally ``*`` does not match hidden files, as in a shell.
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
    """A value that changes with the content of a file; in a store the size suffices, because files are not modified."""
    if in_store(path):
        return path, _stores().match([path])[0].metadata_list[0].size_in_bytes, 0
    found = os.stat(path)
    return path, found.st_size, found.st_mtime_ns


def written_at(path: str) -> float:
    """When a file was last written, in seconds since 1970; 0 if the store does not say."""
    if in_store(path):
        return float(_stores().match([path])[0].metadata_list[0].last_updated_in_seconds or 0)
    return os.stat(path).st_mtime_ns / 1e9


def name_of(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2] if in_store(path) else os.path.basename(path)
