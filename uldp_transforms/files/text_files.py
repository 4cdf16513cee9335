"""Reads text files, whole or line by line with limits."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import os
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from uldp_transforms.files.stores import opened
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical

_HEADERS = {"value", "values", "candidate", "candidates"}
"""Names of columns of values, which are no candidates in the first line of a list."""

_DELIMITERS = ",;|"


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


def read_lines(path: str | os.PathLike[str], *, most: int, longest: int, repeats: bool = False) -> list[str]:
    """Read the lines of a text file in Unicode NFC, decompressed if the file name ends in .gz.

    The file is in UTF-8 or, with a byte order mark, in UTF-16. White space around a line is removed, empty lines are
    skipped, and tables are refused: a header, quoted texts, and cells. The file is read line by line, and not beyond
    the limits.

    Args:
        path: path of the file.
        most: maximum number of lines.
        longest: maximum size of a line in bytes, including white space around it.
        repeats: whether lines may be repeated; only the first one counts. Else they are refused.

    Raises:
        SpecError: if it is not such a file. Errors give line numbers; texts are not shown.
        OSError: if the file cannot be read.
    """
    name = os.fspath(path)
    lines: dict[str, int] = {}
    try:
        with _open_packed(name) as file:
            for number, read in enumerate(_lines(file, longest), 1):
                if len(read.removesuffix(b"\n").removesuffix(b"\r")) > longest:
                    raise SpecError(
                        f"{name} must have lines of at most {longest} bytes, got a longer one at line {number}"
                    )
                line = canonical(read.decode("utf-8").strip())
                _refuse_cells(name, line, number)
                if line in lines:
                    if repeats:
                        continue
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
    _refuse_table(name, lines)
    return list(lines)


def _lines(file: Any, longest: int) -> Iterator[bytes]:
    """Lines in UTF-8 without a byte order mark; of a line that is too long only the beginning."""
    limit = longest + len(b"\r\n")
    if file.peek(2).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = io.TextIOWrapper(file, encoding="utf-16", newline="")
        yield from (line.encode() for line in iter(lambda: text.readline(limit), ""))
        return
    first = file.readline(limit + len(codecs.BOM_UTF8))
    if first:
        yield first.removeprefix(codecs.BOM_UTF8)
    yield from iter(lambda: file.readline(limit), b"")


def _refuse_cells(name: str, line: str, number: int) -> None:
    """Refuse a line that is a row of a table, or several lines of an editor."""
    quoted = len(line) > 1 and line.startswith('"') and line.endswith('"')
    for is_so, got in (
        (quoted, "a value in quotation marks"),
        ("\t" in line, "a tab"),
        ("\r" in line, "a carriage return"),
        ("\0" in line, "a character NUL"),
    ):
        if is_so:
            raise SpecError(f"{name} must be a plain text file with one value per line, got {got} at line {number}")


def _refuse_table(name: str, lines: Mapping[str, int]) -> None:
    """Refuse a header above other lines, and lines that all end with a delimiter."""
    first = next(iter(lines), "")
    if len(lines) > 1 and first.casefold() in _HEADERS:
        raise SpecError(
            f"{name} must have one value per line without a header, got {first!r} at line {lines[first]}; if it is a "
            "value, move it to another line"
        )
    if len(lines) > 1 and first[-1] in _DELIMITERS and all(line.endswith(first[-1]) for line in lines):
        raise SpecError(f"{name} must have one value per line, got lines that all end with {first[-1]!r}")


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
