"""Engines of companions: each runs ``uldp estimate`` in place of Beam, if the command line has its option."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms.jobs.uldp import needs_companion
from uldp_transforms.ldp.errors import SpecError

ENTRY_POINTS = "uldp_transforms.engines"
"""The group of entry points in which companions register engines: ``option = module:ENGINE``."""

ENGINES = {"follow": "follow"}
"""Options that name an engine, and the folder in packages/ of each, which is installed as
``uldp-transforms-FOLDER``."""

Run = Callable[[], int]
"""Runs a job; returns the exit code."""


@dataclasses.dataclass(frozen=True)
class Engine:
    """What a companion registers.

    Attributes:
        option: arguments of its option for argparse.
        last_words: from the parser of ``uldp estimate``, what the end of the long help says of the engine.
        configured: from a command line, a function that makes this parser, and the signals, the run of the job; None
            if the command line does not ask for the engine after all. It raises SpecError or OSError.
    """

    option: Mapping[str, Any]
    last_words: Callable[[cli.Parser], str]
    configured: Callable[[Sequence[str], Callable[[], cli.Parser], Signals], Run | None]


def installed_engines() -> dict[str, Engine]:
    """The engines of companions that are installed, by their options."""
    return {entry.name: entry.load() for entry in entry_points(group=ENTRY_POINTS) if entry.name in ENGINES}


def engine_of(argv: Sequence[str]) -> Engine | None:
    """The engine that a command line names, if any.

    Raises:
        SpecError: if its companion is not installed.
    """
    for name, folder in ENGINES.items():
        if any(word.partition("=")[0] == f"--{name}" for word in argv):
            engine = installed_engines().get(name)
            if engine is None:
                raise SpecError(needs_companion(f"--{name}", folder))
            return engine
    return None
