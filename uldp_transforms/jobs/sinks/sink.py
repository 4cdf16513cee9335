"""What a sink of rows is: the options that name it, and how it writes each kind of row."""

from __future__ import annotations

import abc
import argparse
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PCollection

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.sources import Source


class Output(NamedTuple):
    """One kind of row of a job.

    Attributes:
        name: such as ``estimates``; of files and tables too.
        rows: NamedTuples.
        schema: their Avro schema.
        keyed: whether each row stands for a collection, window and pane of its own.
        late: milliseconds for which rows that wait for the watermark may come behind it; None: they do not, or not so
            that a later run of the same work would tell them otherwise.
    """

    name: str
    rows: PCollection[Any]
    schema: Any
    keyed: bool = True
    late: int | None = None


class Sink(abc.ABC):
    """Destination of rows. To add a sink, write a file with a subclass and a line in ``SINKS``."""

    options: ClassVar[cli.Options]
    """The options that it takes, with their arguments for argparse; ``label``, if any, is the title in a form."""
    takes_counts: bool = False
    """Whether it writes ``counts``; these rows are made only if a sink does."""

    @classmethod
    @abc.abstractmethod
    def of(cls, args: argparse.Namespace, source: type[Source], options: PipelineOptions) -> Sink | None:
        """The sink that a command line names; None if it names none.

        Args:
            args: the command line, with ``run``, the name of the run, and ``rows``, the directory for its rows.
            source: of the reports.
            options: of Beam.

        Raises:
            SpecError: for options that do not go together.
        """

    @abc.abstractmethod
    def write(self, outputs: Sequence[Output]) -> None:
        """Add the steps that write the kinds of rows that this sink takes."""

    def prepare(self) -> None:  # noqa: B027  # most sinks need nothing
        """Make ready what rows are written to, when the job is about to run; raises SpecError or OSError."""
