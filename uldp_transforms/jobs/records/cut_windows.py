"""Windows of which an earlier run received reports: a later run of the same source has them only in part."""

from __future__ import annotations

import os
from collections.abc import Sequence

from uldp_transforms.files import stores
from uldp_transforms.jobs.records.run_records import STOPPED, RunRecord, files_of, read_lines
from uldp_transforms.windows import moment_of

_CLOCKS = 60_000  # milliseconds by which the clocks of this machine and of the source may differ


def cut_before(records: Sequence[RunRecord], began: int, skew: int, directory: str) -> int | None:
    """The time before which windows are cut, because an earlier run received some of their reports.

    A client's clock may be ahead, so that a run receives reports of windows that begin up to ``skew`` after its end. A
    run that was stopped wrote a row of every window of which it had reports, so only those up to its last window are
    cut; of other runs, and in a store, all that begin within ``skew``.

    Args:
        records: records of earlier runs.
        began: milliseconds since 1970 at which the present run began, by which a killed run must have ended.
        skew: milliseconds by which a client's clock may be ahead.
        directory: output directory of these runs.

    Returns:
        Milliseconds since 1970; None if no earlier run acknowledged anything.

    Raises:
        SpecError, OSError: if rows of a stopped run cannot be read.
    """
    found = None
    for record in sorted((record for record in records if record.resumes), key=lambda one: -_end(one, began)):
        if found is not None and found >= _end(record, began) + skew:
            break  # of a run that ended long before
        cut = _end(record, began) + skew
        if record.end == STOPPED and not record.launched and not stores.in_store(directory):
            starts = _last_windows(record, began, skew, directory)
            cut = min(cut, max([_end(record, began), *(start + 1 for start in starts)]))
        found = cut if found is None else max(found, cut)
    return found


def _end(record: RunRecord, began: int) -> int:
    return began if record.ended is None else moment_of(record.ended)


def _last_windows(record: RunRecord, began: int, skew: int, directory: str) -> list[int]:
    """Starts of windows in the rows of a run; only files that may have rows of its last windows are read."""
    since = (_end(record, began) - skew - _CLOCKS) * 1_000_000
    paths = files_of(directory, f"estimates-{record.run}-*.jsonl")
    rows = read_lines(path for path in paths if os.stat(path).st_mtime_ns >= since)
    return [moment_of(row["window_start"]) for row in rows if row["window_start"] is not None]
