"""Runs the whole system on one machine: a survey page, the gateway, a queue, the streaming job, and a results page.

Simulated people answer too. Ends with Ctrl-C. Needs the extras gcp, gateway and plot.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.google_clients import require_google_clients
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_gateway import require_server


def configure(argv: Sequence[str]) -> Any:
    """Parse a command line; raises SpecError."""
    require_google_clients("live")
    require_server()
    from labs.live import live_options  # noqa: PLC0415  # takes its description from here

    return live_options.configure(argv)


def _job(live: Any) -> int:
    from labs.live import run_live  # noqa: PLC0415  # needs the extras gcp and gateway

    return run_live.job(live)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program until Ctrl-C or SIGTERM; returns the exit code."""
    return cli.run("live", configure, _job, argv, faults_of_job=(SpecError, OSError))
