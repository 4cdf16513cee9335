"""Delivers the message of each token once, however often it comes, at once or later."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Protocol

from starlette.responses import Response

from uldp_transforms_gateway.apps.signed_tokens import Token, UsedTokens
from uldp_transforms_gateway.apps.uses import Use
from uldp_transforms_gateway.refusals import ACCEPTED, OK


class Taker(Protocol):
    """Takes the bodies of requests to one path."""

    async def deliver(self, message: bytes, use: Use | None) -> Response:
        """Deliver a message; may raise Undelivered or Refused.

        Args:
            message: the body.
            use: to be recorded before the message is delivered; None if the request has no token.
        """

    def again(self, message: bytes) -> Response:
        """The response to a copy of a message that was delivered."""


class OncePerToken:
    """Messages of tokens. Requests with the same token and message share one delivery and its response.

    A delivery is not cancelled with the request that began it.

    Args:
        used: the tokens that were used.
        copied: is called for each copy.
    """

    def __init__(self, used: UsedTokens, copied: Callable[[], None] = lambda: None):
        self._used = used
        self._copied = copied
        self._under_way: dict[tuple[int, bytes], asyncio.Task[Response]] = {}

    async def answer(self, token: Token, message: bytes, taker: Taker) -> Response:
        """The response to a message, which is delivered unless it was before.

        Raises:
            Refused: the token has sent another message, has expired, or the message is refused.
            Undelivered: the message is not delivered, or it is not known whether it is.
        """
        use = self._used.use(token, message)
        key = use.slot, use.name
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(self._deliver(use, message, taker))
            task.add_done_callback(lambda ended: self._end(key, ended))
        else:
            self._copied()
        response = copy.copy(await asyncio.shield(task))
        response.raw_headers = list(response.raw_headers)  # each request may get further ones
        return response

    async def _deliver(self, use: Use, message: bytes, taker: Taker) -> Response:
        if await self._used.is_delivered(use):
            self._copied()
            return taker.again(message)
        is_delivered = False
        try:
            response = await taker.deliver(message, use)
            is_delivered = response.status_code in (OK, ACCEPTED)
        finally:
            self._used.ended(use, is_delivered)
        return response

    def _end(self, key: tuple[int, bytes], task: asyncio.Task[Response]) -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # all requests may be gone
