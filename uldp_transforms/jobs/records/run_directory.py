"""The output directory of a run: one kind of job, one run at a time, and results that appear when complete."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from pathlib import Path
from typing import IO

from uldp_transforms.files import stores
from uldp_transforms.jobs.records.run_records import RunRecord, files_of, read_records
from uldp_transforms.ldp.errors import SpecError

_LOCK_PATIENCE = 1.0  # seconds; uldp check holds the lock briefly
_ATTEMPTS = 3
_PATTERN = "*?[\\"  # characters with a special meaning for Beam's file systems
_KINDS = ("estimates", "ledger", "rejected", "health", "counts", "discovered")


class RunDirectory:
    """The output directory of one run.

    Rows of bounded input are written to ``DIR/unfinished-RUN`` and are renamed into ``DIR`` when the run is complete;
    until then ``DIR`` contains the results of the previous run. Streams write into ``DIR`` from the beginning; so do
    jobs that are only launched from here, because this program does not observe their end.

    Args:
        path: ``--output``, local or of a store such as gs://.
        run: name of the run.
        bounded: whether its input is bounded.
        launched: whether the job is only launched from here.
    """

    def __init__(self, path: str, run: str, *, bounded: bool, launched: bool):
        self.path = path
        self.run = run
        self._bounded = bounded
        self._launched = launched
        self._lock: IO[str] | None = None
        self._unfinished = stores.joined(path, f"unfinished-{run}") if bounded and not launched else None

    @property
    def rows(self) -> str:
        """Directory to which sinks write the rows of this run."""
        return self._unfinished or self.path

    def open(self) -> list[RunRecord]:
        """Acquire the directory for this run, if it exists; returns the records of earlier runs.

        Raises:
            SpecError: if it is a file or a pattern, is in use, or contains rows of the other kind of job.
            OSError: if it cannot be read.
        """
        if set(self.path) & set(_PATTERN):
            raise SpecError(
                f"--output must be a path without the pattern characters {' '.join(_PATTERN)}, got {self.path!r}"
            )
        if os.path.isfile(self.path):
            raise SpecError(f"--output must be a directory, got the file {self.path!r}")
        if not stores.exists(self.path):
            return []
        self._take_lock()
        kind = "a stream, and this job is over files" if self._bounded else "a job over files, and this is a stream"
        if any(files_of(self.path, f"{name}-*" if self._bounded else f"{name}.*") for name in _KINDS):
            raise SpecError(f"--output must be a directory of one kind of job, got {self.path!r}, with rows of {kind}")
        return read_records(self.path)

    def prepare(self) -> None:
        """Create the directory if necessary, and remove remains of killed runs; raises SpecError and OSError as
        ``open``."""
        if not stores.exists(self.path):
            stores.make_folder(self.path)
        self._take_lock()
        self._remove_remains(read_records(self.path))
        if self._unfinished:
            stores.make_folder(self._unfinished)

    def _take_lock(self) -> None:
        """Take the lock; the kernel releases it when this process ends for any reason."""
        if self._lock or not _is_local(self.path):
            return
        path = os.path.join(self.path, ".lock")
        if os.path.islink(path):  # its target would be truncated
            raise SpecError(f"--output must not contain a .lock that is a symbolic link, got one at {path!r}")
        lock = open(path, "a+", encoding="utf-8", opener=_no_link)  # noqa: SIM115  # held for the whole run
        if not _locked(lock, fcntl.LOCK_EX):
            lock.seek(0)
            owner = lock.read().strip() or "another"
            lock.close()
            raise SpecError(
                f"--output must be a directory that no other run is using, got {self.path!r}, in use by run {owner}"
            )
        lock.truncate(0)
        lock.write(self.run)
        lock.flush()
        self._lock = lock

    def _remove_remains(self, records: list[RunRecord]) -> None:
        """Remove unfinished files of killed runs; without a lock, only those that certainly belong to no live run."""
        ended = {record.run for record in records if record.end is not None}
        with contextlib.suppress(OSError):  # these files have no readers
            for path in files_of(self.path, "*.part") if self._lock else ():
                _remove(path)
            for path in unfinished_folders(self.path):
                if self._lock or path.rpartition("unfinished-")[2] in ended:
                    _remove(f"{path}/")

    def publish(self) -> None:
        """Rename the rows of a complete run, replacing those of the previous run; raises OSError."""
        if self._unfinished:
            for path in files_of(self._unfinished, "*"):
                name = stores.name_of(path)
                if not name.startswith("beam-temp-"):
                    stores.rename(path, stores.joined(self.path, name))
            self.abandon()
            for record in read_records(self.path):
                if record.bounded and record.run < self.run:
                    _remove(stores.joined(self.path, f"run-{record.run}.json"))

    def abandon(self) -> None:
        """Remove unpublished rows, if possible."""
        if self._unfinished:
            for _ in range(_ATTEMPTS):  # threads of a cancelled run may still write
                with contextlib.suppress(OSError):
                    _remove(f"{self._unfinished}/")
                    break

    def close(self) -> None:
        """Release the directory."""
        if self._lock:
            self._lock.close()
            self._lock = None


def _no_link(path: str, flags: int) -> int:
    """Opener for ``open`` that refuses symbolic links and does not block on a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def is_in_use(path: str) -> bool | None:
    """Whether a run holds a local directory; None for stores, where this is unknown."""
    if not _is_local(path):
        return None
    try:
        with open(os.path.join(path, ".lock"), encoding="utf-8", opener=_no_link) as lock:
            return not _locked(lock, fcntl.LOCK_SH)
    except FileNotFoundError:
        return False


def _locked(lock: IO[str], how: int) -> bool:
    end = time.monotonic() + _LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(lock, how | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.05)


def _remove(path: str) -> None:
    """Remove a file, a folder (with a trailing slash) with its content, or a link but not its target; raises
    OSError."""
    if not _is_local(path):
        stores.delete(path)
        return
    name = path.rstrip("/")  # with a slash it would be the target of a link
    if os.path.isdir(name) and not os.path.islink(name):
        shutil.rmtree(name)
    else:
        os.remove(name)


def _is_local(path: str) -> bool:
    return "://" not in path


def unfinished_folders(path: str) -> list[str]:
    """Folders with rows of runs that are not complete."""
    return _folders(path, "unfinished-*")


def _folders(path: str, pattern: str) -> list[str]:
    """Folders in a directory; in a store, the folders in the names of its files."""
    if _is_local(path):
        return sorted(str(found) for found in Path(path).glob(pattern) if found.is_dir())
    inside = (found.rpartition("/")[0] for found in files_of(path, f"{pattern}/*"))
    return sorted(set(inside))
