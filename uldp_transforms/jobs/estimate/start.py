"""Start the main job: with Beam, or, to follow a source, without an engine and its imports."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.signals import CUT_OFF, Signals
from uldp_transforms.jobs.follow.follow_job import follow_job, run_follow
from uldp_transforms.jobs.follow.follow_options import arguments_of
from uldp_transforms.ldp.errors import SpecError

_PROGRAM = "estimate"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job of a command line; returns its exit code."""
    with Signals(_PROGRAM) as signals:
        try:
            configured = functools.partial(_configured, signals=signals)
            code = cli.run(_PROGRAM, configured, lambda job: job(), argv, (SpecError,))
        except KeyboardInterrupt:
            print(f"{_PROGRAM}: cancelled before the run began", file=sys.stderr)
            code = CUT_OFF
        return signals.leave(code)


def _configured(argv: Sequence[str], signals: Signals) -> Callable[[], int]:
    args = arguments_of(argv)
    if args is not None:
        return functools.partial(run_follow, follow_job(args, None), signals)
    from uldp_transforms.jobs.estimate.run import configured_job  # noqa: PLC0415  # imports Beam, which takes seconds

    return configured_job(argv, signals)
