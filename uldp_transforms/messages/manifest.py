"""Manifests: the expected content of a directory of files, as listed by its sender. No Beam.

A container file that was truncated at the end of a block looks complete, so only its writer can tell what is missing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import IO, Any

from uldp_transforms.ldp.checks import describe, require_int, require_keys, require_mapping
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.files.file_account import Account
from uldp_transforms.messages.rejection import Rejection

MANIFEST_VERSION = 1

MOST = 1 << 40
"""Maximum number of bytes, messages or reports per file, so that sums over a million files fit in 64 bits."""


@dataclasses.dataclass(frozen=True)
class ListedFile:
    """Listed or actual content of a file.

    Attributes:
        name: name of the file, in the directory of the manifest.
        bytes: size of the file.
        sha256: SHA-256 of the file, 64 hexadecimal digits.
        messages: number of messages in the file.
        reports: number of reports in these messages.
    """

    name: str
    bytes: int
    sha256: str
    messages: int
    reports: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[^/\\\x00]+", self.name) or self.name in (".", ".."):
            raise SpecError(f"ListedFile.name must be the name of a file without a folder, got {describe(self.name)}")
        if not isinstance(self.sha256, str) or not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise SpecError(f"ListedFile.sha256 must be 64 hexadecimal digits (0-9, a-f), got {describe(self.sha256)}")
        for field in ("bytes", "messages", "reports"):
            require_int(f"ListedFile.{field}", getattr(self, field), 0, MOST)

    def difference(self, found: ListedFile, num_rejected: int, account: Account) -> Rejection | None:
        """A rejection for missing content; None if the file matches its entry.

        Args:
            found: actual content of the file, as far as it could be read.
            num_rejected: number of reports that were rejected while the file was read, and so are not missing.
            account: of the reading of the file.
        """
        if found == self:
            return None
        missing = max(0, self.reports - found.reports - num_rejected)
        return account.unread(Reason.NOT_AS_LISTED, found.bytes, self.name, missing)


def listed_file(path: str | os.PathLike[str], name: str, messages: int, reports: int) -> ListedFile:
    """The manifest entry of a file, which is read once; raises OSError.

    Args:
        path: path of the file.
        name: name of the file for its readers.
        messages, reports: numbers that were written to the file.
    """
    with open(path, "rb") as file:
        hashed = HashedFile(file)
        size = hashed.read_to_the_end()
    return ListedFile(name, size, hashed.sha256, messages, reports)


def files_of_manifest(content: object) -> list[ListedFile]:
    """The files that the JSON form of a manifest lists.

    Raises:
        SpecError: if it is not a manifest.
    """
    spec = require_mapping("Manifest", content)
    require_keys("Manifest", spec, ("version", "files"), ("version", "files"))
    require_int("Manifest.version", spec["version"], MANIFEST_VERSION, MANIFEST_VERSION)
    if not isinstance(spec["files"], list):
        raise SpecError(f"Manifest.files must be a list, got {describe(spec['files'])}")
    names = [field.name for field in dataclasses.fields(ListedFile)]
    files = []
    for place, item in enumerate(spec["files"]):
        where = f"Manifest.files[{place}]"
        entry = require_mapping(where, item)
        require_keys(where, entry, names, names)
        try:
            files.append(ListedFile(**entry))
        except SpecError as error:
            raise SpecError(str(error).replace(ListedFile.__name__, where, 1)) from error
    return files


def manifest_of(files: Iterable[ListedFile]) -> Mapping[str, Any]:
    """The JSON form of a manifest."""
    return {"version": MANIFEST_VERSION, "files": [dataclasses.asdict(file) for file in files]}


def manifest_text(files: Iterable[ListedFile]) -> bytes:
    """The content of a manifest file."""
    return json.dumps(manifest_of(files), indent=2).encode() + b"\n"


class HashedFile:
    """Reads a file once, from its beginning, and hashes the bytes."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._hash.update(data)
        return data

    def read_to_the_end(self) -> int:
        """Hash the rest of the file; returns its number of bytes."""
        size = 0
        while data := self.read(1 << 20):
            size += len(data)
        return size

    @property
    def sha256(self) -> str:
        """Digest of the bytes read so far, in hexadecimal digits."""
        return self._hash.hexdigest()
