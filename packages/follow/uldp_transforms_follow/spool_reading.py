"""Reads the files of a gateway's spool, each once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path
from typing import NamedTuple

from uldp_transforms.collector.ledger_entries import handed_on
from uldp_transforms.files.text_files import read_text
from uldp_transforms.ldp.checks import parse_json
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.containers import SEEDED, read_messages
from uldp_transforms.messages.files.file_account import Account
from uldp_transforms.messages.files.spool_names import PART, WHOLE, begun_at, manifest_name, manifest_path
from uldp_transforms.messages.manifest import HashedFile, ListedFile, files_of_manifest
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.messages.wire import reports_in
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import MIN_EVENT_TIME
from uldp_transforms_follow.follow_reading import MessageCounter, Reading
from uldp_transforms_follow.notices import Notices
from uldp_transforms_follow.state import CountedFile, FollowState

LOCK = "lock"
"""Name of the file in a spool that its gateway locks; it marks a directory as a spool."""

FILES_AT_ONCE = 64
"""Maximum number of files of one transaction."""

FILES_OF_REPORTS = 8
"""The same if each report id counts once: memory holds the reports of these files."""

LONGEST_WAIT = 600_000
"""Milliseconds for which windows wait for a file that the gateway has begun before their end and has not finished."""

_COARSE_TICK, _FINE_TICK = 2_000_000_000, 50_000_000
"""Nanoseconds after which a file system gives a change another time: every one, FAT having the coarsest clock; and one
that writes fractions of a second, whose clock is that of the kernel.
"""


def check_spool(path: str) -> None:
    """Refuse anything but the spool of a gateway on this machine; raises SpecError."""
    if not os.path.isfile(os.path.join(path, LOCK)):
        raise SpecError(
            f"--follow needs --input to be the directory of uldp gateway --spool on this machine, got {path!r}"
        )


class Listing(NamedTuple):
    """What a spool has besides the names that are known.

    Attributes:
        finished: names of the files that are finished: those with a manifest, which the gateway writes first; in order.
        begun: time at which the earliest file that the gateway is still writing was begun, in milliseconds since 1970;
            None without such a file.
        changed: time of the last change of the directory before it was listed, in nanoseconds since 1970.
        is_settled: whether a later change has another time.
        gone: the known names that are no longer there.
    """

    finished: list[str]
    begun: int | None
    changed: int
    is_settled: bool
    gone: Set[str]


def list_spool(spool: str, known: Set[str] = frozenset()) -> Listing:
    """List a spool, once if it does not change meanwhile; raises OSError.

    Args:
        spool: directory of the files.
        known: names of finished files, and of their manifests, that are left out. They cost a look-up each.
    """
    looked, changed = time.time_ns(), os.stat(spool).st_mtime_ns
    names = os.listdir(spool)
    new = [name for name in names if name not in known]
    begun = [begun_at(name) for name in new if name.endswith(PART)]
    if not (changed < looked - _tick(changed) and os.stat(spool).st_mtime_ns == changed):
        # a file that is finished during a listing may be missing from it, under both names
        names = os.listdir(spool)
        new = [name for name in names if name not in known]
    gone = frozenset() if len(names) - len(new) == len(known) else known - frozenset(names)
    there = {*new, *(name for name in map(manifest_name, new) if name in known and name not in gone)}
    finished = [name for name in new if name.endswith(WHOLE) and manifest_name(name) in there]
    moments = [moment for moment in begun if moment is not None]
    settled = changed < looked - _COARSE_TICK
    return Listing(sorted(finished), min(moments, default=None), changed, settled, gone)


def _tick(changed: int) -> int:
    """Nanoseconds after which a change has another time than this one."""
    return _FINE_TICK if changed % 1_000_000_000 else _COARSE_TICK


class SpoolReader:
    """Reads files of a spool, and counts their reports.

    Args:
        spool: directory of the files.
        spec: specification of the job, with windows.
        not_before: the earliest time at which reports can arrive now, in milliseconds since 1970.
    """

    def __init__(self, spool: str, spec: JobSpec, not_before: Callable[[], int] = lambda: MIN_EVENT_TIME):
        self._spool = Path(spool)
        self._counter = MessageCounter(spec, not_before)

    def read(self, name: str) -> Reading:
        """Read a finished file once. Content that its manifest lists but that is missing is rejected, as with
        ``--manifest``.

        Raises:
            OSError: if the file cannot be read.
            SpecError: if its manifest has another form, or does not list it.
        """
        reading, path, account = Reading(), self._spool / name, Account()
        listed = self._listed(path)
        messages = reports = 0
        with path.open("rb") as file:
            hashed, items = HashedFile(file), list[bytes | Rejection]()
            for item in read_messages(hashed, name, account):
                items.append(item)
                if isinstance(item, bytes):
                    messages, reports = messages + 1, reports + reports_in(item)
            while hashed.read(1 << 20):  # what follows a part that cannot be read
                pass
            status = os.fstat(file.fileno())
        lost = [item for item in items if isinstance(item, Rejection)]
        found = ListedFile(name, status.st_size, hashed.sha256, messages, reports)
        difference = listed.difference(found, sum(item.number for item in lost), account)
        reading.reject(lost if difference is None else [*lost, difference])
        written = status.st_mtime_ns // 1_000_000
        begun = begun_at(name)
        arrived = written if begun is None else begun
        self._counter.count(
            reading, [item for item in items if isinstance(item, bytes)], arrived, max(0, written - arrived)
        )
        reading.entries.append(handed_on(0 if account.is_complete(found.bytes) else 1))
        reading.files.append(CountedFile(name, found.sha256, (account.randomness or "").startswith(SEEDED)))
        return reading

    def _listed(self, path: Path) -> ListedFile:
        """The entry of a file in its manifest."""
        manifest = str(manifest_path(path))
        for listed in files_of_manifest(parse_json(read_text(manifest), manifest)):
            if listed.name == path.name:
                return listed
        raise SpecError(f"{manifest} must list {path.name!r}, got other files")


class SpoolSource:
    """The spool of a gateway that may be running.

    A look at a directory that did not change lists nothing; others list it, once or twice, and cost in addition what is
    new. Memory holds the names of the files that are there.

    Args:
        spool: directory of the files.
        spec: specification of the job, with windows.
        state: the manifest of counted files.
    """

    def __init__(self, spool: str, spec: JobSpec, state: FollowState):
        self._spool, self._state = spool, state
        self._reader = SpoolReader(spool, spec, state.forgotten_until)
        self._at_once = FILES_OF_REPORTS if spec.deduplicate else FILES_AT_ONCE
        self._notices = Notices()
        self._listing: Listing | None = None
        self._new: list[str] = []
        self._known: set[str] = set()
        self.seen_until: int | None = None

    def news(self, time: int) -> Iterator[Reading]:
        """All files that are finished now and not in the manifest; see ``Source``. Raises OSError, sqlite3.Error."""
        begun = self._look().begun
        new = self._new
        for first in range(0, len(new), self._at_once):
            reading = self._read(new[first : first + self._at_once])
            yield reading
            self._know(file.name for file in reading.files)
        self._new = [name for name in new if name not in self._known]
        self.seen_until = time if begun is None else max(min(time, begun), time - LONGEST_WAIT)

    def _look(self) -> Listing:
        """List the directory again if it may have changed."""
        before = self._listing
        if before is not None and before.is_settled and before.changed == os.stat(self._spool).st_mtime_ns:
            return before
        self._listing = listing = list_spool(self._spool, self._known)
        self._known -= listing.gone
        self._know(self._state.counted_of(listing.finished))
        self._new = [name for name in listing.finished if name not in self._known]
        return listing

    def _know(self, counted: Iterable[str]) -> None:
        """Leave counted files out of later looks."""
        for name in counted:
            self._known |= {name, manifest_name(name)}

    def close(self) -> None:
        """Nothing is kept open."""

    def _read(self, names: list[str]) -> Reading:
        reading = Reading()
        for name in names:
            try:
                of_file = self._reader.read(name)
                self._say_unread(of_file)
                self._merge_new(reading, of_file)
            except SpecError as error:
                self._notices.say_once(f"not counted: {error}")
        return reading

    def _say_unread(self, of_file: Reading) -> None:
        """Name a file of which all or a part could not be read; it is not read again."""
        for rejection in of_file.rejections:
            if rejection.num_files:
                self._notices.say_once(f"not read in full: {rejection.source} ({rejection.reason.code})")

    def _merge_new(self, reading: Reading, of_file: Reading) -> None:
        """Add a file; a copy of a counted file under another name is listed, but not counted."""
        (file,) = of_file.files
        same = next((other.name for other in reading.files if other.sha256 == file.sha256), None)
        same = same or self._state.same_content(file.sha256)
        if same is not None:
            self._notices.say_once(f"not counted: {file.name} has the same content as {same}")
            of_file = Reading(files=[file])
        reading.merge(of_file)
