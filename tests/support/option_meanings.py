"""The options of programs by their names, and what their helps say first."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping

from uldp_transforms.jobs import cli

WORDS = 3
"""Number of first words that the helps of one name share: they say what it is, the others how a program uses it."""

MOST_WITHOUT_SHORT_HELP = 25

Places = dict[str, list[tuple[str, argparse.Action, str]]]


def places_of(parsers: Mapping[str, cli.Parser]) -> Places:
    """Program, option and help of each name, or of the word for a positional argument."""
    found: Places = defaultdict(list)
    for program, parser in parsers.items():
        for action in parser.actions():
            name = action.option_strings[-1] if action.option_strings else str(action.metavar)
            found[name].append((program, action, parser.help_of(action)))
    return found


def of_two_meanings(places: Places) -> dict[str, list[str]]:
    """Program and help of each place of a name whose helps begin with different words."""
    return {
        name: [f"{program}: {text}" for program, _, text in of_name]
        for name, of_name in places.items()
        if len({" ".join(text.split()[:WORDS]).rstrip(",;:") for _, _, text in of_name}) > 1
    }


def sometimes_switches(places: Places) -> list[str]:
    """Names that are a switch in one program and take a value in another."""
    return [name for name, of_name in places.items() if len({one.nargs in (0, "?") for _, one, _ in of_name}) > 1]
