"""Options that are given twice, in every program: no value is lost without a word."""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.commands import programs
from uldp_transforms.jobs import cli, estimate, uldp
from uldp_transforms.ldp.errors import SpecError

ADD_UP = {
    *("check --acknowledge", "describe --reports", "dev-queue --topic"),
    *("compare --by", "compare --collection", "compare --limits", "compare --quantiles"),
    *("estimate --bootstrap_servers", "estimate --by", "estimate --collection", "estimate --dimension"),
    *("estimate --kafka_property", "estimate --limits", "estimate --quantiles"),
    *("evaluate --epsilons", "evaluate --estimators", "evaluate --mechanisms", "evaluate --missing_texts"),
    "gateway --allow_host",
    *("gateway --allow_origin", "gateway --bootstrap_servers", "gateway --collection", "gateway --dimension"),
    "gateway --kafka_property",
    *("navigations --bootstrap_servers", "navigations --kafka_property", "plan --dimensions", "plan --missing_texts"),
    *("reestimate --by", "reestimate --collection", "reestimate --limits"),
    *("reestimate --quantiles", "regress --base", "regress --categories"),
    *(
        "regress --covariates",
        "regress --no",
        "regress --yes",
        "simulate --dimension_column",
        "simulate --missing_texts",
    ),
    *("report --collection", "report --missing_texts", "report --value", "survey --no", "survey --yes"),
}
"""Program and option; every other option of every program has one value."""

TEXTS = (
    *("krr", "urr", "eb", "projected", "country", "arm", "1", "2", "0.25", "0.5", "1h", "2h", "true", "false"),
    *("a=b", "c=d", "a=header:A", "c=header:C", "a=attribute:A", "c=attribute:C", "pp:d_1", "pp:d_2"),
    *("projects/p/topics/a", "projects/p/topics/b", "projects/p/subscriptions/a", "projects/p/subscriptions/b"),
)


@functools.cache
def parser_of(program: str) -> cli.Parser:
    """Its parser, of which no option is required."""
    parser = cli.parser_of(lambda words: uldp.main([program, *words]))
    for action in parser.actions():
        action.required = False
    for group in parser._mutually_exclusive_groups:
        group.required = False
    return parser


def options_with_values() -> Iterator[Any]:
    for program in programs():
        for action in parser_of(program).actions():
            if action.option_strings and action.nargs != 0 and not isinstance(action, argparse._HelpAction):
                yield pytest.param(program, action.dest, id=f"{program} {action.option_strings[0]}")


def two_texts(parser: cli.Parser, action: argparse.Action) -> list[str]:
    """Texts that the option takes, with different values."""
    found: dict[str, Any] = {}
    for text in action.choices or TEXTS:
        with contextlib.suppress(argparse.ArgumentError, argparse.ArgumentTypeError, SpecError):
            value = parser._get_value(action, text)
            if value not in found.values():
                found[text] = value
    return list(found)[:2]


@pytest.mark.parametrize(("program", "dest"), list(options_with_values()))
def test_a_second_value_is_added_or_refused(program: str, dest: str) -> None:
    parser = parser_of(program)
    [action, *_] = [each for each in parser.actions() if each.dest == dest]
    option = action.option_strings[0]
    texts = two_texts(parser, action)
    if len(texts) < 2:
        assert len(action.choices or ()) == 1
        return
    first, second = texts
    alone = [vars(parser.parse_known_args([option, text])[0])[dest] for text in (first, second)]
    assert alone[0] != alone[1]
    same = vars(parser.parse_known_args([option, first, option, first])[0])[dest]
    if f"{program} {option}" in ADD_UP:
        both = vars(parser.parse_known_args([option, first, option, second])[0])[dest]
        assert both == (f"{first},{second}" if isinstance(both, str) else type(both)([*alone[0], *alone[1]]))
    else:
        assert same == alone[0]
        with pytest.raises(SpecError, match=rf"^{option} must have one value, got two different ones$"):
            parser.parse_known_args([option, first, option, second])


def test_every_option_that_adds_up_exists() -> None:
    assert {f"{each.values[0]} {each.id.split()[1]}" for each in options_with_values()} >= ADD_UP


# ---------------------------------------------------------------------- what comes out


def test_options_of_beam_are_not_overwritten_either(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--collection C.json --input r.avro --output o --window 1h --runner DirectRunner --runner FlinkRunner"
    assert estimate.main(words.split()) == 2
    assert capsys.readouterr().err == "estimate: --runner must have one value, got two different ones\n"
