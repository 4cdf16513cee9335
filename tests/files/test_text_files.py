"""Text files and files of collections: what is read, up to which limits, and what the refusals say."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.messages_cases import KRR
from uldp_transforms.files.collection_files import read_collection
from uldp_transforms.files.text_files import read_lines, read_text
from uldp_transforms.ldp import SpecError


def refused(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        call()


# ---------------------------------------------------------------------- texts


def test_a_text_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "text"
    for content, text in ((b"\xef\xbb\xbf{}\n", "{}\n"), ("\u00e4\ufeff".encode(), "\u00e4\ufeff"), (b"", "")):
        path.write_bytes(content)
        assert read_text(path) == read_text(str(path)) == text
    path.write_bytes(b"\xe4")
    refused(lambda: read_text(path), f"{path} must be a UTF-8 text file, got other bytes")
    refused(lambda: read_lines(path, most=1, longest=1), f"{path} must be a UTF-8 text file, got other bytes")


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_lines_have_a_size_with_the_white_space_around_them(end: bytes, tmp_path: Path) -> None:
    """In bytes, without the end of the line, and without a byte order mark before the first line."""
    path = tmp_path / "lines"
    for first in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(first + b" \xc3\xa4 " + end)
        assert read_lines(path, most=1, longest=4) == ["\u00e4"]
        sentence = f"{path} must have lines of at most 3 bytes, got a longer one at line 1"
        refused(lambda: read_lines(path, most=1, longest=3), sentence)
    path.write_bytes(b"a\n\xef\xbb\xbfbcd" + end)
    assert read_lines(path, most=2, longest=6) == ["a", "\ufeffbcd"]
    sentence = f"{path} must have lines of at most 5 bytes, got a longer one at line 2"
    refused(lambda: read_lines(path, most=2, longest=5), sentence)


def test_lines_have_a_number_without_empty_ones(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"\nb\n \na\n\n")
    assert read_lines(path, most=2, longest=9) == ["b", "a"]
    refused(lambda: read_lines(path, most=1, longest=9), f"{path} must have at most 1 values, got more")
    path.write_bytes(b"b\n\nb\n")
    sentence = f"{path} must have different values (in Unicode NFC), got the same one in lines 1 and 3"
    for most in (1, 2):  # the same value is no further one
        refused(lambda most=most: read_lines(path, most=most, longest=9), sentence)  # type: ignore[misc]  # mypy cannot infer the type of its default


def test_a_damaged_gzip_file_is_no_shorter_list(tmp_path: Path) -> None:
    """Cut after a whole line, with other bytes inside or at the end, or with none that gzip knows."""
    path, whole = tmp_path / "lines.gz", gzip.compress(b"".join(b"%d\n" % number for number in range(1000)))
    path.write_bytes(whole)
    assert len(read_lines(path, most=1000, longest=9)) == 1000
    sentence = f"{path} must be a complete gzip file, got another format or a damaged file"
    middle = len(whole) // 2
    for content in (whole[:-8], whole[:middle], b"1\n", whole[:12] + bytes(20) + whole[32:], whole[:-5] + bytes(5)):
        path.write_bytes(content)
        refused(lambda: read_lines(path, most=1000, longest=9), sentence)


# ---------------------------------------------------------------------- collections


class AlphabetRow(NamedTuple):
    """An alphabet, as another language sends it through Beam: a row has all fields."""

    id: str
    values: list[str]
    sensitive: list[str] | None


class MechanismRow(NamedTuple):
    id: str
    epsilon: float
    subset_size: int | None


class CollectionRow(NamedTuple):
    id: str
    version: int
    alphabet: AlphabetRow
    mechanism: MechanismRow
    num_cohorts: int | None
    question: str | None


def test_a_collection_is_an_object_a_row_a_text_or_a_file(tmp_path: Path) -> None:
    """A row cannot omit a field: null stands for one that is not given."""
    spec = KRR.to_json()
    values, epsilon = spec["alphabet"]["values"], spec["mechanism"]["epsilon"]
    row = CollectionRow(
        id=spec["id"],
        version=spec["version"],
        alphabet=AlphabetRow("closed", values, None),
        mechanism=MechanismRow("krr", epsilon, None),
        num_cohorts=spec.get("num_cohorts"),
        question=None,
    )
    path = tmp_path / "krr.json"
    path.write_text("\ufeff" + json.dumps(spec), encoding="utf-8")
    for source in (spec, row, json.dumps(spec), "\n " + json.dumps(spec), path, str(path)):
        assert read_collection(source) == KRR


def test_refusals_of_a_collection_name_its_file_once(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"id": "a", "id": "b"}', encoding="utf-8")
    refused(lambda: read_collection(path), f"{path} must not repeat a key, got id more than once")
    path.write_text("{}", encoding="utf-8")
    refused(lambda: read_collection(path), f"{path}: Collection needs the key 'id', got no keys")
    path.write_text("[]", encoding="utf-8")
    refused(lambda: read_collection(path), f"{path}: Collection must be a JSON object, got []")
    refused(lambda: read_collection("{}"), "Collection needs the key 'id', got no keys")
    wanted = "JobSpec.collections must hold collections, JSON objects or paths, got"
    refused(lambda: read_collection([1]), f"{wanted} [1]")  # type: ignore[arg-type]  # refused: neither text nor mapping
    refused(lambda: read_collection(5), f"{wanted} 5")  # type: ignore[arg-type]  # refused: neither text nor mapping
    path.unlink()
    with pytest.raises(FileNotFoundError):
        read_collection(str(path))
