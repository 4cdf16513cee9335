"""Jobs that follow a spool and are killed, and what their rows must be."""

from __future__ import annotations

import itertools
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.commands import last_of_each
from tests.support.spools import Spool
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms_follow.follow_job import follow_job, follower_of


def kill_at(name: str, number: int) -> Callable[[str], None]:
    """Kill the process the ``number``-th time it reaches a point."""
    seen = itertools.count(1)

    def reached(point: str) -> None:
        if point == name and next(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


class Followed(Spool):
    """A spool, and the directory of a job that follows it."""

    def argv(self) -> list[str]:
        common = ["--output", str(self.output), "--write_counts", "--late_every", "0s"]
        common += ["--allowed_lateness", "20000d", *self.window]  # events are of 2001, and arrive now
        return [*self.source(), "--follow", *self.collections, *last_of_each(common)]

    def source(self) -> list[str]:
        """The options that name the source."""
        return ["--input", str(self.spool)]

    def killed(self, steps: int, reached: Callable[[str], None], after: float | None = None) -> bool:
        """Run some steps in a process of its own; whether it was killed.

        Args:
            steps: number of steps.
            reached: hook of the follower, in that process.
            after: seconds after which the kernel kills it; None: only the hook does.
        """
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if after is not None:
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.setitimer(signal.ITIMER_REAL, after)  # its default action ends the process as SIGKILL does
                self.steps(steps, reached)
                code = 0
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        assert status == 0 or os.WIFSIGNALED(status), status
        return os.WIFSIGNALED(status)

    def steps(self, number: int, reached: Callable[[str], None] = lambda point: None, **options: Any) -> None:
        """Run some steps, as a start of the job does; options are those of the follower."""
        parser = command_line()
        args, rest = parser.parse_known_args(self.argv())
        job = follow_job(args, parser, rest)
        try:
            settings = {"late_every": 0, "forms": job.forms._replace(counts=True), "reached": reached} | options
            follower = follower_of(job, **settings)
            for _ in range(number):
                follower.step()
            follower.finish()
        finally:
            job.state.close()
            job.directory.close()

    def sums(self, folder: Path) -> Counter[Any]:
        """The ledger by collection, base period and bin."""
        sums: Counter[Any] = Counter()
        for row in self.rows("ledger", folder):
            numbers = {name: row[name] for name in ("received", "accepted", "duplicates", "in_transit")}
            for name, number in (numbers | row["rejected"]).items():
                sums[row["fingerprint"], row["window_start"], name] += number
        return +sums

    def assert_exact(self, code: int = 0) -> None:
        """Counts, ledger and estimates are those of the job over files, number for number."""
        self.run_batch(code)
        estimates = self.estimates(self.output)
        assert estimates == self.estimates(self.batch)
        assert all(status == "ok" and values for (_, status, *_), values in estimates.values()), estimates
        assert self.counts(self.output) == self.counts(self.batch)
        assert self.sums(self.output) == self.sums(self.batch)
