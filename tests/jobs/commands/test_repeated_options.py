"""Options that are given twice, in every program: no value is lost without a word."""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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


def parser_of(program: str) -> cli.Parser:
    """Its parser, of which no option is required."""
    module = uldp.LABORATORY.get(program, f"uldp_transforms.jobs.{program.replace('-', '_')}")
    parser = cli.parser_of(importlib.import_module(module).main)
    for action in parser.actions():
        action.required = False
    for group in parser._mutually_exclusive_groups:
        group.required = False
    return parser


def options_with_values() -> Iterator[Any]:
    for program in uldp.PROGRAMS:
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


def test_answers_of_two_spellings_both_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """150 of 200 people said yes, in two spellings; no is spelled in two ways too."""
    answers = ["ja"] * 90 + ["jawohl"] * 60 + ["nein"] * 30 + ["nee"] * 20
    (tmp_path / "a.csv").write_text("\n".join(["answer", *answers]), encoding="utf-8")
    words = ["survey", str(tmp_path / "a.csv"), "--design", "direct", "--json", str(tmp_path / "rows")]
    assert uldp.main([*words, "--yes", "ja", "--yes", "jawohl", "--no", "nein", "--no", "nee"]) == 0
    assert "200 of 200 rows are used." in capsys.readouterr().out
    row = json.loads((tmp_path / "rows").read_text(encoding="utf-8"))
    assert (row["num_reports"], row["num_ones"], row["raw_frequency"]) == (200, 150, 0.75)
    assert uldp.main([*words, "--yes", "ja", "--yes", "nein", "--no", "nee", "--no", "nein"]) == 2
    assert capsys.readouterr().err == "survey: --yes and --no must be different texts, got 'nein' for both\n"


def test_covariates_of_two_options_are_both_in_the_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["answer", "age", "female"])
        writer.writerows([int(n % 7 < 3), n % 5, n % 2] for n in range(200))
    words = ["regress", str(tmp_path / "a.csv"), "--design", "direct"]
    assert uldp.main([*words, "--covariates", "age,female"]) == 0
    together = capsys.readouterr().out
    assert uldp.main([*words, "--covariates", "age", "--covariates", "female"]) == 0
    assert capsys.readouterr().out == together


def test_options_of_beam_are_not_overwritten_either(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--collection C.json --input r.avro --output o --window 1h --runner DirectRunner --runner FlinkRunner"
    assert estimate.main(words.split()) == 2
    assert capsys.readouterr().err == "estimate: --runner must have one value, got two different ones\n"
