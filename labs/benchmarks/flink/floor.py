"""The least that a job can do: read a topic and count its messages, in a step that does nothing else."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from uldp_transforms.beam.transforms.gather_messages import GATHERED, Gathered
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.sources import KafkaTopic


class _Tally(beam.DoFn):
    """Adds a line to a file at the end of each bundle: how many messages it had."""

    def __init__(self, path: str):
        self._path = path

    def start_bundle(self) -> None:
        self._number = 0

    def process(self, message: Any) -> None:
        self._number += 1

    def finish_bundle(self) -> None:
        if self._number:
            with open(self._path, "a", encoding="ascii") as file:
                file.write(f"{self._number}\n")


class _TallyGroups(_Tally):
    def process(self, message: Gathered) -> None:
        self._number += len(message[0])


def tallied(path: str | os.PathLike[str]) -> int:
    """How many messages have been counted."""
    if not os.path.exists(path):
        return 0
    with open(path, encoding="ascii") as file:
        return sum(map(int, file.read().split()))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m labs.benchmarks.flink.floor", description=__doc__)
    parser.add_argument("--tally", required=True, help="file that gets the numbers")
    parser.add_argument(KafkaTopic.option, required=True)
    cli.add_options(parser, KafkaTopic.own_options)
    args, beam_args = parser.parse_known_args(argv)
    options = PipelineOptions(beam_args)
    source = KafkaTopic.of(args, options)
    with beam.Pipeline(options=options) as pipeline:
        messages = source.read(pipeline)
        tally = _TallyGroups(args.tally) if messages.element_type == GATHERED else _Tally(args.tally)
        _ = messages | "Tally" >> beam.ParDo(tally)
    return 0


if __name__ == "__main__":
    sys.exit(main())
