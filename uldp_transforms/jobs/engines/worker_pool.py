"""A pool of Python workers for Flink and Spark, which reports a worker that does not start.

Beam's own pool reports success as soon as the process exists; if the worker then ends, or cannot reach the engine,
Flink and Spark wait for it without an error.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2 as fn_api
from apache_beam.portability.api import beam_fn_api_pb2_grpc as fn_service
from apache_beam.runners.worker.worker_pool_main import kill_process_gracefully
from apache_beam.utils import thread_pool_executor

from uldp_transforms.jobs.engines import worker_process
from uldp_transforms.ldp.errors import SpecError

_OPTIONS = [
    ("grpc.http2.max_pings_without_data", 0),  # as Beam's pool
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.so_reuseport", 0),  # or two pools could share a port
]


class WorkerPool(fn_service.BeamFnExternalWorkerPoolServicer):
    """The service that an engine with ``--environment_type EXTERNAL`` asks for workers.

    Args:
        seconds: maximum time until a worker is connected to the engine.
        folder: for one log file per worker; None: workers write to stderr of this process.
    """

    def __init__(self, seconds: float, folder: Path | None = None):
        self._seconds = seconds
        self._folder = folder
        self._workers: dict[str, subprocess.Popen[bytes]] = {}

    def StartWorker(self, request: Any, context: Any) -> Any:
        """Start a worker; the answer has an error, which fails the job, unless the worker is connected in time."""
        name, engine = request.worker_id, request.control_endpoint.url
        error = self._start(name, engine)
        if error:
            error = f"worker {name} did not start: {error}; its log: {self._log_of(name)}"
            print(f"workers: {error}", file=sys.stderr)
        return fn_api.StartWorkerResponse(error=error)

    def StopWorker(self, request: Any, context: Any) -> Any:
        """End a worker."""
        worker = self._workers.pop(request.worker_id, None)
        if worker is not None:
            kill_process_gracefully(worker)
        return fn_api.StopWorkerResponse()

    def close(self) -> None:
        """End all workers."""
        while self._workers:
            kill_process_gracefully(self._workers.popitem()[1])

    def _start(self, name: str, engine: str) -> str:
        """Start a worker and wait until it is connected; returns why it is not, or an empty text."""
        reading, writing = os.pipe()
        command = [sys.executable, "-m", worker_process.__name__, engine, name, str(writing)]
        try:
            with self._opened_log(name) as log:
                worker = subprocess.Popen(command, stdout=log, stderr=log, pass_fds=[writing])
        except OSError as error:
            os.close(reading)
            return f"{error.filename}: {error.strerror}"
        finally:
            os.close(writing)
        try:
            answer = _answer(reading, time.monotonic() + self._seconds)
        finally:
            os.close(reading)
        if answer == worker_process.CONNECTED:
            self._workers[name] = worker
            return ""
        if answer is None:
            answer = f"it was not connected to the engine at {engine} within {self._seconds:g} s".encode()
        kill_process_gracefully(worker)
        return answer.decode("utf-8", "replace") or f"its process ended with exit code {worker.returncode}"

    def _log_of(self, name: str) -> str:
        if self._folder is None:
            return f"the output of uldp workers on {socket.gethostname()}"
        return str(self._folder / f"worker-{re.sub('[^A-Za-z0-9_.-]', '_', name)}.log")

    @contextlib.contextmanager
    def _opened_log(self, name: str) -> Iterator[IO[bytes] | int]:
        """Where a worker writes: its file, or stderr of this process."""
        if self._folder is None:
            yield sys.__stderr__.fileno() if sys.__stderr__ else subprocess.DEVNULL
            return
        with open(self._log_of(name), "ab") as log:
            yield log


def _answer(pipe: int, end: float) -> bytes | None:
    """All that a worker writes into its pipe, empty if it ends without a word; None: it is still starting."""
    answer = b""
    while select.select([pipe], [], [], max(end - time.monotonic(), 0))[0]:
        part = os.read(pipe, 1 << 12)
        answer += part
        if not part:
            return answer
    return None


@contextlib.contextmanager
def served(pool: WorkerPool, address: str) -> Iterator[str]:
    """Serve a pool at HOST:PORT while the block lasts; yields the address, with the port if that was 0.

    Raises:
        SpecError: if the address cannot be used.
    """
    server = grpc.server(thread_pool_executor.shared_unbounded_instance(), options=_OPTIONS)
    fn_service.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        port = 0
    if not port:
        raise SpecError(f"--address must be a free HOST:PORT of this machine, got {address!r}")
    server.start()
    try:
        yield f"{address.rpartition(':')[0]}:{port}"
    finally:
        server.stop(None)
        pool.close()
