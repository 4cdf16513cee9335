"""Base class of sources of reports: the option that selects it, whether it is bounded, and how it reads."""

from __future__ import annotations

import abc
import argparse
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PCollection

from uldp_transforms.beam.transforms.read_report_files import ReadFiles
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.signals import Stop
from uldp_transforms.windows import Windows


class Source(abc.ABC):
    """Source of reports. To add one, write a file with a subclass and a line in ``SOURCES``."""

    option: ClassVar[str]
    """Option that selects the source, such as ``--input``; a job has exactly one source."""
    help: ClassVar[str]
    """Help text of the option."""
    kind: ClassVar[Any] = str
    """argparse type of the option."""
    is_common: ClassVar[bool] = True
    """Whether the short help of ``uldp estimate`` shows the option."""
    own_options: ClassVar[cli.Options] = {}
    """Further options that only this source takes, with their arguments for argparse; their default is None."""
    bounded: ClassVar[bool]
    """Whether the source is bounded."""
    resumes: ClassVar[bool] = False
    """Whether the next run continues where this one ended, because acknowledged messages are never delivered again."""

    takes_attributes: ClassVar[bool] = False
    """Whether messages have attributes, which can set dimensions."""

    @classmethod
    def variant(cls, args: argparse.Namespace) -> type[Source]:
        """The class for these arguments: a subclass if they determine whether the source is bounded."""
        return cls

    @classmethod
    @abc.abstractmethod
    def of(cls, args: argparse.Namespace, options: PipelineOptions) -> Source:
        """Create the source from a command line; sets the engine options that it needs in Beam's options.

        Raises:
            SpecError: if options contradict each other, or the engine cannot read the source.
        """

    @abc.abstractmethod
    def read(self, pipeline: beam.Pipeline) -> PCollection[bytes] | ReadFiles:
        """Read the messages: the input of ``EstimateReports``."""

    def draining(self, options: PipelineOptions, stop: Stop) -> AbstractContextManager[None] | None:
        """A context in which the pipeline must run, so that it finishes with all rows once ``stop`` is set.

        None if this source does not support this on the selected engine: then stopping means cancelling.
        """
        return None

    def check_access(self, options: PipelineOptions) -> None:  # noqa: B027  # most sources need none
        """Check, before the job starts, that this machine can read the source; raises the errors of its client."""

    def check_windows(self, windows: Windows | None) -> None:  # noqa: B027  # most sources fit all
        """Check that the reports can be assigned to windows; raises SpecError.

        Args:
            windows: None: all reports are in one window.
        """

    def num_bytes(self) -> int | None:
        """Total length of the input files, for progress messages; None for other sources."""
        return None

    def example(self) -> bytes | None:
        """An example message, to describe the format; None if there is none, or if messages can be read only once."""
        return None
