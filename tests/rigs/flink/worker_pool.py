"""Beam's worker pool at one address of this machine; Beam's own listens on all of them.

So each task manager can have a pool of its own under one port, as on machines of their own.
"""

from __future__ import annotations

import argparse

import grpc
from apache_beam.portability.api import beam_fn_api_pb2_grpc
from apache_beam.runners.worker.worker_pool_main import BeamFnExternalWorkerPoolServicer
from apache_beam.utils import thread_pool_executor


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.rigs.flink.worker_pool", description=__doc__)
    parser.add_argument("--address", required=True, help="HOST:PORT to listen on")
    args = parser.parse_args()
    server = grpc.server(thread_pool_executor.shared_unbounded_instance())
    pool = BeamFnExternalWorkerPoolServicer(use_process=True)
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    server.add_insecure_port(args.address)
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
