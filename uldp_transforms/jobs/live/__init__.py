"""The whole way on one machine: a page that asks, the gateway, a queue, the streaming job, and a page that shows.

Simulated people answer too. Only in a checkout, where the client in JavaScript is. Ends with Ctrl-C.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run it until Ctrl-C or SIGTERM; returns the exit code."""
    from uldp_transforms.jobs.live.run_live import main as run  # noqa: PLC0415  # live_options.py takes its description from here

    return run(argv)
