"""Reads text files, whole or line by line with limits."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from typing import Any

from uldp_transforms.files.stores import opened
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical


def read_text(path: str | os.PathLike[str]) -> str:
    """The content of a UTF-8 text file, with or without a byte order mark.

    Raises:
        SpecError: if it is not a UTF-8 text file.
        OSError: if the file cannot be read.
    """
    name = os.fspath(path)
    try:
        with opened(name) as file:
            return io.TextIOWrapper(file, encoding="utf-8-sig").read()
    except UnicodeDecodeError:
        raise SpecError(f"{name} must be a UTF-8 text file, got other bytes") from None


def read_lines(path: str | os.PathLike[str], *, most: int, longest: int) -> list[str]:
    """Read the lines of a UTF-8 text file in Unicode NFC, decompressed if the file name ends in .gz.

    White space around a line is removed, empty lines are skipped, and repeated lines are refused. The file is read line
    by line, and not beyond the limits.

    Args:
        path: path of the file.
        most: maximum number of lines.
        longest: maximum size of a line in bytes, including white space around it.

    Raises:
        SpecError: if it is not such a file. Errors give line numbers; texts are not shown.
        OSError: if the file cannot be read.
    """
    name = os.fspath(path)
    lines: dict[str, int] = {}
    try:
        with _open_packed(name) as file:
            limit = longest + len(codecs.BOM_UTF8) + len(b"\r\n")
            for number, read in enumerate(iter(lambda: file.readline(limit), b""), 1):
                text = read.removeprefix(codecs.BOM_UTF8) if number == 1 else read
                if len(text.removesuffix(b"\n").removesuffix(b"\r")) > longest:
                    raise SpecError(
                        f"{name} must have lines of at most {longest} bytes, got a longer one at line {number}"
                    )
                line = canonical(text.decode("utf-8").strip())
                if line in lines:
                    raise SpecError(
                        f"{name} must have different values (in Unicode NFC), got the same one in lines {lines[line]} "
                        f"and {number}"
                    )
                if line and len(lines) == most:
                    raise SpecError(f"{name} must have at most {most} values, got more")
                if line:
                    lines[line] = number
    except UnicodeDecodeError:
        raise SpecError(f"{name} must be a UTF-8 text file, got other bytes") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise SpecError(f"{name} must be a complete gzip file, got another format or a damaged file") from None
    return list(lines)


@contextlib.contextmanager
def _open_packed(name: str) -> Iterator[Any]:
    """Open a file and decompress it here: Beam's own reader has no size limit, and accepts truncated files."""
    stored: Any = opened(name)
    with io.BufferedReader(stored) as file:
        if not name.endswith(".gz"):
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield unpacked
