"""Runs a pool of Python workers for Flink or Spark until Ctrl-C, one pool beside each task manager or executor.

Jobs use it with --environment_type EXTERNAL --environment_config HOST:PORT. A worker that is not connected to the
engine in time fails the job with a sentence that names its log. Whoever reaches the port can run any code.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.engines.signals import end_now, stopped_by_signals
from uldp_transforms.ldp.errors import SpecError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workers:
    """Parsed options of a command line."""

    address: str
    start_timeout: int
    log_dir: Path | None


def configure(argv: Sequence[str]) -> Workers:
    """Parse a command line; raises SpecError and OSError."""
    parser = cli.Parser("workers", description=__doc__)
    parser.add_argument(
        "--address",
        default="localhost:50000",
        help="HOST:PORT to listen on; port 0 means any free port (default: localhost:50000)",
    )
    parser.add_argument(
        "--start_timeout",
        type=cli.duration("--start_timeout"),
        default=60_000,
        help="maximum time until a worker is connected to the engine (default: 60s)",
    )
    parser.add_argument(
        "--log_dir", type=Path, help="directory for one log file per worker (default: stderr of this program)"
    )
    args = parser.parse_args(argv)
    if not re.fullmatch(r"\S+:[0-9]{1,5}", args.address):
        raise SpecError(f"--address must be HOST:PORT, got {args.address!r}")
    if args.start_timeout == 0:
        raise SpecError("--start_timeout must be above 0, got 0")
    if args.log_dir is not None:
        args.log_dir.mkdir(parents=True, exist_ok=True)
    log_dir = None if args.log_dir is None else args.log_dir.absolute()
    return Workers(address=args.address, start_timeout=args.start_timeout, log_dir=log_dir)


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM; returns the exit code."""
    return cli.run("workers", configure, _job, argv, faults_of_job=(SpecError,))


def _job(workers: Workers) -> NoReturn:
    from uldp_transforms.jobs.engines.worker_pool import WorkerPool, served  # noqa: PLC0415  # imports Beam

    pool = WorkerPool(workers.start_timeout / 1000, workers.log_dir)
    with stopped_by_signals() as stop, served(pool, workers.address) as address:
        print(f"workers: listening at {address}", flush=True)
        stop.wait()
    end_now(cli.DONE)  # gRPC's threads


if __name__ == "__main__":
    uldp.run_program("workers")
