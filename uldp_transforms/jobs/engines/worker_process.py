"""A Python worker of ``worker_pool``: it connects to the engine, says so, and works until the engine ends it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import grpc
from apache_beam.runners.worker.sdk_worker import SdkHarness

CONNECTED = b"connected"
"""What a worker writes into its pipe; any other text says why it cannot start."""


def main(argv: Sequence[str]) -> None:
    """Work.

    Args:
        argv: address of the engine, name of the worker, and file descriptor of the pipe.
    """
    engine, name, pipe = argv
    with open(int(pipe), "wb") as answer:
        try:
            harness = SdkHarness(engine, worker_id=name, state_cache_size=0, data_buffer_time_limit_ms=-1)
        except grpc.FutureTimeoutError:
            answer.write(f"it cannot reach the engine at {engine}".encode())
            raise
        except Exception as error:
            answer.write(f"{type(error).__name__}: {error}".encode())
            raise
        answer.write(CONNECTED)
    harness.run()


if __name__ == "__main__":
    main(sys.argv[1:])
