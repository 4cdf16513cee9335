"""What ``uldp estimate`` finds of this package: the engine of ``--follow``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.companion_engines import Engine, Run
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms_follow.follow_options import FOLLOW, arguments_of, excluded_options


def configured(argv: Sequence[str], parser_of_job: Callable[[], cli.Parser], signals: Signals) -> Run | None:
    """The run of a command line; None if its ``--follow`` is ``false``.

    Raises:
        SpecError, OSError: as ``follow_job``.
    """
    parser, others, args = None, [], arguments_of(argv)
    if args is None:
        parser = parser_of_job()
        args, others = parser.parse_known_args(argv)
        if not args.follow:
            return None
    from uldp_transforms_follow.follow_job import follow_job, run_follow  # noqa: PLC0415  # a help needs no database

    return functools.partial(run_follow, follow_job(args, parser, others), signals)


ENGINE = Engine(option=FOLLOW, last_words=excluded_options, configured=configured)
