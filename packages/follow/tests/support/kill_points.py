"""Where a job that follows a spool can be killed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from packages.follow.tests.support.spools import Followed
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms_follow.follow_job import follow_job

POINTS = {
    "before counts are committed",
    "in the transaction of counts",
    "after counts are committed",
    "before estimates are committed",
    "after estimates are committed",
    "before emptying",
    "after emptying",
    *(f"{when} {kind}" for when in ("before", "after") for kind in ("ledger", "rejected", "estimates", "counts")),
    *(f"{when} health" for when in ("before", "after")),
}


def configured(*change: str, window: tuple[str, ...] = ("--window", "1m"), spool: bool = True) -> Any:
    """What a command line gives in a new folder."""
    followed = Followed(Path(tempfile.mkdtemp()))
    followed.window = list(window)
    if not spool:
        (followed.spool / "lock").unlink()
    return _configured(followed, *change)


def _configured(followed: Followed, *change: str) -> Any:
    parser = command_line()
    args, rest = parser.parse_known_args([*followed.argv(), *change])
    job = follow_job(args, parser, rest)
    job.state.close()
    job.directory.close()
    return job
