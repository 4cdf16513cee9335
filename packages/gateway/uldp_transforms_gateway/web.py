"""ASGI application of the gateway: few endpoints, bounded memory, and responses with the outcome of each message."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.messages.set_groups import SetGroups
from uldp_transforms_gateway.admission import Admission, Verdict, has_ids, plain
from uldp_transforms_gateway.apps.app_keys import App, Tokens
from uldp_transforms_gateway.apps.once_per_token import Taker
from uldp_transforms_gateway.apps.uses import Use
from uldp_transforms_gateway.limits import Body, Limits, peer_of
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.origins import Origins
from uldp_transforms_gateway.outlets.outlet import Undelivered
from uldp_transforms_gateway.packer import Pack, Packer
from uldp_transforms_gateway.refusals import (
    ACCEPTED,
    BAD_REQUEST,
    OK,
    RETRY_AFTER,
    STATUS,
    TOO_LARGE,
    UNAVAILABLE,
    UNSUPPORTED,
    Refused,
)

Endpoint = Callable[[Request], Awaitable[Response]]


class Door:
    """Lets requests in: of pages and apps that may send, within limits of size, number and time.

    Args:
        limits: of what may wait here.
        patience: seconds that a body may take to come.
        meters: count faults of the program.
        origins: of pages that may send; None means that a page may send to its own origin only.
        tokens: keys or tokens of which a request must name one; None means that every request may send.
    """

    def __init__(
        self,
        limits: Limits,
        patience: float,
        meters: Meters,
        origins: Origins | None = None,
        tokens: Tokens | None = None,
    ):
        self._limits = limits
        self._patience = patience
        self._meters = meters
        self._origins = origins or Origins()
        self._tokens = tokens or Tokens()

    async def answer(self, request: Request, taker: Taker, too_large: Callable[[], None]) -> Response:
        """The response of a taker to the body, or that to a request which is not let in.

        Args:
            request: the request.
            taker: delivers the body.
            too_large: is called if the body is too large.
        """
        try:
            # of headers that are repeated, the first counts
            said = {name: value.decode("latin-1") for name, value in reversed(request.scope["headers"])}
            self._origins.check(said.get(b"origin"), said.get(b"host"))
            sender = self._tokens.check(said.get(b"authorization"))
            sender.app.begin()
            with self._limits.room_for(said.get(b"content-length"), peer_of(request.scope["client"])) as room:
                body = await _body(request, room, sender.app, self._patience)
                return await sender.sends(body, taker)
        except Refused as refused:
            if refused.status == TOO_LARGE:
                too_large()
            return JSONResponse({"reason": refused.reason}, refused.status, refused.headers)
        except ClientDisconnect:
            return JSONResponse({"reason": "disconnected"}, BAD_REQUEST)
        except Undelivered:
            return JSONResponse({"reason": "unavailable"}, UNAVAILABLE, RETRY_AFTER)
        except Exception as fault:  # of the program: the reports may be good, and may come again
            self._meters.undelivered(Undelivered(type(fault).__name__))
            return JSONResponse({"reason": "unavailable"}, UNAVAILABLE, RETRY_AFTER)


class Desk:
    """Decodes the messages that arrive at the same moment together, and responds when they are delivered.

    Args:
        admission: judges.
        packer: takes what is accepted.
        door: lets requests in.
        meters: count.
        spools: whether delivered means spooled.
        set_groups: sets dimensions from the headers of requests; None: no dimension is set here.
        most: number of reports of one message; None means no limit but that of its size.
    """

    def __init__(
        self,
        admission: Admission,
        packer: Packer,
        door: Door,
        meters: Meters,
        *,
        spools: bool,
        set_groups: SetGroups | None = None,
        most: int | None = None,
    ):
        self._admission = admission
        self._packer = packer
        self._door = door
        self._meters = meters
        self._set_groups = set_groups
        self._most = most
        self._done = (ACCEPTED, "spooled") if spools else (OK, "published")
        self._came: list[_Came] = []

    async def reports(self, request: Request) -> Response:
        """``POST /reports``."""
        begin = time.perf_counter()
        response = await self._door.answer(request, _Reports(self, request), self._meters.too_large)
        self._meters.answered(response.status_code, time.perf_counter() - begin)
        return response

    async def deliver(self, message: bytes, use: Use | None, headers: Sequence[tuple[bytes, bytes]]) -> Response:
        """The response to a message that came with these headers."""
        self._check_number(message)
        if self._set_groups is not None:
            found = ((name.decode("latin-1"), text) for name, text in headers)
            message = self._set_groups.in_message(message, found)
        return await self._deliver(message, use)

    def again(self, message: bytes) -> Response:
        """The response to a copy of a delivered message: the number of reports that it declares."""
        status, word = self._done
        return JSONResponse({word: wire.reports_in(plain(message))}, status)

    def _check_number(self, message: bytes) -> None:
        """Raise Refused if a message has more reports than it may."""
        if self._most is not None and wire.reports_in(plain(message)) > self._most:
            raise Refused(TOO_LARGE, Reason.TOO_LARGE.code)

    async def _deliver(self, message: bytes, use: Use | None = None) -> Response:
        verdict, pack = await self._judged(message, use)
        refused = {reason.code: number for reason, number in verdict.refused.items()}
        if pack is None:
            return JSONResponse({"reason": verdict.reason.code, "refused": refused}, STATUS[verdict.reason])
        await pack.delivered()
        status, word = self._done
        if refused:
            return JSONResponse({word: verdict.accepted, "refused": refused}, status)
        return Response(b'{"%b":%d}' % (word.encode(), verdict.accepted), status, media_type=JSONResponse.media_type)

    async def _judged(self, message: bytes, use: Use | None) -> tuple[Verdict, Pack | None]:
        """Verdict of a message, and the pack with its accepted reports."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[Verdict, Pack | None]] = loop.create_future()
        if not self._came:
            loop.call_soon(self._judge)
        self._came.append(_Came(message, use, future))
        return await future

    def _judge(self) -> None:
        came, self._came = self._came, []
        waiting = iter(came)
        try:
            self._judge_all([each.message for each in came], waiting)
        except Exception as fault:  # whoever waits must not wait for ever
            self._meters.undelivered(Undelivered(type(fault).__name__))
            for each in waiting:
                if not each.verdict.done():
                    each.verdict.set_exception(Undelivered(type(fault).__name__))

    def _judge_all(self, messages: Sequence[bytes], waiting: Iterator[_Came]) -> None:
        """Give each waiting request the verdict on its message; reports that are packed together share one pack."""
        now = time.time_ns() // 1_000_000
        for verdicts, batches in self._admission.judge(messages, now):
            together = defaultdict(list)
            for batch in batches:
                together[batch.fingerprint, has_ids(batch)].append(batch)
            packs = {kind: self._packer.add(*some) for kind, some in together.items()}
            self._meters.judged(*verdicts)
            for verdict in verdicts:
                each, pack = next(waiting), packs.get((verdict.fingerprint, verdict.has_ids))
                if pack is not None and each.use is not None:
                    pack.uses.append(each.use)
                if not each.verdict.done():  # its request may have been cancelled
                    each.verdict.set_result((verdict, pack))


class _Came(NamedTuple):
    """A message that is to be judged, the use of its token, and what becomes of it."""

    message: bytes
    use: Use | None
    verdict: asyncio.Future[tuple[Verdict, Pack | None]]


class _Reports:
    """Takes the body of one request to a desk."""

    def __init__(self, desk: Desk, request: Request):
        self._desk, self._headers = desk, request.headers.raw
        self.again = desk.again

    async def deliver(self, message: bytes, use: Use | None) -> Response:
        return await self._desk.deliver(message, use, self._headers)


async def _body(request: Request, room: Body, app: App, patience: float) -> bytes:
    """Read the body within limits of size and time; raises Refused."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Refused(UNSUPPORTED, "content_encoding")
    chunks = []
    with room.reading(patience):
        async for chunk in request.stream():
            room.came(len(chunk))
            app.came(len(chunk), room)
            chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def application(
    posts: Mapping[str, Endpoint],
    meters: Meters,
    origins: Sequence[str],
    lifespan: contextlib.AbstractAsyncContextManager[None],
    hosts: Origins | None = None,
) -> Starlette:
    """The application.

    Args:
        posts: paths to which one can POST, with their endpoints.
        meters: are shown.
        origins: of pages whose scripts may send reports.
        lifespan: is entered before the first request, and left after the last.
        hosts: checks under which name the gateway was reached; None means any name.
    """

    @contextlib.asynccontextmanager
    async def while_serving(_: Starlette) -> AsyncIterator[None]:
        async with lifespan:
            yield

    async def health(_: Request) -> Response:
        """``GET /healthz``: 503 for ten seconds after something could not be delivered."""
        well = meters.is_well
        return JSONResponse({"status": "ok" if well else "undelivered"}, OK if well else UNAVAILABLE)

    async def metrics(_: Request) -> Response:
        return Response(meters.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    routes = [
        *(Route(path, endpoint, methods=["POST"]) for path, endpoint in posts.items()),
        Route("/healthz", _of_own_host(health, hosts), methods=["GET"]),
        Route("/metrics", _of_own_host(metrics, hosts), methods=["GET"]),
    ]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=list(origins),
        allow_methods=["POST"],
        allow_headers=["Authorization", "Content-Type"],
        expose_headers=["Retry-After"],
        max_age=86_400,
    )
    app = Starlette(routes=routes, middleware=[cors] if origins else [], lifespan=while_serving)
    app.router.redirect_slashes = False  # its redirects would name the host and scheme that the request claims
    return app


def _of_own_host(endpoint: Endpoint, hosts: Origins | None) -> Endpoint:
    """An endpoint that answers under the names of the gateway only."""
    if hosts is None:
        return endpoint

    async def checked(request: Request) -> Response:
        try:
            hosts.check_host(request.headers.get("host"))
        except Refused as refused:
            return JSONResponse({"reason": refused.reason}, refused.status)
        return await endpoint(request)

    return checked
