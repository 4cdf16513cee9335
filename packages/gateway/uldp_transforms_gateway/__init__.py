"""HTTP gateway: accepts reports, rejects those that the job would reject, packs them, and responds when they are
published.

``POST /reports`` takes one message, single or packed. It goes to Pub/Sub or Kafka, or first to files of a spool, and is
acknowledged when it is there. No address, header or payload of a request is kept or logged.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from uldp_transforms.jobs import cli
from uldp_transforms.ldp.errors import SpecError

_NEEDED = ("starlette", "uvicorn", "confluent_kafka", "prometheus_client")


def require_server() -> None:
    """Check that the server packages are installed; raises SpecError."""
    try:
        for name in _NEEDED:
            importlib.import_module(name)
    except ImportError as error:
        raise SpecError(
            f"a gateway needs {error.name}, which its package brings; in a checkout: pip install . ./packages/gateway"
        ) from None


def configure(argv: Sequence[str]) -> Any:
    """The configuration of a command line; raises SpecError or OSError."""
    require_server()
    from uldp_transforms_gateway import gateway_options  # noqa: PLC0415  # needs the server packages, and takes its description from here

    return gateway_options.configure(argv)


def _job(config: Any) -> int:
    from uldp_transforms_gateway import serve  # noqa: PLC0415  # needs the server packages

    return serve.job(config)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the gateway of a command line until it is told to stop; returns its exit code."""
    return cli.run("gateway", configure, _job, argv, faults_of_job=(SpecError, OSError))
