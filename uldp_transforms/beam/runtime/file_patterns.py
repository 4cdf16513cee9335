"""The files that a pattern names, on this machine or in a store that Beam knows, such as gs://."""

from __future__ import annotations

import os
import re

from apache_beam.io.filesystem import FileSystem
from apache_beam.io.filesystems import FileSystems

from uldp_transforms.ldp.errors import SpecError


def files_of(pattern: str) -> list[str]:
    """Paths of the files that match, in order; absolute ones on this machine."""
    return sorted(entry.path for entry in FileSystems.match([absolute(pattern)])[0].metadata_list)


def absolute(pattern: str) -> str:
    """Beam finds local files by absolute patterns only."""
    return pattern if "://" in pattern else os.path.abspath(pattern)


def check_files(where: str, pattern: str) -> None:
    """Refuse a local pattern that also matches something that Beam leaves out without a word.

    Raises:
        SpecError: for a directory, a link that leads nowhere or in a circle, or a file that nobody can read as one,
            such as a pipe; ``where`` names the field.
    """
    if "://" in pattern:
        return
    pattern = absolute(pattern)
    constant = re.split(r"[\[*?]", pattern, maxsplit=1)[0]
    if constant == pattern:
        return
    matches = re.compile(FileSystem.translate_pattern(pattern))
    for folder, folders, files in os.walk(os.path.dirname(constant)):
        for path in sorted(os.path.join(folder, name) for name in (*folders, *files)):
            if matches.match(path) and not os.path.isfile(path):
                raise SpecError(f"{where} must match files that can be read, got {_kind(path)} {path!r}")


def _kind(path: str) -> str:
    if os.path.isdir(path):
        return "the directory"
    return "the broken link" if os.path.islink(path) else "the special file"
