"""The command line of the gateway."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

from uldp_transforms import JobSpec
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.spec_options import check_options_agree, given, spec_option, spec_options
from uldp_transforms.ldp.alphabets.dimensions import GATEWAY
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages import wire
from uldp_transforms.messages.set_groups import SetGroups
from uldp_transforms.spec.spec_fields import Section
from uldp_transforms_gateway import __doc__ as description
from uldp_transforms_gateway.apps.app_keys import Key, read_keys
from uldp_transforms_gateway.outlets import OUTLETS
from uldp_transforms_gateway.outlets.outlet import Outlet

MOST_BYTES = wire.MAX_MESSAGE_BYTES - 1_000
"""Bytes of a message that are reserved, because Pub/Sub adds the name of the topic."""

_WHAT: cli.Options = {
    "--collection": {
        cli.IS_COMMON: True,
        "action": "append",
        "help": "JSON file of a collection, or a pattern for several; may be given several times",
    },
    "--navigations": {
        cli.IS_COMMON: True,
        "metavar": "DIR",
        "help": "directory in which navigations of pages are stored as JSON lines (POST /navigations; uldp "
        "navigations)",
    },
}

_SERVING: cli.Options = {
    "--host": {cli.IS_COMMON: True, "default": "127.0.0.1", "help": "address to listen on"},
    "--port": {cli.IS_COMMON: True, "type": int, "default": 8080, "help": "port to listen on; 0 means any free port"},
    "--allow_origin": {
        cli.IS_COMMON: True,
        "action": "append",
        "help": "origin of pages that may send reports, such as https://example.org, or *; may be given several times "
        "(default: the gateway's own origin)",
    },
    "--allow_host": {
        "action": "append",
        "metavar": "NAME",
        "help": "name of the gateway in the header Host, with or without a port; requests under other names are "
        "refused, except addresses and localhost; may be given several times (default: any name, but pages over plain "
        "HTTP need an address, localhost or a listed name)",
    },
    "--token_file": {
        cli.IS_COMMON: True,
        "metavar": "FILE",
        "help": "file of keys, one per line, each optionally followed by the name of its app for metrics: requests "
        "must name one of the keys in the header Authorization: Bearer KEY (default: no key is required)",
    },
    "--signed_tokens": {
        "action": "store_true",
        "help": "require single-use tokens signed with an app's key (see --token_file) instead of the key itself; the "
        "message of a token counts once, however often it comes",
    },
    "--token_reports": {
        "type": cli.positive(),
        "help": "largest number of reports, or of lines of navigations, in the message of a token, with "
        "--signed_tokens (default: 1)",
    },
    "--used_tokens": {
        "metavar": "DIR",
        "help": "directory in which used tokens are stored, with --signed_tokens, so that none counts twice after a "
        "restart (default: tokens in --spool, else in --navigations)",
    },
    "--app_requests": {
        "type": cli.positive(),
        "help": "largest number of requests of one app of --token_file in a minute (default: no limit)",
    },
    "--app_bytes": {
        "type": cli.positive(),
        "help": "largest total size of the bodies of one app of --token_file in a minute (default: no limit)",
    },
    "--max_body": {"type": cli.positive(), "default": 1_000_000, "help": "largest size of a request body, in bytes"},
    "--body_timeout": {
        "type": cli.duration("--body_timeout"),
        "default": "20s",
        "metavar": "DURATION",
        "help": "longest time for receiving a request body, such as 20s",
    },
    "--max_waiting": {"type": cli.positive(), "default": 10_000, "help": "largest number of pending requests"},
    "--max_waiting_bytes": {
        "type": cli.positive(),
        "default": 64_000_000,
        "help": "largest total size of the bodies of pending requests, in bytes",
    },
    "--max_peer_connections": {
        "type": cli.positive(),
        "help": "largest number of connections from one IPv4 address or IPv6 /64 network; not for use behind a proxy, "
        "which has one address (default: no separate limit)",
    },
    "--max_peer_bytes": {
        "type": cli.positive(),
        "help": "largest total size of the bodies of pending requests from one such address or network (default: no "
        "separate limit)",
    },
}

_SETTING: cli.Options = {
    "--dimension": {
        cli.IS_COMMON: True,
        "action": "append",
        "metavar": "NAME=header:KEY",
        "type": cli.dimension_from("header"),
        "help": "where a dimension with set_by gateway comes from: a header of requests, such as "
        "country=header:X-Country; a proxy in front must set it, and must remove it from what senders send; may be "
        "given several times",
    },
}

_PACKING: cli.Options = {
    "--pack_size": {
        cli.IS_COMMON: True,
        "type": cli.positive(),
        "default": 1_000,
        "help": "largest number of reports in a packed message",
    },
    "--pack_every": {
        "type": cli.duration("--pack_every"),
        "default": "200ms",
        "metavar": "DURATION",
        "help": "time after which an incomplete message is sent, such as 200ms or 1s",
    },
}

_SPOOLING: cli.Options = {
    "--spool": {
        cli.IS_COMMON: True,
        "help": "directory in which reports are stored before requests are answered (default: answer when published)",
    },
    "--spool_every": {
        "type": cli.duration("--spool_every"),
        "metavar": "DURATION",
        "help": "time after which a new spool file is started (default: 1m)",
    },
}

_JUDGING: cli.Options = {
    **spec_options(Section.WINDOWS),
    "--allowed_lateness": spec_option(
        "allowed_lateness",
        default=None,
        metavar="DURATION",
        help="how long a report is accepted after its period, as for uldp estimate, with --window (default: 1h)",
    ),
    "--deduplicate": spec_option(
        "deduplicate", help="count each report id once, as uldp estimate does: reject batches without ids"
    ),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class GatewayConfig:
    """Options of the gateway."""

    spec: JobSpec | None
    set_groups: SetGroups | None
    navigations: str | None
    outlet: Outlet | None
    spool: str | None
    spool_every: float
    pack_size: int
    pack_every: float
    host: str
    port: int
    origins: tuple[str, ...]
    hosts: tuple[str, ...]
    keys: tuple[Key, ...]
    signed_tokens: bool
    token_reports: int | None
    used_tokens: str | None
    app_requests: int | None
    app_bytes: int | None
    max_body: int
    body_timeout: float
    max_waiting: int
    max_waiting_bytes: int
    max_peer_connections: int | None
    max_peer_bytes: int | None


def command_line() -> argparse.ArgumentParser:
    parser = cli.Parser("gateway", has_short_help=True, description=description)
    cli.add_options(parser, _WHAT)
    targets = parser.add_argument_group("destination of the reports (one of these, or --spool, or both)")
    exclusive = targets.add_mutually_exclusive_group()
    for outlet in OUTLETS:
        of_outlet = {"type": outlet.kind, "help": outlet.help, cli.IS_COMMON: True}
        cli.add_options(exclusive, {outlet.option: of_outlet})
    for title, options in (
        ("spool files", _SPOOLING),
        ("packing", _PACKING),
        ("serving", _SERVING),
        ("dimensions", _SETTING),
        ("rejection by time and id, as in the job; without --window, the job checks times", _JUDGING),
        *((f"only with {outlet.option}", outlet.own_options) for outlet in OUTLETS if outlet.own_options),
    ):
        cli.add_options(parser.add_argument_group(title), options)
    return parser


def configure(argv: Sequence[str]) -> GatewayConfig:
    """The configuration of a command line; raises SpecError or OSError."""
    args = command_line().parse_args(argv)
    chosen = next((outlet for outlet in OUTLETS if getattr(args, outlet.option[2:]) is not None), None)
    _check(args, chosen)
    spec = None if args.collection is None else _spec(args)
    if spec is not None:
        _check_sizes(args, spec)
    return GatewayConfig(
        spec=spec,
        set_groups=None if spec is None else _set_groups(args, spec),
        navigations=args.navigations,
        outlet=None if chosen is None else chosen.of(args),
        spool=args.spool,
        spool_every=(60_000 if args.spool_every is None else args.spool_every) / 1000,
        pack_size=args.pack_size,
        pack_every=args.pack_every / 1000,
        host=args.host,
        port=args.port,
        origins=tuple(args.allow_origin or ()),
        hosts=tuple(args.allow_host or ()),
        keys=() if args.token_file is None else tuple(read_keys(args.token_file)),
        signed_tokens=args.signed_tokens,
        token_reports=(args.token_reports or 1) if args.signed_tokens else None,
        used_tokens=args.used_tokens,
        app_requests=args.app_requests,
        app_bytes=args.app_bytes,
        max_body=args.max_body,
        body_timeout=args.body_timeout / 1000,
        max_waiting=args.max_waiting,
        max_waiting_bytes=args.max_waiting_bytes,
        max_peer_connections=args.max_peer_connections,
        max_peer_bytes=args.max_peer_bytes,
    )


def _spec(args: argparse.Namespace) -> JobSpec:
    """Specification of the job, as far as it affects rejections."""
    return JobSpec.of(collections=cli.matching("--collection", args.collection), **given(args))


def _set_groups(args: argparse.Namespace, spec: JobSpec) -> SetGroups | None:
    """What sets dimensions; None if no dimension is set here or later, so that nothing is to be done."""
    keys = [(name, header.lower()) for name, header in args.dimension or ()]
    found = SetGroups(spec.collections, GATEWAY, tuple(keys))
    return found if found.is_needed else None


def _check(args: argparse.Namespace, outlet: type[Outlet] | None) -> None:
    """Refuse options that contradict each other, by their names on the command line; raises SpecError."""
    given = "none" if outlet is None else outlet.option
    reporting = args.collection is not None
    targets = [*(() if outlet is None else (outlet.option,)), *(() if args.spool is None else ("--spool",))]
    names = " or ".join(each.option for each in OUTLETS)
    rules = [
        (not reporting and args.navigations is None, "a gateway needs --collection or --navigations, got none"),
        *(
            (not reporting, f"{name} needs --collection, got none")
            for name in (
                *targets,
                *(f"--{each}" for each in ("window", "deduplicate", "dimension") if getattr(args, each)),
            )
        ),
        (reporting and not targets, f"a gateway needs {names} or --spool, got none"),
        (
            args.navigations is not None and args.token_file is not None and not args.signed_tokens,
            "--navigations with --token_file needs --signed_tokens, because pages cannot keep a key, got none",
        ),
        *(
            (
                getattr(args, name[2:]) is not None,
                f"{name} needs {other.option}, got {given}",
            )
            for other in OUTLETS
            if other is not outlet
            for name in other.own_options
        ),
        *(
            (args.token_file is None and getattr(args, name), f"--{name} needs --token_file, got none")
            for name in ("signed_tokens", "app_requests", "app_bytes")
        ),
        *(
            (not args.signed_tokens and getattr(args, name) is not None, f"--{name} needs --signed_tokens, got none")
            for name in ("token_reports", "used_tokens")
        ),
        (args.spool is None and args.spool_every is not None, "--spool_every needs --spool, got none"),
        (args.allowed_lateness is not None and args.window is None, "--allowed_lateness needs --window, got none"),
        (not 0 <= args.port < 1 << 16, f"--port must be a number from 0 to 65535, got {args.port}"),
        (args.max_body > MOST_BYTES, f"--max_body must be at most {MOST_BYTES}, got {args.max_body}"),
        (
            args.max_waiting_bytes < args.max_body,
            f"--max_waiting_bytes must be at least --max_body, {args.max_body}, got {args.max_waiting_bytes}",
        ),
        (
            args.max_peer_bytes is not None and args.max_peer_bytes < args.max_body,
            f"--max_peer_bytes must be at least --max_body, {args.max_body}, got {args.max_peer_bytes}",
        ),
    ]
    for wrong, sentence in rules:
        if wrong:
            raise SpecError(sentence)
    check_options_agree(args)


def _check_sizes(args: argparse.Namespace, spec: JobSpec) -> None:
    largest = max(wire.packed_bytes(collection.mechanism.payload_size) for collection in spec.catalog)
    if args.pack_size * largest > MOST_BYTES - 1_000:
        most = (MOST_BYTES - 1_000) // largest
        raise SpecError(f"--pack_size must be at most {most}, so that messages can be published, got {args.pack_size}")
