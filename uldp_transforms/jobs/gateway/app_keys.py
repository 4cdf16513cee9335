"""Shared keys of apps that may send reports.

A key says which app a request comes from, not which person: all copies of an app have the same one.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable

from uldp_transforms.files.text_files import read_text
from uldp_transforms.jobs.gateway.refusals import UNAUTHORIZED, Refused
from uldp_transforms.ldp.errors import SpecError

_KEY = re.compile(r"[A-Za-z0-9._~+/-]{20,512}=*", re.ASCII)  # token68 of RFC 7235, long enough not to be guessed
_CHALLENGE = {"WWW-Authenticate": "Bearer"}


class Tokens:
    """Keys of which a request must name one in ``Authorization: Bearer``.

    Args:
        keys: none: every request may send.
    """

    def __init__(self, keys: Iterable[str] = ()):
        self._digests = [_digest(key) for key in keys]

    def check(self, authorization: str | None) -> None:
        """Raise Refused if the header of a request has none of the keys; takes as long for every wrong key."""
        if not self._digests:
            return
        scheme, _, key = (authorization or "").partition(" ")
        said = _digest(key.strip())
        known = sum([hmac.compare_digest(said, digest) for digest in self._digests])
        if scheme.lower() != "bearer" or not known:
            raise Refused(UNAUTHORIZED, "token", _CHALLENGE)


def read_keys(path: str) -> list[str]:
    """The keys of a file: one per line; empty lines and lines that begin with # are ignored.

    Raises:
        SpecError: if there is none, or a line is no key; the content is not shown.
        OSError: if the file cannot be read.
    """
    lines = [(number, line.strip()) for number, line in enumerate(read_text(path).splitlines(), 1)]
    keys = [(number, line) for number, line in lines if line and not line.startswith("#")]
    for number, key in keys:
        if not _KEY.fullmatch(key):
            raise SpecError(
                "--token_file must have one key per line, 20 to 512 characters from A-Z a-z 0-9 . _ ~ + / -, got "
                f"another text in line {number} of {path} (the text is not shown)"
            )
    if not keys:
        raise SpecError(f"--token_file must have at least one key, got none in {path}")
    return [key for _, key in keys]


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
