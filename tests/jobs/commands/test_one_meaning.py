"""One name of an option has one meaning in all programs, and what a program is about has no name."""

from __future__ import annotations

import functools

from tests.support.option_meanings import Places, of_two_meanings, places_of, sometimes_switches
from tests.support.programs_of_core import parsers


@functools.cache
def places() -> Places:
    return places_of(parsers())


def test_helps_of_one_name_begin_alike() -> None:
    assert not of_two_meanings(places())
    assert sum(len(of_name) > 1 for of_name in places().values()) > 20


def test_one_name_is_a_switch_everywhere_or_nowhere() -> None:
    assert not sometimes_switches(places())


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
    assert {program for program, _, _ in places()["DIR"]} == {"reestimate", "check"}
    assert {program for program, _, _ in places()["C.json"]} == {"describe", "audit", "export", "sql"}
