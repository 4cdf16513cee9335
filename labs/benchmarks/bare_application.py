"""A bare starlette application on uvicorn, to compare the gateway with: ``python -m labs.benchmarks.bare_application``.

``POST /reports`` reads the body and responds; ``GET /cpu`` has the seconds of CPU time that the process took so far.
The first line of the output is the port.
"""

from __future__ import annotations

import socket
import time

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


async def reports(request: Request) -> JSONResponse:
    """Read the body of a request."""
    assert await request.body()
    return JSONResponse({"published": 1})


async def cpu(_: Request) -> JSONResponse:
    """The CPU time so far."""
    return JSONResponse({"seconds": time.process_time()})


def main() -> None:
    app = Starlette(routes=[Route("/reports", reports, methods=["POST"]), Route("/cpu", cpu, methods=["GET"])])
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(
            app, http="httptools", log_config=None, access_log=False, server_header=False, ws="none"
        )
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
