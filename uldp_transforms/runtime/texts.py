"""Text files, on this machine or in a store that Beam knows, such as gs://."""

from __future__ import annotations

import io
import os

from apache_beam.io.filesystems import FileSystems

from uldp_transforms.ldp.errors import SpecError


def read_text(path: str | os.PathLike[str]) -> str:
    """The content of a UTF-8 text file, with or without a byte order mark.

    Raises:
        SpecError: if it is something else.
        OSError: if it cannot be read.
    """
    name = os.fspath(path)
    try:
        with FileSystems.open(name) if "://" in name else open(name, "rb") as file:
            return io.TextIOWrapper(file, encoding="utf-8-sig").read()
    except UnicodeDecodeError:
        raise SpecError(f"{name} must be a UTF-8 text file, got other bytes") from None


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """The lines of a UTF-8 text file without their ends; empty lines are left out."""
    return [line for line in read_text(path).split("\n") if line]
