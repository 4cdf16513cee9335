"""Takes reports by HTTP, refuses what the job would refuse, packs them, and answers when they are published.

``POST /reports`` takes one message, single or packed. It goes to Pub/Sub or Kafka, or first to files of a spool, and is
acknowledged when it is there. No address, header or payload of a request is kept or logged.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the gateway of a command line until it is told to stop; returns its exit code."""
    from .serve import main as serve  # noqa: PLC0415  # gateway_options.py takes its description from here

    return serve(argv)
