"""Base class of sinks of rows: the options that select one, and how it writes each kind of row."""

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
        name: name of the kind, such as ``estimates``; also of files and tables.
        rows: PCollection of NamedTuples.
        schema: Avro schema of the rows.
        keyed: whether each row represents a distinct collection, window and pane.
        late: milliseconds after the watermark during which such rows may arrive; None: none arrive, or not in a way
            that repeated work would reproduce.
    """

    name: str
    rows: PCollection[Any]
    schema: Any
    keyed: bool = True
    late: int | None = None


class Sink(abc.ABC):
    """Destination of rows. To add a sink, write a file with a subclass and a line in ``SINKS``."""

    options: ClassVar[cli.Options]
    """Options of the sink, with their arguments for argparse; ``label``, if present, is the title in a form."""
    takes_counts: bool = False
    """Whether the sink writes ``counts``; these rows are produced only if a sink does."""

    takes_values: bool = True
    """Whether the sink writes ``values``; over files and on the local engine, they are produced only if a sink does."""

    notice: str | None = None
    """A sentence about its rows that a job says at its start."""

    @classmethod
    @abc.abstractmethod
    def of(cls, args: argparse.Namespace, source: type[Source], options: PipelineOptions) -> Sink | None:
        """The sink that a command line selects; None if it does not select this one.

        Args:
            args: the parsed command line, with ``run``, the name of the run, and ``rows``, the directory for its rows.
            source: source of the reports.
            options: Beam's options.

        Raises:
            SpecError: if options contradict each other.
        """

    @abc.abstractmethod
    def write(self, outputs: Sequence[Output]) -> None:
        """Add the steps that write the kinds of rows that this sink accepts."""

    def prepare(self) -> None:  # noqa: B027  # most sinks need nothing
        """Prepare the destination just before the job runs; raises SpecError or OSError."""
