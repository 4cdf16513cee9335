"""Runs the gateway on uvicorn until SIGTERM or Ctrl-C; it then answers open requests and delivers accepted reports."""

from __future__ import annotations

import contextlib
import functools
import gc
import resource
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import uvicorn
from starlette.applications import Starlette

from uldp_transforms import JobSpec
from uldp_transforms.jobs import cli
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms_gateway.admission import Admission
from uldp_transforms_gateway.apps.app_keys import Tokens
from uldp_transforms_gateway.apps.signed_tokens import UsedTokens
from uldp_transforms_gateway.apps.used_token_files import FOLDER, UsedTokenFiles, has_valid_tokens
from uldp_transforms_gateway.bounded_requests import BoundedRequests
from uldp_transforms_gateway.gateway_options import GatewayConfig
from uldp_transforms_gateway.limits import Connections, Limits
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.navigations.navigation_desk import NavigationDesk
from uldp_transforms_gateway.navigations.navigation_log import NavigationLog
from uldp_transforms_gateway.origins import Origins
from uldp_transforms_gateway.outlets.outlet import Delivery
from uldp_transforms_gateway.outlets.recorded_outlet import RecordedOutlet
from uldp_transforms_gateway.packer import Packer
from uldp_transforms_gateway.quiet_log import log_quietly
from uldp_transforms_gateway.spool import Spool
from uldp_transforms_gateway.web import Desk, Door, Endpoint, application

STOP_SECONDS = 60
"""Seconds that pending requests get to finish when the gateway stops; after that, their senders get no response."""

SPARE = 1_000
"""Number of connections, in addition to two per request that may wait, above which the server refuses further ones."""

BACKLOG = 2048
"""Length of the queue of connections that are not yet accepted."""

GC_THRESHOLDS = (20_000, 20, 50)
"""Of the garbage collector: pending requests have some hundred objects each, and hardly any in cycles."""


def build(config: GatewayConfig, address: str, meters: Meters) -> Starlette:
    """The application of a configuration; raises SpecError or OSError."""
    limits = Limits(config.max_body, config.max_waiting, config.max_waiting_bytes, meters, config.max_peer_bytes)
    files = _token_files(config)
    delivery = None if config.spec is None else _delivery(config, meters, files)
    log = None if config.navigations is None else NavigationLog(config.navigations, files)
    used = UsedTokens(files=files) if config.signed_tokens else None  # when files of earlier processes are finished
    tokens = Tokens(config.keys, config.app_requests, config.app_bytes, meters, used=used)
    origins = Origins(config.origins, config.hosts)
    door = Door(limits, config.body_timeout, meters, origins, tokens)
    parts: list[Part] = []
    if config.spec is not None and delivery is not None:
        for warning in config.spec.rounding_warnings():
            _say(warning)
        parts.append(_reports(config, config.spec, delivery, door, meters))
    if log is not None:
        desk = NavigationDesk(log, door, meters, config.token_reports)
        parts.append(Part("/navigations", desk.navigations, log.start, log.close))

    @contextlib.asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        if files is not None:
            await files.start()
        for part in parts:
            await part.start()
        gc.collect()
        gc.freeze()  # what was imported stays; to look through it again and again takes a third of the time
        gc.set_threshold(*GC_THRESHOLDS)
        for part in parts:
            _say(f"POST {address}{part.path}")
        yield
        for part in parts:
            await part.close()
        if files is not None:
            await files.close()
        _say("stopped")

    return application({part.path: part.endpoint for part in parts}, meters, config.origins, lifespan(), origins)


def _token_files(config: GatewayConfig) -> UsedTokenFiles | None:
    """Where used tokens are stored: in a folder of their own, or beside the reports or navigations."""
    if not config.signed_tokens:
        return None
    beside = (("--spool", config.spool), ("--navigations", config.navigations))
    places = [("--used_tokens", config.used_tokens, Path(config.used_tokens))] if config.used_tokens else []
    places += [(option, folder, Path(folder) / FOLDER) for option, folder in beside if folder is not None]
    if places:
        (option, given, chosen), *others = places
        for _, _, other in others:
            if other.resolve() != chosen.resolve() and has_valid_tokens(other, time.time()):
                raise SpecError(
                    f"--used_tokens must name the directory of tokens that were used before, {str(other)!r}, or that "
                    f"must be moved to {str(chosen)!r}, because tokens in it have not expired and would count twice"
                )
        return UsedTokenFiles(chosen, time.time, (option, given))
    _say(
        "used tokens are not stored without --used_tokens or --spool: after a restart, each can send its message "
        "again, or another one"
    )
    return None


class Part(NamedTuple):
    """What answers the requests of one path."""

    path: str
    endpoint: Endpoint
    start: Callable[[], Awaitable[None]]
    close: Callable[[], Awaitable[None]]


def _delivery(config: GatewayConfig, meters: Meters, files: UsedTokenFiles | None) -> Delivery:
    """Where packed messages go."""
    if config.spool is not None:
        return Spool(config.spool, config.spool_every, config.outlet, meters, _say, files)
    assert config.outlet is not None
    config.outlet.check()
    return RecordedOutlet(config.outlet, files)


def _reports(config: GatewayConfig, spec: JobSpec, delivery: Delivery, door: Door, meters: Meters) -> Part:
    packer = Packer(delivery, config.pack_size, config.pack_every, meters)
    decoder = MessageDecoder(spec.catalog, spec.gate, spec.deduplicate)
    admission = Admission(decoder, config.pack_size)
    spools, set_groups = config.spool is not None, config.set_groups
    desk = Desk(admission, packer, door, meters, spools=spools, set_groups=set_groups, most=config.token_reports)

    async def close() -> None:
        await packer.drain()
        await delivery.close()

    return Part("/reports", desk.reports, delivery.start, close)


def job(config: GatewayConfig) -> int:
    """Serve until a signal; returns the exit code."""
    log_quietly()
    connections = 2 * config.max_waiting + SPARE
    _allow_files(connections + SPARE)
    with _listen(config) as listening:
        host = f"[{config.host}]" if ":" in config.host else config.host
        meters = Meters(_say)
        app = build(config, f"http://{host}:{listening.getsockname()[1]}", meters)
        places = Connections(connections + SPARE // 2, config.max_peer_connections, meters)
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=functools.partial(BoundedRequests, places=places),  # type: ignore[arg-type]  # it is called only
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                lifespan="on",
                limit_concurrency=connections,
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )
        with _signals_end_the_server_only():
            server.run(sockets=[listening])
    return cli.DONE if server.started else 1


def _allow_files(number: int) -> None:
    """Raise the limit of open files and connections of this process as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < number:
        most = number if hard == resource.RLIM_INFINITY else min(number, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _listen(config: GatewayConfig) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
        return socket.create_server((config.host, config.port), family=family, backlog=BACKLOG)
    except OSError as error:
        where = f"{config.host}:{config.port}"
        raise SpecError(f"--host and --port must be free to listen on, got {where}: {error.strerror}") from None


@contextlib.contextmanager
def _signals_end_the_server_only() -> Iterator[None]:
    """uvicorn repeats a signal when it has stopped, which would end the process with the signal's exit code."""
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(sentence: str) -> None:
    print(f"gateway: {sentence}", file=sys.stderr)
