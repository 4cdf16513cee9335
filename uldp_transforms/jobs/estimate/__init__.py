"""The main job: turns perturbed reports into windowed distribution estimates.

Reads Avro files, a Pub/Sub subscription or a Kafka topic. Writes estimates (JSON lines and Avro), rejected reports
(Avro), the ledger and the sentinels' findings (JSON lines) into a directory, and optionally to BigQuery, Pub/Sub and
Kafka.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.companion_engines import engine_of
from uldp_transforms.jobs.engines.signals import CUT_OFF, Signals
from uldp_transforms.ldp.errors import SpecError

_PROGRAM = "estimate"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job with a command line; returns its exit code."""
    with Signals(_PROGRAM) as signals:
        try:
            configured = functools.partial(_configured, signals=signals)
            code = cli.run(_PROGRAM, configured, lambda job: job(), argv, (SpecError,))
        except KeyboardInterrupt:
            print(f"{_PROGRAM}: cancelled before the run began", file=sys.stderr)
            code = CUT_OFF
        return signals.leave(code)


def _configured(argv: Sequence[str], signals: Signals) -> Callable[[], int]:
    """The run of a command line: with the engine of a companion, without the imports of Beam, or with Beam."""
    engine = engine_of(argv)
    run = None if engine is None else engine.configured(argv, _parser, signals)
    if run is not None:
        return run
    from uldp_transforms.jobs.estimate.run import configured_job  # noqa: PLC0415  # imports Beam, which takes seconds

    return configured_job(argv, signals)


def _parser() -> cli.Parser:
    from uldp_transforms.jobs.estimate.options import command_line  # noqa: PLC0415  # as above

    return command_line()
