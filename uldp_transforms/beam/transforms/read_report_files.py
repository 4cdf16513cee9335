"""ReadReportFiles: read messages from Avro object container files and Parquet files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import apache_beam as beam
from apache_beam.io import fileio
from apache_beam.pvalue import PBegin, PCollection, TaggedOutput
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.file_patterns import absolute, check_files, files_of
from uldp_transforms.beam.runtime.inputs import NamedOutputs, require_elements
from uldp_transforms.beam.transforms.gather_messages import GATHERED, Gathered, Grouping
from uldp_transforms.collector.ledger_entries import RECEIVED, LedgerEntry, handed_on
from uldp_transforms.files import stores
from uldp_transforms.files.text_files import read_text
from uldp_transforms.ldp.checks import describe, parse_json
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.containers import SEEDED
from uldp_transforms.messages.files.file_account import Account
from uldp_transforms.messages.files.report_files import Item, read_reports
from uldp_transforms.messages.joined_messages import RepeatedMessages, num_reports
from uldp_transforms.messages.manifest import HashedFile, ListedFile, files_of_manifest
from uldp_transforms.messages.rejection import Rejection


class _ReadFiles(NamedTuple):
    messages: PCollection[bytes] | PCollection[Gathered]
    rejected: PCollection[Rejection]
    ledger: PCollection[LedgerEntry]
    simulated: PCollection[bool]
    counted: PCollection[Gathered]


class ReadFiles(NamedOutputs, _ReadFiles):
    """Outputs of ``ReadReportFiles``."""

    __slots__ = ()

    owner, example = "ReadReportFiles", "files.messages"

    def __or__(self, step: object) -> Any:
        """Leave it to the step: some take all outputs, such as ``EstimateReports`` and steps that are made of it."""
        return NotImplemented


_NOTE_EVERY = 64  # blocks of messages


class ReadReportFiles(beam.PTransform["PBegin | PCollection[str]", ReadFiles]):
    """Reads the reports of Avro container files, single or packed, and of Parquet files, as messages for
    ``DecodeReports``.

    Input: the beginning of a pipeline, or a bounded PCollection of names or patterns of files; then give no patterns.
    A file that several names or patterns match is read once.

    A file or block that cannot be read becomes a ``Rejection``, which counts it as an unread file and never as a
    report; the job continues with the rest of the input. Pass the whole output to ``EstimateReports``: it also accounts
    for unread files, for files that were not read to the end, and for files with simulated reports (``simulated``, one
    element per file), and for rows that stand for several reports. These are in ``messages`` if ``grouped``, so that no
    engine has to hold all messages to join two outputs, and otherwise in ``counted``.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import ReadReportFiles
        >>> with beam.Pipeline() as pipeline:
        ...     files = pipeline | ReadReportFiles("reports*.avro")
        ...     _ = files.simulated | beam.Map(print)
        False
        >>> with beam.Pipeline() as pipeline:
        ...     names = pipeline | beam.Create(["reports.avro", "reports*.avro"])
        ...     files = names | ReadReportFiles()
        ...     _ = files.simulated | beam.Map(print)
        False

    Args:
        pattern: file pattern or path, such as ``reports-*.avro`` or ``gs://bucket/reports-*.avro``, or a list of
            them. Each must match a file. None: the input has the names.
        manifest: pattern of manifests, which list the expected content of the files (see ``docs/wire.md``). Missing
            content and unlisted files are rejected as ``not_as_listed``. None: accept the files as they are.
        grouped: emit the messages in groups, which costs less per message (default: one by one).
        num_reports: column of Parquet files with the number of equal reports that each row stands for. None: the column
            ``num_reports`` of files that also have ``period_ms``, as the queries of ``uldp sql`` return them.

    Raises:
        SpecError: when the pipeline is built, if a pattern matches local directories or broken links, if there is no
            manifest or its format is wrong, if it lists a file that no pattern matches, or if there are patterns and a
            PCollection of names, or neither.
        OSError: if a manifest cannot be read.
    """

    def __init__(
        self,
        pattern: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
        manifest: str | None = None,
        *,
        grouped: bool = False,
        num_reports: str | None = None,
    ):
        super().__init__()
        self._patterns = None if pattern is None else _patterns_of(pattern)
        for name, value in (("manifest", manifest), ("num_reports", num_reports)):
            if value is not None and not (isinstance(value, str) and value):
                raise SpecError(f"ReadReportFiles.{name} must be a text or None, got {describe(value)}")
        if not isinstance(grouped, bool):
            raise SpecError(f"ReadReportFiles.grouped must be true or false, got {describe(grouped)}")
        if manifest is not None and self._patterns is None:
            raise SpecError("ReadReportFiles.manifest needs ReadReportFiles.pattern, got none")
        self._grouped = grouped
        self._numbers = num_reports
        self._manifest = manifest
        for one in self._patterns or ():
            check_files("ReadReportFiles.pattern", one)
        self._listed = None if manifest is None else _listed_files(self._patterns or (), manifest)

    def expand(self, source: PBegin | PCollection[str]) -> ReadFiles:
        matched = self._matched(source)
        outputs = (
            matched
            | "Spread" >> beam.Reshuffle()
            | "Read"
            >> beam.ParDo(_ReadFn(self._listed, self._grouped, self._numbers)).with_outputs(
                "rejected", "ledger", "simulated", "counted", main="messages"
            )
        )
        outputs.messages.element_type = GATHERED if self._grouped else bytes
        outputs.rejected.element_type = Rejection
        outputs.ledger.element_type = LedgerEntry
        outputs.simulated.element_type = bool
        outputs.counted.element_type = GATHERED
        files = matched | "Files" >> beam.Map(lambda _: handed_on(1)).with_output_types(LedgerEntry)
        ledger = (outputs.ledger, files) | "Ledger" >> beam.Flatten()
        return ReadFiles(outputs.messages, outputs.rejected, ledger, outputs.simulated, outputs.counted)

    def _matched(self, source: PBegin | PCollection[str]) -> PCollection[Any]:
        """The metadata of each file, once."""
        must_match = fileio.EmptyMatchTreatment.DISALLOW
        if isinstance(source, PCollection):
            names = _names(source, self._patterns)
        elif self._patterns is None:
            raise SpecError("ReadReportFiles needs ReadReportFiles.pattern or a PCollection of names, got neither")
        elif len(self._patterns) == 1:
            return source | "Match" >> fileio.MatchFiles(self._patterns[0], empty_match_treatment=must_match)
        else:
            names = source | "Patterns" >> beam.Create(self._patterns)
        return (
            names
            | "Match" >> fileio.MatchAll(empty_match_treatment=must_match)
            | "ByPath" >> beam.Map(lambda metadata: (metadata.path, metadata)).with_output_types(tuple[str, Any])
            | "OfPath" >> beam.GroupByKey()
            | "Once" >> beam.Map(lambda of_path: next(iter(of_path[1])))
        )

    def display_data(self) -> dict[str, Any]:
        shown = {
            "pattern": None if self._patterns is None else ", ".join(self._patterns),
            "manifest": self._manifest,
            "num_reports": self._numbers,
        }
        return {name: value for name, value in shown.items() if value is not None}


def _patterns_of(pattern: object) -> list[str]:
    """The patterns, local ones absolute; raises SpecError unless they are a text, or a list of at least one text."""
    patterns = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    texts = [os.fspath(one) if isinstance(one, os.PathLike) else one for one in patterns]
    if not texts or not all(isinstance(one, str) for one in texts):
        raise SpecError(f"ReadReportFiles.pattern must be a text or a list of texts, got {describe(pattern)}")
    return [absolute(str(one)) for one in texts]


def _names(source: PCollection[str], patterns: list[str] | None) -> PCollection[str]:
    """The input as absolute names in the global window; raises SpecError if it is no input."""
    if patterns is not None:
        raise SpecError("ReadReportFiles needs ReadReportFiles.pattern or a PCollection of names, got both")
    require_elements("ReadReportFiles needs a PCollection of names of files", source, str)
    if not source.is_bounded:
        raise SpecError("ReadReportFiles needs a bounded PCollection of names of files, got an unbounded one")
    if not source.windowing.is_default():
        source = source | "InNoWindow" >> beam.WindowInto(GlobalWindows())
    names: PCollection[str] = source | "Names" >> beam.Map(absolute).with_output_types(str)
    return names


class _ReadFn(beam.DoFn):
    def __init__(self, listed: Mapping[str, ListedFile] | None, grouped: bool, numbers: str | None):
        self._listed = listed
        self._grouped = grouped
        self._numbers = numbers

    def start_bundle(self) -> None:
        metrics.start_bundle()
        self._groups = Grouping()

    def finish_bundle(self) -> list[WindowedValue]:
        return [WindowedValue(group, MIN_TIMESTAMP, (GlobalWindow(),)) for group in self._groups.rest()]

    def process(self, metadata: Any) -> Iterator[Any]:
        name, account = metadata.path.replace("\\", "/").rpartition("/")[2], Account()
        if self._listed is None:
            with _open(metadata) as file:
                items = read_reports(file, name, account, numbers=self._numbers)
                yield from self._tagged(_noted(items, file, metadata.size_in_bytes))
        elif metadata.path in self._listed:
            yield from self._tagged(self._read_listed(metadata, name, account))
        else:
            yield from self._tagged(iter([account.refuse(Reason.NOT_AS_LISTED, metadata.size_in_bytes, name)]))
        yield TaggedOutput("simulated", (account.randomness or "").startswith(SEEDED))
        if account.is_complete(metadata.size_in_bytes):
            yield TaggedOutput("ledger", handed_on(-1))

    def _tagged(self, items: Iterator[Item]) -> Iterator[Any]:
        return _tagged(self._groups.add(items) if self._grouped else _each_message(items), self._grouped)

    def _read_listed(self, metadata: Any, name: str, account: Account) -> Iterator[Item]:
        """Read the messages of a listed file, and reject missing content."""
        assert self._listed is not None
        messages = reports = rejected = 0
        with _open(metadata) as file:
            hashed = HashedFile(file)
            items = read_reports(file, name, account, hashed=hashed, numbers=self._numbers)
            for item in _noted(items, file, metadata.size_in_bytes):
                if isinstance(item, Rejection):
                    rejected += item.number
                else:
                    messages += len(item)
                    reports += num_reports(item)
                yield item
        found = ListedFile(name, metadata.size_in_bytes, hashed.sha256, messages, reports)
        difference = self._listed[metadata.path].difference(found, rejected, account)
        if difference is not None:
            yield difference


def _each_message(items: Iterator[Item]) -> Iterator[bytes | RepeatedMessages | Rejection]:
    for item in items:
        if isinstance(item, (RepeatedMessages, Rejection)):
            yield item
        else:
            yield from item


def _noted(items: Iterator[Item], file: IO[bytes], size: int) -> Iterator[Item]:
    """The same items; notes how much of their file was read, for progress messages."""
    noted = 0
    for at, item in enumerate(items):
        if at % _NOTE_EVERY == 0:
            here = min(file.tell(), size)
            metrics.SEEN[metrics.READ_BYTES] += here - noted
            noted = here
        yield item
    metrics.SEEN[metrics.READ_BYTES] += size - noted


@contextlib.contextmanager
def _open(metadata: Any) -> Iterator[IO[bytes]]:
    """The file; an OSError names it, also if reading fails later, as on a damaged disk."""
    try:
        with stores.opened(metadata.path) as file:
            yield file
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, metadata.path) from error


def _tagged(items: Iterator[bytes | Gathered | RepeatedMessages | Rejection], grouped: bool) -> Iterator[Any]:
    """Tag rejections, and repeated messages unless messages are in groups; rejected reports also count as received."""
    for item in items:
        if isinstance(item, RepeatedMessages):
            group = (item, list[int]())
            yield group if grouped else TaggedOutput("counted", group)
        elif isinstance(item, Rejection):
            metrics.count(item.num_reports, metrics.RECEIVED)
            metrics.count_rejected(item)
            yield TaggedOutput("rejected", item)
            if item.num_reports:
                yield TaggedOutput("ledger", LedgerEntry(RECEIVED, b"", None, item.num_reports))
        else:
            yield item


def _listed_files(patterns: Sequence[str], manifest: str) -> dict[str, ListedFile]:
    """Path -> entry in the manifests; each manifest is in the directory of its files."""
    paths = files_of(manifest)
    if not paths:
        raise SpecError(f"ReadReportFiles.manifest must match at least one file, got {describe(manifest)}")
    matched = {path for pattern in patterns for path in files_of(pattern)}
    listed: dict[str, ListedFile] = {}
    for path in paths:
        folder = stores.folder_of(path)
        for file in files_of_manifest(parse_json(read_text(path), path)):
            place = stores.joined(folder, file.name)
            if place not in matched:
                wanted = ", ".join(map(repr, patterns))
                raise SpecError(f"{path} must list files that match {wanted}, got {file.name!r}")
            if listed.setdefault(place, file) != file:
                raise SpecError(f"{path} must agree with the other manifests, got a different entry for {file.name!r}")
    return listed
