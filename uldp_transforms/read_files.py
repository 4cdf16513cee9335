"""ReadReportFiles: Avro object container files in, messages out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.io import fileio
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import PBegin, PCollection, TaggedOutput

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ledger import RECEIVED, LedgerEntry
from uldp_transforms.messages.containers import read_messages
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.runtime import metrics


class ReadFiles(NamedTuple):
    """Outputs of ``ReadReportFiles``."""

    messages: PCollection[bytes]
    rejected: PCollection[Rejection]
    ledger: PCollection[LedgerEntry]


class ReadReportFiles(beam.PTransform[PBegin, ReadFiles]):
    """Reads the reports of Avro container files, single or packed, as messages for ``DecodeReports``.

    A file or block that cannot be read becomes a ``Rejection``, and is received as one report; the rest of the input
    goes on. ``EstimateReports`` takes the whole of this output, and accounts for these too.

    Args:
        pattern: of file names, such as ``reports-*.avro`` or ``gs://bucket/reports-*.avro``. Matching no file is an
            error.
    """

    def __init__(self, pattern: str):
        super().__init__()
        if not isinstance(pattern, str):
            raise SpecError(f"ReadReportFiles.pattern must be a text, got {describe(pattern)}")
        # Beam finds local files by absolute patterns only
        self._pattern = pattern if "://" in pattern else os.path.abspath(pattern)

    def expand(self, begin: PBegin) -> ReadFiles:
        outputs = (
            begin
            | "Match" >> fileio.MatchFiles(self._pattern, empty_match_treatment=fileio.EmptyMatchTreatment.DISALLOW)
            | "Spread" >> beam.Reshuffle()
            | "Read" >> beam.ParDo(_ReadFn()).with_outputs("rejected", "ledger", main="messages")
        )
        outputs.messages.element_type = bytes
        outputs.rejected.element_type = Rejection
        outputs.ledger.element_type = LedgerEntry
        return ReadFiles(outputs.messages, outputs.rejected, outputs.ledger)

    def display_data(self) -> dict[str, Any]:
        return {"pattern": self._pattern}


class _ReadFn(beam.DoFn):
    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(self, metadata: Any) -> Iterator[Any]:
        with FileSystems.open(metadata.path, compression_type=CompressionTypes.UNCOMPRESSED) as file:
            name = metadata.path.replace("\\", "/").rpartition("/")[2]
            for item in read_messages(file, name):
                if isinstance(item, Rejection):
                    metrics.count(item.num_reports, metrics.RECEIVED)
                    metrics.count(item.num_reports, metrics.REJECTED, item.reason.code)
                    yield TaggedOutput("rejected", item)
                    yield TaggedOutput("ledger", LedgerEntry(RECEIVED, b"", None, item.num_reports))
                else:
                    yield item
