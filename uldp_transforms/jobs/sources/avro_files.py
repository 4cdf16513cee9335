"""Reports in Avro or Parquet files."""

from __future__ import annotations

import argparse
import os
from typing import ClassVar

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from uldp_transforms import ReadReportFiles
from uldp_transforms.beam.runtime.file_patterns import absolute, check_files, files_of
from uldp_transforms.beam.transforms.read_report_files import ReadFiles
from uldp_transforms.files import stores
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.runners import choose_local_engine
from uldp_transforms.jobs.sources.source import Source
from uldp_transforms.ldp.client_window import ClientWindow
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.files.report_files import read_reports
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.messages.report_tables import is_table, periods_in
from uldp_transforms.windows import Windows


class AvroFiles(Source):
    """Reads Avro object container files of single or packed reports, and Parquet files, local or in a store such as
    gs://."""

    option = "--input"
    help = "Avro or Parquet files of reports, a pattern such as 'reports-*.avro'"
    own_options: ClassVar[cli.Options] = {
        "--manifest": {
            "help": "manifest that lists the expected content of the files, or a pattern (default: no manifest)"
        },
        "--num_reports": {
            "metavar": "COLUMN",
            "help": "column of Parquet files with the number of equal reports that each row stands for (default: "
            "num_reports of files that also have period_ms, as the queries of uldp sql return them)",
        },
    }
    bounded = True

    def __init__(self, pattern: str, manifest: str | None = None, num_reports: str | None = None):
        self.pattern = pattern
        self.manifest = manifest
        self.num_reports = num_reports

    @classmethod
    def of(cls, args: argparse.Namespace, options: PipelineOptions) -> AvroFiles:
        pattern = args.input
        if os.path.isdir(pattern):
            raise SpecError(f"--input must be a pattern of file names, got the directory {pattern!r}")
        choose_local_engine(options, streaming=False)
        pattern = absolute(pattern)
        if not files_of(pattern):
            raise SpecError(f"--input must match at least one file, got {pattern!r}")
        check_files("--input", pattern)
        if args.manifest is not None and not files_of(args.manifest):
            raise SpecError(f"--manifest must match at least one file, got {args.manifest!r}")
        if args.num_reports == "":
            raise SpecError("--num_reports must be the name of a column, got none")
        return cls(pattern, args.manifest, args.num_reports)

    def check_windows(self, windows: Windows | None) -> None:
        """Refuse counted rows whose periods may begin in one window and end in another."""
        if windows is None:
            return
        for path in files_of(self.pattern):
            with stores.opened(path) as file:
                periods = periods_in(file, self.num_reports) if is_table(file) else set()
            wrong = [one for one in periods if one < 1 or not windows.are_whole(ClientWindow(length=one))]
            if wrong:
                raise SpecError(
                    f"--window must consist of whole periods of {min(wrong)} ms, in which the rows of {path!r} were "
                    "counted, as must --slide and --window_offset; count again with another --period of uldp sql"
                )

    def read(self, pipeline: beam.Pipeline) -> ReadFiles:
        reading = ReadReportFiles(self.pattern, self.manifest, grouped=True, num_reports=self.num_reports)
        return pipeline | "ReadReportFiles" >> reading

    def num_bytes(self) -> int:
        return sum(stores.stamp_of(path)[1] for path in files_of(self.pattern))

    def example(self) -> bytes | None:
        for path in files_of(self.pattern):
            with stores.opened(path) as file:
                found = next(read_reports(file, path, numbers=self.num_reports), None)
                if found and not isinstance(found, Rejection):
                    return bytes(found[0])
        return None
