"""Files that match a pattern, on this machine or in a store that Beam supports, such as gs://."""

from __future__ import annotations

import os
import re

from apache_beam.io.filesystem import FileSystem
from apache_beam.io.filesystems import FileSystems

from uldp_transforms.ldp.errors import SpecError


def files_of(pattern: str) -> list[str]:
    """Sorted paths of the matching files; local paths are absolute."""
    return sorted(entry.path for entry in FileSystems.match([absolute(pattern)])[0].metadata_list)


def absolute(pattern: str) -> str:
    """Make a local pattern absolute, as Beam requires."""
    return pattern if "://" in pattern else os.path.abspath(pattern)


def check_files(where: str, pattern: str) -> None:
    """Refuse a local pattern of which Beam would silently skip an entry, or that matches a file that may not be read.

    Raises:
        SpecError: for a directory, a broken or circular link, an entry that is not a regular file, such as a pipe, or a
        file without permission; or for ``/**/`` that skips files. ``where`` names the field.
    """
    if "://" in pattern:
        return
    pattern = absolute(pattern)
    _check_double_stars(where, pattern)
    constant = re.split(r"[\[*?]", pattern, maxsplit=1)[0]
    if constant == pattern:
        if os.path.isfile(pattern):
            _check_entry(where, pattern)
        return
    matches = re.compile(FileSystem.translate_pattern(pattern))
    for folder, folders, files in os.walk(os.path.dirname(constant)):
        for path in sorted(os.path.join(folder, name) for name in (*folders, *files)):
            if matches.match(path):
                _check_entry(where, path)


def _check_entry(where: str, path: str) -> None:
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        raise SpecError(f"{where} must match files that can be read, got {_kind(path)} {path!r}")


def _check_double_stars(where: str, pattern: str) -> None:
    """Refuse ``/**/`` if other programs, which also match it with ``/``, would find more files than Beam."""
    folder, _, name = pattern.partition("/**/")
    skipped = files_of(f"{folder}/{name}") if name else []
    if skipped:
        ways = f"use {folder + '/**' + name!r} for all folders, or {folder + '/*/**' + name!r} for those below only"
        raise SpecError(f"{where} must match all files that it seems to, but /**/ skips {skipped[0]!r}; {ways}")


def _kind(path: str) -> str:
    if os.path.isfile(path):
        return "the file without read permission"
    if os.path.isdir(path):
        return "the directory"
    return "the broken link" if os.path.islink(path) else "the special file"
