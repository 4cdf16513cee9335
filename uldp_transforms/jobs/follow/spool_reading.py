"""Reads the files of a gateway's spool, each once."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterator
from pathlib import Path

from uldp_transforms.beam.accounts.transit import handed_on
from uldp_transforms.beam.spec.job_spec import JobSpec
from uldp_transforms.files.text_files import read_text
from uldp_transforms.jobs.follow.follow_reading import MessageCounter, Reading
from uldp_transforms.jobs.follow.notices import Notices
from uldp_transforms.jobs.follow.state import CountedFile, FollowState
from uldp_transforms.jobs.gateway.spool_file import PART, WHOLE, manifest_path
from uldp_transforms.ldp.checks import parse_json
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.containers import SEEDED, read_messages
from uldp_transforms.messages.files.file_account import Account
from uldp_transforms.messages.manifest import HashedFile, ListedFile, files_of_manifest
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.messages.wire import reports_in

LOCK = "lock"
"""Name of the file in a spool that its gateway locks; it marks a directory as a spool."""

FILES_AT_ONCE = 64
"""Maximum number of files of one transaction."""

LONGEST_WAIT = 600_000
"""Milliseconds for which windows wait for a file that the gateway has begun before their end and has not finished."""

_BEGUN = re.compile(r"reports-(\d{8}T\d{6})-")


def check_spool(path: str) -> None:
    """Refuse anything but the spool of a gateway on this machine; raises SpecError."""
    if not os.path.isfile(os.path.join(path, LOCK)):
        raise SpecError(
            f"--follow needs --input to be the directory of uldp gateway --spool on this machine, got {path!r}"
        )


def finished_files(spool: str) -> list[str]:
    """Names of the files that are finished: those with a manifest, which the gateway writes first."""
    return sorted(path.name for path in Path(spool).glob(f"*{WHOLE}") if manifest_path(path).is_file())


def unfinished_since(spool: str) -> int | None:
    """Time at which the earliest file that the gateway is still writing was started, in milliseconds since 1970; None
    without such a file."""
    begun = [match[1] for path in Path(spool).glob(f"*{PART}") if (match := _BEGUN.match(path.name))]
    if not begun:
        return None
    moment = datetime.datetime.strptime(min(begun), "%Y%m%dT%H%M%S").replace(tzinfo=datetime.timezone.utc)
    return int(moment.timestamp()) * 1000


class SpoolReader:
    """Reads files of a spool, and counts their reports.

    Args:
        spool: directory of the files.
        spec: specification of the job, with windows.
    """

    def __init__(self, spool: str, spec: JobSpec):
        self._spool = Path(spool)
        self._counter = MessageCounter(spec)

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
        lost = [item for item in items if isinstance(item, Rejection)]
        found = ListedFile(name, path.stat().st_size, hashed.sha256, messages, reports)
        difference = listed.difference(found, sum(item.number for item in lost), account)
        reading.reject(lost if difference is None else [*lost, difference])
        self._counter.count(reading, (item for item in items if isinstance(item, bytes)))
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

    Args:
        spool: directory of the files.
        spec: specification of the job, with windows.
        state: the manifest of counted files.
    """

    def __init__(self, spool: str, spec: JobSpec, state: FollowState):
        self._spool, self._state = spool, state
        self._reader = SpoolReader(spool, spec)
        self._notices = Notices()
        self.seen_until: int | None = None

    def news(self, time: int) -> Iterator[Reading]:
        """All files that are finished now and not in the manifest; see ``Source``. Raises OSError, sqlite3.Error."""
        # before the files are listed, so that one that is finished meanwhile counts
        begun = unfinished_since(self._spool)
        known = self._state.names()
        new = [name for name in finished_files(self._spool) if name not in known]
        for first in range(0, len(new), FILES_AT_ONCE):
            yield self._read(new[first : first + FILES_AT_ONCE])
        self.seen_until = time if begun is None else max(min(time, begun), time - LONGEST_WAIT)

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
