"""Runs the whole system on one machine: a survey page, the gateway, a queue, the streaming job, and a results page.

Simulated people answer too. Ends with Ctrl-C. Needs the gateway, the report and the extra gcp.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.engines.google_clients import require_google_clients
from uldp_transforms.ldp.errors import SpecError


def configure(argv: Sequence[str]) -> Any:
    """Parse a command line; raises SpecError. Its help needs no other package."""
    from labs.live import live_options  # noqa: PLC0415  # takes its description from here

    live = live_options.configure(argv)
    require_google_clients("live")
    try:
        uldp.main_of("gateway")
    except uldp.Unavailable as reason:
        raise SpecError(f"live starts a gateway, and {reason}") from None
    return live


def _job(live: Any) -> int:
    from labs.live import run_live  # noqa: PLC0415  # needs the extra gcp

    return run_live.job(live)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program until Ctrl-C or SIGTERM; returns the exit code."""
    return cli.run("live", configure, _job, argv, faults_of_job=(SpecError, OSError))
