"""Text files: whole, or as lines with limits."""

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
        SpecError: if it is something else.
        OSError: if it cannot be read.
    """
    name = os.fspath(path)
    try:
        with opened(name) as file:
            return io.TextIOWrapper(file, encoding="utf-8-sig").read()
    except UnicodeDecodeError:
        raise SpecError(f"{name} must be a UTF-8 text file, got other bytes") from None


def read_lines(path: str | os.PathLike[str], *, most: int, longest: int) -> list[str]:
    """The lines of a UTF-8 text file in Unicode NFC, all different, unpacked if the name of the file ends in .gz.

    White space around a line is no part of it, and a line of nothing else is left out. The file is read line by line,
    and not beyond what is allowed.

    Args:
        path: of the file.
        most: lines that are allowed.
        longest: bytes of a line that are allowed, with the white space around it.

    Raises:
        SpecError: if it is something else. Lines are named by their numbers; their texts are not repeated.
        OSError: if it cannot be read.
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
        raise SpecError(f"{name} must be a whole gzip file, got another or a broken one") from None
    return list(lines)


@contextlib.contextmanager
def _open_packed(name: str) -> Iterator[Any]:
    """The bytes of a file, unpacked here: Beam's own reader unpacks as much as comes, and takes half a file for all."""
    stored: Any = opened(name)
    with io.BufferedReader(stored) as file:
        if not name.endswith(".gz"):
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield unpacked
