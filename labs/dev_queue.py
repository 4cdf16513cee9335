"""Runs a Pub/Sub server for tests on this machine, with topics and subscriptions in memory, until Ctrl-C. Needs the
extra gcp.

It prints its address; programs use it if PUBSUB_EMULATOR_HOST is set to that address.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NoReturn

from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.engines.google_clients import require_google_clients
from uldp_transforms.jobs.engines.signals import end_now, stopped_by_signals
from uldp_transforms.ldp.errors import SpecError

TOPIC = "projects/local-dev/topics/reports"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DevQueue:
    """Parsed options of a command line."""

    port: int
    topics: list[str]


def configure(argv: Sequence[str]) -> DevQueue:
    """Parse a command line.

    Raises:
        SpecError: an option is wrong, or Google's client libraries are missing.
    """
    parser = cli.Parser("dev-queue", description=__doc__)
    parser.add_argument("--port", type=int, default=8085, help="port on 127.0.0.1; 0 means any free port")
    parser.add_argument(
        "--topic",
        action="append",
        type=cli.resource("topics"),
        help="topic to create, with a subscription of the same name; may be given several times "
        f"(default: {TOPIC}); clients may create others",
    )
    args = parser.parse_args(argv)
    if not 0 <= args.port < 1 << 16:
        raise SpecError(f"--port must be a number from 0 to 65535, got {args.port}")
    topics = args.topic or [TOPIC]
    if len(set(topics)) < len(topics):
        raise SpecError(f"--topic must be given once for each topic, got {', '.join(topics)}")
    require_google_clients("dev-queue")
    return DevQueue(port=args.port, topics=topics)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM; returns the exit code."""
    return cli.run("dev-queue", configure, _job, argv, faults_of_job=(SpecError,))


def _job(queue: DevQueue) -> NoReturn:
    from tests.servers.pubsub.local_topics import create_topic  # noqa: PLC0415  # needs the extra gcp
    from tests.servers.pubsub.pubsub_server import PubsubServer  # noqa: PLC0415  # needs the extra gcp

    with stopped_by_signals() as stop, PubsubServer(port=queue.port) as server:
        for topic in queue.topics:
            print(f"dev-queue: {topic}, {create_topic(server.address, topic)}", flush=True)
        print(f"export PUBSUB_EMULATOR_HOST={server.address}", flush=True)
        stop.wait()
    end_now(cli.DONE)  # gRPC's threads


if __name__ == "__main__":
    uldp.run_program("dev-queue")
