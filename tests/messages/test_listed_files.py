"""What a file lacks of what its manifest lists, by hand; and files that are hashed while they are read."""

from __future__ import annotations

import dataclasses
import hashlib
import io
from pathlib import Path

import pytest

from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.files.file_account import Account
from uldp_transforms.messages.manifest import MOST, HashedFile, ListedFile, listed_file, manifest_text
from uldp_transforms.messages.rejection import Rejection

LISTED = ListedFile("a.avro", 900, "0" * 64, 12, 50)


@pytest.mark.parametrize(
    ("reports", "num_rejected", "missing"), [(30, 0, 20), (30, 5, 15), (30, 20, 0), (30, 35, 0), (50, 0, 0), (60, 0, 0)]
)
@pytest.mark.parametrize("is_unread", [False, True])
def test_reports_that_are_missing_were_neither_read_nor_rejected(
    reports: int, num_rejected: int, missing: int, is_unread: bool
) -> None:
    """The file counts once, also if another part of it could not be read."""
    found, account = dataclasses.replace(LISTED, bytes=700, reports=reports), Account(is_unread=is_unread)
    expected = Rejection(Reason.NOT_AS_LISTED, missing, 700, source="a.avro", num_files=int(not is_unread))
    assert LISTED.difference(found, num_rejected, account) == expected
    assert account.is_unread


def test_what_is_as_listed_is_no_rejection() -> None:
    account = Account()
    assert LISTED.difference(dataclasses.replace(LISTED), 3, account) is None
    assert not account.is_unread
    for field, value in (("bytes", 901), ("sha256", "1" * 64), ("messages", 13), ("reports", 51)):
        assert LISTED.difference(dataclasses.replace(LISTED, **{field: value}), 0, account) is not None
    assert ListedFile("a", 0, "f" * 64, MOST, MOST).reports == MOST


def test_a_file_is_hashed_as_far_as_it_is_read(tmp_path: Path) -> None:
    content = bytes(range(256)) * 9000  # more than two parts of a megabyte
    file = HashedFile(io.BytesIO(content))
    assert file.read(10) == content[:10]
    assert file.sha256 == hashlib.sha256(content[:10]).hexdigest()
    assert file.read_to_the_end() == len(content) - 10
    assert file.sha256 == hashlib.sha256(content).hexdigest()
    path = tmp_path / "file"
    path.write_bytes(content)
    assert listed_file(path, "b", 1, 2) == ListedFile("b", len(content), hashlib.sha256(content).hexdigest(), 1, 2)
    assert HashedFile(io.BytesIO(content)).read() == content


def test_a_manifest_is_text_for_people_too() -> None:
    assert manifest_text([dataclasses.replace(LISTED, sha256="a" * 64)]).decode() == (
        '{\n  "version": 1,\n  "files": [\n    {\n      "name": "a.avro",\n      "bytes": 900,\n      "sha256": "'
        + "a" * 64
        + '",\n      "messages": 12,\n      "reports": 50\n    }\n  ]\n}\n'
    )
