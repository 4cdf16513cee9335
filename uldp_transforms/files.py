"""ReadReportFiles: Avro object container files in, messages out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.io import fileio
from apache_beam.io.filesystem import CompressionTypes

from uldp_transforms.containers import read_messages
from uldp_transforms.decoding import Rejection
from uldp_transforms.ledger import RECEIVED, LedgerEntry


class ReadFiles(NamedTuple):
    """Outputs of ``ReadReportFiles``."""

    messages: beam.PCollection[bytes]
    rejected: beam.PCollection[Rejection]
    received: beam.PCollection[LedgerEntry]


class ReadReportFiles(beam.PTransform):
    """Reads the reports of Avro container files, single or packed, as messages for ``DecodeReports``.

    A file or block that cannot be read becomes a ``Rejection``, and is received as one report; the rest of the input
    goes on.

    Args:
        pattern: of file names, for instance ``gs://bucket/reports-*.avro``. Matching no file is an error.
    """

    def __init__(self, pattern: str):
        super().__init__()
        self._pattern = pattern

    def expand(self, begin: beam.Pipeline) -> ReadFiles:
        outputs = (
            begin
            | "Match" >> fileio.MatchFiles(self._pattern, empty_match_treatment=fileio.EmptyMatchTreatment.DISALLOW)
            | "Spread" >> beam.Reshuffle()
            | "Read" >> beam.ParDo(_ReadFn()).with_outputs("rejected", "received", main="messages")
        )
        outputs.messages.element_type = bytes
        outputs.rejected.element_type = Rejection
        outputs.received.element_type = LedgerEntry
        return ReadFiles(outputs.messages, outputs.rejected, outputs.received)

    def display_data(self) -> dict[str, Any]:
        return {"pattern": self._pattern}


class _ReadFn(beam.DoFn):
    def process(self, metadata: Any) -> Iterator[Any]:
        with beam.io.filesystems.FileSystems.open(
            metadata.path, compression_type=CompressionTypes.UNCOMPRESSED
        ) as file:
            name = metadata.path.replace("\\", "/").rpartition("/")[2]
            for item in read_messages(file, name):
                if isinstance(item, Rejection):
                    yield beam.pvalue.TaggedOutput("rejected", item)
                    yield beam.pvalue.TaggedOutput("received", LedgerEntry(RECEIVED, b"", None, item.num_reports))
                else:
                    yield item
