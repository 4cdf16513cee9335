"""How ``--follow`` runs a job of the table of capabilities, and what its rows are."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.capabilities.jobs import EARLY, LATE, Job
from tests.support.capabilities.runs import (
    ALWAYS,
    LONG_AGO,
    Rows,
    check_outcome,
    container_of,
    read_rows_of,
    words_of,
    write_study,
)
from tests.support.capabilities.studies import HOUR, START, WINDOWS, messages
from tests.support.messages_cases import write_files
from tests.support.spool_writer import finished
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.messages import wire
from uldp_transforms.messages.files.spool_names import manifest_path
from uldp_transforms.messages.manifest import listed_file, manifest_text
from uldp_transforms_follow.follow_job import FollowJob, follow_job, follower_of


def _finish_file(spool: Path, sent: Sequence[bytes]) -> None:
    """A spool file that says that its reports are simulated."""
    whole = finished(spool, sent)
    write_files(spool, {whole.name: container_of(sent)})
    listed = listed_file(whole, whole.name, len(sent), sum(map(wire.reports_in, sent)))
    manifest_path(whole).write_bytes(manifest_text([listed]))


def follow(job: Job, folder: Path) -> Rows:
    """``uldp estimate --follow`` over a spool: one file, then another one if reports come late, or before the end."""
    of = write_study(job, folder)
    spool = folder / "spool"
    spool.mkdir()
    (spool / "lock").touch()
    options = {"window": "1h", "allowed_lateness": LONG_AGO, "late_every": "0s"} | ALWAYS | job.values
    words = [*of, f"--input={spool}", "--follow", f"--output={folder / 'out'}", *words_of(options, folder)]
    start, windows = (int(time.time() * 1000) // HOUR * HOUR, 1) if job.way == EARLY else (START, WINDOWS)
    sent = messages(job.study, start, windows)

    def configure(argv: Sequence[str]) -> FollowJob:
        parser = command_line()
        args, rest = parser.parse_known_args(argv)
        return follow_job(args, parser, rest)

    def run(following: FollowJob) -> int:
        with contextlib.closing(following.state), contextlib.closing(following.directory):
            follower = follower_of(following, late_every=0)
            for number in range(2 if job.way in (EARLY, LATE) else 1):
                _finish_file(spool, sent * (2 if job.copies else 1))
                follower.step()
                time.sleep(number)
                follower.step()
            follower.finish()
        return cli.DONE

    check_outcome("estimate", lambda: cli.run("estimate", configure, run, words))
    return read_rows_of(folder / "out")
