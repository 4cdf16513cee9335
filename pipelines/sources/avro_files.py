"""Reports in Avro files."""

from __future__ import annotations

import argparse
import os

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from uldp_transforms import ReadReportFiles
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.read_files import ReadFiles

from ..runners import choose_local_engine
from .source import Source


class AvroFiles(Source):
    """Avro object container files, single or packed, local ones or of a store such as gs://."""

    option = "--input"
    help = "Avro files of reports, a pattern such as 'reports-*.avro'"
    bounded = True

    def __init__(self, pattern: str):
        self.pattern = pattern

    @classmethod
    def of(cls, args: argparse.Namespace, options: PipelineOptions) -> AvroFiles:
        pattern = args.input
        if os.path.isdir(pattern):
            raise SpecError(f"--input must be a pattern of file names, got the directory {pattern!r}")
        choose_local_engine(options, streaming=False)
        if "://" not in pattern:
            pattern = os.path.abspath(pattern)  # Beam finds local files by absolute patterns only
        if not FileSystems.match([pattern])[0].metadata_list:
            raise SpecError(f"--input must match at least one file, got {pattern!r}")
        return cls(pattern)

    def read(self, pipeline: beam.Pipeline) -> ReadFiles:
        return pipeline | "ReadReportFiles" >> ReadReportFiles(self.pattern)
