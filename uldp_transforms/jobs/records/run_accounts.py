"""What a stream in this process has counted so far: on disk before the rows that contain it.

Ledger rows come a minute after the reports for which they account, and a killed run never writes its last ones. So a
stream that acknowledges its messages also keeps ``DIR/accounts-RUN.json``: the sums of the run so far. The file is
replaced before rows are written, so that no row has a report for which nothing accounts, and each second in which
something was counted. It is removed when the run record has an end, because the ledger is complete then. ``uldp check``
reads the file of a killed run.

The sums are an upper bound: the engine may repeat a bundle, whose reports then count twice here, and not in the ledger.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs.records.ledger_sums import UNREAD_FILES, UNREAD_MESSAGES
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import moment_of, now, rfc3339

EVERY = 1.0
"""Seconds between two looks at the counts."""

_NUMBERS = ("received", "accepted", "duplicates")  # as metrics are named
_BY_REASON = ("rejected", UNREAD_MESSAGES, UNREAD_FILES)


class RunAccounts:
    """The accounts of one run.

    Args:
        directory: output directory, local or of a store.
        run: name of the run.
        counts: metrics of this process, which grow.
    """

    def __init__(self, directory: str, run: str, counts: Mapping[str, int]):
        self._path = _path(directory, run)
        self._run = run
        self._counts = counts
        self._lock = threading.Lock()
        self._written: dict[str, Any] | None = None

    def save(self) -> None:
        """Replace the file if something was counted since; raises the errors of the file system."""
        with self._lock:
            sums = _sums_of(dict(self._counts))
            if sums != self._written:
                with whole_file(self._path) as file:
                    file.write(f"{json.dumps({'run': self._run, 'time': rfc3339(now())} | sums)}\n".encode())
                self._written = sums


_kept: RunAccounts | None = None  # of this process, as the metrics


def before_rows() -> None:
    """Save the accounts of the run of this process, if it keeps any; call it before rows are written."""
    if _kept is not None:
        _kept.save()


@contextlib.contextmanager
def kept(directory: str, run: str, counts: Mapping[str, int]) -> Iterator[None]:
    """A context in which the accounts of a run are kept; a directory in a store gets them only before rows."""
    global _kept  # noqa: PLW0603  # engines call sinks without a way to hand something over
    accounts, ended = RunAccounts(directory, run, counts), threading.Event()

    def look() -> None:
        while not ended.wait(EVERY):
            with contextlib.suppress(OSError):  # rows cannot be written either, which ends the run
                accounts.save()

    looking = threading.Thread(target=look, name="accounts", daemon=True)
    _kept = accounts
    if not stores.in_store(directory):
        looking.start()
    try:
        yield
    finally:
        _kept = None
        ended.set()
        if looking.is_alive():
            looking.join()


def remove_accounts(directory: str, run: str) -> None:
    """Remove the accounts of a run whose record has an end; raises the errors of the file system."""
    if stores.exists(path := _path(directory, run)):
        stores.delete(path)


def read_accounts(directory: str, run: str) -> Mapping[str, Any] | None:
    """The accounts of a run: ``time``, and sums as those of a ledger; None if it has none.

    Raises:
        SpecError: if the file has other content.
    """
    if not stores.exists(path := _path(directory, run)):
        return None
    with stores.opened(path) as file:
        content = file.read()
    with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
        found = json.loads(content)
        by_reason = {name: dict(found.get(name) or {}) for name in _BY_REASON}  # accounts of older jobs have no unread
        numbers = [*(found[name] for name in _NUMBERS), *(n for of in by_reason.values() for n in of.values())]
        if found["run"] == run and all(type(number) is int and number >= 0 for number in numbers):
            return {"time": rfc3339(moment_of(found["time"]))} | by_reason | {name: found[name] for name in _NUMBERS}
    raise SpecError(f"{path} must be the accounts of a run (the content is not shown)")


def _path(directory: str, run: str) -> str:
    return stores.joined(directory, f"accounts-{run}.json")


def _sums_of(counts: Mapping[str, int]) -> dict[str, Any]:
    """Metrics as the sums of a ledger."""
    by_reason: dict[str, dict[str, int]] = {name: {} for name in _BY_REASON}
    for metric, number in sorted(counts.items()):
        for name, of_name in by_reason.items():
            if metric.startswith(f"{name}_"):
                of_name[metric.removeprefix(f"{name}_")] = number
    return {name: counts.get(name, 0) for name in _NUMBERS} | by_reason
