"""Running the main job: build, start, wait, and look at the books."""

from __future__ import annotations

import collections
import json
import signal
import sys
from collections.abc import Sequence
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import CrossLanguageOptions, StandardOptions
from apache_beam.utils.subprocess_server import JavaJarServer

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rejected_share import sentence_of_sums
from uldp_transforms.rows.ledger_row import imbalance

from .. import cli
from ..runners import DATAFLOW, is_only_launched
from .build import build
from .options import Job, read_arguments

UNBALANCED, MOSTLY_REJECTED = 3, 4


def configure(argv: Sequence[str]) -> tuple[Job, beam.Pipeline]:
    """The job and its pipeline, ready to run; what is wrong shows here."""
    job = read_arguments(argv)
    try:
        pipeline = beam.Pipeline(options=job.options)
    except ImportError as error:
        raise SpecError(f"--runner must be one that Beam can load, got {error}") from None
    services = job.options.view_as(CrossLanguageOptions).beam_services
    with JavaJarServer.beam_services(services):  # by itself Beam heeds this option in "with pipeline" only
        build(pipeline, job)
    for sink in job.sinks:
        sink.prepare()
    return job, pipeline


def run(configured: tuple[Job, beam.Pipeline]) -> int:
    """Run the pipeline; a stream runs until it is told to stop (SIGTERM or Ctrl-C)."""
    job, pipeline = configured
    job.source.check_access(job.options)
    result = pipeline.run()
    if is_only_launched(job.options):
        return cli.DONE
    if not job.spec.bounded:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result.wait_until_finish()
    except KeyboardInterrupt:
        if str(job.options.view_as(StandardOptions).runner) == DATAFLOW:
            print("estimate: the job goes on; drain or cancel it on Dataflow", file=sys.stderr)
            return cli.DONE
        result.cancel()
    return _balance(job.output, job.spec.rejected_share) if job.spec.bounded else cli.DONE


def _balance(directory: str, share: float) -> int:
    """Print what became of the reports of a bounded job; the exit code says whether the ledger balances.

    And, if it does, whether no more than the share of the reports was rejected.
    """
    with FileSystems.open(FileSystems.join(directory, "ledger.jsonl")) as file:
        rows = [json.loads(line) for line in file.read().splitlines()]
    print(f"estimate: {summary(rows)}", file=sys.stderr)
    wrong = [row for row in rows if imbalance(row)]
    for row in wrong:
        print(
            f"estimate: the ledger does not balance for collection {row['collection_id']!r}, window "
            f"{row['window_start']} to {row['window_end']}: {', '.join(imbalance(row))}: do not use this output",
            file=sys.stderr,
        )
    if wrong:
        return UNBALANCED
    rejected = sum((collections.Counter(row["rejected"]) for row in rows), collections.Counter())
    cause = sentence_of_sums(rejected, sum(row["received"] for row in rows), share)
    if cause is not None:
        print(f"estimate: {cause}", file=sys.stderr)
    return cli.DONE if cause is None else MOSTLY_REJECTED


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """What became of the reports of a bounded job, from the rows of its ledger."""
    rejected = sum((collections.Counter(row["rejected"]) for row in rows), collections.Counter())
    reasons = ", ".join(f"{reason} {number}" for reason, number in sorted(rejected.items()))
    received, accepted, duplicates = (sum(row[name] for row in rows) for name in ("received", "accepted", "duplicates"))
    parts = [f"{accepted} accepted", *([f"{duplicates} duplicates"] if duplicates else [])]
    parts.append(f"{rejected.total()} rejected{reasons and f' ({reasons})'}")
    return f"{received} received = {' + '.join(parts)}"


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("estimate", configure, run, argv)
