"""Tokens that the server of an app signs. Each sends one message until it expires; none of them names a person.

A token is the text ``uldp1.EXPIRES.ID.MAC``: seconds since 1970, 16 random bytes, and the HMAC-SHA256 of
``uldp1.EXPIRES.ID`` with the bytes of the key. ID and MAC are in base64url without padding.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from collections import defaultdict
from collections.abc import Callable

from uldp_transforms.jobs.gateway.apps.used_token_files import Used, UsedTokenFiles
from uldp_transforms.jobs.gateway.refusals import RETRY_AFTER, TOO_MANY, UNAUTHORIZED, Refused

CHALLENGE = {"WWW-Authenticate": "Bearer"}
"""Header of each answer with the status 401."""

LONGEST = 86_400
"""Maximum number of seconds until a token expires, a day."""

MOST_USED = 1_000_000
"""Maximum number of used tokens that have not expired."""

_TOKEN = re.compile(r"(uldp1\.([0-9]{1,11})\.([A-Za-z0-9_-]{22}))\.([A-Za-z0-9_-]{43})", re.ASCII)
_SLOT = 60  # seconds; tokens that expire in the same slot are forgotten together


class Token:
    """A token of a request, which is well-formed; nothing else is known of it.

    Attributes:
        expires: seconds since 1970.
        id: 16 bytes.
    """

    def __init__(self, match: re.Match[str]):
        self._signed, expires, name, self._mac = match.groups()
        self.expires = int(expires)
        self.id = base64.urlsafe_b64decode(f"{name}==")

    @classmethod
    def parse(cls, text: str) -> Token | None:
        """The token of this text; None if it is none."""
        match = _TOKEN.fullmatch(text)
        return None if match is None else cls(match)

    def is_signed_with(self, key: str) -> bool:
        """Whether its code is that of a key; takes as long for each wrong code."""
        mac = hmac.digest(key.encode("ascii"), self._signed.encode("ascii"), hashlib.sha256)
        return hmac.compare_digest(base64.urlsafe_b64encode(mac).rstrip(b"=").decode("ascii"), self._mac)


class UsedTokens:
    """The messages that tokens have sent, until they expire (a replay window).

    The same bytes may come again with the same token, as they do from a client that got no answer.

    Args:
        most: number of used tokens that have not expired.
        clock: seconds since 1970; it may be set ahead and back.
        files: store them, and have those of earlier processes; None: a restart forgets them. Raises OSError.
        elapsed: seconds from any start, by a clock that nobody sets.
    """

    def __init__(
        self,
        most: int = MOST_USED,
        clock: Callable[[], float] = time.time,
        files: UsedTokenFiles | None = None,
        elapsed: Callable[[], float] = time.monotonic,
    ):
        self._most = most
        self._clock = clock
        self._files = files
        self._elapsed = elapsed
        self._until: dict[int, float] = {}
        self._slots: dict[int, dict[bytes, bytes]] = defaultdict(dict)
        self._unstored: dict[int, set[bytes]] = defaultdict(set)
        self._number = 0
        self._first = 0
        for used in () if files is None else files.read():
            if used.expires > clock():
                self._number += used.name not in self._slots[used.expires // _SLOT]
                self._remember(used)

    def check(self, token: Token) -> None:
        """Raise Refused if a signed token has expired, or is valid for too long."""
        left = token.expires - self._clock()
        if left <= 0:
            raise Refused(UNAUTHORIZED, "token_expired", CHALLENGE)
        if left > LONGEST:
            raise Refused(UNAUTHORIZED, "token", CHALLENGE)

    def use(self, token: Token, message: bytes) -> None:
        """Send a message; raises Refused if the token has sent another one, or too many tokens are in use.

        A token that expired while its body came is refused, because what it sent before may be forgotten.
        """
        self.check(token)
        self._forget()
        number, used = token.expires // _SLOT, _used(token, message)
        sent = self._slots[number].get(used.name)
        if sent is None:
            if self._number >= self._most:
                raise Refused(TOO_MANY, "busy", RETRY_AFTER)
            self._remember(used)
            self._number += 1
            if self._files is not None:
                self._unstored[number].add(used.name)
        elif sent != used.message:
            raise Refused(UNAUTHORIZED, "token_used", CHALLENGE)

    def _remember(self, used: Used) -> None:
        slot = used.expires // _SLOT
        self._slots[slot][used.name] = used.message
        until = self._elapsed() + used.expires - self._clock()
        self._until[slot] = max(until, self._until.get(slot, until))

    async def keep(self, token: Token, message: bytes) -> None:
        """Return when it is on disk, if there are files, that a token was used; raises Undelivered."""
        unstored, used = self._unstored[token.expires // _SLOT], _used(token, message)
        if self._files is not None and used.name in unstored:
            await self._files.write(used)
            unstored.discard(used.name)

    def _forget(self) -> None:
        """Drop the slots whose tokens have expired, by both clocks; at most once in the time of a slot.

        Tokens that seem to have expired because the clock was set ahead are valid again when it is set back.
        """
        now, elapsed = int(self._clock()) // _SLOT, self._elapsed()
        if now == self._first:
            return
        self._first = now
        for slot in [slot for slot in self._slots if slot < now and self._until.get(slot, elapsed) <= elapsed]:
            self._number -= len(self._slots.pop(slot))
            for own in (self._until, self._unstored):
                own.pop(slot, None)


def _used(token: Token, message: bytes) -> Used:
    name = hashlib.blake2b(token.id, digest_size=16, person=b"uldp token").digest()
    return Used(token.expires, name, hashlib.blake2b(message, digest_size=16, key=token.id).digest())
