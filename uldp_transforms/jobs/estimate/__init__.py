"""The main job: perturbed reports in, windowed distribution estimates out.

Reads Avro files, a Pub/Sub subscription or a Kafka topic, and writes estimates (JSON lines and Avro), refused reports
(Avro), the ledger and what sentinels say (JSON lines) into a directory, and if asked to BigQuery and Pub/Sub.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job with a command line; returns its exit code."""
    from uldp_transforms.jobs.estimate.run import main as run  # noqa: PLC0415  # options.py takes its description from here

    return run(argv)
