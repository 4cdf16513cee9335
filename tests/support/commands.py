"""All programs by name, and as processes that hear Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from uldp_transforms.jobs import uldp


def programs() -> list[str]:
    """The programs that can be started here: of this package, of a checkout, and of companion packages."""
    others = uldp.programs_of_others()
    known = dict.fromkeys((*uldp.PROGRAMS, *uldp.LABORATORY, *sorted(others)))
    return [name for name in known if name not in uldp.COMPANIONS or name in others]


def command(program: str) -> tuple[str, ...]:
    """What runs a program; what a shell starts in the background ignores Ctrl-C, and so would all processes below it.

    Args:
        program: such as ``estimate``.
    """
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += f"from uldp_transforms.jobs.uldp import main; sys.exit(main([{program!r}, *sys.argv[1:]]))"
    return sys.executable, "-c", code


def last_of_each(words: Sequence[str], adding: Iterable[str] = ()) -> list[str]:
    """A command line in which each option has its last value only, for rows of tests that change a valid one.

    Args:
        words: the command line; a repeated option stands before its value.
        adding: options all of whose values count.
    """
    last = {word: at for at, word in enumerate(words) if word.startswith("--") and word not in adding}
    kept: list[str] = []
    skipped = False
    for at, word in enumerate(words):
        if skipped and not word.startswith("--"):
            skipped = False
            continue
        skipped = last.get(word, at) != at
        kept += [] if skipped else [word]
    return kept
