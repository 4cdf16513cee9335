"""Jobs of ``uldp estimate`` that run without a Beam engine; each is imported only if the command line requests it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uldp_transforms.jobs.engines.signals import Signals


def needs_no_engine(args: argparse.Namespace) -> bool:
    """Whether a command line requests this job."""
    return bool(args.follow)


def configure_alone(args: argparse.Namespace, parser: Any, beam_args: Sequence[str]) -> Any:
    """The job of a command line; raises SpecError."""
    from uldp_transforms.jobs.follow.follow_job import follow_job  # noqa: PLC0415  # imported when it is used

    return follow_job(args, parser, beam_args)


def run_alone(job: Any, signals: Signals) -> int:
    """Run the job until a signal; returns the exit code."""
    from uldp_transforms.jobs.follow.follow_job import run_follow  # noqa: PLC0415  # imported when it is used

    return run_follow(job, signals)
