"""One name of an option has one meaning in all programs, and what a program is about has no name."""

from __future__ import annotations

import argparse
import functools
from collections import defaultdict

from tests.support.programs_of_core import parsers

WORDS = 3
"""Number of first words that the helps of one name share: they say what it is, the others how a program uses it."""


@functools.cache
def places() -> dict[str, list[tuple[str, argparse.Action, str]]]:
    """Program, option and help of each name, or of the word for a positional argument."""
    found = defaultdict(list)
    for program, parser in parsers().items():
        for action in parser.actions():
            name = action.option_strings[-1] if action.option_strings else str(action.metavar)
            found[name].append((program, action, parser.help_of(action)))
    return found


def first_words(text: str) -> str:
    return " ".join(text.split()[:WORDS]).rstrip(",;:")


def is_switch(action: argparse.Action) -> bool:
    return action.nargs in (0, "?")


def test_helps_of_one_name_begin_alike() -> None:
    differing = {
        name: [f"{program}: {text}" for program, _, text in of_name]
        for name, of_name in places().items()
        if len({first_words(text) for _, _, text in of_name}) > 1
    }
    assert not differing
    assert sum(len(of_name) > 1 for of_name in places().values()) > 25


def test_one_name_is_a_switch_everywhere_or_nowhere() -> None:
    assert not [name for name, of_name in places().items() if len({is_switch(one) for _, one, _ in of_name}) > 1]


def test_each_option_has_one_name() -> None:
    """Former names are rows of a table; ``-h`` is the only letter."""
    assert {
        tuple(one.option_strings)
        for of_name in places().values()
        for _, one, _ in of_name
        if len(one.option_strings) > 1
    } == {("-h", "--help")}


def test_collections_and_directories_are_positional_where_they_must_be_given() -> None:
    """Except in the main job: the values of Beam's options, which its parser does not know, would be taken for them."""
    required = {
        (program, name)
        for name, of_name in places().items()
        for program, one, text in of_name
        if one.option_strings and one.required and text.startswith(("JSON file of", "output directory of"))
    }
    assert required == {("estimate", "--collection")}
    assert {program for program, _, _ in places()["DIR"]} == {"reestimate", "compare", "compact", "report", "check"}
    assert {program for program, _, _ in places()["C.json"]} == {"describe", "audit", "export", "sql", "simulate"}
