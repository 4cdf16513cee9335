"""ReadReportFiles: read messages from Avro object container files and Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import apache_beam as beam
from apache_beam.io import fileio
from apache_beam.pvalue import PBegin, PCollection, TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.beam.accounts.ledger import RECEIVED, LedgerEntry
from uldp_transforms.beam.accounts.transit import handed_on
from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.file_patterns import absolute, check_files, files_of
from uldp_transforms.beam.transforms.gather_messages import GATHERED, Gathered, Grouping
from uldp_transforms.files import stores
from uldp_transforms.files.text_files import read_text
from uldp_transforms.ldp.checks import describe, parse_json
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.containers import SEEDED, Account, read_blocks
from uldp_transforms.messages.joined_messages import num_reports
from uldp_transforms.messages.manifest import HashedFile, ListedFile, files_of_manifest
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.messages.report_tables import is_table, read_table


class ReadFiles(NamedTuple):
    """Outputs of ``ReadReportFiles``."""

    messages: PCollection[bytes] | PCollection[Gathered]
    rejected: PCollection[Rejection]
    ledger: PCollection[LedgerEntry]
    simulated: PCollection[bool]


_Item = Sequence[bytes] | Rejection

_NOTE_EVERY = 64  # blocks of messages


class ReadReportFiles(beam.PTransform[PBegin, ReadFiles]):
    """Reads the reports of Avro container files, single or packed, and of Parquet files, as messages for
    ``DecodeReports``.

    An unreadable file or block becomes a ``Rejection`` and counts as one received report; the job continues with the
    rest of the input. Pass the whole output to ``EstimateReports``, which then also accounts for unreadable blocks, for
    files that were not read to the end, and for files with simulated reports (``simulated``, one element per file).

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import ReadReportFiles
        >>> with beam.Pipeline() as pipeline:
        ...     files = pipeline | ReadReportFiles("reports*.avro")
        ...     _ = files.simulated | beam.Map(print)
        False

    Args:
        pattern: file pattern, such as ``reports-*.avro`` or ``gs://bucket/reports-*.avro``. It must match a file.
        manifest: pattern of manifests, which list the expected content of the files (see ``docs/wire.md``). Missing
            content and unlisted files are rejected as ``not_as_listed``. None: accept the files as they are.
        grouped: emit the messages in groups, which costs less per message (default: one by one).

    Raises:
        SpecError: when the pipeline is built, if the pattern matches local directories or broken links, if there is no
            manifest or its format is wrong, or if it lists a file that the pattern does not match.
        OSError: if a manifest cannot be read.
    """

    def __init__(self, pattern: str, manifest: str | None = None, *, grouped: bool = False):
        super().__init__()
        if not isinstance(pattern, str):
            raise SpecError(f"ReadReportFiles.pattern must be a text, got {describe(pattern)}")
        if manifest is not None and not isinstance(manifest, str):
            raise SpecError(f"ReadReportFiles.manifest must be a text or None, got {describe(manifest)}")
        if not isinstance(grouped, bool):
            raise SpecError(f"ReadReportFiles.grouped must be true or false, got {describe(grouped)}")
        self._grouped = grouped
        self._pattern = absolute(pattern)
        self._manifest = manifest
        check_files("ReadReportFiles.pattern", pattern)
        self._listed = None if manifest is None else _listed_files(pattern, manifest)

    def expand(self, begin: PBegin) -> ReadFiles:
        matched = begin | "Match" >> fileio.MatchFiles(
            self._pattern, empty_match_treatment=fileio.EmptyMatchTreatment.DISALLOW
        )
        outputs = (
            matched
            | "Spread" >> beam.Reshuffle()
            | "Read"
            >> beam.ParDo(_ReadFn(self._listed, self._grouped)).with_outputs(
                "rejected", "ledger", "simulated", main="messages"
            )
        )
        outputs.messages.element_type = GATHERED if self._grouped else bytes
        outputs.rejected.element_type = Rejection
        outputs.ledger.element_type = LedgerEntry
        outputs.simulated.element_type = bool
        files = matched | "Files" >> beam.Map(lambda _: handed_on(1)).with_output_types(LedgerEntry)
        ledger = (outputs.ledger, files) | "Ledger" >> beam.Flatten()
        return ReadFiles(outputs.messages, outputs.rejected, ledger, outputs.simulated)

    def display_data(self) -> dict[str, Any]:
        return {"pattern": self._pattern} | ({} if self._manifest is None else {"manifest": self._manifest})


class _ReadFn(beam.DoFn):
    def __init__(self, listed: Mapping[str, ListedFile] | None, grouped: bool):
        self._listed = listed
        self._grouped = grouped

    def start_bundle(self) -> None:
        metrics.start_bundle()
        self._groups = Grouping()

    def finish_bundle(self) -> list[WindowedValue]:
        return [WindowedValue(group, MIN_TIMESTAMP, (GlobalWindow(),)) for group in self._groups.rest()]

    def process(self, metadata: Any) -> Iterator[Any]:
        name, account = metadata.path.replace("\\", "/").rpartition("/")[2], Account()
        if self._listed is None:
            with _open(metadata) as file:
                yield from self._tagged(_noted(_items(file, name, account), file, metadata.size_in_bytes))
        elif metadata.path in self._listed:
            yield from self._tagged(self._read_listed(metadata, name, account))
        else:
            yield from self._tagged(iter([Rejection(Reason.NOT_AS_LISTED, 1, metadata.size_in_bytes, source=name)]))
            account.refused = True
        yield TaggedOutput("simulated", (account.randomness or "").startswith(SEEDED))
        if account.is_complete(metadata.size_in_bytes):
            yield TaggedOutput("ledger", handed_on(-1))

    def _tagged(self, items: Iterator[_Item]) -> Iterator[Any]:
        return _tagged(self._groups.add(items) if self._grouped else _each_message(items))

    def _read_listed(self, metadata: Any, name: str, account: Account) -> Iterator[_Item]:
        """Read the messages of a listed file, and reject missing content."""
        assert self._listed is not None
        messages = reports = rejected = 0
        with _open(metadata) as file:
            hashed = HashedFile(file)
            for item in _noted(_items(file, name, account, hashed), file, metadata.size_in_bytes):
                if isinstance(item, Rejection):
                    rejected += item.num_reports
                else:
                    messages += len(item)
                    reports += num_reports(item)
                yield item
        found = ListedFile(name, metadata.size_in_bytes, hashed.sha256, messages, reports)
        difference = self._listed[metadata.path].difference(found, rejected)
        if difference is not None:
            yield difference


def _items(file: IO[bytes], name: str, account: Account, hashed: HashedFile | None = None) -> Iterator[_Item]:
    """The messages of an Avro or Parquet file, and a rejection for each part that is unreadable."""
    if not is_table(file):
        return read_blocks(hashed or file, name, account)
    if hashed is not None:
        hashed.read_to_the_end()  # tables are read in another order
    return (item if isinstance(item, Rejection) else [item] for item in read_table(file, name, account))


def _each_message(items: Iterator[_Item]) -> Iterator[bytes | Rejection]:
    for item in items:
        if isinstance(item, Rejection):
            yield item
        else:
            yield from item


def _noted(items: Iterator[_Item], file: IO[bytes], size: int) -> Iterator[_Item]:
    """The same items; notes how much of their file was read, for progress messages."""
    noted = 0
    for at, item in enumerate(items):
        if at % _NOTE_EVERY == 0:
            here = min(file.tell(), size)
            metrics.SEEN[metrics.READ_BYTES] += here - noted
            noted = here
        yield item
    metrics.SEEN[metrics.READ_BYTES] += size - noted


def _open(metadata: Any) -> IO[bytes]:
    return stores.opened(metadata.path)


def _tagged(items: Iterator[bytes | Gathered | Rejection]) -> Iterator[Any]:
    """Tag messages and rejections; rejections also count as received."""
    for item in items:
        if isinstance(item, Rejection):
            metrics.count(item.num_reports, metrics.RECEIVED)
            metrics.count(item.num_reports, metrics.REJECTED, item.reason.code)
            yield TaggedOutput("rejected", item)
            yield TaggedOutput("ledger", LedgerEntry(RECEIVED, b"", None, item.num_reports))
        else:
            yield item


def _listed_files(pattern: str, manifest: str) -> dict[str, ListedFile]:
    """Path -> entry in the manifests; each manifest is in the directory of its files."""
    paths = files_of(manifest)
    if not paths:
        raise SpecError(f"ReadReportFiles.manifest must match at least one file, got {describe(manifest)}")
    matched = set(files_of(pattern))
    listed: dict[str, ListedFile] = {}
    for path in paths:
        folder = stores.folder_of(path)
        for file in files_of_manifest(parse_json(read_text(path), path)):
            place = stores.joined(folder, file.name)
            if place not in matched:
                raise SpecError(f"{path} must list files that match {pattern!r}, got {file.name!r}")
            if listed.setdefault(place, file) != file:
                raise SpecError(f"{path} must agree with the other manifests, got a different entry for {file.name!r}")
    return listed
