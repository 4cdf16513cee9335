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

from uldp_transforms_gateway.apps.used_token_files import UsedTokenFiles
from uldp_transforms_gateway.apps.uses import SLOT, Place, Use
from uldp_transforms_gateway.outlets.outlet import Undelivered
from uldp_transforms_gateway.refusals import RETRY_AFTER, TOO_MANY, UNAUTHORIZED, Refused

CHALLENGE = {"WWW-Authenticate": "Bearer"}
"""Header of each answer with the status 401."""

LONGEST = 86_400
"""Maximum number of seconds until a token expires, a day."""

MOST_USED = 1_000_000
"""Maximum number of used tokens that have not expired."""

_TOKEN = re.compile(r"(uldp1\.([0-9]{1,11})\.([A-Za-z0-9_-]{22}))\.([A-Za-z0-9_-]{43})", re.ASCII)


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
    """The messages that tokens have sent, until they expire (a replay window), and which of them are delivered.

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
        self._open: dict[int, dict[bytes, Place | None]] = defaultdict(dict)
        self._number = 0
        self._first = 0
        self._forgotten_until = 0.0
        self._load()

    def check(self, token: Token) -> None:
        """Raise Refused if a signed token has expired, or is valid for too long."""
        left = token.expires - self._clock()
        if left > LONGEST:
            raise Refused(UNAUTHORIZED, "token", CHALLENGE)
        if left > 0 and token.expires <= self._forgotten_until:  # the clock was set back
            self._load()
        if left <= 0 or token.expires <= self._forgotten_until:
            raise Refused(UNAUTHORIZED, "token_expired", CHALLENGE)

    def use(self, token: Token, message: bytes) -> Use:
        """Send a message; raises Refused if the token has sent another one, or too many tokens are in use.

        A token that expired while its body came is refused, because what it sent before may be forgotten.
        """
        self.check(token)
        self._forget()
        use = _use(token, message)
        sent = self._slots[use.slot].get(use.name)
        if sent is None:
            if self._number >= self._most:
                raise Refused(TOO_MANY, "busy", RETRY_AFTER)
            self._remember(use)
            self._open[use.slot][use.name] = None
        elif sent != use.message:
            raise Refused(UNAUTHORIZED, "token_used", CHALLENGE)
        return use

    async def is_delivered(self, use: Use) -> bool:
        """Whether the message of a token was delivered.

        Raises:
            Undelivered: that is not known yet, or cannot be stored.
        """
        still_open = self._open[use.slot]
        if use.name not in still_open:
            return True
        place = still_open[use.name]
        if place is None or self._files is None:
            return False
        holds = await self._files.settle(place)
        if holds is None:
            raise Undelivered("a file of reports cannot be finished")
        if holds:
            still_open.pop(use.name, None)
        return holds

    def ended(self, use: Use, is_delivered: bool) -> None:
        """A delivery has ended. One that failed may have left the message at a place, or will be tried again."""
        still_open = self._open.get(use.slot, {})  # none if the token has expired
        if is_delivered:
            still_open.pop(use.name, None)
        elif use.name in still_open:
            still_open[use.name] = use.place

    def _load(self) -> None:
        """Remember the stored tokens that have not expired by now. All that expire earlier are refused from now on."""
        if self._files is None:
            return
        now, loaded = self._clock(), set[tuple[int, bytes]]()
        for use, is_delivered in self._files.read(now):
            slot = use.slot
            if use.expires <= now or ((slot, use.name) not in loaded and use.name in self._slots[slot]):
                continue
            if (slot, use.name) not in loaded:
                loaded.add((slot, use.name))
                self._remember(use)
                self._open[slot][use.name] = None
            if is_delivered:
                self._open[slot].pop(use.name, None)
            elif is_delivered is None and use.name in self._open[slot]:
                self._open[slot][use.name] = use.place
        self._forgotten_until = max(now, self._files.removed_until)

    def _remember(self, use: Use) -> None:
        self._slots[use.slot][use.name] = use.message
        self._number += 1
        until = self._elapsed() + use.expires - self._clock()
        self._until[use.slot] = max(until, self._until.get(use.slot, until))

    def _forget(self) -> None:
        """Drop the slots whose tokens have expired, by both clocks; at most once in the time of a slot.

        Tokens that seem to have expired because the clock was set ahead are valid again when it is set back.
        """
        now, elapsed = int(self._clock()) // SLOT, self._elapsed()
        if now == self._first:
            return
        self._first = now
        for slot in [slot for slot in self._slots if slot < now and self._until.get(slot, elapsed) <= elapsed]:
            self._number -= len(self._slots.pop(slot))
            self._forgotten_until = max(self._forgotten_until, (slot + 1) * SLOT)
            for own in (self._until, self._open):
                own.pop(slot, None)


def _use(token: Token, message: bytes) -> Use:
    name = hashlib.blake2b(token.id, digest_size=16, person=b"uldp token").digest()
    return Use(token.expires, name, hashlib.blake2b(message, digest_size=16, key=token.id).digest())
