"""The main job: turns perturbed reports into windowed distribution estimates.

Reads Avro files, a Pub/Sub subscription or a Kafka topic. Writes estimates (JSON lines and Avro), rejected reports
(Avro), the ledger and the sentinels' findings (JSON lines) into a directory, and optionally to BigQuery, Pub/Sub and
Kafka.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job with a command line; returns its exit code."""
    from uldp_transforms.jobs.estimate.start import main as run  # noqa: PLC0415  # options.py takes its description from here

    return run(argv)
