"""Reads the files of a gateway's spool, and counts their reports. No Beam pipeline."""

from __future__ import annotations

import dataclasses
import datetime
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from uldp_transforms.beam.accounts.ledger import ACCEPTED, RECEIVED, LedgerEntry
from uldp_transforms.beam.accounts.transit import handed_on
from uldp_transforms.beam.spec.job_spec import JobSpec
from uldp_transforms.beam.transforms.decode_reports import received_entries
from uldp_transforms.beam.transforms.period_counts import count_batches
from uldp_transforms.files.text_files import read_text
from uldp_transforms.jobs.follow.state import CountedFile, Period
from uldp_transforms.jobs.gateway.spool_file import PART, WHOLE, manifest_path
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.checks import parse_json
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.containers import SEEDED, Account, read_messages
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.messages.manifest import HashedFile, ListedFile, files_of_manifest
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.messages.wire import reports_in

LOCK = "lock"
"""Name of the file in a spool that its gateway locks; it marks a directory as a spool."""

_AT_ONCE = 1 << 22  # bytes of messages that are decoded together
_BEGUN = re.compile(r"reports-(\d{8}T\d{6})-")


@dataclasses.dataclass
class Reading:
    """Content of some files of a spool: counts, ledger entries and rejections.

    Attributes:
        files: entries for the manifest.
        counts: of the accepted reports.
        entries: of the ledger, without rejections.
        rejections: rejected reports, messages and parts of files.
    """

    files: list[CountedFile] = dataclasses.field(default_factory=list)
    counts: dict[Period, CohortCounts] = dataclasses.field(default_factory=dict)
    entries: list[LedgerEntry] = dataclasses.field(default_factory=list)
    rejections: list[Rejection] = dataclasses.field(default_factory=list)


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
        self._spec = spec
        self._decoder = MessageDecoder(spec.catalog)

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
        difference = listed.difference(found, sum(item.num_reports for item in lost))
        self._reject(reading, lost if difference is None else [*lost, difference])
        for group in _groups(item for item in items if isinstance(item, bytes)):
            self._count(reading, group)
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

    @staticmethod
    def _reject(reading: Reading, rejections: Iterable[Rejection]) -> None:
        """Add rejected parts of a file, whose reports count as received."""
        for rejection in rejections:
            reading.rejections.append(rejection)
            reading.entries.append(LedgerEntry(RECEIVED, b"", None, rejection.num_reports))

    def _count(self, reading: Reading, messages: list[bytes]) -> None:
        """Decode messages, and add their counts, ledger entries and rejections."""
        spec, decoded = self._spec, self._decoder.decode(messages)
        reading.entries += received_entries(decoded, spec.periods)
        reading.entries.append(handed_on(len(messages) - decoded.num_messages))
        reading.rejections += decoded.rejections
        for (fingerprint, start), counts in count_batches(
            spec.catalog, decoded.batches, spec.periods, spec.bit_patterns
        ):
            assert start is not None, "follow_job refuses a job without windows"
            _add(reading.counts, (fingerprint, start), counts)
            reading.entries.append(LedgerEntry(ACCEPTED, fingerprint, start, counts.total))


def merge(reading: Reading, other: Reading) -> None:
    """Add the content of another file."""
    reading.files += other.files
    reading.entries += other.entries
    reading.rejections += other.rejections
    for period, counts in other.counts.items():
        _add(reading.counts, period, counts)


def _add(counts: dict[Period, CohortCounts], period: Period, new: CohortCounts) -> None:
    counts[period] = counts[period] + new if period in counts else new


def _groups(messages: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Messages in groups of about ``_AT_ONCE`` bytes."""
    group, size = list[bytes](), 0
    for message in messages:
        group.append(message)
        size += len(message)
        if size >= _AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group
