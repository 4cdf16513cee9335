"""Keys of apps that may send reports, and how much an app may send in a minute.

A key says which app a request comes from, not which person: all copies of an app have the same one, or its server signs
tokens with it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import math
import re
import time
from collections.abc import Callable, Iterable, Sequence

from starlette.responses import Response

from uldp_transforms.files.text_files import read_text
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_gateway.apps.once_per_token import OncePerToken, Taker
from uldp_transforms_gateway.apps.signed_tokens import CHALLENGE, Token, UsedTokens
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.refusals import TOO_MANY, UNAUTHORIZED, Refused

MINUTE = 60.0
"""Seconds in which an allowance that was spent is whole again."""

_KEY = re.compile(r"[A-Za-z0-9._~+/-]{20,512}=*", re.ASCII)  # token68 of RFC 7235, long enough not to be guessed
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Key:
    """A key, and the name of its app for metrics; "" if the operator gave none."""

    text: str = dataclasses.field(repr=False)
    app: str = ""


class Allowance:
    """A limit per minute (a token bucket): at most this amount at once; what was spent is refilled at a steady rate.

    Args:
        a_minute: how much.
        clock: seconds, from any start.
        debt: largest amount that can be spent beyond what is left.
    """

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic, debt: float = math.inf):
        self._most, self._debt = float(a_minute), debt
        self._clock = clock
        self._left, self._since = self._most, clock()

    def wait(self) -> float:
        """Seconds until something is left; 0 if there is."""
        now = self._clock()
        self._left = min(self._most, self._left + (now - self._since) * self._most / MINUTE)
        self._since = now
        return max(0.0, (1 - self._left) * MINUTE / self._most)

    def spend(self, amount: int) -> None:
        """Spend an amount; more than is left is a debt, up to its limit."""
        self._left = max(self._left - amount, -self._debt)


class App:
    """Sender of requests, with what it may still send.

    Args:
        name: for metrics.
        requests: number of requests in a minute; None means no limit.
        size: bytes of bodies in a minute; None means no limit.
        meters: count its requests, if it has a key.
    """

    def __init__(
        self, name: str = "", requests: int | None = None, size: int | None = None, meters: Meters | None = None
    ):
        self._name = name
        self._requests = [] if requests is None else [Allowance(requests, debt=requests)]
        self._bytes = [] if size is None else [Allowance(size, debt=size)]
        self._in_debt: object = None
        self._meters = meters

    def begin(self) -> None:
        """A request begins; raises Refused, with the time after which to send it again, if too much was sent."""
        self._check((*self._requests, *self._bytes))
        if self._meters is not None:
            self._meters.app_requests.labels(self._name).inc()
        for allowance in self._requests:
            allowance.spend(1)

    def came(self, size: int, body: object = None) -> None:
        """Bytes of a body arrived.

        Only one body may exceed what is left, by a debt of at most a minute; the others that arrive meanwhile are
        refused, because so many of them could otherwise make all requests of the app wait for hours.

        Raises:
            Refused: another body has exceeded what is left, with the time after which to send this one again.
        """
        if self._bytes and body is not self._in_debt:
            self._check(self._bytes)
            self._in_debt = body
        for allowance in self._bytes:
            allowance.spend(size)

    def _check(self, allowances: Sequence[Allowance]) -> None:
        """Raise Refused if nothing is left."""
        wait = max((allowance.wait() for allowance in allowances), default=0.0)
        if wait:
            if self._meters is not None:
                self._meters.app_limited.labels(self._name).inc()
            raise Refused(TOO_MANY, "rate", {"Retry-After": str(math.ceil(wait))})


class Sender:
    """Whoever sends one request.

    Args:
        app: what it may send.
        token: its token; None if it named a key, or none is required.
        once: delivers the messages of tokens.
    """

    def __init__(self, app: App, token: Token | None = None, once: OncePerToken | None = None):
        self.app = app
        self._token, self._once = token, once

    async def sends(self, message: bytes, taker: Taker) -> Response:
        """The response to a complete body; raises Refused if its token has sent another one, and Undelivered."""
        if self._token is None or self._once is None:
            return await taker.deliver(message, None)
        return await self._once.answer(self._token, message, taker)


class Tokens:
    """Keys of which a request must name one, or a token that is signed with one, in ``Authorization: Bearer``.

    Keys with the same name belong to one app and share its limits; a key without a name is an app of its own.

    Args:
        keys: none: every request may send.
        requests: requests of an app in a minute; None means no limit.
        size: bytes of the bodies of an app in a minute; None means no limit.
        meters: count the requests of each app.
        used: the tokens that were used, if requests must name tokens; None: they must name keys.
    """

    def __init__(
        self,
        keys: Iterable[Key] = (),
        requests: int | None = None,
        size: int | None = None,
        meters: Meters | None = None,
        *,
        used: UsedTokens | None = None,
    ):
        apps: dict[str, App] = {}
        self._used = used
        self._once = None if used is None else OncePerToken(used, (lambda: None) if meters is None else meters.copied)
        self._apps: list[tuple[str, bytes, App]] = []
        for key in keys:
            app = apps.get(key.app) or App(key.app, requests, size, meters)
            if key.app:
                apps[key.app] = app
            self._apps.append((key.text, _digest(key.text), app))

    def check(self, authorization: str | None) -> Sender:
        """The sender of a request; raises Refused if its header has none of the keys, as late for every wrong key."""
        if not self._apps:
            return Sender(App())
        scheme, _, said = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            raise Refused(UNAUTHORIZED, "token", CHALLENGE)
        return self._of_key(said.strip()) if self._used is None else self._of_token(said.strip(), self._used)

    def _of_key(self, said: str) -> Sender:
        digest = _digest(said)
        known = [app for _, own, app in self._apps if hmac.compare_digest(digest, own)]
        if not known:
            raise Refused(UNAUTHORIZED, "token", CHALLENGE)
        return Sender(known[0])

    def _of_token(self, said: str, used: UsedTokens) -> Sender:
        token = Token.parse(said)
        known = [app for key, _, app in self._apps if token is not None and token.is_signed_with(key)]
        if token is None or not known:
            raise Refused(UNAUTHORIZED, "token", CHALLENGE)
        used.check(token)
        return Sender(known[0], token, self._once)


def read_keys(path: str) -> list[Key]:
    """The keys of a file: one per line, which may be followed by the name of its app; empty lines and lines that begin
    with # are ignored.

    Raises:
        SpecError: if there is none, or a line is no key, or has one again; the content is not shown.
        OSError: if the file cannot be read.
    """
    keys: dict[str, Key] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        key, *names = line.split() or ("",)
        if not key or key.startswith("#"):
            continue
        if not _KEY.fullmatch(key) or len(names) > 1 or not all(map(_NAME.fullmatch, names)):
            raise SpecError(
                "--token_file must have one key per line, 20 to 512 characters from A-Z a-z 0-9 . _ ~ + / -, and may "
                "name its app, with at most 64 of the characters a-z 0-9 . _ -, after a space, got another text in "
                f"line {number} of {path} (the text is not shown)"
            )
        if key in keys:
            raise SpecError(f"--token_file must have each key once, got one again in line {number} of {path}")
        keys[key] = Key(key, *names)
    if not keys:
        raise SpecError(f"--token_file must have at least one key, got none in {path}")
    return list(keys.values())


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
