"""The counts of a job that follows a source, in one SQLite database; a transaction is the only commit point.

The tables: ``files``, the manifest of counted files; ``offsets``, the next record of each partition of a topic;
``last_records``, the time of the last counted one; ``counts`` of each collection and base period; ``windows``, how
many rows each window has, and since when it has reports that are in none; ``early``, the windows whose rows are all
from before their end; ``outbox``, row files that may not be on disk yet. A transaction changes them together, so a file
is in the manifest exactly if its reports are in the counts, and the rows that account for it are in the outbox or on
disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from uldp_transforms.collector.count_bytes import decode_counts, encode_counts
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.windowed_estimate import EARLY, LATE, ON_TIME
from uldp_transforms.windows import MIN_EVENT_TIME

NAME = "follow.sqlite"
"""Name of the database in the directory of ``--output``."""

SPOOL = "the spool of a gateway"
"""The source of a directory unless it is a topic."""

_VERSION = 1
_TABLES = f"""
BEGIN;
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (name TEXT PRIMARY KEY, sha256 TEXT NOT NULL, simulated INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX files_by_hash ON files (sha256);
CREATE TABLE counts (fingerprint BLOB, start INTEGER, counts BLOB NOT NULL, PRIMARY KEY (fingerprint, start));
CREATE TABLE windows (fingerprint BLOB, start INTEGER, stop INTEGER NOT NULL, panes INTEGER NOT NULL,
  pending_since INTEGER, PRIMARY KEY (fingerprint, start)) WITHOUT ROWID;
CREATE INDEX windows_pending ON windows (stop) WHERE pending_since IS NOT NULL;
CREATE TABLE outbox (name TEXT PRIMARY KEY, content BLOB NOT NULL);
PRAGMA user_version = {_VERSION};
COMMIT;
"""
_ADDED = """
CREATE TABLE IF NOT EXISTS offsets (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS last_records (partition INTEGER PRIMARY KEY, offset INTEGER NOT NULL, time INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS early (fingerprint BLOB, start INTEGER, PRIMARY KEY (fingerprint, start)) WITHOUT ROWID;
"""
"""Tables that directories of earlier programs do not have; the first ones read nothing but spools."""

_TOPIC_ID, _FORGOTTEN = "topic_id", "forgotten_until"


Period = tuple[bytes, int]
"""Fingerprint of a collection, or key of a group, and start of a base period in milliseconds."""


class CountedFile(NamedTuple):
    """Entry of the manifest: name and SHA-256 of a counted file, and whether its reports are simulated."""

    name: str
    sha256: str
    simulated: bool


class PendingWindow(NamedTuple):
    """Window that is due.

    Attributes:
        fingerprint, start, stop: of the collection or question, and the window, in milliseconds.
        panes: number of its rows so far.
        all_early: whether all of them are from before its end; False without rows.
        is_open: whether its end is still to come.
    """

    fingerprint: bytes
    start: int
    stop: int
    panes: int
    all_early: bool = False
    is_open: bool = False

    @property
    def timing(self) -> str:
        """``pane_timing`` of its next row."""
        if self.is_open:
            return EARLY
        return LATE if self.panes and not self.all_early else ON_TIME


@contextlib.contextmanager
def _readable(path: str) -> Iterator[None]:
    """Turn the error of a damaged database into a SpecError, and one of the file system into an OSError."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise OSError(errno.ENOSPC if "full" in str(error) else errno.EIO, str(error), path) from None
    except sqlite3.DatabaseError as error:
        raise SpecError(f"--output must have a {NAME} that SQLite can read, got {path}: {error}") from None


class FollowState:
    """The database of one directory, for one process at a time (the directory's lock).

    Args:
        directory: output directory.
        run: name of the run, for a new database.
        windows: text that identifies the windows and what is counted, which never change.
        source: text that identifies the kind of source, or the topic, which never changes.

    Raises:
        SpecError: if the directory counts for other windows or another source, or the database has another version or
            is damaged.
        OSError: if the database cannot be written.
    """

    def __init__(self, directory: str, run: str, windows: str, source: str = SPOOL):
        path = os.path.join(directory, NAME)
        with _readable(path):
            self._database = sqlite3.connect(path, isolation_level=None)
            self._open(directory, {"run": run, "windows": windows, "source": source, "sequence": "0"})

    def _open(self, directory: str, settings: Mapping[str, str]) -> None:
        self._database.execute("PRAGMA synchronous = EXTRA")  # also the folder, after the journal is deleted
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._database.executescript(_TABLES)
        elif version != _VERSION:
            raise SpecError(f"--output must have a {NAME} of version {_VERSION}, got version {version}")
        self._database.executescript(_ADDED)
        with self:
            self._database.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", settings.items())
        for name in ("windows", "source"):
            if self._meta(name) != settings[name]:
                raise SpecError(
                    f"--output must be a directory for the same {name}, got {directory!r}, which counts for "
                    f"{self._meta(name)}"
                )

    def __enter__(self) -> FollowState:
        """Begin a transaction, which the end of the block commits and an error rolls back."""
        self._database.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._database.execute("COMMIT")
        finally:
            if self._database.in_transaction:  # SQLite itself ends it if the disk is full
                self._database.execute("ROLLBACK")

    def close(self) -> None:
        self._database.close()

    def _meta(self, name: str) -> str:
        return str(self._database.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()[0])

    @property
    def database(self) -> sqlite3.Connection:
        """The database, for further tables that change in the same transactions."""
        return self._database

    def setting(self, name: str, new: str) -> str:
        """A setting that never changes; ``new`` if the directory has none yet."""
        with self:
            self._database.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", (name, new))
        return self._meta(name)

    def forget_until(self, moment: int) -> None:
        """Remember ``forgotten_until``, in the transaction that is open; it never goes back."""
        later = max(moment, self.forgotten_until())
        self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_FORGOTTEN, str(later)))

    def forgotten_until(self) -> int:
        """Milliseconds since 1970: reports that arrive earlier are treated as if they arrived then, because ids of
        base periods that were over by then are forgotten."""
        found = self._database.execute("SELECT value FROM meta WHERE name = ?", (_FORGOTTEN,)).fetchone()
        return MIN_EVENT_TIME if found is None else int(found[0])

    @property
    def run(self) -> str:
        """Name of the run to which all rows of the directory belong; restarts continue it."""
        return self._meta("run")

    def next_number(self) -> int:
        """A number that no earlier call in a committed transaction returned."""
        number = int(self._meta("sequence")) + 1
        self._database.execute("UPDATE meta SET value = ? WHERE name = 'sequence'", (str(number),))
        return number

    # ---------------------------------------------------------------- files and counts

    def counted_of(self, names: Iterable[str]) -> set[str]:
        """Those of these names of files that were counted."""
        query = "SELECT 1 FROM files WHERE name = ?"
        return {name for name in names if self._database.execute(query, (name,)).fetchone()}

    def same_content(self, sha256: str) -> str | None:
        """Name of a counted file with this content; None if there is none."""
        found = self._database.execute("SELECT min(name) FROM files WHERE sha256 = ?", (sha256,)).fetchone()
        return None if found[0] is None else str(found[0])

    def simulated(self) -> bool:
        """Whether a counted file has simulated reports."""
        return bool(self._database.execute("SELECT max(simulated) FROM files").fetchone()[0])

    def list_file(self, file: CountedFile) -> None:
        """Enter a file into the manifest; raises sqlite3.IntegrityError if its name is there."""
        self._database.execute("INSERT INTO files VALUES (?, ?, ?)", file)

    def offsets(self) -> dict[int, int]:
        """By partition of the topic, the offset of the first record that is not counted."""
        return dict(self._database.execute("SELECT partition, next FROM offsets"))

    def advance(self, offsets: Mapping[int, int], times: Mapping[int, int]) -> None:
        """Remember that all records before these offsets are counted.

        Args:
            offsets: by partition.
            times: by partition, the time of the record before its offset, if it is known.
        """
        self._database.executemany("INSERT OR REPLACE INTO offsets VALUES (?, ?)", offsets.items())
        last = [(number, offsets[number] - 1, time) for number, time in times.items()]
        self._database.executemany("INSERT OR REPLACE INTO last_records VALUES (?, ?, ?)", last)

    def last_records(self) -> dict[int, tuple[int, int]]:
        """By partition of the topic, the offset and the time of the last counted record."""
        rows = self._database.execute("SELECT partition, offset, time FROM last_records")
        return {number: (offset, time) for number, offset, time in rows}

    def topic_id(self) -> str | None:
        """The id of the topic whose records are counted; None if it is not known."""
        found = self._database.execute("SELECT value FROM meta WHERE name = ?", (_TOPIC_ID,)).fetchone()
        return None if found is None else str(found[0])

    def set_topic_id(self, topic_id: str) -> None:
        """Remember the id of the topic; it never changes."""
        with self:
            self._database.execute("INSERT INTO meta VALUES (?, ?)", (_TOPIC_ID, topic_id))

    def add(self, counts: Mapping[Period, CohortCounts]) -> None:
        """Add the counts of base periods to the stored ones."""
        for (fingerprint, start), new in counts.items():
            before = self.counts_between(fingerprint, start, start + 1)
            total = new if before is None else before + new
            self._database.execute(
                "INSERT OR REPLACE INTO counts VALUES (?, ?, ?)", (fingerprint, start, encode_counts(total))
            )

    def counts_between(self, fingerprint: bytes, start: int, stop: int) -> CohortCounts | None:
        """Sum of the counts of the base periods that begin in [start, stop); None if there are none."""
        rows = self._database.execute(
            "SELECT counts FROM counts WHERE fingerprint = ? AND start >= ? AND start < ?", (fingerprint, start, stop)
        )
        total: CohortCounts | None = None
        for (encoded,) in rows:
            part = decode_counts(encoded)
            total = part if total is None or part is None else total + part
        return total

    def groups_between(self, fingerprint: bytes, start: int, stop: int) -> dict[bytes, CohortCounts]:
        """``counts_between`` of each group of a collection, by its key, in order."""
        first, beyond = fingerprint + b"\0", fingerprint + b"\xff" * 5
        rows = self._database.execute(
            "SELECT fingerprint, counts FROM counts WHERE fingerprint >= ? AND fingerprint < ? AND start >= ? "
            "AND start < ? ORDER BY fingerprint",
            (first, beyond, start, stop),
        )
        found: dict[bytes, CohortCounts] = {}
        for owner, encoded in rows:
            part = decode_counts(encoded)
            assert part is not None, "add stores counts"
            found[owner] = found[owner] + part if owner in found else part
        return found

    # ---------------------------------------------------------------- windows

    def touch(self, windows: Iterable[tuple[bytes, int, int]], now: int) -> None:
        """Remember that windows (fingerprint, start, stop) have new reports since ``now``, if they had none."""
        self._database.executemany(
            "INSERT INTO windows VALUES (?, ?, ?, 0, ?) ON CONFLICT DO UPDATE "
            "SET pending_since = coalesce(pending_since, excluded.pending_since)",
            [(*window, now) for window in windows],
        )

    def pending(self, horizon: int, now: int, late_every: int, early_every: int | None = None) -> list[PendingWindow]:
        """Windows that are due.

        Args:
            horizon: time up to which reports are counted. Windows that end by then are due if they have no row yet, or
                early ones only.
            now: the current time. Windows with a row are due if their new reports came ``late_every`` ago, or in the
                future, because the clock was set back.
            late_every: milliseconds for which late reports are collected.
            early_every: milliseconds for which reports are collected before the end of their window; None: until then.
        """
        ended = self._database.execute(
            "SELECT fingerprint, start, stop, panes FROM windows WHERE pending_since IS NOT NULL AND stop <= ? "
            "AND (panes = 0 OR pending_since <= ? OR pending_since > ?)",
            (horizon, now - late_every, now),
        )
        found = {row[:2]: PendingWindow(*row) for row in ended}
        all_early = self._database.execute("SELECT fingerprint, start, stop, panes FROM windows NATURAL JOIN early")
        early = {row[:2]: PendingWindow(*row)._replace(all_early=True) for row in all_early}
        found |= {key: window for key, window in early.items() if window.stop <= horizon}
        if early_every is not None:
            still_open = self._database.execute(
                "SELECT fingerprint, start, stop, panes FROM windows WHERE pending_since IS NOT NULL AND stop > ? "
                "AND (pending_since <= ? OR pending_since > ?)",
                (horizon, now - early_every, now),
            )
            windows = [PendingWindow(*row)._replace(is_open=True) for row in still_open]
            found |= {one[:2]: one._replace(all_early=one[:2] in early) for one in windows}
        return sorted(found.values(), key=lambda window: (window.stop, window.start, window.fingerprint))

    def estimated(self, window: PendingWindow) -> None:
        """Remember that a row has all reports of a window so far."""
        self._database.execute(
            "UPDATE windows SET panes = panes + 1, pending_since = NULL WHERE fingerprint = ? AND start = ?",
            window[:2],
        )
        remember = "INSERT OR IGNORE INTO early VALUES (?, ?)"
        self._database.execute(
            remember if window.is_open else "DELETE FROM early WHERE fingerprint = ? AND start = ?", window[:2]
        )

    # ---------------------------------------------------------------- row files

    def put(self, name: str, content: bytes) -> None:
        """Put a row file into the outbox."""
        self._database.execute("INSERT INTO outbox VALUES (?, ?)", (name, content))

    def outbox(self) -> list[str]:
        """Names of the row files that may not be on disk, in the order in which they were put in."""
        return [name for (name,) in self._database.execute("SELECT name FROM outbox ORDER BY rowid")]

    def outbox_bytes(self) -> int:
        """Bytes of the row files in the outbox."""
        return int(self._database.execute("SELECT total(length(content)) FROM outbox").fetchone()[0])

    def content(self, name: str) -> bytes:
        """Content of a row file in the outbox."""
        return bytes(self._database.execute("SELECT content FROM outbox WHERE name = ?", (name,)).fetchone()[0])

    def written(self, name: str) -> None:
        """Remove a row file that is on disk from the outbox."""
        self._database.execute("DELETE FROM outbox WHERE name = ?", (name,))


def run_of(directory: str, new: str) -> str:
    """Name of the run that a directory continues; ``new`` if it has none.

    Raises:
        SpecError: if the database is damaged.
        OSError: if it cannot be read.
    """
    path = os.path.join(directory, NAME)
    if not os.path.isfile(path):
        return new
    with _readable(path), contextlib.closing(sqlite3.connect(path)) as database:
        if not database.execute("PRAGMA user_version").fetchone()[0]:
            return new
        found = database.execute("SELECT value FROM meta WHERE name = 'run'").fetchone()
    return new if found is None else str(found[0])
