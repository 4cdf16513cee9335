"""What a source of reports is: an option that names it, whether it ends, and how it reads."""

from __future__ import annotations

import abc
import argparse
import threading
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PCollection

from uldp_transforms.beam.transforms.read_report_files import ReadFiles
from uldp_transforms.jobs import cli


class Source(abc.ABC):
    """Source of reports. To add one, write a file with a subclass and a line in ``SOURCES``."""

    option: ClassVar[str]
    """The option that names it, such as ``--input``; a job has exactly one source."""
    help: ClassVar[str]
    """Help text of the option."""
    kind: ClassVar[Any] = str
    """argparse type of the option."""
    own_options: ClassVar[cli.Options] = {}
    """Further options that only this source takes, with their arguments for argparse; their default is None."""
    bounded: ClassVar[bool]
    """Whether it ends."""
    resumes: ClassVar[bool] = False
    """Whether the next run goes on where this one ended, because what was acknowledged never comes again."""

    @classmethod
    def variant(cls, args: argparse.Namespace) -> type[Source]:
        """The class for these arguments: a subclass if it depends on them whether the source ends."""
        return cls

    @classmethod
    @abc.abstractmethod
    def of(cls, args: argparse.Namespace, options: PipelineOptions) -> Source:
        """The source that a command line names; sets what the engine needs for it in the options of Beam.

        Raises:
            SpecError: for options that do not go together, or an engine that cannot read it.
        """

    @abc.abstractmethod
    def read(self, pipeline: beam.Pipeline) -> PCollection[bytes] | ReadFiles:
        """Read the messages: the input of ``EstimateReports``."""

    def draining(self, options: PipelineOptions, stop: threading.Event) -> AbstractContextManager[None] | None:
        """A block in which the pipeline must run so that it ends by itself, with all rows, once ``stop`` is set.

        None if this source cannot do that on the engine of these options: then to stop is to cancel.
        """
        return None

    def check_access(self, options: PipelineOptions) -> None:  # noqa: B027  # most sources need none
        """Check, before the job starts, that this machine may read the source; raises what its client raises."""

    def example(self) -> bytes | None:
        """One of the messages, to say what they look like; None: there is none, or they come only once."""
        return None
