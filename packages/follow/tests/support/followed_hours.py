"""Hours of reports that a job follows, under a clock that is set."""

from __future__ import annotations

import datetime
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from packages.follow.tests.support.spools import Followed
from tests.support.messages_cases import KRR
from tests.support.spool_writer import finished
from uldp_transforms.messages import wire

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000


class Hours(Followed):
    """A job with windows of an hour and the usual lateness."""

    def __init__(self, folder: Path, *options: str):
        super().__init__(folder, "--window", "1h", *options, of=(KRR,))

    def argv(self) -> list[str]:
        found = super().argv()
        if "--allowed_lateness" in self.window:
            return found
        place = found.index("--allowed_lateness")
        return found[:place] + found[place + 2 :]

    def add_reports(self, times: Sequence[int], begun: int | None = None, open_for: int = 0) -> Path:
        """Finish a file with a packed report of each event time, begun at a time and written to for a while."""
        message = wire.encode_batch(KRR.perturb(["0"] * len(times), np.random.default_rng(5), list(times)))
        if begun is None:
            return finished(self.spool, [message])
        whole = finished(self.spool, [message], datetime.datetime.fromtimestamp(begun / 1000, datetime.timezone.utc))
        os.utime(whole, ns=((begun + open_for) * 1_000_000,) * 2)
        return whole

    def verdicts(self) -> Counter[str]:
        """What became of the reports."""
        found: Counter[str] = Counter()
        for row in self.rows("ledger"):
            found.update(row["rejected"])
            found.update({name: row[name] for name in ("received", "accepted")})
        return +found


def now() -> int:
    """The current time in milliseconds, of a whole second."""
    return time.time_ns() // 1_000_000_000 * SECOND
