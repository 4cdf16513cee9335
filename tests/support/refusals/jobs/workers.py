"""Refusals of workers: calls and their sentences."""

from __future__ import annotations

from typing import Any

import grpc

from tests.support.refusals.tables import Refusal
from uldp_transforms.jobs import workers
from uldp_transforms.jobs.engines.last_words import last_words, state_of
from uldp_transforms.jobs.engines.worker_pool import WorkerPool, served

SOON, IN_TIME = 0.01, 600.0


class _Gone:
    """A job whose engine is gone."""

    @property
    def state(self) -> str:
        error: Any = grpc.RpcError()
        error.code = lambda: grpc.StatusCode.UNAVAILABLE
        raise error


def ended_silently() -> None:
    with last_words() as words:
        state_of(_Gone(), words)


def _in_use() -> None:
    with served(WorkerPool(SOON), "localhost:0") as address, served(WorkerPool(SOON), address):
        pass


REFUSED: list[Refusal] = [
    (lambda: workers.configure(["--address", "here"]), "--address must be HOST:PORT, got 'here'"),
    (lambda: workers.configure(["--start_timeout", "0s"]), "--start_timeout must be above 0, got 0"),
    (_in_use, "--address must be a free HOST:PORT of this machine, got "),
]
